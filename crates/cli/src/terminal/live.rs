//! The live line of the sidecar, once a second and only where someone watches.

use gleaner_base::live_line::LiveLine;
use gleaner_http::{Governors, SendGovernor, Status};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often the line is drawn; also the span over which the accepted rate is taken.
const EVERY: Duration = Duration::from_secs(1);

/// Draws the line for ever.
pub(crate) async fn follow(live: &LiveLine, governors: &Governors) -> Infallible {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = 0;
    loop {
        ticks.tick().await;
        if !live.is_shown() {
            continue;
        }
        let keys: Vec<Status> = governors.all().iter().map(SendGovernor::status).collect();
        let accepted = keys.iter().map(|key| key.accepted).sum();
        live.show(|| line(&keys, u64::saturating_sub(accepted, before)));
        before = accepted;
    }
}

/// What is going on, in one line.
fn line(keys: &[Status], accepted_per_s: u64) -> String {
    let waiting: usize = keys.iter().map(|key| key.waiting).sum();
    let refused: u64 = keys.iter().map(|key| key.rejected).sum();
    let pace = match keys {
        [key] => {
            let rate = key.rate_per_s.map_or_else(|| "not paced".to_owned(), |rate| format!("learned {rate:.1}/s"));
            let ceiling = key.ceiling_interval_ms.map_or(0.0, |interval| 1000.0 / interval);
            format!("{rate}, ceiling {ceiling:.1}/s{}", trouble(key))
        }
        keys => format!("{} keys", keys.len()),
    };
    format!("{accepted_per_s}/s accepted | {pace} | {waiting} waiting | {refused} refused")
}

/// What stands in the way of everyone, if anything does.
fn trouble(key: &Status) -> String {
    match (&key.gate_until, key.breaker) {
        (_, "open") => ", circuit open".to_owned(),
        (Some(until), _) => format!(", closed until {until}"),
        _ => String::new(),
    }
}
