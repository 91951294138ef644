//! Signing in that hangs: the run ends, says so, and leaves no browser behind.

use crate::by_hand::Setting;
use gleaner_test_support::site::{Site, World};
use serde_json::json;
use std::time::{Duration, Instant};

const LIMIT: &str = "PDPP_SESSION_ESTABLISH_WATCHDOG_MS";
const TIMEOUT: &str = "chatgpt_session_establish_timeout";

#[test]
fn establishment_stalls_with_no_checkpoint_progress() {
    let site = Site::start(World { is_stalled: true, ..World::with(1) });
    let mut run = Setting::knowing_the_password(&site).with(LIMIT, "3000").start();
    run.until("PROGRESS");
    assert!(run.has_browser(), "otherwise that it is gone afterwards proves nothing");
    let done = run.done();
    assert_eq!((&done["status"], &done["error"]["code"]), (&json!("failed"), &json!(TIMEOUT)), "{done}");
    let message = done["error"]["message"].as_str().unwrap();
    assert!(message.contains("name_sent"), "it says what was reached last: {message}");
    let last = run.said.iter().rfind(|(_, said)| said["message"] == "session: name_sent").unwrap().0;
    let idle = run.said.last().unwrap().0 - last;
    assert!(idle >= Duration::from_secs(3) && idle < Duration::from_secs(12), "{idle:?}");
}

#[test]
fn establishment_is_making_checkpoint_progress() {
    let site = Site::start(World { delay: Duration::from_millis(1700), ..World::with(1) });
    let mut run = Setting::knowing_the_password(&site).with(LIMIT, "9000").start();
    assert_eq!(run.done()["status"], "succeeded");
    let reached = |phase: &str| {
        let text = format!("session: {phase}");
        run.said.iter().find(|(_, said)| said["message"] == text.as_str()).unwrap().0
    };
    let took = reached("session_established") - reached("session_begin");
    assert!(took > Duration::from_secs(9), "all of it took longer than the limit: {took:?}");
}

#[test]
fn establishment_is_blocked_on_an_open_interaction() {
    let site = Site::start(World::with(1).with_code("123456"));
    let mut run = Setting::knowing_the_password(&site).with(LIMIT, "3000").start();
    let question = run.until("INTERACTION");
    // The owner takes longer than the limit.
    std::thread::sleep(Duration::from_millis(4000));
    run.answer(&question, &json!({"code": "123456"}));
    assert_eq!(run.done()["status"], "succeeded");
}

#[test]
fn the_deadline_holds_again_after_an_interaction() {
    let site = Site::start(World::with(1).with_code("123456"));
    let mut run = Setting::knowing_the_password(&site).with(LIMIT, "3000").start();
    let question = run.until("INTERACTION");
    site.world().wedges_after_sign_in = true;
    run.answer(&question, &json!({"code": "123456"}));
    assert_eq!(run.done()["error"]["code"], TIMEOUT);
}

#[test]
fn teardown_diagnostic_capture_is_bounded() {
    let site = Site::start(World { wedges_after_sign_in: true, ..World::with(1) });
    let setting = Setting::knowing_the_password(&site).with(LIMIT, "3000").with("PDPP_SESSION_CAPTURES", "1");
    let mut run = setting.start();
    let done = run.done();
    assert_eq!(done["error"]["code"], TIMEOUT, "{done}");
    let noted = run.progress().iter().filter(|text| text.contains("capture of ended_after")).count();
    assert!(noted > 0, "the last capture was tried and abandoned: {:?}", run.progress());
    // One capture may hang at the last checkpoint, too; each has ten seconds.
    assert!(run.began.elapsed() < Duration::from_secs(45), "{:?}", run.began.elapsed());
    assert!(setting.files().iter().any(|path| path.to_str().unwrap().contains("name_sent")), "{:?}", setting.files());
}

/// The default has to be three times as long as the slowest sign-in here takes between two checkpoints.
#[test]
fn the_default_clears_what_signing_in_takes() {
    let site = Site::start(World { delay: Duration::from_millis(200), ..World::with(1).with_code("123456") });
    let mut run = Setting::knowing_the_password(&site).start();
    let question = run.until("INTERACTION");
    run.answer(&question, &json!({"code": "123456"}));
    assert_eq!(run.done()["status"], "succeeded");
    let times =
        run.said.iter().filter(|(_, said)| said["message"].as_str().is_some_and(|text| text.starts_with("session: ")));
    let times = times.map(|(at, _)| *at).collect::<Vec<Instant>>();
    let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(longest * 3 < Duration::from_secs(120), "{longest:?}");
}
