//! The paces that were learned, in a file of the folder: a restart goes on with them, and a ban outlives a kill.

use crate::memory::replace;
use gleaner_governor::keyed::{Domain, Registry};
use gleaner_governor::{Learned, Time, WallTime};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use super::url_list::Lines;

#[derive(Deserialize, Serialize)]
struct Line<'a> {
    host: std::borrow::Cow<'a, str>,
    learned: std::borrow::Cow<'a, str>,
}

/// Where the file is.
pub(crate) fn path(root: &Path) -> PathBuf {
    root.join("hosts.jsonl")
}

/// Reads it. What cannot be read is no memory.
pub(crate) fn load(file: &Path, registry: &Registry, now: Time, wall_now: WallTime) {
    let Ok(file) = File::open(file) else { return };
    let mut lines = Lines::new(BufReader::new(file));
    while let Ok(Some((_, line))) = lines.next() {
        let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else { continue };
        if let (Ok(domain), Some(learned)) = (Domain::parse(&line.host), Learned::decode(line.learned.as_bytes())) {
            registry.restore(&domain, &learned, now, wall_now);
        }
    }
}

/// Replaces it. Blocks.
pub(crate) fn save(file: &Path, registry: &Registry, now: Time, wall_now: WallTime) -> io::Result<()> {
    let mut text = String::new();
    registry.learned(now, wall_now, |host, learned| {
        let line = Line { host: host.into(), learned: learned.to_string().into() };
        if let Ok(json) = serde_json::to_string(&line) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{json}");
        }
    });
    replace(file, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_governor::keyed::{Admission, Config, Feedback};
    use std::time::Duration;

    #[test]
    fn a_restart_goes_on_with_the_gates_of_the_last_run_and_survives_any_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = path(folder.path());
        let now = Time::ZERO + Duration::from_secs(100_000);
        let wall = WallTime::from_unix_millis(1_700_000_000_000);
        let domain = Domain::parse("a.example:8080").unwrap();
        let first = Registry::new(Config::default(), 1).unwrap();
        let handle = first.handle(&domain, now).unwrap();
        let Admission::Send(permit) = first.acquire(&handle, now, now) else { panic!() };
        first.feedback(&handle, permit, &Feedback::status(429, Some(Duration::from_secs(60))), now);
        save(&file, &first, now, wall).unwrap();

        let second = Registry::new(Config::default(), 2).unwrap();
        load(&file, &second, now, wall);
        let handle = second.handle(&domain, now).unwrap();
        let answer = second.acquire(&handle, now, now);
        assert!(matches!(answer, Admission::WaitUntil(at) if at > now + Duration::from_secs(50)), "{answer:?}");
        std::fs::write(&file, "\0\n{}\n{\"host\":\"..\",\"learned\":\"x\"}\n{\"host\":1}").unwrap();
        let third = Registry::new(Config::default(), 3).unwrap();
        load(&file, &third, now, wall);
        assert!(third.is_empty());
    }
}
