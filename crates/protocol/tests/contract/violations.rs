//! Every breach that shows in one line: its code, its place, and that nothing of the line is repeated.

use crate::support::{Seen, decode, decode_pieces, violation};
use gleaner_protocol::ViolationCode::{
    BadJson, ContradictoryDone, ContradictoryGap, CoverageTooLong, DuplicateKey, IncompleteLine, InvalidUtf8,
    LineTooLong, LoneSurrogate, MalformedContinuation, MalformedField, MalformedHint, MissingField, NotAnObject,
    NulByte, TooDeep, TooManyKeys, UnknownReason, UnknownType,
};
use gleaner_protocol::{ConnectorMessage, Limits, Position, RuntimeMessage, ViolationCode};

#[track_caller]
fn check(line: &str, code: ViolationCode, field: Option<&str>) {
    let found = violation(format!("{line}\n").as_bytes());
    assert_eq!((found.code, found.field), (code, field), "{line}");
}

#[test]
fn lines_that_are_no_message() {
    check("oops", BadJson, None);
    check("{\"type\":\"DONE\"", BadJson, None);
    check("[]", NotAnObject, None);
    check("{}", MissingField, Some("type"));
    check(r#"{"type":7}"#, MalformedField, Some("type"));
    check(r#"{"type":"START"}"#, UnknownType, Some("type"));
    check(r#"{"type":"record"}"#, UnknownType, Some("type"));
    check("\u{feff}{}", BadJson, None);
    check("{\"type\":\"PROGRESS\",\"message\":\"\0\"}", NulByte, None);
}

#[test]
fn duplicate_keys_are_refused_at_every_depth() {
    check(r#"{"type":"DONE","status":"failed","status":"succeeded","records_emitted":0}"#, DuplicateKey, None);
    check(
        r#"{"type":"RECORD","stream":"s","key":"k","data":{"a":{"b":1,"\u0062":2}},"emitted_at":"n"}"#,
        DuplicateKey,
        None,
    );
}

#[test]
fn fields_of_records_and_states() {
    let record = |middle: &str| format!(r#"{{"type":"RECORD",{middle},"emitted_at":"n"}}"#);
    check(&record(r#""key":"k","data":{}"#), MissingField, Some("stream"));
    check(&record(r#""stream":"s","data":{}"#), MissingField, Some("key"));
    check(&record(r#""stream":"s","key":"k""#), MissingField, Some("data"));
    check(&record(r#""stream":"s","key":"k","data":[]"#), MalformedField, Some("data"));
    for key in ["\"\"", "7", "[]", "[\"a\",\"\"]", "[1]", "{}", "true"] {
        check(&record(&format!(r#""stream":"s","key":{key},"data":{{}}"#)), MalformedField, Some("key"));
    }
    check(&record(r#""stream":"s","key":"k","data":{},"op":"replace""#), MalformedField, Some("op"));
    check(r#"{"type":"RECORD","stream":"s","key":"k","data":{}}"#, MissingField, Some("emitted_at"));
    check(r#"{"type":"STATE","stream":"s"}"#, MissingField, Some("cursor"));
    check(r#"{"type":"STATE","stream":"s","cursor":"c"}"#, MalformedField, Some("cursor"));
}

#[test]
fn a_lone_surrogate_in_a_stream_or_key_is_refused_and_in_data_it_is_not() {
    check(r#"{"type":"RECORD","stream":"\ud800","key":"k","data":{},"emitted_at":"n"}"#, LoneSurrogate, Some("stream"));
    check(r#"{"type":"RECORD","stream":"s","key":"\udc00x","data":{},"emitted_at":"n"}"#, LoneSurrogate, Some("key"));
    check(r#"{"type":"RECORD","stream":"s","key":["\ud800"],"data":{},"emitted_at":"n"}"#, LoneSurrogate, Some("key"));
    let fine = r#"{"type":"RECORD","stream":"s","key":"k","data":{"x":"\ud800"},"emitted_at":"n"}"#;
    assert!(matches!(decode(format!("{fine}\n").as_bytes())[..], [Seen::Message(..)]));
    let coverage = r#"{"type":"DETAIL_COVERAGE","stream":"s","state_stream":"s","required_keys":["\ud800"]}"#;
    check(coverage, LoneSurrogate, Some("required_keys"));
}

#[test]
fn hints_continuations_gaps_and_ends() {
    check(r#"{"type":"SKIP_RESULT","recovery_hint":"pray"}"#, MalformedHint, Some("recovery_hint"));
    check(r#"{"type":"SKIP_RESULT","continuation":{}}"#, MalformedContinuation, Some("owner"));
    let gap = |rest: &str| format!(r#"{{"type":"DETAIL_GAP","reference_only":true,"stream":"s",{rest}}}"#);
    check(&gap(r#""reason":"tired""#), UnknownReason, Some("reason"));
    check(&gap(r#""status":"done""#), MalformedField, Some("status"));
    check(&gap(r#""last_error":{"class":"x","http_status":42}"#), MalformedField, Some("last_error"));
    check(r#"{"type":"DETAIL_GAP","stream":"s"}"#, MissingField, Some("reference_only"));
    check(r#"{"type":"DETAIL_GAP","stream":"s","reference_only":false}"#, MalformedField, Some("reference_only"));
    check(
        &gap(r#""reason":"retry_exhausted","last_error":{"class":"run_cap_deferred","http_status":429}"#),
        ContradictoryGap,
        Some("last_error"),
    );
    check(
        &gap(r#""reason":"rate_limited","last_error":{"class":"run_cap_deferred"}"#),
        ContradictoryGap,
        Some("last_error"),
    );
    let done = |rest: &str| format!(r#"{{"type":"DONE","records_emitted":0,{rest}}}"#);
    check(&done(r#""status":"succeeded","error":{"message":"m","retryable":false}"#), ContradictoryDone, Some("error"));
    check(&done(r#""status":"great""#), MalformedField, Some("status"));
    check(
        &done(r#""status":"failed","error":{"message":"m","retryable":true,"code":"Bad"}"#),
        MalformedField,
        Some("error.code"),
    );
    check(r#"{"type":"DONE","status":"failed","records_emitted":-1}"#, MalformedField, Some("records_emitted"));
}

#[test]
fn coverage_reports_are_read_strictly() {
    let coverage = |rest: &str| format!(r#"{{"type":"DETAIL_COVERAGE","stream":"s",{rest}}}"#);
    let full = r#""state_stream":"s","reference_only":true,"required_keys":[],"hydrated_keys":[]"#;
    assert!(matches!(decode(format!("{}\n", coverage(full)).as_bytes())[..], [Seen::End(..)]));
    for (name, part) in [
        ("state_stream", r#""state_stream":"s","#),
        ("reference_only", r#""reference_only":true,"#),
        ("required_keys", r#""required_keys":[],"#),
    ] {
        check(&coverage(&full.replace(part, "")), MissingField, Some(name));
    }
    check(
        &coverage(&full.replace(r#""hydrated_keys":[]"#, r#""hydrated_keys":null"#)),
        MissingField,
        Some("hydrated_keys"),
    );
    for keys in ["[\"\"]", "[null]", "[{}]", "[[]]", "[[1]]", "\"x\"", "{}", "[true]"] {
        let line = coverage(&full.replace(r#""required_keys":[]"#, &format!("\"required_keys\":{keys}")));
        check(&line, MalformedField, Some("required_keys"));
    }
    check(&coverage(&full.replace("true", "false")), MalformedField, Some("reference_only"));
    check(&coverage(&format!(r#"{full},"considered":"x""#)), MalformedField, Some("considered"));
    check(&coverage(&format!(r#"{full},"hydrated_keys":[]"#)), DuplicateKey, None);
}

/// A long report is read while it arrives, so each of its faults has a way of its own.
#[test]
fn faults_far_inside_a_long_coverage_report_are_found() {
    let keys = (0..20_000).map(|n| format!("\"key-{n:05}\"")).collect::<Vec<_>>().join(",");
    let head = r#"{"type":"DETAIL_COVERAGE","stream":"far","state_stream":"s","reference_only":true,"required_keys":["#;
    let end_of = |tail: &[u8]| {
        let mut input = format!("{head}{keys}").into_bytes();
        input.extend_from_slice(tail);
        violation(&input)
    };
    for (tail, code) in [
        (&b"]}\n"[..], MissingField),
        (b",]}\n", BadJson),
        (b"],\"hydrated_keys\":[\"a\"\n", BadJson),
        (b",\"\xff\"]}\n", InvalidUtf8),
        (b",\"\0\"]}\n", NulByte),
        (b"],\"stream\":\"again\"}\n", DuplicateKey),
        (b"],\"x\":{\"a\":1,\"a\":2}}\n", DuplicateKey),
        (b"],\"hydrated_keys\":[]} {}\n", BadJson),
        (b"],\"hydrated_keys\":[]}", IncompleteLine),
        (b",\"\\ud800\"]}\n", LoneSurrogate),
    ] {
        let found = end_of(tail);
        assert_eq!((found.code, found.stream.as_deref()), (code, Some("far")), "{:?}", String::from_utf8_lossy(tail));
    }
    let found = end_of(b",7x]}\n");
    let offset = (head.len() + keys.len() + 2) as u64;
    assert_eq!((found.code, found.position), (BadJson, Some(Position { line: 1, offset })));
}

#[test]
fn a_last_line_without_its_line_feed_is_never_a_message() {
    let input = b"{\"type\":\"PROGRESS\",\"message\":\"m\"}\n{\"type\":\"STATE\",\"stream\":\"s\",\"cursor\":null}";
    let seen = decode(input);
    assert!(matches!(seen[0], Seen::Message(1, _)));
    let Seen::Violation(violation) = &seen[1] else { panic!("{seen:?}") };
    assert_eq!((violation.code, violation.stream.as_deref()), (IncompleteLine, Some("s")));
    assert_eq!(violation.position.map(|position| position.line), Some(2));
    assert_eq!(decode(b" \r"), [], "white space at the end is nothing");
}

#[test]
fn a_line_at_its_limit_passes_and_one_byte_more_does_not() {
    let record = |length: usize| {
        let line = r#"{"type":"RECORD","stream":"big","key":"k","emitted_at":"n","data":{"x":""}}"#;
        let body = "x".repeat(length - line.len());
        format!("{}\n", line.replace("\"\"", &format!("\"{body}\"")))
    };
    for limit in [1_000, 65_535, 65_536, 65_537, 200_000] {
        let limits = Limits { line_bytes_max: limit, ..Limits::default() };
        for piece in [97, 4_096, usize::MAX] {
            let feed = |text: &str| decode_pieces(limits, text.as_bytes().chunks(piece.min(text.len())));
            for length in [limit - 1, limit] {
                assert!(matches!(feed(&record(length))[..], [Seen::Message(1, _)]), "{length} of {limit}");
            }
            let Some(Seen::Violation(violation)) = feed(&record(limit + 1)).pop() else { panic!("{limit}") };
            assert_eq!((violation.code, violation.stream.as_deref()), (LineTooLong, Some("big")));
        }
    }
}

#[test]
fn a_coverage_report_has_a_limit_of_its_own() {
    let limits = Limits { line_bytes_max: 1_000, coverage_bytes_max: 200_000 };
    let report = |count: usize| {
        let keys = (0..count).map(|n| format!("\"{n:08}\"")).collect::<Vec<_>>().join(",");
        format!(
            "{{\"type\":\"DETAIL_COVERAGE\",\"stream\":\"s\",\"state_stream\":\"s\",\"reference_only\":true,\"hydrated_keys\":[],\"required_keys\":[{keys}]}}\n"
        )
    };
    for piece in [97, 1_000_000] {
        let feed = |text: &str| decode_pieces(limits, text.as_bytes().chunks(piece)).pop();
        assert!(matches!(feed(&report(15_000)), Some(Seen::End(..))));
        let Some(Seen::Violation(violation)) = feed(&report(25_000)) else { panic!("too long") };
        assert_eq!((violation.code, violation.stream.as_deref()), (CoverageTooLong, Some("s")));
    }
}

#[test]
fn depth_and_keys_are_bounded() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    check(
        &format!(r#"{{"type":"RECORD","stream":"s","key":"k","data":{{"x":{deep}}},"emitted_at":"n"}}"#),
        TooDeep,
        None,
    );
    let keys = (0..1_100_000).map(|n| format!("\"{n:x}\":1")).collect::<Vec<_>>().join(",");
    check(
        &format!(r#"{{"type":"RECORD","stream":"s","key":"k","data":{{{keys}}},"emitted_at":"n"}}"#),
        TooManyKeys,
        None,
    );
}

/// Found by fuzzing (`message_decode`): a line feed is white space for JSON, but not part of a line.
#[test]
fn a_text_of_several_lines_is_not_a_line() {
    let text = b"{\"type\":\"STATE\",\"stream\":\"s\",\"cursor\":{\n}}";
    let found = ConnectorMessage::decode(text).unwrap_err();
    assert_eq!((found.code, found.position.map(|position| position.offset)), (BadJson, Some(39)));
    assert!(RuntimeMessage::decode(b"{\n}").is_err());
}

#[test]
fn nothing_comes_after_a_violation() {
    let seen = decode(b"oops\n{\"type\":\"DONE\",\"status\":\"failed\",\"records_emitted\":0}\n{");
    assert_eq!(seen.len(), 1);
}

#[test]
fn a_violation_never_repeats_what_the_line_held() {
    let secrets = [
        r#"{"type":"RECORD","stream":"s","key":"k","data":{"pw":"hunter2"}"#.to_owned(),
        r#"{"type":"hunter2"}"#.to_owned(),
        r#"{"type":"DETAIL_GAP","reference_only":true,"stream":"s","reason":"hunter2"}"#.to_owned(),
        r#"{"type":"DONE","status":"hunter2","records_emitted":0}"#.to_owned(),
        r#"{"type":"SKIP_RESULT","recovery_hint":"hunter2"}"#.to_owned(),
    ];
    for line in secrets {
        let found = violation(format!("{line}\n").as_bytes());
        assert!(!format!("{found} {found:?}").contains("hunter2"), "{line}");
    }
}
