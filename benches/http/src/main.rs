//! What being governed costs: requests per second next to the same without, in one run.
//!
//! `http_overhead [seconds]`, or `scripts/bench-http [seconds]`, which also counts instructions
//! (`count.rs`). Pacing is opted out, so nothing waits and only the overhead is left. Everything is on
//! loopback: a minimal server, small bodies, kept connections, 32 callers at a time.
//!
//! Clients are measured twice: on all cores, as a program with `#[tokio::main]` runs, and on one thread,
//! where nothing but the client's own work limits them, which is harsher.
//!
//! The machine may be busy with something else. So no figure is compared with one of another run: all
//! sides take turns in slices of a twentieth of a second, and what counts is the median of the ratios of
//! slices that lie next to each other. Beside it stands the same ratio by CPU time of the one thread that
//! does the work: requests per second that the thread was on a core. A busy neighbour disturbs that less,
//! so on one thread it is what decides on the client; where the system does not tell it, the rate does.
//! The middleware has no bound of its own.

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
/// What the client must make of bare reqwest.
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
    show("client", &clients::measure(upstream, &server::usual_runtime(), third));
    let on_one_thread = clients::measure(upstream, &server::runtime(), third);
    show("client, one thread", &on_one_thread);
    let proxies = proxies::measure(upstream, third);
    show("reverse proxy", &proxies);
    let decisive = |side: &Measured| side.cpu_ratio.unwrap_or(side.ratio)[1];
    let client_is_good = keeps(&on_one_thread, CLIENT_RATIO_MIN, decisive);
    let sidecar_is_good = keeps(&proxies, SIDECAR_RATIO_MIN, |side| side.ratio[1]);
    client_is_good && sidecar_is_good
}

/// Prints one experiment.
fn show(title: &str, sides: &[Measured]) {
    println!("{title:<20} {:>10} {:>7}   middle half     by CPU time", "requests/s", "ratio");
    for side in sides {
        let [low, median, high] = side.ratio;
        let by_cpu = side.cpu_ratio.map_or_else(|| "-".to_owned(), |[_, median, _]| format!("{median:.3}"));
        println!("{:<20} {:>10.0} {median:>7.3}   {low:.3} to {high:.3}  {by_cpu:>6}", side.name, side.per_second);
    }
    println!();
}

/// Says whether the last side makes as much of the first one as is promised.
fn keeps(sides: &[Measured], bound: f64, ratio: impl Fn(&Measured) -> f64) -> bool {
    let (first, last) = (&sides[0], &sides[sides.len() - 1]);
    let is_good = ratio(last) >= bound;
    let verdict = if is_good { "ok" } else { "FAIL" };
    println!("{verdict}: {} makes {:.3} of {}; at least {bound:.2} is promised", last.name, ratio(last), first.name);
    is_good
}
