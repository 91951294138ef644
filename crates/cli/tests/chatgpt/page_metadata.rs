//! What a question for an action by hand says about the page, also when the page does not answer.

use crate::by_hand::Setting;
use gleaner_test_support::site::{Site, World};
use serde_json::json;
use std::time::Duration;

#[test]
fn page_metadata_read_times_out() {
    let site = Site::start(World { has_challenge: true, is_title_wedged: true, ..World::with(1) });
    let setting = Setting::knowing_the_password(&site);
    let mut run = setting.start();
    let question = run.until("INTERACTION");
    assert_eq!(question["kind"], "manual_action");
    let message = question["message"].as_str().unwrap();
    assert!(message.contains(&format!("{}/auth/challenge", site.url())), "the address is there: {message}");
    assert!(!message.contains("Just a moment"), "the title is not: {message}");
    let noted = run.progress().iter().filter(|text| text.contains("page_metadata_timeout")).count();
    assert_eq!(noted, 1, "{:?}", run.progress());
    let reached = run.said.iter().find(|(_, said)| said["message"] == "session: challenge").unwrap().0;
    let took = run.said.last().unwrap().0 - reached;
    assert!(took < Duration::from_secs(15), "a page that hangs holds a question up by its bounds: {took:?}");
    run.decline(&question);
    assert_eq!(run.done()["status"], "cancelled");
}

#[test]
fn page_metadata_read_succeeds_quickly() {
    let site = Site::start(World { has_challenge: true, ..World::with(2) });
    let setting = Setting::knowing_the_password(&site);
    let mut run = setting.start();
    let question = run.until("INTERACTION");
    let message = question["message"].as_str().unwrap();
    assert!(message.contains(r#""Just a moment...""#) && message.contains("/auth/challenge"), "{message}");
    assert!(!run.progress().iter().any(|text| text.contains("page_metadata")), "{:?}", run.progress());
    // Without a window there is a picture, and the question says where.
    let picture = setting.files().into_iter().find(|path| path.ends_with("action-1.png")).unwrap();
    assert!(message.contains(picture.to_str().unwrap()), "{message}");
    assert_eq!(std::fs::read(picture).unwrap()[1..4], *b"PNG");
    site.world().is_challenge_passed = true;
    run.answer(&question, &json!({}));
    assert_eq!(run.done()["status"], "succeeded");
    assert_eq!(run.keys("conversations").len(), 2);
}
