//! RECORD and STATE: records and cursors.
//!
//! They borrow from the line. A run has millions of records and few of anything else, so these two are read without a
//! copy; the body is passed on as written and never interpreted here.

use crate::json::raw_json::RawJson;
use crate::json::scan::FieldSpan;
use crate::json::view::View;
use crate::manifest::{Manifest, Semantics};
use crate::messages::fields::{Fault, Fields, read_name};
use crate::messages::line_writer::{LineWriter, write_string};
use crate::messages::wire::{Flag, Holds};
use crate::words::violation::{Violation, ViolationCode};
use crate::words::vocabulary::wire_words;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// One record, or its deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The stream.
    pub stream: Cow<'a, str>,
    /// Its key in the stream.
    pub key: RecordKey<'a>,
    /// The operation.
    pub op: Op,
    /// The body: always an object. Optional for a deletion.
    pub data: Option<RawJson<'a>>,
    /// Time of writing. Optional for a deletion.
    pub emitted_at: Option<Cow<'a, str>>,
}

wire_words! {
    /// Operation on a record.
    pub enum Op {
        /// It exists, with this body.
        Upsert = "upsert";
        /// It was deleted.
        Delete = "delete";
    }
}

/// Key of a record: one string, or several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKey<'a> {
    /// One string.
    Single(Cow<'a, str>),
    /// Several, in the order of the stream's primary key.
    Compound(Vec<Cow<'a, str>>),
}

impl RecordKey<'_> {
    /// A unique text per key: several parts are their minified JSON, a string is itself. Only a string that looks
    /// like another key, such as `["a","b"]`, becomes its JSON (`"[\"a\",\"b\"]"`).
    #[must_use]
    pub fn canonical(&self) -> Cow<'_, str> {
        match self {
            Self::Single(key) if !is_written_like_another(key) => Cow::Borrowed(key),
            Self::Single(_) | Self::Compound(_) => Cow::Owned(self.json()),
        }
    }

    /// Canonical forms that a text may mean where a key can only be text (the key of a gap, of a coverage report, or
    /// of a grant). Usually one, the text itself.
    pub fn forms_of(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
        let as_text = is_written_like_another(text).then(|| Cow::Owned(RecordKey::from(text).json()));
        [Cow::Borrowed(text)].into_iter().chain(as_text)
    }

    /// The text with which a gap, a coverage report or a grant names the record with this canonical key.
    #[must_use]
    pub fn text_of(canonical: &str) -> Cow<'_, str> {
        if !canonical.starts_with('"') {
            return Cow::Borrowed(canonical);
        }
        let json = RawJson::new(canonical).ok();
        let text = json.as_ref().and_then(RawJson::text).map(Cow::into_owned);
        match text.filter(|text| RecordKey::from(text.as_str()).canonical() == canonical) {
            Some(text) => Cow::Owned(text),
            None => Cow::Borrowed(canonical),
        }
    }

    fn json(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out);
        // Written from text, so it is text.
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The same, with a text of its own.
    #[must_use]
    pub fn into_owned(self) -> RecordKey<'static> {
        let own = |key: Cow<'_, str>| Cow::Owned(key.into_owned());
        match self {
            Self::Single(key) => RecordKey::Single(own(key)),
            Self::Compound(parts) => RecordKey::Compound(parts.into_iter().map(own).collect()),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Single(key) => write_string(out, key),
            Self::Compound(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    out.push(if index == 0 { b'[' } else { b',' });
                    write_string(out, part);
                }
                out.push(b']');
            }
        }
    }
}

/// Whether a text is the canonical form of another key.
fn is_written_like_another(text: &str) -> bool {
    // Hardly any key begins like this: the hot path ends here.
    let Some(first @ (b'[' | b'"')) = text.bytes().next() else { return false };
    let Ok(json) = RawJson::new(text) else { return false };
    let view = View::whole(json.as_str());
    if first == b'"' {
        let inside = view.name().filter(|inside| is_written_like_another(inside));
        return inside.is_some_and(|inside| RecordKey::Single(inside).json() == text);
    }
    let parts = view.elements().unwrap_or_default();
    let parts = parts.into_iter().map(View::name).collect::<Option<Vec<_>>>().unwrap_or_default();
    let is_key = !parts.is_empty() && parts.iter().all(|part| !part.is_empty());
    is_key && RecordKey::Compound(parts).json() == text
}

impl<'a> From<&'a str> for RecordKey<'a> {
    fn from(key: &'a str) -> Self {
        Self::Single(Cow::Borrowed(key))
    }
}

impl<'a> From<&'a String> for RecordKey<'a> {
    fn from(key: &'a String) -> Self {
        Self::Single(Cow::Borrowed(key))
    }
}

impl From<String> for RecordKey<'_> {
    fn from(key: String) -> Self {
        Self::Single(Cow::Owned(key))
    }
}

impl<'a, const N: usize> From<[&'a str; N]> for RecordKey<'a> {
    fn from(parts: [&'a str; N]) -> Self {
        Self::Compound(parts.into_iter().map(Cow::Borrowed).collect())
    }
}

impl<'a> RecordKey<'a> {
    fn read(view: View<'a>) -> Result<Self, Fault> {
        if view.is_string() {
            return read_name("key", view).map(Self::Single);
        }
        let parts = view.elements().filter(|parts| !parts.is_empty()).ok_or_else(|| Fault::malformed("key", view))?;
        parts.into_iter().map(|part| read_name("key", part)).collect::<Result<_, _>>().map(Self::Compound)
    }
}

impl<'a> Record<'a> {
    /// Parses a RECORD in one pass: this is the hot path.
    pub(crate) fn read(line: &'a str, fields: &[FieldSpan]) -> Result<Self, Fault> {
        let (mut stream, mut key, mut data, mut emitted_at, mut op) = (None, None, None, None, Op::Upsert);
        for field in fields {
            let view = View::new(line, field.value);
            match field.name(line).as_ref() {
                "stream" => stream = Some(read_name("stream", view)?),
                "key" => key = Some(RecordKey::read(view)?),
                "data" if view.is_object() => data = Some(view.raw()),
                "data" if !view.is_null() => return Err(Fault::malformed("data", view)),
                "emitted_at" if !view.is_null() => emitted_at = Some(read_name("emitted_at", view)?),
                "op" if !view.is_null() => {
                    let word = view.name().and_then(|word| Op::from_code(&word));
                    op = word.ok_or_else(|| Fault::malformed("op", view))?;
                }
                _ => {}
            }
        }
        let stream = stream.ok_or_else(|| Fault::missing("stream"))?;
        let key = key.ok_or_else(|| Fault::missing("key"))?;
        if op == Op::Upsert && data.is_none() {
            return Err(Fault::missing("data"));
        }
        if op == Op::Upsert && emitted_at.is_none() {
            return Err(Fault::missing("emitted_at"));
        }
        Ok(Self { stream, key, op, data, emitted_at })
    }

    pub(crate) fn write_fields<'o>(&self, line: LineWriter<'o>) -> LineWriter<'o> {
        let line = line.text("stream", &self.stream).value("key", |out| self.key.write(out));
        let line = if self.op == Op::Upsert { line } else { line.text("op", self.op.code()) };
        let line = match &self.data {
            Some(data) => line.constant("data", data.as_str()),
            None => line,
        };
        match &self.emitted_at {
            Some(time) => line.text("emitted_at", time),
            None => line,
        }
    }

    /// Checks a deletion against the manifest: an append-only stream has none. An undeclared stream is not checked
    /// here.
    ///
    /// # Errors
    ///
    /// [`ViolationCode::DeleteOnAppendOnly`], with stream and key.
    pub fn check_deletion(&self, manifest: &Manifest) -> Result<(), Violation> {
        let semantics = manifest.stream(&self.stream).map(|stream| stream.semantics);
        if self.op == Op::Delete && semantics == Some(Semantics::AppendOnly) {
            let violation = Violation::new(ViolationCode::DeleteOnAppendOnly);
            return Err(violation.in_field("op").of_stream(&self.stream).of_key(&self.key.canonical()));
        }
        Ok(())
    }
}

/// Records that a grant names for one stream. Empty means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceFilter {
    keys: BTreeSet<String>,
}

impl ResourceFilter {
    /// A filter for these keys; compound keys as minified JSON.
    pub fn new(keys: impl IntoIterator<Item = String>) -> Self {
        Self { keys: keys.into_iter().collect() }
    }

    /// Whether all records are requested.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether the record with this key is requested.
    #[must_use]
    pub fn contains(&self, key: &RecordKey<'_>) -> bool {
        let is_named = |text: &str| self.keys.contains(text);
        self.keys.is_empty()
            || match key {
                RecordKey::Single(text) => is_named(text),
                RecordKey::Compound(_) => is_named(&key.canonical()),
            }
    }

    /// Checks that the record is requested.
    ///
    /// # Errors
    ///
    /// [`ViolationCode::KeyOutOfResources`], with stream and key.
    pub fn check(&self, record: &Record<'_>) -> Result<(), Violation> {
        if self.contains(&record.key) {
            return Ok(());
        }
        let violation = Violation::new(ViolationCode::KeyOutOfResources);
        Err(violation.in_field("key").of_stream(&record.stream).of_key(&record.key.canonical()))
    }
}

/// The cursor of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State<'a> {
    /// The stream.
    pub stream: Cow<'a, str>,
    /// The provider's token: an object, or `null` to delete it.
    pub cursor: RawJson<'a>,
    /// Whether everything that the cursor covers was sent before it, so that it may be committed once that is
    /// durable.
    pub slice: bool,
}

impl<'a> State<'a> {
    pub(crate) fn read(fields: Fields<'a, '_>) -> Result<Self, Fault> {
        let cursor = fields.any("cursor").ok_or_else(|| Fault::missing("cursor"))?;
        if !cursor.is_object() && !cursor.is_null() {
            return Err(Fault::malformed("cursor", cursor));
        }
        Ok(Self {
            stream: read_name("stream", fields.required("stream")?)?,
            cursor: cursor.raw(),
            slice: Flag::read(fields, "slice")?,
        })
    }

    pub(crate) fn write_fields<'o>(&self, line: LineWriter<'o>) -> LineWriter<'o> {
        Flag::write(&self.slice, line.text("stream", &self.stream).constant("cursor", self.cursor.as_str()), "slice")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_of_several_parts_are_one_text() {
        let key = RecordKey::Compound(vec!["a\"".into(), "b".into()]);
        assert_eq!(key.canonical(), r#"["a\"","b"]"#);
        assert_ne!(key.canonical(), RecordKey::Compound(vec!["a".into(), "\"b".into()]).canonical());
        assert_eq!(RecordKey::Single("x".into()).canonical(), "x");
    }

    #[test]
    fn a_text_that_is_written_like_a_list_is_another_key_than_the_list() {
        let list = RecordKey::from(["a", "b"]);
        assert_eq!(list.canonical(), r#"["a","b"]"#, "as stores of earlier versions have it");
        assert_eq!(RecordKey::from(r#"["a","b"]"#).canonical(), r#""[\"a\",\"b\"]""#);
        for same in ["[1]", "[]", "[\"a\", \"b\"]", "[\"\"]", "\"a\"", "[", "", "{\"a\":1}", "[\"\\u0061\"]"] {
            assert_eq!(RecordKey::from(same).canonical(), same, "no list is written so");
        }
    }

    #[test]
    fn a_grant_names_a_text_key_as_it_is_and_a_list_as_minified_json() {
        let filter = ResourceFilter::new([r#"["a","b"]"#.to_owned()]);
        for key in [RecordKey::from(["a", "b"]), RecordKey::from(r#"["a","b"]"#)] {
            assert_eq!(filter.check(&record(key)), Ok(()));
        }
        assert!(filter.check(&record(RecordKey::from(r#"["a"]"#))).is_err());
    }

    #[test]
    fn a_zero_character_in_a_stream_or_a_key_is_refused_and_names_the_field() {
        let refused = |line: &str| crate::ConnectorMessage::decode(line.as_bytes()).unwrap_err();
        for (stream, key, field) in [
            (r#""notes""#, r#""a\u0000b""#, "key"),
            (r#""notes""#, r#"["a","\u0000"]"#, "key"),
            (r#""no\u0000tes""#, r#""a""#, "stream"),
        ] {
            let line = format!(r#"{{"type":"RECORD","stream":{stream},"key":{key},"op":"delete"}}"#);
            let violation = refused(&line);
            assert_eq!(violation.code, ViolationCode::MalformedField, "{line}");
            assert_eq!(violation.field, Some(field), "{line}");
        }
        let gap =
            r#"{"type":"DETAIL_GAP","stream":"notes","record_key":"\u0000","reference_only":true,"status":"pending"}"#;
        assert_eq!(refused(gap).field, Some("record_key"));
        let data =
            r#"{"type":"RECORD","stream":"notes","key":"a","data":{"x":"\u0000"},"emitted_at":"2031-01-01T00:00:00Z"}"#;
        assert!(crate::ConnectorMessage::decode(data.as_bytes()).is_ok(), "in a body it is data");
    }

    fn any_key() -> impl Strategy<Value = RecordKey<'static>> {
        let text = || prop_oneof![".{1,6}", "[a\\[\\],\"\\\\]{1,8}"];
        let list = || prop::collection::vec(text().prop_map(Cow::Owned), 1..4).prop_map(RecordKey::Compound);
        // Texts that are written like another key are the hard ones.
        let json = |key: RecordKey<'_>| {
            let mut out = Vec::new();
            key.write(&mut out);
            RecordKey::Single(Cow::Owned(String::from_utf8(out).unwrap()))
        };
        let base = prop_oneof![text().prop_map(RecordKey::from), list()];
        (base, 0..3).prop_map(move |(key, times)| (0..times).fold(key, |key, _| json(key)))
    }

    proptest! {
        #[test]
        fn two_keys_are_never_one_text(a in any_key(), b in any_key()) {
            let forms = |key: &RecordKey<'_>| {
                let mut out = Vec::new();
                key.write(&mut out);
                RecordKey::Single(Cow::Owned(String::from_utf8(out).unwrap()))
            };
            let near = [a.clone(), b.clone(), forms(&a), forms(&b), forms(&forms(&a)), RecordKey::from(a.canonical().into_owned())];
            for (one, other) in near.iter().flat_map(|one| near.iter().map(move |other| (one, other))) {
                prop_assert_eq!(one == other, one.canonical() == other.canonical(), "{:?} {:?}", one, other);
            }
            for key in &near {
                let canonical = key.canonical();
                let text = RecordKey::text_of(&canonical);
                prop_assert!(RecordKey::forms_of(&text).any(|form| form == canonical), "{:?}", key);
                if let RecordKey::Single(single) = key {
                    prop_assert_eq!(&text, single);
                }
            }
        }
    }

    fn record(key: RecordKey<'_>) -> Record<'_> {
        Record { stream: "notes".into(), key, op: Op::Delete, data: None, emitted_at: None }
    }

    #[test]
    fn connector_emits_a_record_outside_the_declared_resources_set() {
        let filter = ResourceFilter::new(["n1".to_owned(), r#"["a","b"]"#.to_owned()]);
        assert_eq!(filter.check(&record(RecordKey::Single("n1".into()))), Ok(()));
        assert_eq!(filter.check(&record(RecordKey::Compound(vec!["a".into(), "b".into()]))), Ok(()));
        let violation = filter.check(&record(RecordKey::Single("n2".into()))).unwrap_err();
        assert_eq!(violation.code, ViolationCode::KeyOutOfResources);
        assert_eq!((violation.stream.as_deref(), violation.key.as_deref()), (Some("notes"), Some("n2")));
    }

    #[test]
    fn empty_resources_set_is_a_no_op() {
        let filter = ResourceFilter::new([]);
        assert_eq!(filter.check(&record(RecordKey::Single("anything".into()))), Ok(()));
    }
}
