//! Chromium's own lock: a link `SingletonLock` to `host-pid`, left behind by a killed browser.
//!
//! We hold the profile's lock here, so it does not belong to a current run of ours: its browser is dead, about to
//! end, or started by hand.

use crate::error::BrowserError;
use crate::notice::Notice;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const LOCK: &str = "SingletonLock";
/// All files that such a browser leaves.
const LEFT: [&str; 3] = [LOCK, "SingletonSocket", "SingletonCookie"];
/// A browser of a killed run exits within this time, or is killed.
const ENDING_MAX: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Removes files of a dead browser. Waits for a living one, and then names it.
pub(super) fn clear(profile: &Path, last_host: Option<&str>) -> Result<Option<Notice>, BrowserError> {
    let began = Instant::now();
    loop {
        let target = match fs::read_link(profile.join(LOCK)) {
            Ok(target) => target.to_string_lossy().into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            // A regular file, which Chromium never creates: it would not start.
            Err(_) => String::new(),
        };
        match judge(&target, &host(), last_host, |pid| has_open(pid, profile)) {
            Verdict::Stale { pid } => {
                remove(profile)?;
                return Ok(Some(Notice::StaleLockRemoved(pid)));
            }
            Verdict::Elsewhere { host, pid } => {
                return Err(BrowserError::ProfileInUse { path: profile.to_owned(), pid, host: Some(host) });
            }
            Verdict::Alive { pid } if began.elapsed() >= ENDING_MAX => {
                return Err(BrowserError::ProfileInUse { path: profile.to_owned(), pid, host: None });
            }
            Verdict::Alive { .. } => thread::sleep(POLL_INTERVAL),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The process is gone; zero when it is unknown.
    Stale { pid: u32 },
    /// The process has the profile open.
    Alive { pid: u32 },
    /// The process is on another machine, of which we know nothing.
    Elsewhere { host: String, pid: u32 },
}

/// Interprets the link. A renamed machine or a recreated container is another host; but if that host was the last to
/// use the profile according to our own lock file, that run is over, and its browser too.
fn judge(target: &str, here: &str, last_host: Option<&str>, is_open_in: impl Fn(u32) -> bool) -> Verdict {
    let Some((host, pid)) = target.rsplit_once('-').and_then(|(host, pid)| Some((host, pid.parse().ok()?))) else {
        return Verdict::Stale { pid: 0 };
    };
    if host != here && last_host != Some(host) {
        return Verdict::Elsewhere { host: host.to_owned(), pid };
    }
    if host == here && is_open_in(pid) { Verdict::Alive { pid } } else { Verdict::Stale { pid } }
}

/// The name of this machine, as Chromium writes it.
pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whether this process is a browser with this profile. Process ids are reused, so being alive is not enough.
fn has_open(pid: u32, profile: &Path) -> bool {
    let Ok(words) = fs::read(format!("/proc/{pid}/cmdline")) else {
        // No such process; or no `/proc` on this system, and then a living one is assumed to be it.
        return !Path::new("/proc/self").exists() && is_alive(pid);
    };
    // A zombie has no arguments.
    let expected = format!("--user-data-dir={}", profile.display());
    words.split(|&byte| byte == 0).any(|word| word == expected.as_bytes())
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

fn remove(profile: &Path) -> Result<(), BrowserError> {
    for name in LEFT {
        let path = profile.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(BrowserError::file("remove", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_of_a_dead_process_is_stale_and_one_of_a_living_browser_is_named() {
        let judge = |target, last| judge(target, "here", last, |pid| pid == 7);
        assert_eq!(judge("here-7", None), Verdict::Alive { pid: 7 });
        assert_eq!(judge("here-8", None), Verdict::Stale { pid: 8 });
        assert_eq!(judge("garbage", None), Verdict::Stale { pid: 0 });
        assert_eq!(judge("", None), Verdict::Stale { pid: 0 });
        assert_eq!(judge("here-x", None), Verdict::Stale { pid: 0 });
        let elsewhere = Verdict::Elsewhere { host: "other-host".to_owned(), pid: 7 };
        assert_eq!(judge("other-host-7", None), elsewhere);
        assert_eq!(judge("other-host-7", Some("third")), elsewhere);
        assert_eq!(judge("other-host-7", Some("other-host")), Verdict::Stale { pid: 7 }, "a container made anew");
    }

    #[test]
    fn a_process_that_is_no_browser_with_this_profile_does_not_have_it_open() {
        assert!(!has_open(std::process::id(), Path::new("/nowhere")));
        assert!(!has_open(u32::MAX, Path::new("/nowhere")));
    }
}
