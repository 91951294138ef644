//! Properties that hold for any input: however it is cut, whatever it holds.

use crate::support::{Seen, decode_pieces};
use gleaner_protocol::{
    ConnectorMessage, CoverageField, Decoder, DetailGap, Done, DoneError, DoneStatus, Event, GapKey, GapReason, Limits,
    Op, Progress, RawJson, Record, RecordKey, ServedGap, SkipResult, State, ViolationCode,
};
use proptest::prelude::*;
use std::borrow::Cow;

/// Small limits, so that small inputs meet them.
const LIMITS: Limits = Limits { line_bytes_max: 300, coverage_bytes_max: 0 };

/// JSON as strangers write it: numbers of any size, odd white space, escapes, half characters.
fn json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?",
        text().prop_map(|text| serde_json::to_string(&text).expect("strings can be written")),
        r#""(\\u[0-9a-fA-F]{4}|\\[nt/]|[a-z ]){0,6}""#,
    ];
    scalar.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|parts| format!("[ {} ]", parts.join(" ,"))),
            prop::collection::vec(inner, 0..5).prop_map(|parts| {
                let members = parts.iter().enumerate().map(|(n, part)| format!("\"k{n}\" : {part}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

fn raw(text: String) -> RawJson<'static> {
    RawJson::new(text).expect("the strategy makes JSON")
}

/// A text of a few characters of any kind.
fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..8).prop_map(String::from_iter)
}

fn name() -> impl Strategy<Value = String> {
    text().prop_map(|text| format!("n{}", text.replace('\0', "")))
}

fn record() -> impl Strategy<Value = ConnectorMessage<'static>> {
    let key = prop_oneof![
        name().prop_map(|key| RecordKey::Single(Cow::Owned(key))),
        prop::collection::vec(name().prop_map(Cow::Owned), 1..4).prop_map(RecordKey::Compound),
    ];
    (name(), key, json(), any::<bool>()).prop_map(|(stream, key, body, deleted)| {
        ConnectorMessage::Record(Record {
            stream: Cow::Owned(stream),
            key,
            op: if deleted { Op::Delete } else { Op::Upsert },
            data: (!deleted).then(|| raw(format!("{{\"x\":{body}}}"))),
            emitted_at: (!deleted).then_some(Cow::Borrowed("2031-01-01T00:00:00Z")),
        })
    })
}

fn other() -> impl Strategy<Value = ConnectorMessage<'static>> {
    prop_oneof![
        (name(), json(), any::<bool>()).prop_map(|(stream, body, slice)| {
            let cursor = raw(format!("{{\"c\":{body}}}"));
            ConnectorMessage::State(State { stream: Cow::Owned(stream), cursor, slice })
        }),
        (text(), any::<Option<u64>>()).prop_map(|(message, count)| {
            ConnectorMessage::Progress(Progress { message, count, ..Progress::default() })
        }),
        (prop::option::of(name()), json().prop_filter("null is absent", |body| body != "null")).prop_map(
            |(stream, body)| {
                let diagnostics = Some(raw(body));
                ConnectorMessage::SkipResult(Box::new(SkipResult { stream, diagnostics, ..SkipResult::default() }))
            }
        ),
        (name(), name(), json().prop_filter("null is absent", |body| body != "null")).prop_map(
            |(stream, key, body)| {
                ConnectorMessage::DetailGap(Box::new(DetailGap {
                    stream,
                    record_key: Some(GapKey::Text(key)),
                    reason: GapReason::from_code("upstream_pressure"),
                    detail_locator: Some(raw(body)),
                    not_before: Some("2031-01-01".to_owned()),
                    ..DetailGap::default()
                }))
            }
        ),
        (any::<u64>(), text(), any::<bool>()).prop_map(|(records_emitted, message, retryable)| {
            let error = Some(DoneError { message, retryable, code: None, recovery_hint: None });
            ConnectorMessage::Done(Done { status: DoneStatus::Failed, records_emitted, error })
        }),
    ]
}

/// A coverage report by its two lists.
fn coverage() -> impl Strategy<Value = (String, Vec<String>, Vec<String>)> {
    // Cheap to make, and with what must be escaped; names of any kind are tried by the other messages.
    let key = || any::<u16>().prop_map(|n| format!("k\"\\\n\u{e9}{n}"));
    let keys = move || prop::collection::vec(key(), 0..60);
    (name(), keys(), keys())
}

fn line(message: &ConnectorMessage<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(&mut out);
    out
}

fn report(stream: &str, required: &[String], gaps: &[String]) -> Vec<u8> {
    let lists = [required, gaps].map(|keys| serde_json::json!(keys));
    let (stream, [required, gaps]) = (serde_json::json!(stream), lists);
    format!(
        "{{\"type\":\"DETAIL_COVERAGE\",\"reference_only\":true,\"stream\":{stream},\"state_stream\":{stream},\
         \"required_keys\":{required},\"hydrated_keys\":[],\"gap_keys\":{gaps}}}\n"
    )
    .into_bytes()
}

/// Output of a connector, mostly good.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => record().prop_map(|message| line(&message)),
        4 => other().prop_map(|message| line(&message)),
        2 => coverage().prop_map(|(stream, required, gaps)| report(&stream, &required, &gaps)),
        1 => Just(b"\r\n\n".to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

/// Cuts an input at these places.
fn pieces<'a>(input: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect::<Vec<_>>();
    places.extend([0, input.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &input[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_events(
        input in output(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        small in any::<bool>(),
    ) {
        let limits = if small { LIMITS } else { Limits::default() };
        let whole = decode_pieces(limits, [input.as_slice()]);
        prop_assert_eq!(&decode_pieces(limits, pieces(&input, &cuts)), &whole);
        prop_assert_eq!(&decode_pieces(limits, input.chunks(1)), &whole);
    }

    #[test]
    fn what_is_written_is_read_back(message in prop_oneof![record(), other()]) {
        let line = line(&message);
        prop_assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        prop_assert_eq!(ConnectorMessage::decode(&line[..line.len() - 1]), Ok(message));
    }

    #[test]
    fn a_written_coverage_report_is_read_back((stream, required, gaps) in coverage()) {
        let (mut read, mut ends) = ([Vec::new(), Vec::new()], 0);
        for seen in decode_pieces(Limits::default(), [report(&stream, &required, &gaps).as_slice()]) {
            match seen {
                Seen::Keys(_, field, keys) => read[usize::from(field == CoverageField::GapKeys)].extend(keys),
                Seen::End(_, report) => {
                    prop_assert_eq!((&report.stream, &report.state_stream), (&stream, &stream));
                    ends += 1;
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
        prop_assert_eq!((read, ends), ([required, gaps], 1));
    }

    #[test]
    fn bodies_cursors_and_locators_pass_through_as_written(body in json()) {
        let record = format!(r#"{{"type":"RECORD","stream":"s","key":"k","data":{{"x":{body}}},"emitted_at":"n"}}"#);
        let Ok(ConnectorMessage::Record(record)) = ConnectorMessage::decode(record.as_bytes()) else {
            return Err(TestCaseError::fail("a record"));
        };
        let body = format!("{{\"x\":{body}}}");
        prop_assert_eq!(record.data.as_ref().map(RawJson::as_str), Some(body.as_str()));
        prop_assert!(String::from_utf8(line(&ConnectorMessage::Record(record))).unwrap().contains(&body));
        // A locator comes back to the connector byte for byte.
        let gap = format!(r#"{{"type":"DETAIL_GAP","reference_only":true,"stream":"s","detail_locator":{body}}}"#);
        let Ok(ConnectorMessage::DetailGap(gap)) = ConnectorMessage::decode(gap.as_bytes()) else {
            return Err(TestCaseError::fail("a gap"));
        };
        let served = ServedGap {
            gap_id: "g".to_owned(),
            stream: gap.stream,
            record_key: None,
            parent_stream: None,
            detail_locator: gap.detail_locator,
            list_cursor: None,
            lease_id: "l".to_owned(),
        };
        let response = gleaner_protocol::RuntimeMessage::GapsPageResponse(gleaner_protocol::GapsPageResponse {
            request_id: "r".to_owned(),
            detail_gaps: vec![served],
        });
        let mut out = Vec::new();
        response.encode(&mut out);
        prop_assert!(String::from_utf8(out).unwrap().contains(&body));
    }

    #[test]
    fn any_bytes_get_an_answer(input in prop::collection::vec(any::<u8>(), 0..2000)) {
        let seen = decode_pieces(LIMITS, [input.as_slice()]);
        let violations = seen.iter().filter(|seen| matches!(seen, Seen::Violation(_))).count();
        prop_assert!(violations <= 1);
    }
}

/// Long reports are read while they arrive; the places where that begins and ends are not special.
#[test]
fn a_long_report_is_the_same_however_it_arrives() {
    let required = (0..30_000).map(|n| format!("key \u{e9} {n}")).collect::<Vec<_>>();
    let mut input = report("s", &required, &["long ".repeat(20_000)]);
    input.extend_from_slice(&line(&ConnectorMessage::Progress(Progress::default())));
    let whole = decode_pieces(Limits::default(), [input.as_slice()]);
    assert!(matches!(whole[whole.len() - 2..], [Seen::End(1, _), Seen::Message(2, _)]), "the report is read");
    for size in [1, 7, 4_096, 65_535, 65_536, 65_537, 300_000] {
        assert!(decode_pieces(Limits::default(), input.chunks(size)) == whole, "pieces of {size}");
    }
}

/// Found by fuzzing (`chunk_split`): the output ends within a report, and what is wrong near its end was
/// noticed only when the bytes came at once.
#[test]
fn a_report_that_is_cut_off_is_the_same_however_it_arrives() {
    let limits = Limits { line_bytes_max: 80, ..LIMITS };
    let mut input = report("s", &[], &[]);
    input.truncate(input.len() - 2);
    input.extend_from_slice(b",\"extra\":{\"k\":[1]}}\x02");
    let whole = decode_pieces(limits, [input.as_slice()]);
    for size in 1..input.len() {
        assert_eq!(decode_pieces(limits, input.chunks(size)), whole, "pieces of {size}");
    }
}

/// A limit moves the place where the first piece of a long report ends; no place may split a key, a number least of
/// all, because a number does not say where it ends.
#[test]
fn a_token_that_lies_across_two_pieces_is_one_token() {
    let input = b"{\"type\":\"DETAIL_COVERAGE\",\"required_keys\":[1234567,\"abc\\ndef\",-1.5e10,[\"x\",\"y\"]],\"hydrated_keys\":[],\"considered\":4567,\"stream\":\"s\",\"state_stream\":\"p\",\"reference_only\":true}\n";
    let whole = decode_pieces(Limits::default(), [input.as_slice()]);
    assert!(matches!(whole[..], [Seen::Keys(..), Seen::End(..)]), "{whole:?}");
    for limit in 30..input.len() {
        let limits = Limits { line_bytes_max: limit, ..LIMITS };
        assert_eq!(decode_pieces(limits, [input.as_slice()]), whole, "a limit of {limit}");
    }
}

/// Negative control: a reader that cuts where the input was cut is caught by the comparison above.
#[test]
fn the_comparison_notices_a_reader_that_depends_on_the_cuts() {
    let input = b"{\"type\":\"PROGRESS\",\"message\":\"m\"}\n";
    let careless = |pieces: Vec<&[u8]>| {
        pieces.into_iter().map(|piece| ConnectorMessage::decode(piece.trim_ascii()).is_ok()).collect::<Vec<_>>()
    };
    assert_ne!(careless(vec![input]), careless(input.chunks(5).collect()));
}

/// Fed data is not kept, so the rest is lost. Going on would lose messages in silence, and
/// once read places of the old bytes in the new ones.
#[test]
fn events_that_were_left_end_the_output_instead_of_being_lost_in_silence() {
    let keys = (0..3000).map(|n| format!("\"k{n}\"")).collect::<Vec<_>>().join(",");
    let report = format!(
        "{{\"type\":\"DETAIL_COVERAGE\",\"stream\":\"a\",\"state_stream\":\"b\",\"required_keys\":[{keys}],\
         \"hydrated_keys\":[]}}\n"
    );
    let record = "{\"type\":\"RECORD\",\"stream\":\"a\",\"key\":\"k\",\"op\":\"delete\"}\n".repeat(2);
    for fed in [report.as_str(), record.as_str()] {
        for then in ["", "x", "{}\n"] {
            let mut decoder = Decoder::new(Limits::default());
            assert!(!matches!(decoder.feed(fed.as_bytes()).next(), None | Some(Event::Violation(_))));
            let mut second = decoder.feed(then.as_bytes());
            let Some(Event::Violation(violation)) = second.next() else { panic!("it went on") };
            assert_eq!(violation.code, ViolationCode::IncompleteLine);
            assert_eq!(second.next(), None);
            assert_eq!(decoder.finish(), Ok(()), "it was said once");
        }
        let mut decoder = Decoder::new(Limits::default());
        assert!(decoder.feed(fed.as_bytes()).next().is_some());
        assert_eq!(decoder.finish().unwrap_err().code, ViolationCode::IncompleteLine);
    }
}
