//! One live line on stderr while the sidecar runs, once a second and only where someone watches.

use gleaner_http::{Governors, SendGovernor, Status};
use std::convert::Infallible;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often the line is drawn; also the span over which the accepted rate is taken.
const EVERY: Duration = Duration::from_secs(1);
/// Back to the start of the line, and nothing on it.
const CLEAR: &str = "\r\x1b[K";

/// The live line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveLine {
    is_shown: bool,
}

impl LiveLine {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { is_shown: !quiet && io::stderr().is_terminal() }
    }

    /// Draws the line for ever.
    pub(crate) async fn follow(&self, governors: &Governors) -> Infallible {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = 0;
        loop {
            ticks.tick().await;
            if !self.is_shown {
                continue;
            }
            let keys: Vec<Status> = governors.all().iter().map(SendGovernor::status).collect();
            let accepted = keys.iter().map(|key| key.accepted).sum();
            let text = line(&keys, u64::saturating_sub(accepted, before));
            before = accepted;
            self.write(&format!("{CLEAR}{}", shortened(&text, width())));
        }
    }

    /// Takes the line away, before anything else is written.
    pub(crate) fn clear(&self) {
        self.write(CLEAR);
    }

    fn write(&self, text: &str) {
        if self.is_shown {
            // That nobody reads stderr is no reason to stop.
            let mut stderr = io::stderr().lock();
            let _shown = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
        }
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

/// Cut to `width`, since a line that wraps cannot be taken away.
fn shortened(text: &str, width: usize) -> String {
    text.chars().take(width.saturating_sub(1)).collect()
}

fn width() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0))
}
