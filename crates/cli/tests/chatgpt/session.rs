//! From no session to one: what is asked, what is said on the way, what is written down, and what is kept.

use crate::by_hand::{Setting, paced};
use gleaner_test_support::site::{Site, World};
use serde_json::json;
use std::fs;
use std::time::Duration;

const CODE: &str = "123456";

#[test]
fn the_owner_signs_in_once_and_from_then_on_runs_go_by_themselves() {
    let site = Site::start(World::with(3).with_code(CODE));
    let owner = site.world().owner.clone();
    let setting = Setting::new(&site);
    let mut first = setting.start();
    let question = first.until("INTERACTION");
    assert_eq!(question["kind"], "credentials");
    assert_eq!(question["schema"]["required"], json!(["username", "password"]));
    first.answer(&question, &json!({"username": owner.email, "password": "wrong"}));
    let question = first.until("INTERACTION");
    assert_eq!(question["kind"], "credentials", "what was refused is asked for again");
    first.answer(&question, &json!({"username": owner.email, "password": owner.password}));
    let question = first.until("INTERACTION");
    assert_eq!(question["kind"], "otp");
    first.answer(&question, &json!({"code": CODE}));
    let done = first.done();
    assert_eq!((done["status"].as_str(), first.keys("messages").len()), (Some("succeeded"), 9), "{done}");
    let said = first.said.iter().map(|(_, message)| message.to_string()).collect::<String>();
    for secret in [owner.password.as_str(), CODE, "token-"] {
        assert!(!said.contains(secret), "{secret} was said");
    }
    // The second run finds the session in the profile, and could not ask anybody.
    let second = Setting { can_ask: false, ..setting };
    let mut second_run = second.start();
    let done = second_run.done();
    assert_eq!((done["status"].as_str(), second_run.of_type("INTERACTION").len()), (Some("succeeded"), 0), "{done}");
    assert_eq!(site.world().sessions_signed_in(), 1);
}

#[test]
fn without_a_session_and_without_anybody_to_ask_the_run_says_so() {
    let site = Site::start(World::with(1));
    let mut run = Setting { can_ask: false, ..Setting::new(&site) }.start();
    let done = run.done();
    assert_eq!(done["error"]["recovery_hint"]["action"], "manual_action_required", "{done}");
    assert!(done["error"]["message"].as_str().unwrap().contains("this run cannot ask the owner"), "{done}");
    assert_eq!(site.asked("/backend-api/").len(), 0);
}

#[test]
fn runtime_frames_the_establishment_window() {
    let site = Site::start(World::with(1));
    let setting = Setting::knowing_the_password(&site);
    let mut run = setting.start();
    run.done();
    let phases = run.phases();
    assert_eq!(phases[..2], ["session_begin", "open_service"], "ours first, then the connector's: {phases:?}");
    assert_eq!(phases.last().unwrap(), "session_established");
    assert!(phases.contains(&"password_sent".to_owned()), "the connector adds its own: {phases:?}");
    assert_eq!(setting.files().len(), 0, "nothing is captured unless somebody wants it");
}

#[test]
fn connector_marks_an_auth_phase() {
    let site = Site::start(World::with(1));
    let owner = site.world().owner.clone();
    let setting = Setting::knowing_the_password(&site).with("PDPP_SESSION_CAPTURES", "1");
    let mut run = setting.start();
    assert_eq!(run.done()["status"], "succeeded");
    let files = setting.files();
    let names = files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect::<Vec<_>>();
    for phase in run.phases() {
        for ending in ["html", "png"] {
            let is_it = |name: &&str| name.ends_with(&format!("-{phase}.{ending}"));
            // Best effort: a page that was just being replaced may have none, and then that is said.
            let is_said = run.progress().iter().any(|text| text.starts_with(&format!("capture of {phase}: no ")));
            assert!(names.iter().any(is_it) || is_said, "no {ending} of {phase}: {names:?}");
        }
    }
    let count = |ending: &str| names.iter().filter(|name| name.ends_with(ending)).count();
    assert!(count("html") >= 4 && count("png") >= 4, "most of them are there: {names:?}");
    for path in files.iter().filter(|path| path.extension().unwrap() == "html") {
        let text = fs::read_to_string(path).unwrap();
        assert!(!text.contains(&owner.password) && !text.contains("token-") && !text.contains("<script"), "{text}");
    }
}

#[test]
fn a_failure_of_the_diagnostic_capture_does_not_fail_the_run() {
    let site = Site::start(World::with(1));
    let setting = Setting::knowing_the_password(&site).with("PDPP_SESSION_CAPTURES", "on");
    fs::create_dir_all(setting.root()).unwrap();
    fs::write(setting.root().join("runs"), "a file where the folder would be").unwrap();
    let mut run = setting.start();
    assert_eq!(run.done()["status"], "succeeded");
    assert!(run.progress().iter().any(|text| text.contains("capture of")), "it is said: {:?}", run.progress());
}

#[test]
fn a_session_that_ends_in_the_middle_ends_the_run_and_the_next_one_signs_in_again() {
    let site = Site::start(World { expires_after: Some(4), ..World::with(8) });
    let setting = Setting::knowing_the_password(&site);
    let mut first = setting.start();
    let done = first.done();
    assert_eq!((&done["status"], &done["error"]["retryable"]), (&json!("failed"), &json!(false)), "{done}");
    assert_eq!(done["error"]["recovery_hint"]["action"], "refresh_credentials", "{done}");
    let (before, gaps) = (first.keys("conversations"), first.of_type("DETAIL_GAP").len());
    assert!(!before.is_empty() && before.len() < 8 && gaps > 0, "{before:?}, {gaps} gaps");
    let mut second = setting.start();
    assert_eq!(second.done()["status"], "succeeded");
    assert_eq!(second.keys("conversations").len(), 8);
}

#[test]
fn a_token_that_ends_in_the_middle_is_renewed_without_a_word() {
    let site = Site::start(World { tokens_expire_after: Some(3), ..World::with(5) });
    let mut run = Setting::knowing_the_password(&site).start();
    assert_eq!(run.done()["status"], "succeeded");
    assert_eq!((run.keys("conversations").len(), run.of_type("DETAIL_GAP").len()), (5, 0));
    let refused = site.asked("/backend-api/").iter().filter(|asked| asked.status == 401).count();
    assert_eq!(refused, 1);
}

#[test]
fn two_browser_connectors_at_once_share_no_session() {
    let site = Site::start(World::with(6));
    let settings = ["chatgpt", "chatgpt-work"].map(|profile| {
        let setting = Setting::knowing_the_password(&site);
        Setting { profile: profile.to_owned(), state: json!({"messages": paced(300, Duration::ZERO)}), ..setting }
    });
    let mut runs = settings.iter().map(Setting::start).collect::<Vec<_>>();
    for run in &mut runs {
        run.until("PROGRESS");
    }
    assert!(runs.iter().all(super::by_hand::Hand::has_browser), "both are at work");
    for run in &mut runs {
        assert_eq!(run.done()["status"], "succeeded");
        assert_eq!(run.keys("conversations").len(), 6);
    }
    let sessions = site.asked("/backend-api/").into_iter().map(|asked| asked.session.unwrap());
    let sessions = sessions.collect::<std::collections::BTreeSet<_>>();
    assert_eq!(sessions.len(), 2, "each has its own: {sessions:?}");
}
