//! Tests of the time range of a grant: whatever stands in the time field, no record is lost because of it.

use super::super::*;
use crate::testing::manifest;
use gleaner_protocol::{ConnectorMessage, StreamScope};
use proptest::prelude::*;

fn range(since: Option<&str>, until: Option<&str>) -> StreamScope {
    let time_range = Some(TimeRange { since: since.map(str::to_owned), until: until.map(str::to_owned) });
    StreamScope { name: "trips".to_owned(), time_range, ..StreamScope::default() }
}

fn judge(scope: &StreamScope, op: Op, body: Option<&str>) -> Result<Admitted, Violation> {
    let manifest = manifest();
    let rules = ScopeRules::new(&manifest, &Scope::new(vec![scope.clone()]).unwrap()).unwrap();
    let data = body.map(|body| format!(r#""data":{body},"#)).unwrap_or_default();
    let line = format!(
        r#"{{"type":"RECORD","stream":"trips","key":"t","op":"{}",{data}"emitted_at":"2031-01-01T00:00:00Z"}}"#,
        op.code()
    );
    let ConnectorMessage::Record(record) = ConnectorMessage::decode(line.as_bytes()).unwrap() else { panic!() };
    rules.admit(0, &record, &manifest, &NoSchema)
}

fn at(scope: &StreamScope, value: &str) -> Result<Admitted, ViolationCode> {
    judge(scope, Op::Upsert, Some(&format!(r#"{{"id":1,"at":{value}}}"#))).map_err(|violation| violation.code)
}

#[test]
fn a_time_may_be_a_date_a_time_without_a_zone_or_an_epoch_number() {
    let january = range(Some("2031-01-01"), Some("2031-02-01"));
    // 2031-01-15T00:00:00Z is 1,926,201,600 s.
    let inside = ["1926201600", "1926201600000", "1926201600.25", "1.9262016e9", "\"1926201600\"", "\"1926201600000\""];
    let texts = ["\"2031-01-15\"", "\"2031-01-15T00:00:00\"", "\"2031-01-15 00:00\"", "\"2031-01-15T00:00:00Z\""];
    for value in inside.into_iter().chain(texts) {
        assert_eq!(at(&january, value), Ok(Admitted::Store), "{value}");
    }
    for value in ["1924991999", "1924991999999", "\"2030-12-31T23:59:59\"", "\"2031-02-01\"", "1927670400.0", "-5"] {
        assert_eq!(at(&january, value), Err(ViolationCode::TimeOutOfRange), "{value}");
    }
}

#[test]
fn a_record_whose_time_cannot_be_read_is_stored_and_counted() {
    let january = range(Some("2031-01-01"), Some("2031-02-01"));
    for value in ["null", "true", "{}", "[1]", "\"soon\"", "\"\"", "0", "1e300", "1926201600000000", "\"20310115\""] {
        assert_eq!(at(&january, value), Ok(Admitted::StoreWithoutTime), "{value}");
    }
    assert_eq!(judge(&january, Op::Upsert, Some(r#"{"id":1}"#)), Ok(Admitted::StoreWithoutTime));
}

#[test]
fn a_range_never_applies_to_a_delete() {
    let january = range(Some("2031-01-01"), Some("2031-02-01"));
    for body in [None, Some(r#"{"at":"2001-01-01"}"#), Some(r#"{"at":7}"#), Some(r#"{"at":null}"#), Some("{}")] {
        assert_eq!(judge(&january, Op::Delete, body), Ok(Admitted::Store), "{body:?}");
    }
}

fn any_value() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        any::<String>(),
        "[0-9]{1,20}",
        "-?[0-9]{1,14}(\\.[0-9]{1,12})?",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,20})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?",
    ];
    let number = prop_oneof!["-?[1-9][0-9]{0,20}", "-?[0-9](\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,6})?"];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|flag| flag.to_string()),
        number,
        text.prop_map(|text| Value::from(text).to_string()),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|parts| format!("[{}]", parts.join(","))),
            inner.prop_map(|value| format!(r#"{{"t":{value}}}"#)),
        ]
    })
}

proptest! {
    /// The whole class: a record is stored, or it is proven to be outside of the range and ends the run, in which case
    /// no cursor is committed past it. It is never set aside because of its time.
    #[test]
    fn no_value_of_the_time_field_loses_a_record(value in any_value(), since in any::<bool>(), until in any::<bool>()) {
        let scope = range(since.then_some("2015-01-01"), until.then_some("2031-02-01T00:00:00Z"));
        let read = Instant::of_value(&RawJson::new(value.clone()).unwrap());
        let inside = |time: Instant| {
            let (first, end) = (Instant::parse("2015-01-01").unwrap(), Instant::parse("2031-02-01").unwrap());
            !(since && time < first || until && time >= end)
        };
        let expected = match read {
            _ if !since && !until => Ok(Admitted::Store),
            None => Ok(Admitted::StoreWithoutTime),
            Some(time) if inside(time) => Ok(Admitted::Store),
            Some(_) => Err(ViolationCode::TimeOutOfRange),
        };
        prop_assert_eq!(at(&scope, &value), expected);
        let body = format!(r#"{{"id":1,"at":{value}}}"#);
        prop_assert_eq!(judge(&scope, Op::Delete, Some(&body)), Ok(Admitted::Store));
    }
}
