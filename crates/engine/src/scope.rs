//! Whether a record was asked for: its stream, its key, its fields, its time.
//!
//! Why it is made once per run: the rules come out of a manifest and a grant, and a run has millions
//! of records. A record that was not asked for ends the run, because a connector that collects more
//! than the owner allowed cannot be trusted with the rest. A record whose time cannot be read is not
//! proven to be outside: it is stored and counted. A delete has no time: what is gone is gone, whenever it was
//! made. Schemas are checked by whoever implements [`Validate`].

use crate::instant::Instant;
use crate::redact::Redactor;
use crate::run::masking::in_output;
use crate::schema::Schemas;
use gleaner_protocol::{
    Manifest, Op, RawJson, Record, ResourceFilter, Scope, TerminalReason, TimeRange, Violation, ViolationCode,
};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Checks bodies against the schemas of their streams, and everything that is stored for the
/// connection's own credential. A pure function of its arguments.
pub trait Validate: std::fmt::Debug + Send {
    /// Whether the body fits.
    ///
    /// # Errors
    ///
    /// What does not fit, and why.
    fn check(&self, stream: &str, body: &RawJson<'_>) -> Result<(), Misfit>;

    /// Whether a text holds the connection's own credential. Anybody else's secret is data.
    fn reveals_credential(&self, _text: &str) -> bool {
        false
    }

    /// The text without the connection's own credential, if it held it. For what people read: messages,
    /// errors and diagnostics.
    fn mask(&self, _text: &str) -> Option<String> {
        None
    }
}

/// Why a body does not fit the schema of its stream. Values of the body are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Misfit {
    /// The JSON pointer of the fault; empty for the whole body.
    pub pointer: String,
    /// The rule of the schema that it breaks; empty where that is not known.
    pub reason: String,
}

/// Accepts every body.
#[derive(Clone, Copy, Debug)]
pub struct NoSchema;

impl Validate for NoSchema {
    fn check(&self, _stream: &str, _body: &RawJson<'_>) -> Result<(), Misfit> {
        Ok(())
    }
}

/// Schemas, and the connection's own secrets.
#[derive(Debug)]
pub struct RecordChecks {
    /// What bodies are checked against.
    pub schemas: Schemas,
    /// What is masked, and must not be stored.
    pub redactor: Redactor,
}

impl Validate for RecordChecks {
    fn check(&self, stream: &str, body: &RawJson<'_>) -> Result<(), Misfit> {
        self.schemas.check(stream, body)
    }

    fn reveals_credential(&self, text: &str) -> bool {
        self.redactor.reveals(text)
    }

    fn mask(&self, text: &str) -> Option<String> {
        let masked = self.redactor.mask(text);
        (masked != text).then_some(masked)
    }
}

/// Why a run is not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The scope names a stream that the connector does not have.
    #[error("the connector has no stream {0:?}")]
    UnknownStream(String),
    /// The scope has a time that cannot be read.
    #[error("the time range of stream {stream:?} has {text:?}, which is not a time")]
    UnreadableTime {
        /// The stream.
        stream: String,
        /// What stands there.
        text: String,
    },
    /// The connector needs something that is not there.
    #[error("the connector requires the binding {0:?}, which is not available")]
    BindingUnavailable(String),
    /// The grant's end is past.
    #[error("the grant has expired")]
    GrantExpired,
}

impl Refusal {
    /// The reason that goes on record.
    #[must_use]
    pub const fn reason(&self) -> TerminalReason {
        match self {
            Self::UnknownStream(_) | Self::UnreadableTime { .. } => TerminalReason::ScopeRejected,
            Self::BindingUnavailable(_) => TerminalReason::BindingUnavailable,
            Self::GrantExpired => TerminalReason::GrantExpired,
        }
    }
}

/// Whether a run can be asked for this. Looked at before anything is on record: what its owner mistyped is no failure of
/// the connection.
///
/// # Errors
///
/// When the scope does not fit the manifest.
pub fn check_scope(manifest: &Manifest, scope: &Scope) -> Result<(), Refusal> {
    ScopeRules::new(manifest, scope).map(drop)
}

/// The rules of one run.
#[derive(Debug)]
pub(crate) struct ScopeRules {
    names: Arc<[String]>,
    index: BTreeMap<String, u16>,
    streams: Vec<StreamRules>,
}

#[derive(Debug)]
pub(crate) struct StreamRules {
    pub(crate) resources: ResourceFilter,
    /// Empty means all.
    pub(crate) fields: BTreeSet<String>,
    time: Option<TimeRule>,
}

#[derive(Debug)]
struct TimeRule {
    field: String,
    since: Option<Instant>,
    until: Option<Instant>,
}

/// What is done with a record that was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    Store,
    /// The same; but there is a time range, and its time could not be read.
    StoreWithoutTime,
    /// With the JSON pointer of the fault.
    Reject(Misfit),
}

impl ScopeRules {
    pub(crate) fn new(manifest: &Manifest, scope: &Scope) -> Result<Self, Refusal> {
        let mut rules = Vec::new();
        let mut index = BTreeMap::new();
        for asked in scope.streams() {
            let stream = manifest.stream(&asked.name).ok_or_else(|| Refusal::UnknownStream(asked.name.clone()))?;
            let mut fields = asked.fields.iter().cloned().collect::<BTreeSet<_>>();
            if !fields.is_empty() {
                fields.extend(stream.schema.as_ref().map(required_by).unwrap_or_default());
            }
            let time = match &asked.time_range {
                None | Some(TimeRange { since: None, until: None }) => None,
                Some(range) => TimeRule::new(&asked.name, stream.consent_time_field.as_deref(), range)?,
            };
            // Without its time a record could not be shown to lie inside the range.
            if let (Some(rule), false) = (&time, fields.is_empty()) {
                fields.insert(rule.field.clone());
            }
            let resources = ResourceFilter::new(asked.resources.iter().cloned());
            // A manifest has at most a thousand streams, and a scope names each once.
            index.insert(asked.name.clone(), u16::try_from(rules.len()).unwrap_or(u16::MAX));
            rules.push(StreamRules { resources, fields, time });
        }
        let names = scope.streams().iter().map(|stream| stream.name.clone()).collect();
        Ok(Self { names, index, streams: rules })
    }

    pub(crate) fn names(&self) -> Arc<[String]> {
        Arc::clone(&self.names)
    }

    pub(crate) fn contains(&self, stream: &str) -> bool {
        self.index.contains_key(stream)
    }

    /// Whether the run asks for only a part of this stream, or not for it at all.
    pub(crate) fn limits(&self, stream: &str) -> bool {
        self.index.get(stream).is_none_or(|&at| self.streams[usize::from(at)].is_limited())
    }

    /// Whether the run asks for only a part of some stream.
    pub(crate) fn is_limited(&self) -> bool {
        self.streams.iter().any(StreamRules::is_limited)
    }

    /// The rules of a stream that is in the scope.
    pub(crate) fn rules(&self, stream: &str) -> Option<&StreamRules> {
        self.index.get(stream).map(|&at| &self.streams[usize::from(at)])
    }

    /// The place of a stream in the scope.
    pub(crate) fn stream(&self, name: &str) -> Result<u16, Violation> {
        let outside = || Violation::new(ViolationCode::StreamOutOfScope).in_field("stream").of_stream(name);
        self.index.get(name).copied().ok_or_else(outside)
    }

    /// Judges a record of the stream at this place.
    pub(crate) fn admit(
        &self,
        stream: u16,
        record: &Record<'_>,
        manifest: &Manifest,
        validator: &dyn Validate,
    ) -> Result<Admitted, Violation> {
        let rules = &self.streams[usize::from(stream)];
        rules.resources.check(record).map_err(|violation| violation.of_stream(&record.stream))?;
        if validator.reveals_credential(&record.key.canonical()) {
            return Err(in_output("key").of_stream(&record.stream));
        }
        if record.emitted_at.as_ref().is_some_and(|time| validator.reveals_credential(time)) {
            return Err(in_output("emitted_at").of_stream(&record.stream));
        }
        if record.op == Op::Delete {
            record.check_deletion(manifest)?;
        }
        let Some(body) = &record.data else { return Ok(Admitted::Store) };
        if validator.reveals_credential(body.as_str()) {
            return Err(in_output("data").of_stream(&record.stream));
        }
        let named = |code, field| Violation::new(code).in_field(field).of_stream(&record.stream);
        let outside = |code| named(code, "data").of_key(&record.key.canonical());
        let time = rules.check_fields_and_time(record.op, body).map_err(outside)?;
        // The last body of a deleted record is nobody's business.
        if record.op == Op::Upsert
            && let Err(misfit) = validator.check(&record.stream, body)
        {
            return Ok(Admitted::Reject(misfit));
        }
        Ok(match time {
            Timed::Inside | Timed::Outside => Admitted::Store,
            Timed::Unreadable => Admitted::StoreWithoutTime,
        })
    }
}

/// How the time of a body lies to the range. Without a range every time is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timed {
    Inside,
    Outside,
    /// It is not there, or cannot be read.
    Unreadable,
}

impl StreamRules {
    fn is_limited(&self) -> bool {
        !self.resources.is_empty() || self.looks_at_bodies()
    }

    /// The hot path: without such a limit a body is not looked at.
    pub(crate) fn looks_at_bodies(&self) -> bool {
        !self.fields.is_empty() || self.time.is_some()
    }

    fn check_fields_and_time(&self, op: Op, body: &RawJson<'_>) -> Result<Timed, ViolationCode> {
        let members = if self.looks_at_bodies() { body.members() } else { None };
        let Some(members) = members else { return Ok(Timed::Inside) };
        if !self.fields.is_empty() && members.iter().any(|(name, _)| !self.fields.contains(name.as_ref())) {
            return Err(ViolationCode::FieldOutOfScope);
        }
        match self.time_of(&members) {
            _ if op == Op::Delete => Ok(Timed::Inside),
            Timed::Outside => Err(ViolationCode::TimeOutOfRange),
            time => Ok(time),
        }
    }

    /// How the time of a body lies to the range.
    pub(crate) fn time_of(&self, members: &[(Cow<'_, str>, RawJson<'_>)]) -> Timed {
        let Some(rule) = &self.time else { return Timed::Inside };
        let value = members.iter().find(|(name, _)| *name == rule.field).map(|(_, value)| value);
        match value.and_then(Instant::of_value) {
            Some(time) if rule.contains(time) => Timed::Inside,
            Some(_) => Timed::Outside,
            None => Timed::Unreadable,
        }
    }
}

impl TimeRule {
    /// Records of a stream without such a field have no time that could be judged; the connector is
    /// told the range all the same (a catch-up run has one for every stream).
    fn new(stream: &str, field: Option<&str>, range: &TimeRange) -> Result<Option<Self>, Refusal> {
        let read = |text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => Instant::parse(text)
                .map(Some)
                .ok_or_else(|| Refusal::UnreadableTime { stream: stream.to_owned(), text: text.clone() }),
        };
        let (since, until) = (read(&range.since)?, read(&range.until)?);
        Ok(field.map(|field| Self { field: field.to_owned(), since, until }))
    }

    /// `since ≤ t < until`.
    fn contains(&self, time: Instant) -> bool {
        self.since.is_none_or(|since| since <= time) && self.until.is_none_or(|until| time < until)
    }
}

/// The fields that a schema may require at the top, also under a condition: a record without them might no longer fit its
/// schema, and would be set aside because of what was asked for.
fn required_by(schema: &RawJson<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Ok(root) = serde_json::from_str::<Value>(schema.as_str()) else { return names };
    let text = |name: &Value| name.as_str().map(str::to_owned);
    // References may form a ring.
    let mut followed = BTreeSet::new();
    let mut open = vec![(&root, false)];
    while let Some((schema, decides)) = open.pop() {
        let of = |keyword: &str| schema.get(keyword);
        let list = |keyword: &str| of(keyword).and_then(Value::as_array).into_iter().flatten();
        let map = |keyword: &str| of(keyword).and_then(Value::as_object).into_iter().flatten();
        names.extend(list("required").filter_map(text));
        names.extend(
            map("dependentRequired").flat_map(|(_, names)| names.as_array().into_iter().flatten().filter_map(text)),
        );
        if decides {
            names.extend(map("properties").map(|(name, _)| name.clone()));
        }
        open.extend(["allOf", "anyOf"].into_iter().flat_map(list).map(|schema| (schema, decides)));
        open.extend(["then", "else"].into_iter().filter_map(of).map(|schema| (schema, decides)));
        open.extend(map("dependentSchemas").map(|(_, schema)| (schema, decides)));
        // Which of these holds may depend on a field that is not there.
        open.extend(list("oneOf").chain(["if", "not"].into_iter().filter_map(of)).map(|schema| (schema, true)));
        let target = of("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
        if let Some(pointer) = target
            && followed.insert((pointer, decides))
        {
            open.extend(root.pointer(pointer).map(|schema| (schema, decides)));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    mod times;

    use super::*;
    use crate::testing::manifest;
    use gleaner_protocol::{ConnectorMessage, StreamScope};

    fn scope(trips: StreamScope) -> Scope {
        Scope::new(vec![StreamScope { name: "trips".to_owned(), ..trips }, StreamScope::all_of("photos")]).unwrap()
    }

    fn admit(trips: StreamScope, line: &str) -> Result<Admitted, Violation> {
        let manifest = manifest();
        let rules = ScopeRules::new(&manifest, &scope(trips)).unwrap();
        let ConnectorMessage::Record(record) = ConnectorMessage::decode(line.as_bytes()).unwrap() else { panic!() };
        rules.admit(rules.stream(&record.stream)?, &record, &manifest, &NoSchema)
    }

    fn trip(body: &str) -> String {
        format!(r#"{{"type":"RECORD","stream":"trips","key":"t1","data":{body},"emitted_at":"2031-01-01T00:00:00Z"}}"#)
    }

    #[test]
    fn connector_emits_a_record_outside_the_declared_resources_set() {
        let resources = vec!["t1".to_owned(), r#"["a","b"]"#.to_owned()];
        let only = || StreamScope { resources: resources.clone(), ..StreamScope::default() };
        assert_eq!(admit(only(), &trip("{}")), Ok(Admitted::Store));
        assert_eq!(admit(only(), &trip("{}").replace("\"t1\"", r#"[ "a", "b" ]"#)), Ok(Admitted::Store));
        let violation = admit(only(), &trip("{}").replace("t1", "t2")).unwrap_err();
        assert_eq!(violation.to_string(), r#"key_out_of_resources, field key, stream "trips", key "t2""#);
    }

    #[test]
    fn empty_resources_set_is_a_no_op() {
        assert_eq!(admit(StreamScope::default(), &trip("{}").replace("t1", "anything")), Ok(Admitted::Store));
    }

    #[test]
    fn append_only_streams() {
        let delete = r#"{"type":"RECORD","stream":"photos","key":"p","op":"delete"}"#;
        assert_eq!(admit(StreamScope::default(), delete).unwrap_err().code, ViolationCode::DeleteOnAppendOnly);
        assert_eq!(admit(StreamScope::default(), &delete.replace("photos", "trips")), Ok(Admitted::Store));
    }

    #[test]
    fn a_stream_that_was_not_asked_for_is_named() {
        let violation = admit(StreamScope::default(), &trip("{}").replace("trips", "mail")).unwrap_err();
        assert_eq!((violation.code, violation.stream.as_deref()), (ViolationCode::StreamOutOfScope, Some("mail")));
    }

    #[test]
    fn fields_are_those_asked_for_and_those_the_schema_requires() {
        let fields = || StreamScope { fields: vec!["km".to_owned()], ..StreamScope::default() };
        assert_eq!(admit(fields(), &trip(r#"{"id":1,"km":2}"#)), Ok(Admitted::Store));
        let violation = admit(fields(), &trip(r#"{"id":1,"mail":2}"#)).unwrap_err();
        assert_eq!((violation.code, violation.key.as_deref()), (ViolationCode::FieldOutOfScope, Some("t1")));
        // An escape is no disguise.
        assert_eq!(admit(fields(), &trip(r#"{"\u006bm":2}"#)), Ok(Admitted::Store));
    }

    #[test]
    fn a_field_that_a_schema_requires_under_a_condition_is_required() {
        let required = |schema: &str| {
            required_by(&RawJson::new(schema.replace('\n', " ")).unwrap()).into_iter().collect::<Vec<_>>()
        };
        let schema = r##"{"required":["id"],"properties":{"km":{},"mail":{}},"dependentRequired":{"km":["unit"]},
            "allOf":[{"required":["a"],"properties":{"b":{}}},{"$ref":"#/$defs/c"}],"$defs":{"c":{"required":["c"],
            "allOf":[{"$ref":"#/$defs/c"}]}},"if":{"properties":{"kind":{"const":1}}},"then":{"required":["d"]},
            "oneOf":[{"required":["e"]},{"properties":{"f":false}}]}"##;
        assert_eq!(required(schema), ["a", "c", "d", "e", "f", "id", "kind", "unit"]);
        assert!(required("{}").is_empty() && required("true").is_empty());
    }

    #[test]
    fn the_time_is_since_or_later_and_before_until() {
        let range = || {
            let (since, until) = (Some("2031-01-01".to_owned()), Some("2031-02-01T00:00:00Z".to_owned()));
            StreamScope { time_range: Some(TimeRange { since, until }), ..StreamScope::default() }
        };
        let at = |time: &str| admit(range(), &trip(&format!(r#"{{"at":{time}}}"#))).map_err(|violation| violation.code);
        assert_eq!(at(r#""2031-01-01T00:00:00Z""#), Ok(Admitted::Store));
        assert_eq!(at(r#""2031-01-31T23:59:59.999Z""#), Ok(Admitted::Store));
        assert_eq!(at(r#""2031-02-01T00:00:00Z""#), Err(ViolationCode::TimeOutOfRange));
        assert_eq!(at(r#""2031-01-01T00:30:00+01:00""#), Err(ViolationCode::TimeOutOfRange));
    }

    #[test]
    fn a_range_of_time_lets_the_field_through_that_it_goes_by() {
        let range = Some(TimeRange { since: Some("2031-01-01".to_owned()), until: None });
        let both =
            || StreamScope { fields: vec!["km".to_owned()], time_range: range.clone(), ..StreamScope::default() };
        assert_eq!(admit(both(), &trip(r#"{"id":1,"km":2,"at":"2031-01-02"}"#)), Ok(Admitted::Store));
        let no_range = StreamScope { time_range: None, ..both() };
        let violation = admit(no_range, &trip(r#"{"id":1,"km":2,"at":"2031-01-02"}"#)).unwrap_err();
        assert_eq!(violation.code, ViolationCode::FieldOutOfScope);
    }

    #[test]
    fn what_makes_no_sense_is_refused_before_anything_starts() {
        let manifest = manifest();
        let unknown = Scope::new(vec![StreamScope::all_of("mail")]).unwrap();
        let refusal = ScopeRules::new(&manifest, &unknown).unwrap_err();
        assert_eq!(
            (refusal.reason(), &refusal),
            (TerminalReason::ScopeRejected, &Refusal::UnknownStream("mail".to_owned()))
        );
        let range = Some(TimeRange { since: Some("soon".to_owned()), until: None });
        let soon = scope(StreamScope { time_range: range, ..StreamScope::default() });
        assert!(matches!(ScopeRules::new(&manifest, &soon), Err(Refusal::UnreadableTime { .. })));
    }

    fn at_km() -> Misfit {
        Misfit { pointer: "/km".to_owned(), reason: String::new() }
    }

    #[derive(Debug)]
    struct NoNumbers;

    impl Validate for NoNumbers {
        fn check(&self, _: &str, body: &RawJson<'_>) -> Result<(), Misfit> {
            if body.as_str().contains('7') { Err(at_km()) } else { Ok(()) }
        }
    }

    #[test]
    fn a_record_that_does_not_fit_its_schema_goes_to_quarantine_with_the_place_of_the_fault() {
        let manifest = manifest();
        let rules = ScopeRules::new(&manifest, &scope(StreamScope::default())).unwrap();
        let judge = |line: &str| {
            let ConnectorMessage::Record(record) = ConnectorMessage::decode(line.as_bytes()).unwrap() else { panic!() };
            rules.admit(0, &record, &manifest, &NoNumbers).unwrap()
        };
        assert_eq!(judge(&trip(r#"{"km":7}"#)), Admitted::Reject(at_km()));
        assert_eq!(judge(&trip(r#"{"km":1}"#)), Admitted::Store);
        assert_eq!(judge(&trip(r#"{"km":7}"#).replace("\"key\"", "\"op\":\"delete\",\"key\"")), Admitted::Store);
    }
}
