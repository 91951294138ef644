//! How a run ends: DONE is the last message, it is true, and nothing of the author's data is in it.

use crate::script::{Script, start};
use gleaner_protocol::{PressureReason, pressure_in_terminal_error};
use gleaner_sdk::{Emitted, FetchError, FetchErrorKind, Stop};
use serde_json::{Value, json};

#[test]
fn a_panic_of_the_authors_code_ends_as_an_honest_failure() {
    let script = Script { may_panic: true, ..Script::new(start()) };
    let said = script.run(|run| {
        let _: Emitted = run.emitter().record("notes", "n1", &json!({"id": 1}))?;
        panic!("my diary");
    });
    assert_eq!(said.check().types(), ["RECORD", "DONE"]);
    assert_eq!((&said.done()["status"], &said.done()["records_emitted"]), (&json!("failed"), &json!(1)));
    let message = said.done()["error"]["message"].as_str().unwrap();
    assert!(message.contains("panicked") && !message.contains("diary"), "{message}");
}

#[test]
fn nothing_follows_half_a_line() {
    let said = Script::new(start()).run(|run| {
        run.emitter().coverage("notes", "notes", &mut |out| {
            out.write_all(b"{\"type\":\"DETAIL_COVERAGE\"")?;
            Err(std::io::Error::other("broken"))
        })
    });
    assert_eq!(said.lines, [] as [Value; 0]);
    assert_ne!(format!("{:?}", said.exit), format!("{:?}", std::process::ExitCode::SUCCESS));
}

#[test]
fn terminal_rate_limit_preserves_the_cross_run_cooldown_contract() {
    let said = Script::new(start()).run(|_| Err(FetchError::of_status(429).into()));
    let error = &said.check().done()["error"];
    let pressure = error["code"].as_str().and_then(pressure_in_terminal_error);
    assert_eq!((pressure, &error["retryable"]), (Some(PressureReason::RateLimited), &json!(true)));
    // Negative control: another failure arms nothing.
    let said = Script::new(start()).run(|_| Err(FetchError::of_status(503).into()));
    assert_eq!(said.check().done()["error"]["code"], Value::Null);
}

#[test]
fn refused_credentials_ask_for_new_ones() {
    let said = Script::new(start()).run(|_| Err(FetchError::of_status(401).into()));
    let error = &said.check().done()["error"];
    assert_eq!(
        (&error["recovery_hint"]["action"], &error["retryable"]),
        (&json!("refresh_credentials"), &json!(false))
    );
}

#[test]
fn an_error_can_always_be_said() {
    for (message, code) in [("", "ok"), (" ", "Not A Code"), ("\u{1F600}".repeat(3000).as_str(), "x"), ("a\nb", "")] {
        let failure = gleaner_sdk::Failure {
            message: message.to_owned(),
            retryable: true,
            code: Some(code.to_owned()),
            action: None,
        };
        let said = Script::new(start()).run(|_| Err(Stop::Failed(failure.clone())));
        assert_eq!(said.check().done()["status"], "failed");
        assert!(said.done()["error"]["message"].as_str().unwrap().len() <= 2000);
    }
}

#[test]
fn what_is_no_start_is_answered_and_not_guessed() {
    let mut unknown = start();
    unknown["scope"]["streams"][0]["name"] = json!("nots");
    let said = Script::new(unknown).run(|_| panic!("not collected"));
    assert!(said.check().done()["error"]["message"].as_str().unwrap().contains("nots"));
    let page =
        json!({"type": "DETAIL_GAPS_PAGE_RESPONSE", "request_id": "g", "reference_only": true, "detail_gaps": []});
    let said = Script::new(page).run(|_| panic!("not collected"));
    assert_eq!(said.check().done()["status"], "failed");
    let broken = Script { manifest: "{}".to_owned(), ..Script::new(start()) };
    let said = broken.run(|_| panic!("not collected"));
    assert!(said.check().done()["error"]["message"].as_str().unwrap().contains("manifest"));
}

#[test]
fn a_deferral_is_not_an_error_of_any_kind() {
    for reason in gleaner_protocol::DeferReason::ALL {
        let error = FetchError::new(FetchErrorKind::Deferred(*reason), "over");
        assert_eq!(error.gap_reason().pressure(), None, "{reason}");
    }
}
