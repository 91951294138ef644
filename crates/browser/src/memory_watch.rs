//! Watches over what a browser takes of the memory, and over its end.

use crate::connection::{Connection, Counterpart};
use crate::process::BrowserProcess;
use std::sync::Weak;
use std::thread;
use std::time::Duration;

/// How often its memory is looked at.
const WATCH_EVERY: Duration = Duration::from_secs(2);
/// So that nothing of a browser that is gone is kept for long.
const STEP: Duration = Duration::from_millis(200);
/// How long what is left of a browser that is gone may take to end by itself.
const LEFT_MAX: Duration = Duration::from_secs(2);

/// Ends a browser that takes too much memory, and says so to whoever waits for it. When it is gone for another reason,
/// nothing of it is left soon after, though nobody may have noticed yet.
pub(crate) fn watch<C: Counterpart>(connection: &Connection<C>, process: &Weak<BrowserProcess>, max: u64) {
    let mut waited = Duration::ZERO;
    while connection.gone().is_none() {
        thread::sleep(STEP);
        waited += STEP;
        if waited < WATCH_EVERY {
            continue;
        }
        waited = Duration::ZERO;
        let Some(process) = process.upgrade() else { return };
        let bytes = process.memory();
        if bytes > max {
            connection.set_gone(&format!("it took {bytes} bytes of memory, {max} are allowed"));
            process.kill();
        }
    }
    let mut left = LEFT_MAX;
    while !left.is_zero() && process.strong_count() > 0 {
        thread::sleep(STEP);
        left = left.saturating_sub(STEP);
    }
    if let Some(process) = process.upgrade() {
        process.kill();
    }
}
