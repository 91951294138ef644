//! Whatever ends a run, no process of its browser is left within five seconds, and the profile can be used again.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]
#![allow(clippy::print_stdout, reason = "that a test was left out is said")]

mod engines;
mod processes;
mod site;

use engines::over_engines;
use gleaner_browser::{BrowserError, EngineChoice, acquire_isolated_browser};
use processes::{GONE_MAX, browser_leader, of_profile, signal, wait_gone};
use rustix::process::Signal;
use site::{SOON, Site, request};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

over_engines! {
    both: [
        after_a_normal_end_a_drop_and_a_panic_nothing_is_left_at_all,
        after_a_connector_with_a_frozen_browser_is_killed_the_keeper_ends_it,
        after_a_connector_under_the_runtime_is_killed_nothing_is_left_and_the_owner_stays_signed_in,
        after_the_browser_is_killed_calls_fail_at_once_and_the_profile_is_usable,
    ],
    patchright_at_full_size: [
        after_a_connector_without_a_runtime_is_killed_nothing_is_left_and_the_owner_stays_signed_in,
        after_a_connector_with_a_wedged_page_is_killed_nothing_is_left,
        after_the_runtime_is_killed_nothing_is_left,
        the_run_after_one_that_was_killed_is_left_alone_by_the_keeper_of_that,
        after_a_run_that_ends_under_the_runtime_nothing_is_left,
        what_left_the_browsers_group_and_does_not_end_by_itself_is_ended_too,
    ]
}

/// A program with a browser, in a folder of its own.
struct Driven {
    engine: EngineChoice,
    site: Site,
    folder: tempfile::TempDir,
    child: Child,
}

impl Driven {
    /// Starts it, and waits until its browser has opened the page.
    fn start(engine: EngineChoice, under_runtime: bool, path: &str, ending: &str) -> Self {
        let (site, folder) = (Site::start(), tempfile::tempdir().unwrap());
        let mut command = Command::new(processes::driver());
        if under_runtime {
            command.arg("runtime").arg(folder.path());
        } else {
            command.arg("alone");
        }
        command.env("PDPP_BROWSER_ENGINE", engines::word(engine));
        if let Some(driver) = engines::driver() {
            command.env("PDPP_PATCHRIGHT_DRIVER", driver);
        }
        command.arg(folder.path().join("profiles")).args(["shop", &site.at(path), ending]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let driven = Self { engine, site, folder, child };
        let began = Instant::now();
        while !driven.site.asked().iter().any(|asked| asked.starts_with(&format!("GET {path}"))) {
            assert!(began.elapsed() < SOON, "it did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        driven
    }

    fn profile(&self) -> PathBuf {
        self.folder.path().join("profiles/shop")
    }

    /// The connector is among the processes that the runtime started.
    fn connector(&self) -> i32 {
        processes::with_words(&["connector", &self.folder.path().join("profiles").display().to_string()])
            .into_iter()
            .find(|pid| {
                processes::words(*pid).iter().any(|word| word == "connector")
                    && !processes::words(*pid).iter().any(|word| word == "exec" || word == "guard")
            })
            .unwrap()
    }

    /// The browser is gone, and its profile is as it was.
    fn assert_clean(mut self, is_signed_in: bool) {
        wait_gone(&self.profile());
        // The program itself may have ended long ago.
        drop(self.child.kill());
        self.child.wait().unwrap();
        assert_usable(self.engine, &self.folder.path().join("profiles"), is_signed_in);
    }
}

fn assert_usable(engine: EngineChoice, profiles: &Path, is_signed_in: bool) {
    let browser = acquire_isolated_browser(&request(engine, profiles, "shop")).unwrap();
    assert_eq!(site::cookies_of(&browser).contains("sid="), is_signed_in);
    browser.close(SOON).unwrap();
}

fn after_a_normal_end_a_drop_and_a_panic_nothing_is_left_at_all(engine: EngineChoice) {
    let is_short = engine == EngineChoice::Patchright && !engines::at_full_size();
    let endings: &[&str] = if is_short { &["drop"] } else { &["close", "drop", "panic"] };
    for ending in endings {
        let mut driven = Driven::start(engine, false, "/set?sid=abc", ending);
        driven.child.wait().unwrap();
        assert_eq!(processes::described(&driven.profile()), Vec::<String>::new(), "{ending}");
        driven.assert_clean(true);
    }
}

fn after_a_connector_without_a_runtime_is_killed_nothing_is_left_and_the_owner_stays_signed_in(engine: EngineChoice) {
    let mut driven = Driven::start(engine, false, "/set?sid=abc", "hang");
    wait_settled();
    assert!(of_profile(&driven.profile()).len() > 3, "the count sees what is there");
    driven.child.kill().unwrap();
    driven.assert_clean(true);
}

fn after_a_connector_with_a_wedged_page_is_killed_nothing_is_left(engine: EngineChoice) {
    let mut driven = Driven::start(engine, false, "/wedge", "hang");
    wait_settled();
    driven.child.kill().unwrap();
    driven.assert_clean(false);
}

fn after_a_connector_with_a_frozen_browser_is_killed_the_keeper_ends_it(engine: EngineChoice) {
    let mut driven = Driven::start(engine, false, "/", "hang");
    signal(browser_leader(&driven.profile()), Signal::STOP);
    driven.child.kill().unwrap();
    driven.assert_clean(false);
}

fn after_a_connector_under_the_runtime_is_killed_nothing_is_left_and_the_owner_stays_signed_in(engine: EngineChoice) {
    let driven = Driven::start(engine, true, "/set?sid=abc", "hang");
    wait_settled();
    signal(driven.connector(), Signal::KILL);
    driven.assert_clean(true);
}

fn after_the_runtime_is_killed_nothing_is_left(engine: EngineChoice) {
    let mut driven = Driven::start(engine, true, "/set?sid=abc", "hang");
    wait_settled();
    driven.child.kill().unwrap();
    driven.assert_clean(true);
}

fn after_a_run_that_ends_under_the_runtime_nothing_is_left(engine: EngineChoice) {
    for ending in ["close", "drop", "panic"] {
        let mut driven = Driven::start(engine, true, "/set?sid=abc", ending);
        driven.child.wait().unwrap();
        assert_eq!(processes::described(&driven.profile()), Vec::<String>::new(), "{ending}");
        driven.assert_clean(true);
    }
}

fn the_run_after_one_that_was_killed_is_left_alone_by_the_keeper_of_that(engine: EngineChoice) {
    let mut driven = Driven::start(engine, false, "/", "hang");
    driven.child.kill().unwrap();
    driven.child.wait().unwrap();
    // The keeper still waits, and the profile is free.
    let browser = acquire_isolated_browser(&request(engine, &driven.folder.path().join("profiles"), "shop")).unwrap();
    let page = browser.new_page(SOON).unwrap();
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(page.evaluate::<u32>("7", SOON).unwrap(), 7);
}

fn after_the_browser_is_killed_calls_fail_at_once_and_the_profile_is_usable(engine: EngineChoice) {
    let (site, folder) = (Site::start(), tempfile::tempdir().unwrap());
    let browser = acquire_isolated_browser(&request(engine, folder.path(), "shop")).unwrap();
    let page = browser.new_page(SOON).unwrap();
    page.navigate(&site.at("/"), SOON).unwrap();
    let leader = browser_leader(browser.profile());
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        signal(leader, Signal::KILL);
    });
    let began = Instant::now();
    let error = page.evaluate::<u32>("new Promise(() => {})", SOON).unwrap_err();
    assert!(matches!(&error, BrowserError::Gone(_)) && began.elapsed() < GONE_MAX, "{error}");
    assert!(matches!(browser.new_page(SOON), Err(BrowserError::Gone(_))));
    killer.join().unwrap();
    let profile = browser.profile().to_owned();
    drop(browser);
    assert_eq!(processes::described(&profile), Vec::<String>::new());
    assert_usable(engine, folder.path(), false);
}

fn what_left_the_browsers_group_and_does_not_end_by_itself_is_ended_too(engine: EngineChoice) {
    let folder = tempfile::tempdir().unwrap();
    let browser = acquire_isolated_browser(&request(engine, folder.path(), "shop")).unwrap();
    browser.new_page(SOON).unwrap();
    let profile = browser.profile().to_owned();
    let strays = of_profile(&profile).into_iter().filter(|pid| processes::words(*pid)[0].ends_with("crashpad_handler"));
    let strays = strays.collect::<Vec<_>>();
    assert!(!strays.is_empty(), "Chromium has processes that leave its group");
    for pid in strays {
        signal(pid, Signal::STOP);
    }
    drop(browser);
    assert_eq!(processes::described(&profile), Vec::<String>::new());
}

#[test]
#[cfg(feature = "patchright")]
fn after_the_driver_is_killed_calls_fail_at_once_and_nothing_is_left() {
    let (site, folder) = (Site::start(), tempfile::tempdir().unwrap());
    let browser = acquire_isolated_browser(&request(EngineChoice::Patchright, folder.path(), "shop")).unwrap();
    let page = browser.new_page(SOON).unwrap();
    page.navigate(&site.at("/"), SOON).unwrap();
    let profile = browser.profile().to_owned();
    // The browser cannot end by itself, and nobody lets go of it.
    signal(browser_leader(&profile), Signal::STOP);
    signal(processes::driver_of(&profile), Signal::KILL);
    let began = Instant::now();
    let error = page.evaluate::<u32>("7", SOON).unwrap_err();
    assert!(matches!(&error, BrowserError::Gone(why) if why.contains("driver")), "{error}");
    assert!(began.elapsed() < GONE_MAX, "{:?}", began.elapsed());
    wait_gone(&profile);
    drop(browser);
    assert_usable(EngineChoice::Patchright, folder.path(), false);
}

#[test]
#[cfg(feature = "patchright")]
fn after_a_connector_with_a_frozen_driver_is_killed_the_keeper_ends_both() {
    let mut driven = Driven::start(EngineChoice::Patchright, false, "/", "hang");
    signal(processes::driver_of(&driven.profile()), Signal::STOP);
    driven.child.kill().unwrap();
    driven.assert_clean(false);
}

/// The first page has its cookie by now, and its scripts run.
fn wait_settled() {
    std::thread::sleep(Duration::from_millis(700));
}
