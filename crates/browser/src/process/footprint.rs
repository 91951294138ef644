//! Watches a browser's memory and disk usage, and its end.

use crate::engine::connection::{Connection, Counterpart};
use crate::process::BrowserProcess;
use crate::profile::size;
use std::path::Path;
use std::sync::Weak;
use std::thread;
use std::time::{Duration, Instant};

/// Poll interval of its memory, and of its profile if that is fast.
const WATCH_EVERY: Duration = Duration::from_secs(2);
/// Measuring a profile with very many files is slow: it may take one part in this many of the time.
const PROFILE_LOOK_SHARE: u32 = 50;
/// Short, so that a gone browser is released soon.
const STEP: Duration = Duration::from_millis(200);
/// Time for the rest of a gone browser to exit.
const LEFT_MAX: Duration = Duration::from_secs(2);

/// Ends a browser that uses too much memory or disk, and reports it to waiting callers. If it is gone for another
/// reason, its remaining processes are ended soon after.
pub(crate) fn watch<C: Counterpart>(connection: &Connection<C>, process: &Weak<BrowserProcess>, profile: &Path) {
    let (mut waited, mut profile_due) = (Duration::ZERO, Instant::now());
    let limits = connection.look(|known| known.pages().limits);
    // Downloads are in the profile, and have their own limit.
    let profile_max = limits.profile_bytes_max.saturating_add(limits.download_bytes_max);
    while connection.gone().is_none() {
        thread::sleep(STEP);
        waited += STEP;
        if waited < WATCH_EVERY {
            continue;
        }
        waited = Duration::ZERO;
        let Some(process) = process.upgrade() else { return };
        let mut too_much = too_large("it took", process.memory(), "of memory", limits.memory_bytes_max);
        if too_much.is_none() && profile_due <= Instant::now() {
            let began = Instant::now();
            too_much = too_large("its profile took", size(profile), "of the disk", profile_max);
            profile_due = Instant::now() + began.elapsed() * PROFILE_LOOK_SHARE;
        }
        if let Some(why) = too_much {
            connection.set_gone(&why);
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

fn too_large(who: &str, bytes: u64, of: &str, max: u64) -> Option<String> {
    (bytes > max).then(|| format!("{who} {bytes} bytes {of}, {max} are allowed"))
}
