//! The scenarios of the specification that one message or one manifest can show, by their names.
//!
//! Others stand beside the code they are about: `coverage.rs`, `record.rs`, `reasons.rs`, `wording_check.rs`,
//! `observability.rs`. Those that need a run or a store are tested where runs and stores are.

use crate::manifest_rules::{check_fault, manifest, parse, stream};
use gleaner_protocol::{
    AbsenceReason, ConnectorMessage, CoveragePolicy, DeferReason, DetailGap, ErrorClass, GapReason, InteractionKind,
    LastError, Manifest, ManifestFaultCode, ManifestOrigin, Op, PressureReason, RecommendedMode, Record,
    RuntimeMessage, Start, StreamScope, ViolationCode, blames_the_service,
};

fn policy(text: &str) -> String {
    manifest(&format!(r#","capabilities":{{"refresh_policy":{text}}}"#), "")
}

#[test]
fn connector_declares_a_refresh_policy() {
    let read = parse(&policy(
        r#"{"recommended_mode":"automatic","rationale":"cheap to read","recommended_interval_seconds":3600,
        "minimum_interval_seconds":600,"maximum_staleness_seconds":86400,"interaction_posture":"none","session_lifetime_seconds":1209600,
        "rate_limit_sensitivity":"low","bot_detection_sensitivity":"high","background_safe":true,"assisted_after_owner_auth":false}"#,
    ));
    let policy_read = read.refresh_policy.unwrap();
    assert_eq!(policy_read.recommended_mode, RecommendedMode::Automatic);
    assert_eq!(policy_read.rationale, "cheap to read");
    assert_eq!(policy_read.session_lifetime_seconds, Some(1_209_600));
    // Mode and rationale are all that must be there, and both must.
    assert!(parse(&policy(r#"{"recommended_mode":"manual","rationale":"r"}"#)).refresh_policy.is_some());
    check_fault(
        &policy(r#"{"recommended_mode":"manual"}"#),
        ManifestFaultCode::Missing,
        "capabilities.refresh_policy.rationale is missing; allowed: a value",
    );
    check_fault(
        &policy(r#"{"rationale":"r"}"#),
        ManifestFaultCode::Missing,
        "capabilities.refresh_policy.recommended_mode is missing; allowed: a value",
    );
}

#[test]
fn connector_has_high_human_interaction_friction() {
    let manual = r#"{"recommended_mode":"manual","rationale":"a code is asked for each time","interaction_posture":"otp_likely"}"#;
    assert_eq!(parse(&policy(manual)).refresh_policy.unwrap().recommended_mode, RecommendedMode::Manual);
    let assisted = r#"{"recommended_mode":"automatic","rationale":"a sign-in lasts two weeks","recommended_interval_seconds":86400,
        "interaction_posture":"credentials","assisted_after_owner_auth":true}"#;
    let read = parse(&policy(assisted)).refresh_policy.unwrap();
    assert_eq!((read.recommended_mode, read.assisted_after_owner_auth), (RecommendedMode::Automatic, Some(true)));
}

#[test]
fn connector_has_low_interaction_cost() {
    let local = r#"{"recommended_mode":"automatic","rationale":"local files","recommended_interval_seconds":900,"background_safe":true}"#;
    assert_eq!(parse(&policy(local)).refresh_policy.unwrap().background_safe, Some(true));
}

#[test]
fn a_future_spec_wants_portable_scheduling_semantics() {
    // The hints are metadata of a manifest: without them it is valid, and no message carries them.
    assert!(parse(&manifest("", "")).refresh_policy.is_none());
    let mut out = Vec::new();
    RuntimeMessage::Start(Box::new(Start {
        run_id: "r".to_owned(),
        collection_mode: gleaner_protocol::CollectionMode::FullRefresh,
        scope: gleaner_protocol::Scope::new(vec![StreamScope::all_of("s")]).unwrap(),
        state: None,
        bindings: Vec::new(),
        detail_gaps: Vec::new(),
        recovery_only: false,
        run_budget: None,
    }))
    .encode(&mut out);
    assert!(!String::from_utf8(out).unwrap().contains("refresh_policy"));
}

#[test]
fn manifest_schema_accepts_all_valid_coverage_policy_values() {
    for policy in ["collect", "deferred", "inventory_only", "unavailable", "unsupported"] {
        for required in ["", r#","required":false"#, r#","required":true"#] {
            let text = manifest("", &stream("s", &format!(r#","coverage_policy":"{policy}"{required}"#)));
            let read = parse(&text);
            assert_eq!(Some(read.streams[0].coverage_policy), CoveragePolicy::from_code(policy));
            // A required stream that collects nothing is a warning, and a fault in our own manifests.
            let contradiction = matches!(policy, "unavailable" | "unsupported") && !required.contains("false");
            assert_eq!(read.warnings.len(), usize::from(contradiction), "{policy} {required}");
            assert_eq!(read.streams[0].requires_what_it_cannot_collect(), contradiction);
            let ours = Manifest::parse(text.as_bytes(), ManifestOrigin::FirstParty);
            assert_eq!(ours.is_err(), contradiction, "{policy} {required}");
        }
    }
    let text = manifest("", &stream("s", r#","coverage_policy":"unsupported""#));
    let fault = Manifest::parse(text.as_bytes(), ManifestOrigin::FirstParty).unwrap_err().faults.remove(0);
    assert_eq!(
        fault.to_string(),
        "streams[0].required is true (by default); allowed: false, because coverage_policy is unsupported"
    );
}

#[test]
fn manifest_schema_rejects_unknown_coverage_policy_values() {
    for value in ["\"everything\"", "\"\"", "7", "[]", "\"Collect\""] {
        check_fault(
            &manifest("", &stream("s", &format!(r#","coverage_policy":{value}"#))),
            ManifestFaultCode::NotAllowed,
            &format!(
                "streams[0].coverage_policy is {value}; allowed: collect, deferred, inventory_only, unavailable, unsupported"
            ),
        );
    }
}

#[test]
fn absence_of_coverage_policy_is_valid() {
    assert_eq!(parse(&manifest("", &stream("s", ""))).streams[0].coverage_policy, CoveragePolicy::Collect);
}

#[test]
fn a_connector_declares_no_streams() {
    assert!(parse(&manifest("", "")).streams.is_empty());
}

fn tombstone(stream: &str) -> Record<'_> {
    Record { stream: stream.into(), key: "k1".into(), op: Op::Delete, data: None, emitted_at: None }
}

#[test]
fn mutable_state_deletion() {
    let manifest = parse(&manifest("", &stream("contacts", "")));
    let record = tombstone("contacts");
    assert_eq!((record.op, &record.data), (Op::Delete, &None));
    assert_eq!(record.check_deletion(&manifest), Ok(()));
}

#[test]
fn append_only_streams() {
    for semantics in ["append_only", "append"] {
        let text = manifest("", &format!(r#"{{"name":"events","semantics":"{semantics}"}}"#));
        let manifest = parse(&text);
        let violation = tombstone("events").check_deletion(&manifest).unwrap_err();
        assert_eq!(violation.code, ViolationCode::DeleteOnAppendOnly);
        assert_eq!((violation.stream.as_deref(), violation.key.as_deref()), (Some("events"), Some("k1")));
        let upsert = Record { op: Op::Upsert, ..tombstone("events") };
        assert_eq!(upsert.check_deletion(&manifest), Ok(()));
    }
}

#[test]
fn missing_credentials_with_interactive_binding() {
    let line = br#"{"type":"INTERACTION","request_id":"q1","kind":"missing_credentials","message":"set FERRY_USER"}"#;
    let message = ConnectorMessage::decode(line);
    assert!(
        matches!(message, Ok(ConnectorMessage::Interaction(ask)) if ask.kind == InteractionKind::MissingCredentials)
    );
}

fn gap(rest: &str) -> DetailGap {
    let line = format!(r#"{{"type":"DETAIL_GAP","reference_only":true,"stream":"s","status":"pending",{rest}}}"#);
    match ConnectorMessage::decode(line.as_bytes()) {
        Ok(ConnectorMessage::DetailGap(gap)) => *gap,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_cap_deferral_does_not_arm_the_source_pressure_cooldown() {
    for reason in DeferReason::ALL {
        let deferred = DetailGap {
            stream: "s".to_owned(),
            reason: Some(GapReason::Absence(reason.gap_reason())),
            last_error: reason.error_class().map(LastError::of_class),
            ..DetailGap::default()
        };
        assert_eq!(deferred.reason.and_then(GapReason::pressure), None, "{reason}");
    }
    let capped = gap(r#""reason":"retry_exhausted","last_error":{"class":"run_cap_deferred"}"#);
    assert_eq!(capped.reason.and_then(GapReason::pressure), None);
    // Negative control: the same question about a gap of pressure has an answer.
    let pressed = gap(r#""reason":"rate_limited","last_error":{"class":"http","http_status":429}"#);
    assert_eq!(pressed.reason.and_then(GapReason::pressure), Some(PressureReason::RateLimited));
}

#[test]
fn a_run_cap_deferral_is_distinguishable_from_a_source_pressure_deferral() {
    let capped = gap(r#""reason":"retry_exhausted","last_error":{"class":"run_cap_deferred","http_status":null}"#);
    let tired = gap(r#""reason":"retry_exhausted","last_error":{"class":"timeout"}"#);
    let pressed = gap(r#""reason":"upstream_pressure","last_error":{"class":"http","http_status":503}"#);
    assert_eq!([&capped, &tired, &pressed].map(DetailGap::is_run_cap_deferral), [true, false, false]);
    let texts = [&capped, &tired, &pressed].map(|gap| gap.wording().unwrap().what);
    assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2]);
    assert_eq!(texts.map(blames_the_service), [false, false, true]);
    assert_eq!(capped.wording(), Some(ErrorClass::RunCapDeferred.wording()));
    assert_eq!(tired.wording(), Some(AbsenceReason::RetryExhausted.wording()));
}

#[test]
fn a_bounded_tail_deferral_is_not_source_pressure() {
    let locator = r#"{"kind":"backlog","watermark":"2030-05-06T07:08:09.000Z","remaining":412}"#;
    let backlog = gap(&format!(
        r#""record_key":"__backlog__","reason":"retry_exhausted","last_error":{{"class":"run_cap_deferred"}},"detail_locator":{locator}"#
    ));
    assert!(backlog.is_run_cap_deferral());
    assert_eq!(backlog.reason.and_then(GapReason::pressure), None);
    assert_eq!(backlog.detail_locator.unwrap().as_str(), locator);
}
