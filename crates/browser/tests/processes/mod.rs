//! The processes of this machine, as the tests look at them: apart from the code that they test.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// No process of a browser is left after this time.
pub(crate) const GONE_MAX: Duration = Duration::from_secs(5);

/// The program that is started and killed: `examples/browser_driver.rs`.
pub(crate) fn driver() -> PathBuf {
    let ourselves = std::env::current_exe().unwrap();
    let path = ourselves.ancestors().nth(2).unwrap().join("examples/browser_driver");
    assert!(path.exists(), "build it first: cargo build -p gleaner-browser --example browser_driver");
    path
}

pub(crate) fn words(pid: i32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// All whose words have each of these.
pub(crate) fn with_words(wanted: &[&str]) -> Vec<i32> {
    let has_all = |pid: &i32| wanted.iter().all(|wanted| words(*pid).iter().any(|word| word == wanted));
    all().into_iter().filter(has_all).collect()
}

/// Every process of a browser with this profile: the browser, what it started, what reports its crashes, and what drives
/// it. Some write all their words as one; some name the profile only in what they were started with.
pub(crate) fn of_profile(profile: &Path) -> Vec<i32> {
    let profile = profile.display().to_string();
    let by_words = |pid: i32| words(pid).iter().any(|word| word.contains("--") && word.contains(&profile));
    let variable = format!("BREAKPAD_DUMP_LOCATION={profile}/");
    let by_variable = |pid: i32| {
        let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        bytes.split(|&byte| byte == 0).any(|one| one.starts_with(variable.as_bytes()))
    };
    all().into_iter().filter(|&pid| by_words(pid) || by_variable(pid)).collect()
}

/// The program that drives the browser, where that is one of its own.
pub(crate) fn driver_of(profile: &Path) -> i32 {
    let is_driver = |pid: &i32| words(*pid).iter().any(|word| word == "run-driver");
    of_profile(profile).into_iter().find(is_driver).unwrap()
}

/// The browser itself: the one that is no helper of it.
pub(crate) fn browser_leader(profile: &Path) -> i32 {
    let is_leader = |pid: &i32| {
        let words = words(*pid);
        words.iter().any(|word| word == "--remote-debugging-pipe")
            && !words.iter().any(|word| word.starts_with("--type="))
    };
    of_profile(profile).into_iter().find(is_leader).unwrap()
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// The same, for the words about them.
pub(crate) fn described(profile: &Path) -> Vec<String> {
    let of = |pid: i32| format!("{pid} {}", words(pid).join(" ").chars().take(200).collect::<String>());
    of_profile(profile).into_iter().map(of).collect()
}

pub(crate) fn wait_gone(profile: &Path) {
    let began = Instant::now();
    loop {
        let left = described(profile);
        if left.is_empty() {
            return;
        }
        assert!(began.elapsed() < GONE_MAX, "still there: {left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
