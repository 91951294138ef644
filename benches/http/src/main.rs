//! What being governed costs: requests per second next to the same without, in one run.
//!
//! `http_overhead [seconds]`, or `scripts/bench-http [seconds]`, which also counts instructions (`count.rs`). Pacing is opted out, so nothing waits
//! and only the overhead is left. Everything is on loopback: a minimal server, small bodies, kept
//! connections, 32 callers at a time.
//!
//! Clients are measured twice: on all cores, as a program with `#[tokio::main]` runs, which decides; and on one
//! thread, where nothing but the client's own work limits them, which is harsher and only told.
//!
//! The machine may be busy with something else. So no figure is compared with one of another run: all
//! sides take turns in slices of a twentieth of a second, and what counts is the median of the ratios of
//! slices that lie next to each other. Beside it stands the same ratio by CPU time of the one thread that
//! does the work, which a busy neighbour disturbs less; it says more, and decides nothing.

mod clients;
mod count;
mod proxies;
mod rounds;
mod server;

use rounds::Measured;
use std::process::ExitCode;
use std::time::Duration;

/// Callers at a time.
const CALLERS: usize = 32;
/// How long each experiment takes unless told otherwise: some 100 rounds of three sides.
const SECONDS: u64 = 45;
/// What the client and the middleware must make of bare reqwest.
const CLIENT_RATIO_MIN: f64 = 0.90;
/// What the sidecar must make of a plain reverse proxy.
const SIDECAR_RATIO_MIN: f64 = 0.60;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match *args {
        [] => Some(measure(SECONDS)),
        ["serve"] => {
            count::serve();
            Some(true)
        }
        ["ask", side, url, requests] => {
            requests.parse().ok().filter(|&requests| count::ask(side, url, requests)).map(|_| true)
        }
        [seconds] => seconds.parse().ok().map(measure),
        _ => None,
    };
    match done {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => {
            eprintln!("usage: http_overhead [seconds] | serve | ask reqwest|middleware|client <url> <requests>");
            ExitCode::from(2)
        }
    }
}

/// All experiments; `false` when a side is below its bound.
fn measure(seconds: u64) -> bool {
    let third = Duration::from_secs(seconds) / 3;
    let upstream = server::start();
    let mut good = true;
    let usual = clients::measure(upstream, &server::usual_runtime(), third);
    good &= show("client", &usual, CLIENT_RATIO_MIN);
    show("client, one thread", &clients::measure(upstream, &server::runtime(), third), 0.0);
    good &= show("reverse proxy", &proxies::measure(upstream, third), SIDECAR_RATIO_MIN);
    good
}

/// Prints one experiment; `false` when a side is below the bound.
fn show(title: &str, sides: &[Measured], bound: f64) -> bool {
    println!("{title:<20} {:>10} {:>7}   middle half     by CPU time", "requests/s", "ratio");
    for side in sides {
        let [low, median, high] = side.ratio;
        let by_cpu = side.cpu_ratio.map_or_else(|| "-".to_owned(), |[_, median, _]| format!("{median:.3}"));
        println!("{:<20} {:>10.0} {median:>7.3}   {low:.3} to {high:.3}  {by_cpu:>6}", side.name, side.per_second);
    }
    let low: Vec<_> = sides.iter().filter(|side| side.ratio[1] < bound).collect();
    for side in &low {
        println!("FAIL: {} makes less than {bound:.2} of {}", side.name, sides[0].name);
    }
    println!();
    low.is_empty()
}
