//! A program without an async runtime: four threads, one client, one limit.
//!
//! Without an argument it starts a provider of its own that allows 15 requests per second. With a URL it
//! asks that one instead.
//!
//! `cargo run -p gleaner-http --example blocking [URL]`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

mod provider;

use gleaner_http::blocking::Client;
use gleaner_http::client::Error as CallError;
use std::error::Error;
use std::thread;
use std::time::Instant;

/// Threads that ask at the same time.
const THREADS: u32 = 4;
/// Requests of each.
const REQUESTS: u32 = 30;

fn main() -> Result<(), Box<dyn Error>> {
    let url = match std::env::args().nth(1) {
        Some(url) => url,
        None => provider::start(15.0)?,
    };
    let client = Client::new("example")?;

    let start = Instant::now();
    let results: Vec<Result<(), CallError>> = thread::scope(|scope| {
        let threads: Vec<_> = (1..=THREADS).map(|number| (number, scope.spawn(|| collect(&client, &url)))).collect();
        let joined = threads.into_iter().map(|(number, thread)| {
            let result = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            println!("thread {number} is done after {:.1} s", start.elapsed().as_secs_f64());
            result
        });
        joined.collect()
    });
    results.into_iter().collect::<Result<(), _>>()?;

    let status = client.governor().status();
    println!();
    println!(
        "{} answered in {:.1} s, {} refused on the way.",
        THREADS * REQUESTS,
        start.elapsed().as_secs_f64(),
        status.rejected
    );
    println!("The rate that was found: {:.1} per second.", status.rate_per_s.unwrap_or_default());
    Ok(())
}

fn collect(client: &Client, url: &str) -> Result<(), CallError> {
    for _ in 0..REQUESTS {
        let page: serde_json::Value = client.get(url).send()?.error_for_status()?.json()?;
        drop(page);
    }
    Ok(())
}
