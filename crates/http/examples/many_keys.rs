//! Several providers and accounts side by side: each has its own limit, and none delays another.
//!
//! Without arguments it starts three providers of its own. One of them is asked by two accounts, and by
//! two clients of the same account, which share one limit. With URLs it asks those instead.
//!
//! `cargo run -p gleaner-http --example many_keys [URL]…`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

mod provider;

use gleaner_http::client::Error as CallError;
use gleaner_http::{GovernedClient, Governors};
use std::error::Error;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Long enough for the fastest of the providers to be found.
const RUN: Duration = Duration::from_secs(16);
/// Time between two tables.
const SHOW_EVERY: Duration = Duration::from_secs(4);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let end = Instant::now() + RUN;
    let mut callers = JoinSet::new();
    for (client, url) in clients()? {
        callers.spawn(call_until(end, client, url));
    }
    loop {
        match timeout(SHOW_EVERY, callers.join_next()).await {
            Ok(Some(finished)) => finished??,
            Ok(None) => break,
            Err(_it_is_time_for_a_table) => show(),
        }
    }
    show();
    Ok(())
}

fn clients() -> Result<Vec<(GovernedClient, String)>, Box<dyn Error>> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if !urls.is_empty() {
        let clients = urls.into_iter().enumerate();
        let clients = clients.map(|(number, url)| Ok((GovernedClient::new(&format!("provider-{number}"))?, url)));
        return clients.collect();
    }
    let (slow, middling, fast) = (provider::start(2.0)?, provider::start(8.0)?, provider::start(40.0)?);
    let account = |token: &str| GovernedClient::builder("middling").bearer(token).build();
    Ok(vec![
        (GovernedClient::new("slow")?, slow),
        (account("anna")?, middling.clone()),
        (account("anna")?, middling.clone()),
        (account("bert")?, middling),
        (GovernedClient::new("fast")?, fast),
    ])
}

async fn call_until(end: Instant, client: GovernedClient, url: String) -> Result<(), CallError> {
    while Instant::now() < end {
        let left = end - Instant::now();
        match client.get(&url).max_wait(left).send().await {
            Ok(response) => drop(response.bytes().await?),
            // Its next turn comes after the end.
            Err(CallError::Refused(_)) => return Ok(()),
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

/// One row per key: the two clients of one account are one.
fn show() {
    println!("{:<28} {:>6} {:>8} {:>10} {:>10} {:>8}", "key", "sent", "refused", "rate/s", "waits for", "p95 ms");
    for governor in Governors::global().all() {
        let status = governor.status();
        let rate = status.rate_per_s.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
        let p95 = status.wait_p95_ms.map_or_else(|| "-".to_owned(), |ms| ms.to_string());
        let waits = status.waiting_for.unwrap_or("-");
        println!("{:<28} {:>6} {:>8} {rate:>10} {waits:>10} {p95:>8}", status.key, status.sent, status.rejected);
    }
    println!();
}
