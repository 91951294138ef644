//! Pressure, recovery, deletions, quarantine and the two tracks.

use super::*;
use crate::{GapChange, Misfit};
use gleaner_protocol::{ConnectorMessage, DetailGap};

#[test]
fn terminal_rate_limit_preserves_the_cross_run_cooldown_contract() {
    let mut world = world(&["photos"]);
    world.exit = Some(Exit::Code(1));
    world.line(&failed("github_rate_limited", 0));
    let outcome = world.outcome();
    assert_eq!((outcome.reason, outcome.pressure), (TerminalReason::SourceCooldown, Some(PressureReason::RateLimited)));
}

#[test]
fn a_gap_under_pressure_arms_the_cooldown_of_a_run_that_succeeded() {
    let mut world = world(ALL);
    world.lines(&[&gap("details", "trips", "a", "upstream_pressure"), &done("succeeded", 0)]);
    assert_eq!(world.outcome().pressure, Some(PressureReason::UpstreamPressure));
}

#[test]
fn recovery_goes_on_until_a_page_is_empty_and_a_gap_deferred_again_is_not_settled() {
    let mut world = world(ALL);
    for key in ["a", "b", "c"] {
        world.line(&gap("details", "trips", key, "temporary_unavailable"));
    }
    world.line(r#"{"type":"DETAIL_GAPS_PAGE_REQUEST","request_id":"p0","reference_only":true}"#);
    for gap in world.store.gaps.values_mut() {
        gap.deferred_under = None;
    }
    world.sent.clear();
    let page = r#"{"type":"DETAIL_GAPS_PAGE_REQUEST","request_id":"p1","reference_only":true}"#;
    let recovered = r#"{"type":"DETAIL_GAP_RECOVERED","gap_id":"key:KEY","stream":"details","reference_only":true}"#;
    let mut served = Vec::new();
    loop {
        world.line(page);
        let Some(RuntimeMessage::GapsPageResponse(response)) = world.sent.pop() else { panic!() };
        if response.detail_gaps.is_empty() {
            break;
        }
        for gap in &response.detail_gaps {
            served.push(gap.gap_id.clone());
        }
        if served.len() == 2 {
            // The rest of `a` is rewritten before the old one is called recovered.
            world.line(&gap("details", "trips", "a", "retry_exhausted"));
        }
        for gap in &response.detail_gaps {
            world.line(&record("details", gap.gap_id.trim_start_matches("key:")));
            world.line(&recovered.replace("key:KEY", &gap.gap_id));
        }
    }
    assert_eq!(served, ["key:a", "key:b", "key:c"], "none twice in one run");
    world.line(&done("succeeded", 3));
    assert_eq!(world.store.open_gaps(), ["key:a"]);
    assert_eq!(world.held_gaps(), 0);
    let counts = world.outcome().counts;
    assert_eq!((counts.recovered, counts.confirmed.by_record, counts.confirmed.unconfirmed), (2, 2, 1));
}

#[test]
fn a_gap_is_settled_by_what_was_said_before_it_and_the_order_is_kept_in_the_slice() {
    let mut world = world(ALL);
    world.eager = false;
    let recovered = r#"{"type":"DETAIL_GAP_RECOVERED","gap_id":"key:a","stream":"details","reference_only":true}"#;
    world.lines(&[&record("details", "a"), recovered, &record("details", "b"), &record("details", "c"), recovered]);
    world.line(&slice_state("trips", 1));
    let Some(Effect::Store(StoreEffect::WriteSlice(slice))) = world.run.poll_effect() else { panic!("no slice") };
    let steps = slice.steps().map(|step| match step {
        crate::SliceStep::Record(record) => record.key.to_owned(),
        crate::SliceStep::Gap(GapChange::Recover { stream, .. }) => format!("recovered {stream}"),
        crate::SliceStep::Gap(_) => String::new(),
    });
    assert_eq!(steps.collect::<Vec<_>>(), ["a", "recovered details", "b", "c", "recovered details"]);
}

#[test]
fn mutable_state_deletion() {
    let mut world = world(&["trips"]);
    let delete = r#"{"type":"RECORD","stream":"trips","key":"a","op":"delete"}"#;
    world.lines(&[
        &record("trips", "a"),
        delete,
        r#"{"type":"RECORD","stream":"trips","key":"never seen","op":"delete"}"#,
    ]);
    world.line(&done("succeeded", 3));
    assert!(world.store.records.values().all(Option::is_none), "tombstones are kept, also of unknown keys");
    assert_eq!((world.keys("trips").len(), world.outcome().counts.deleted), (2, 2));
}

#[test]
fn only_what_a_receipt_stands_for_is_counted_as_stored() {
    let mut world = world(&["trips"]);
    world.lines(&[&record("trips", "a"), &record("trips", "b"), &slice_state("trips", 1)]);
    world.eager = false;
    world.lines(&[&record("trips", "a"), &record("trips", "c"), &slice_state("trips", 2), &record("trips", "d")]);
    let counts = world.run.counts();
    assert_eq!((counts.seen, counts.new, counts.unchanged), (5, 2, 0), "the second slice is not written yet");
    world.run.handle_store_failed(world.now);
    world.settle();
    let counts = world.outcome().counts;
    assert_eq!((counts.seen, counts.new, counts.unchanged, counts.collected()), (5, 2, 0, 2));
}

#[test]
fn records_are_counted_as_new_changed_or_unchanged_by_what_was_stored_before() {
    let mut world = world(&["trips"]);
    let delete = r#"{"type":"RECORD","stream":"trips","key":"a","op":"delete"}"#;
    let changed = record("trips", "b").replace("1.0", "2.0");
    world.lines(&[&record("trips", "a"), &record("trips", "b"), &slice_state("trips", 1)]);
    world.lines(&[&record("trips", "a"), &changed, delete, delete, &record("trips", "a"), &done("succeeded", 7)]);
    let counts = world.outcome().counts;
    assert_eq!((counts.new, counts.changed, counts.unchanged, counts.deleted), (3, 1, 2, 1));
}

fn at(pointer: &str) -> Misfit {
    Misfit { pointer: pointer.to_owned(), reason: String::new() }
}

#[derive(Debug)]
struct RejectAll;

impl crate::Validate for RejectAll {
    fn check(&self, _: &str, _: &gleaner_protocol::RawJson<'_>) -> Result<(), Misfit> {
        Err(at("/id"))
    }
}

#[derive(Debug)]
struct KnowsTheSecret;

impl crate::Validate for KnowsTheSecret {
    fn check(&self, _: &str, _: &gleaner_protocol::RawJson<'_>) -> Result<(), Misfit> {
        Ok(())
    }
    fn reveals_credential(&self, text: &str) -> bool {
        text.contains("hunter2")
    }
    fn mask(&self, text: &str) -> Option<String> {
        text.contains("hunter2").then(|| text.replace("hunter2", "[secret]"))
    }
}

/// One message of each type with every field that holds text.
const EVERY_TEXT: [&str; 14] = [
    r#"{"type":"RECORD","stream":"photos","key":["a","b"],"op":"upsert","data":{"id":"x"},"emitted_at":"2031-01-01T00:00:00Z"}"#,
    r#"{"type":"RECORD","stream":"trips","key":"a","op":"delete","emitted_at":"2031-01-01T00:00:00Z"}"#,
    r#"{"type":"STATE","stream":"photos","cursor":{"a":"x"},"slice":true}"#,
    r#"{"type":"DETAIL_GAP","reference_only":true,"status":"pending","stream":"photos","parent_stream":"photos","record_key":"a","reason":"gone","detail_locator":{"a":"x"},"list_cursor":{"a":"x"},"last_error":{"class":"c","message":"m"},"detail":{"a":"x"},"not_before":"2031-01-01T00:00:00Z","next_attempt_after":"2031-01-01T00:00:00Z","gap_id":"g","lease_id":"l"}"#,
    r#"{"type":"DETAIL_GAP_ATTEMPTED","reference_only":true,"status":"in_progress","gap_id":"g","lease_id":"l","stream":"photos"}"#,
    r#"{"type":"DETAIL_GAP_RECOVERED","reference_only":true,"status":"recovered","gap_id":"g","lease_id":"l","stream":"photos"}"#,
    r#"{"type":"DETAIL_COVERAGE","reference_only":true,"stream":"details","state_stream":"trips","required_keys":["a","b","c"],"hydrated_keys":["a"],"gap_keys":["b"],"optional_skip_keys":["c"]}"#,
    r#"{"type":"SKIP_RESULT","stream":"photos","reason":"r","message":"m","diagnostics":{"a":"x"},"recovery_hint":{"action":"unknown"},"continuation":{"boundary":"b","considered":1,"covered":1,"slice_start":"s","slice_end":"e","owner":"runtime","remaining":true},"resource_ids":["a"],"resources":["b"],"time_range":{"since":"2030-01-01T00:00:00Z","until":"2031-01-01T00:00:00Z"}}"#,
    r#"{"type":"PROGRESS","message":"m","stream":"photos","waiting":{"object":"waiting","until":"2031-01-01T00:00:00Z","reason":"retry_after"}}"#,
    r#"{"type":"ASSISTANCE","assistance_request_id":"a","message":"m","owner_action":"none","progress_posture":"running","response_contract":"none","attachments":[{"url":"u"}]}"#,
    r#"{"type":"ASSISTANCE_STATUS","assistance_request_id":"a","status":"resolved","message":"m"}"#,
    r#"{"type":"INTERACTION","request_id":"q1","kind":"otp","message":"code?","stream":"photos","schema":{"title":"t"},"picture":"p.png"}"#,
    r#"{"type":"DETAIL_GAPS_PAGE_REQUEST","request_id":"p1","reference_only":true,"streams":["photos"]}"#,
    r#"{"type":"DONE","status":"failed","records_emitted":0,"error":{"message":"m","code":"c","retryable":false,"recovery_hint":"unknown"}}"#,
];

/// Puts the text in the place of each text of a message in turn; one that ends in `.png` keeps its ending.
fn with_each_text(message: &str, text: &str) -> Vec<String> {
    fn places(value: &serde_json::Value, at: &str, all: &mut Vec<String>) {
        match value {
            serde_json::Value::String(_) => all.push(at.to_owned()),
            serde_json::Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{at}/{index}"), all));
            }
            serde_json::Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| places(value, &format!("{at}/{name}"), all));
            }
            _ => {}
        }
    }
    let message = serde_json::from_str::<serde_json::Value>(message).unwrap();
    let mut all = Vec::new();
    places(&message, "", &mut all);
    let put = |at: String| {
        let mut message = message.clone();
        let place = message.pointer_mut(&at).unwrap();
        let ending = if place.as_str().is_some_and(|text| text.ends_with(".png")) { ".png" } else { "" };
        *place = format!("{text}{ending}").into();
        message.to_string()
    };
    all.into_iter().map(put).collect()
}

/// Everything that a store, a person or the end of the run gets to see of a message. Not in it is what goes back to the
/// connector, which said it; ids of gaps and leases, which are compared and not kept; and a time that is read as one.
fn seen_of(line: &str) -> String {
    let mut config = config::<Steady>(ALL);
    config.validator = Box::new(KnowsTheSecret);
    let mut world = World::new(config);
    world.eager = false;
    world.line(line);
    world.run.handle_exit(Exit::Signal(15), world.now);
    let mut seen = String::new();
    while let Some(effect) = world.run.poll_effect() {
        match effect {
            Effect::Process(ProcessEffect::Send(_)) | Effect::Owner(OwnerEffect::Withdraw { .. }) => {}
            Effect::Store(StoreEffect::WriteSlice(slice)) => {
                seen += &seen_of_slice(&slice);
                let receipt = slice.into_receipt(crate::Epoch::new(1), crate::Counts::default());
                world.run.handle_receipt(receipt, world.now);
            }
            Effect::Store(StoreEffect::KeepCoverageKeys { keys, .. }) => seen += keys.joined(),
            Effect::Store(StoreEffect::TallyCoverage { report, .. }) => {
                world.run.handle_tally(report, &crate::CoverageTally::default(), world.now);
            }
            Effect::Store(StoreEffect::Trace(crate::TraceEvent::Progress(said))) => {
                seen += &written(&ConnectorMessage::Progress(said))
            }
            Effect::Store(StoreEffect::Trace(crate::TraceEvent::Skip(said))) => {
                seen += &written(&ConnectorMessage::SkipResult(said))
            }
            Effect::Store(StoreEffect::Trace(crate::TraceEvent::Assistance(said))) => {
                seen += &written(&ConnectorMessage::Assistance(said))
            }
            Effect::Store(StoreEffect::Trace(crate::TraceEvent::AssistanceStatus(said))) => {
                seen += &written(&ConnectorMessage::AssistanceStatus(said));
            }
            Effect::Owner(OwnerEffect::Ask(question)) => seen += &written(&ConnectorMessage::Interaction(question)),
            other => seen += &format!("{other:?}"),
        }
    }
    seen
}

fn seen_of_slice(slice: &crate::Slice<Steady>) -> String {
    let mut seen = String::new();
    for record in slice.records() {
        seen += &[record.stream, record.key, record.body.unwrap_or_default(), record.emitted_at.unwrap_or_default()]
            .concat();
    }
    for change in slice.gap_changes() {
        if let GapChange::Open(gap) = change {
            let kept = DetailGap { gap_id: None, lease_id: None, not_before: None, ..(**gap).clone() };
            seen += &written(&ConnectorMessage::DetailGap(Box::new(kept)));
        }
    }
    slice.committed().iter().for_each(|cursor| seen += cursor.token().as_str());
    seen
}

fn written(message: &ConnectorMessage<'_>) -> String {
    let mut out = Vec::new();
    message.encode(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn the_connections_own_credential_is_in_no_field_that_anybody_sees() {
    for message in EVERY_TEXT {
        let sound = seen_of(message);
        assert!(!sound.contains("ProtocolViolation"), "{message} is refused as it is: {sound}");
        for line in with_each_text(message, "hunter2") {
            let seen = seen_of(&line);
            assert!(!seen.contains("hunter2"), "{line} is seen as {seen}");
        }
    }
}

#[test]
fn the_connections_own_credential_in_what_would_be_stored_ends_the_run() {
    let located = gap("photos", "photos", "a", "gone").replace("}", r#","detail_locator":{"t":"hunter2"}}"#);
    let lines = [
        record("photos", "a").replace("1.0", "\"hunter2\""),
        state("photos", 1).replace("1}", "\"hunter2\"}"),
        located.clone(),
        located.replace("detail_locator", "list_cursor"),
        record("photos", "hunter2"),
        record("photos", "a").replace("2031-01-01T00:00:00Z", "hunter2"),
        gap("photos", "photos", "hunter2", "gone"),
        gap("photos", "hunter2", "a", "gone"),
        coverage(&["hunter2"], &[], &[]),
        r#"{"type":"INTERACTION","request_id":"hunter2","kind":"otp","message":"?"}"#.to_owned(),
    ];
    for line in lines {
        let mut config = config::<Steady>(&["photos"]);
        config.validator = Box::new(KnowsTheSecret);
        config.bindings.push("interactive".to_owned());
        let mut world = World::new(config);
        world.line(&line);
        let violation = world.outcome().violation.clone().unwrap();
        assert_eq!(violation.code, ViolationCode::CredentialInOutput, "{line}");
        assert!(!format!("{violation:?}").contains("hunter2"));
        assert_eq!(world.store.slices, 0, "nothing of it is written");
    }
}

#[test]
fn large_locators_do_not_pile_up_in_an_unfinished_slice() {
    let mut world = world(&["photos"]);
    let locator = format!(r#","detail_locator":"{}"}}"#, "x".repeat(300_000));
    for key in ["a", "b", "c", "d"] {
        world.line(&gap("photos", "photos", key, "gone").replace('}', &locator));
    }
    assert_eq!(world.store.slices, 1);
}

#[test]
fn a_rejected_record_is_counted_as_rejected_and_its_slice_still_commits() {
    let mut config = config::<Steady>(&["photos"]);
    config.validator = Box::new(RejectAll);
    let mut world = World::new(config);
    world.lines(&[&record("photos", "a"), &slice_state("photos", 1), &done("succeeded", 1)]);
    let counts = world.outcome().counts;
    assert_eq!((counts.seen, counts.collected(), counts.rejected), (1, 0, 1));
    assert_eq!(world.store.quarantine, [("a".to_owned(), "/id".to_owned())]);
    assert_eq!(world.store.cursors.len(), 1);
    assert_eq!(world.keys("photos").len(), 0);
}

#[derive(Debug)]
struct RejectBad;

impl crate::Validate for RejectBad {
    fn check(&self, _: &str, body: &gleaner_protocol::RawJson<'_>) -> Result<(), Misfit> {
        if body.as_str().contains("bad") { Err(at("/bad")) } else { Ok(()) }
    }
}

#[test]
fn of_one_key_the_last_record_of_a_slice_decides_about_the_quarantine() {
    let good = |key| record("photos", key);
    let bad = |key| record("photos", key).replace("1.0", "\"bad\"");
    let mut config = config::<Steady>(ALL);
    config.validator = Box::new(RejectBad);
    let mut world = World::new(config);
    world.lines(&[&bad("a"), &bad("b"), &good("b"), &good("c"), &bad("c")]);
    // Another stream's record of that key is another record.
    world.lines(&[&record("trips", "a"), &done("succeeded", 6)]);
    let in_quarantine = world.store.quarantine.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>();
    assert_eq!(in_quarantine, ["a", "c"]);
    let counts = world.outcome().counts;
    assert_eq!((counts.seen, counts.collected(), counts.rejected), (6, 3, 2));
}

#[test]
fn a_page_without_streams_is_of_those_in_scope_and_no_others() {
    let mut world = world(&["photos", "trips"]);
    world.eager = false;
    world.line(r#"{"type":"DETAIL_GAPS_PAGE_REQUEST","request_id":"p","reference_only":true}"#);
    let Some(Effect::Store(StoreEffect::LeaseGapsPage { streams, .. })) = world.run.poll_effect() else {
        panic!("no page")
    };
    assert_eq!(streams, ["photos", "trips"]);
}

#[test]
fn a_catch_up_run_leaves_the_steady_bookmark_untouched() {
    let mut steady = world(&["photos"]);
    steady.lines(&[&state("photos", 9), &done("succeeded", 0)]);
    let mut catch_up = World::<CatchUp>::new(config(&["photos"]));
    catch_up.store = std::mem::take(&mut steady.store);
    catch_up.lines(&[&slice_state("photos", 1), &state("photos", 2), &done("succeeded", 0)]);
    assert_eq!(catch_up.store.cursor(Steady::NAME, "photos"), Some(r#"{"page":9}"#));
    assert_eq!(catch_up.store.cursor(CatchUp::NAME, "photos"), Some(r#"{"page":2}"#));
}
