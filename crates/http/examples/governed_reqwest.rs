//! The shortest way in: a client that knows nothing but a name, and finds the limit by itself.
//!
//! Without an argument it starts a provider of its own that allows 20 requests per second and tells
//! nobody. With a URL it asks that one instead, 300 times.
//!
//! `cargo run -p gleaner-http --example governed_reqwest [URL]`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

mod provider;

use gleaner_http::GovernedClient;
use std::error::Error;
use std::time::{Duration, Instant};

/// Enough to see it search, find and stay.
const REQUESTS: u32 = 300;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = match std::env::args().nth(1) {
        Some(url) => url,
        None => provider::start(20.0)?,
    };
    let client = GovernedClient::new("example")?;

    let start = Instant::now();
    let mut waited = Duration::ZERO;
    println!("{:>7} {:>9} {:>8} {:>12} {:>8}", "time", "answered", "refused", "rate found", "mode");
    for number in 1..=REQUESTS {
        // All there is to it: refusals are repeated inside, in time and within bounds.
        let response = client.get(&url).send().await?.error_for_status()?;
        waited += response.waited();
        response.bytes().await?;
        if number % 30 == 0 {
            let status = client.governor().status();
            let (rate, mode) = (status.rate_per_s.unwrap_or_default(), status.mode.unwrap_or("unpaced"));
            let time = start.elapsed().as_secs_f64();
            println!("{time:>5.1} s {number:>9} {:>8} {rate:>10.1}/s {mode:>8}", status.rejected);
        }
    }

    let (time, status) = (start.elapsed(), client.governor().status());
    println!();
    println!("{REQUESTS} answered in {:.1} s, {} refused on the way.", time.as_secs_f64(), status.rejected);
    println!("It waited {:.1} s of that for its turn.", waited.as_secs_f64());
    Ok(())
}
