//! Every message of the contract, read and written.

use crate::support::{Seen, decode};
use gleaner_protocol::{
    ConnectorMessage, CoverageField, DoneStatus, Evidence, GapKey, InteractionKind, Op, RecordKey, RecoveryAction,
    RuntimeMessage,
};

fn read(line: &str) -> ConnectorMessage<'_> {
    ConnectorMessage::decode(line.as_bytes()).unwrap_or_else(|violation| panic!("{violation}: {line}"))
}

fn written(message: &ConnectorMessage<'_>) -> String {
    let mut out = Vec::new();
    message.encode(&mut out);
    String::from_utf8(out).expect("messages are text")
}

/// Each line is in the order in which we write, so it must come out as it went in.
#[test]
fn every_message_of_a_connector_is_written_as_it_was_read() {
    let lines = r#"{"type":"RECORD","stream":"trips","key":"t1","data":{ "km": 1.50e2 },"emitted_at":"2031-02-03T04:05:06Z"}
{"type":"RECORD","stream":"trips","key":["a","b"],"op":"delete"}
{"type":"STATE","stream":"trips","cursor":{"page":9007199254740993},"slice":true}
{"type":"STATE","stream":"trips","cursor":null}
{"type":"PROGRESS","message":"half way","stream":"trips","count":5,"total":10}
{"type":"SKIP_RESULT","stream":"trips","reason":"no_map","message":"no map","diagnostics":{"a":[1]},"resource_ids":["t1"],"recovery_hint":{"action":"update_selector","retryable":false},"continuation":{"boundary":"page","considered":2,"covered":1,"slice_start":1,"slice_end":"x","owner":"runtime","remaining":true},"time_range":{"since":"2030","until":"2031"}}
{"type":"DETAIL_GAP","reference_only":true,"stream":"trips","record_key":17,"parent_stream":"days","reason":"rate_limited","detail_locator":{"w":1.0},"list_cursor":"c","last_error":{"class":"http","http_status":429},"detail":"later","retryable":true,"status":"pending","gap_id":"g1","lease_id":"l1"}
{"type":"DETAIL_GAP_ATTEMPTED","reference_only":true,"gap_id":"g1","lease_id":"l1","stream":"trips"}
{"type":"DETAIL_GAP_RECOVERED","reference_only":true,"gap_id":"g1","stream":"trips","record_key":"t1"}
{"type":"DETAIL_GAPS_PAGE_REQUEST","reference_only":true,"request_id":"r1","streams":["trips"],"max_bytes":65536}
{"type":"INTERACTION","request_id":"q1","kind":"otp","message":"the code?","schema":{"type":"object"},"timeout_seconds":60,"stream":"trips"}
{"type":"ASSISTANCE","assistance_request_id":"a1","message":"look","owner_action":"act_elsewhere","progress_posture":"running","response_contract":"none","timeout_seconds":5,"attachments":[]}
{"type":"ASSISTANCE_STATUS","assistance_request_id":"a1","status":"escalated","message":"now a question"}
{"type":"DONE","status":"failed","records_emitted":2,"error":{"message":"lost the way","retryable":true,"code":"lost_way","recovery_hint":{"action":"unknown"}}}"#;
    for line in lines.lines() {
        assert_eq!(written(&read(line)), format!("{line}\n"));
    }
}

#[test]
fn every_message_of_the_runtime_is_written_as_it_was_read() {
    let lines = r#"{"type":"START","run_id":"r1","collection_mode":"incremental","scope":{"streams":[{"name":"trips","resources":["t1"],"time_range":{"since":"2030"},"fields":["km"]},{"name":"days"}]},"state":{"trips":{"page":1.0}},"bindings":{"network":{},"interactive":{}},"detail_gaps":[{"gap_id":"g1","stream":"trips","record_key":null,"parent_stream":"days","detail_locator":{"kind":"backlog","watermark":"2030-01-01T00:00:00.000Z","left":12},"list_cursor":{"p":1},"status":"pending","reference_only":true,"lease_id":"l1"}],"recovery_only":true,"run_budget":{"max_requests":5,"max_duration_ms":1000}}
{"type":"START","run_id":"r2","collection_mode":"full_refresh","scope":{"streams":[{"name":"days"}]},"state":null,"bindings":{},"detail_gaps":[]}
{"type":"DETAIL_GAPS_PAGE_RESPONSE","request_id":"p1","reference_only":true,"detail_gaps":[]}
{"type":"INTERACTION_RESPONSE","request_id":"q1","status":"success","data":{"otp":"000000"}}
{"type":"INTERACTION_RESPONSE","request_id":"q1","status":"timeout"}"#;
    for line in lines.lines() {
        let message = RuntimeMessage::decode(line.as_bytes()).unwrap_or_else(|violation| panic!("{violation}: {line}"));
        let mut out = Vec::new();
        message.encode(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("{line}\n"));
    }
}

#[test]
fn a_record_is_borrowed_from_its_line() {
    let line = r#"{"type":"RECORD","stream":"s","key":"k","data":{"a":1},"emitted_at":"now"}"#;
    let ConnectorMessage::Record(record) = read(line) else { panic!("a record") };
    assert!(matches!(record.stream, std::borrow::Cow::Borrowed("s")));
    assert_eq!(record.key, RecordKey::Single("k".into()));
    let data = record.data.unwrap();
    assert!(line.as_bytes().as_ptr_range().contains(&data.as_str().as_ptr()));
}

#[test]
fn numbers_and_escapes_in_a_body_stay_as_they_were_written() {
    let body = r#"{"a":1e400,"b":9223372036854775808,"c":-0,"d":"\u0000\ud800","e":0.1000,"f":[ ]}"#;
    let line = format!(r#"{{"type":"RECORD","stream":"s","key":"k","data":{body},"emitted_at":"now"}}"#);
    let ConnectorMessage::Record(record) = read(&line) else { panic!("a record") };
    assert_eq!(record.data.unwrap().as_str(), body);
}

#[test]
fn keys_in_any_order_unknown_keys_and_nulls_are_fine() {
    let line = r#"{"emitted_at":"now","future":{"x":[]},"op":null,"data":{},"key":"k","stream":"s","type":"RECORD"}"#;
    let ConnectorMessage::Record(record) = read(line) else { panic!("a record") };
    assert_eq!((record.op, record.key.canonical().into_owned()), (Op::Upsert, "k".to_owned()));
    let line = r#"{"type":"PROGRESS","message":"m","stream":null,"phase":"x","page_index":0}"#;
    assert!(matches!(read(line), ConnectorMessage::Progress(progress) if progress.stream.is_none()));
}

#[test]
fn half_characters_in_a_sentence_are_replaced() {
    let line = r#"{"type":"PROGRESS","message":"done \ud83d"}"#;
    assert!(matches!(read(line), ConnectorMessage::Progress(progress) if progress.message == "done \u{fffd}"));
}

#[test]
fn hints_may_be_a_bare_action_and_resources_have_two_spellings() {
    let line = r#"{"type":"SKIP_RESULT","recovery_hint":"not_retriable","resources":["x"]}"#;
    let ConnectorMessage::SkipResult(skip) = read(line) else { panic!("a skip") };
    assert_eq!(skip.recovery_hint.map(|hint| hint.action), Some(RecoveryAction::NotRetriable));
    assert_eq!(skip.resources, ["x"]);
}

#[test]
fn gap_keys_keep_their_type_and_digits() {
    let line = r#"{"type":"DETAIL_GAP_RECOVERED","reference_only":true,"gap_id":"g","stream":"s","record_key":1.0}"#;
    let ConnectorMessage::DetailGapRecovered(gap) = read(line) else { panic!("a recovery") };
    assert_eq!(gap.record_key, Some(GapKey::Number("1.0".to_owned())));
}

#[test]
fn evidence_that_cannot_be_read_is_dropped_and_does_not_end_the_run() {
    let line = r#"{"type":"PROGRESS","message":"m","collection_rate":{"object":"collection_rate"}}"#;
    let ConnectorMessage::Progress(progress) = read(line) else { panic!("progress") };
    assert_eq!(progress.collection_rate, Evidence::Malformed);
    assert_eq!(progress.provider_budget, Evidence::Absent);
    assert_eq!(written(&ConnectorMessage::Progress(progress)), "{\"type\":\"PROGRESS\",\"message\":\"m\"}\n");
}

#[test]
fn a_rate_with_more_digits_than_a_number_holds_is_read_again_as_it_was_written() {
    let rate = r#"{"object":"collection_rate","current_interval_ms":500,"effective_rate_per_min":12184467047734095516150,"ceiling_interval_ms":20,"ceiling_rate_per_min":1500,"last_backoff":null}"#;
    let once = written(&read(&format!(r#"{{"type":"PROGRESS","message":"m","collection_rate":{rate}}}"#)));
    assert_eq!(written(&read(once.trim_end())), once);
}

#[test]
fn all_kinds_of_questions_are_known() {
    for kind in ["credentials", "otp", "manual_action", "missing_credentials"] {
        let line = format!(r#"{{"type":"INTERACTION","request_id":"q","kind":"{kind}","message":"?"}}"#);
        let ConnectorMessage::Interaction(interaction) = read(&line) else { panic!("a question") };
        assert_eq!(Some(interaction.kind), InteractionKind::from_code(kind));
    }
}

#[test]
fn returns_and_blank_lines_are_tolerated_and_counted() {
    let input = "\n\r\n  \t\n{\"type\":\"DONE\",\"status\":\"cancelled\",\"records_emitted\":0}\r\n\n";
    let expected = "{\"type\":\"DONE\",\"status\":\"cancelled\",\"records_emitted\":0}\n";
    assert_eq!(decode(input.as_bytes()), [Seen::Message(4, expected.to_owned())]);
}

#[test]
fn a_coverage_report_comes_in_blocks_and_ends() {
    let input = r#"{"required_keys":["a","b\n",7,["x","y"]],"hydrated_keys":[],"gap_keys":null,"stream":"s","considered":4,"extra":{"type":1},"state_stream":"p","reference_only":true,"type":"DETAIL_COVERAGE"}"#;
    let seen = decode(format!("{input}\n").as_bytes());
    let keys = ["a", "b\n", "7", r#"["x","y"]"#].map(ToOwned::to_owned).to_vec();
    assert_eq!(seen[0], Seen::Keys(1, CoverageField::RequiredKeys, keys));
    let Seen::End(1, report) = &seen[1] else { panic!("{seen:?}") };
    assert_eq!((report.stream.as_str(), report.state_stream.as_str()), ("s", "p"));
    assert_eq!((report.considered, report.covered, report.key_counts), (Some(4), None, [4, 0, 0, 0]));
}

#[test]
fn blocks_are_bounded_in_keys_and_bytes() {
    let key = |n: usize| format!("\"k{n:06}\"");
    let keys = (0..5_000).map(key).collect::<Vec<_>>().join(",");
    let long = (0..5).map(|n| format!("\"{}{n}\"", "x".repeat(50_000))).collect::<Vec<_>>().join(",");
    let line = format!(
        "{{\"type\":\"DETAIL_COVERAGE\",\"reference_only\":true,\"stream\":\"s\",\"state_stream\":\"s\",\"required_keys\":[{keys}],\"hydrated_keys\":[{long}]}}\n"
    );
    let sizes = decode(line.as_bytes())
        .into_iter()
        .filter_map(|seen| match seen {
            Seen::Keys(_, _, keys) => Some(keys.len()),
            _ => None,
        })
        .collect::<Vec<_>>();
    assert_eq!(sizes, [1024, 1024, 1024, 1024, 904, 2, 2, 1]);
}

#[test]
fn done_has_three_ends() {
    for (status, expected) in
        [("succeeded", DoneStatus::Succeeded), ("failed", DoneStatus::Failed), ("cancelled", DoneStatus::Cancelled)]
    {
        let line = format!(r#"{{"type":"DONE","status":"{status}","records_emitted":0}}"#);
        assert!(matches!(read(&line), ConnectorMessage::Done(done) if done.status == expected));
    }
}
