//! Reading JSON that another program wrote for itself: what is known is taken, what is odd is left, nothing is copied.
//!
//! Such files have no contract. A field that was a text yesterday may be a number tomorrow, and a whole line must not be
//! lost for it. Long texts stay as they were written, with their escapes, from the file to the record.

use serde::Deserializer as _;
use serde::de::{Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The fields of an object. Each is looked at when it is asked for, and one of another kind reads as not there.
#[derive(Debug, Default)]
pub(crate) struct Object<'a>(BTreeMap<String, &'a RawValue>);

/// One that has a field twice is none: nobody could say which of them is meant.
impl<'de> Visitor<'de> for Object<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Self, A::Error> {
        while let Some((name, value)) = fields.next_entry()? {
            if self.0.insert(name, value).is_some() {
                return Err(A::Error::custom("a field is there twice"));
            }
        }
        Ok(self)
    }
}

impl<'a> Object<'a> {
    /// Reads an object; `None` when it is none.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let object = reader.deserialize_map(Self::default()).ok()?;
        reader.end().ok().map(|()| object)
    }

    /// A field as it is written. `null` is no value.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.get(name).copied().filter(|raw| raw.get() != "null")
    }

    /// A text that is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.raw(name).and_then(decoded).filter(|text| !text.is_empty())
    }

    /// The same for a text that is not missed.
    pub(crate) fn text_or_empty(&self, name: &str) -> Cow<'a, str> {
        self.text(name).unwrap_or_default()
    }

    /// Yes, no, or not said.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }

    /// An object within it; without fields where there is none.
    pub(crate) fn object(&self, name: &str) -> Self {
        self.raw(name).and_then(|raw| Self::parse(raw.get())).unwrap_or_default()
    }

    /// The objects of a list within it, as [`objects`] reads them.
    pub(crate) fn objects(&self, name: &str) -> (Vec<Self>, bool) {
        self.raw(name).map_or_else(|| (Vec::new(), true), objects)
    }
}

/// The objects of a list, none where there is no list; and whether all of its elements are objects.
pub(crate) fn objects(raw: &RawValue) -> (Vec<Object<'_>>, bool) {
    let elements = serde_json::from_str::<Vec<&RawValue>>(raw.get()).unwrap_or_default();
    let read = elements.iter().filter_map(|element| Object::parse(element.get())).collect::<Vec<_>>();
    let is_whole = read.len() == elements.len();
    (read, is_whole)
}

/// The text that a JSON text stands for.
fn decoded(raw: &RawValue) -> Option<Cow<'_, str>> {
    let borrowed = serde_json::from_str::<&str>(raw.get()).map(Cow::Borrowed);
    borrowed.or_else(|_| serde_json::from_str(raw.get()).map(Cow::Owned)).ok()
}

/// The kind of a value, by its first byte.
pub(crate) fn is_string(raw: &RawValue) -> bool {
    raw.get().starts_with('"')
}

/// Whether it is an object.
pub(crate) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// Several texts as one, a line feed between each two, without undoing their escapes.
#[derive(Debug, Default)]
pub(crate) enum Joined<'a> {
    #[default]
    None,
    One(&'a RawValue),
    Many(String),
}

impl<'a> Joined<'a> {
    /// Adds a text as it is written. Anything else is left out.
    pub(crate) fn add(&mut self, raw: &'a RawValue) {
        if !is_string(raw) {
            return;
        }
        match self {
            Self::None => *self = Self::One(raw),
            _ => self.add_body(body(raw)),
        }
    }

    /// Adds a text of ours.
    pub(crate) fn add_words(&mut self, words: &str) {
        let quoted = serde_json::to_string(words).unwrap_or_default();
        self.add_body(quoted.trim_matches('"'));
    }

    fn add_body(&mut self, more: &str) {
        *self = Self::Many(match std::mem::take(self) {
            Self::None => more.to_owned(),
            Self::One(first) => [body(first), "\\n", more].concat(),
            Self::Many(text) => text + "\\n" + more,
        });
    }

    /// As JSON: a text, or nothing.
    pub(crate) fn into_raw(self) -> Option<Cow<'a, RawValue>> {
        match self {
            Self::None => None,
            Self::One(raw) => Some(Cow::Borrowed(raw)),
            // The parts were texts, so the whole is one.
            Self::Many(text) => RawValue::from_string(format!("\"{text}\"")).ok().map(Cow::Owned),
        }
    }
}

/// What stands between the quotes.
fn body(raw: &RawValue) -> &str {
    raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default()
}

/// The beginning of a text, decoded: at most so many characters.
pub(crate) fn preview(raw: &RawValue, characters_max: usize) -> Option<String> {
    decoded(raw).map(|text| text.chars().take(characters_max).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_another_kind_reads_as_not_there_and_the_rest_is_kept() {
        for (line, a, b) in [
            (r#"{"a":"x","b":true}"#, Some("x"), Some(true)),
            (r#"{"a":"\n","b":"true"}"#, Some("\n"), None),
            (r#"{"a":7,"b":false,"c":[]}"#, None, Some(false)),
            (r#"{"a":{"x":[1]},"b":null}"#, None, None),
            (r#"{"a":[1,{}]}"#, None, None),
            (r#"{"a":null,"b\n":"\ud800"}"#, None, None),
        ] {
            let read = Object::parse(line).unwrap();
            assert_eq!((read.text("a").as_deref(), read.flag("b")), (a, b), "{line}");
        }
        for none in ["[1]", "{", r#"{"a":1,"a":1}"#, "{} {}", "7"] {
            assert!(Object::parse(none).is_none(), "{none}");
        }
    }

    #[test]
    fn an_element_of_another_kind_takes_no_other_with_it() {
        let line = Object::parse(r#"{"list":[{"a":"x"},7,{"a":"y"}],"text":"["}"#).unwrap();
        let (read, is_whole) = line.objects("list");
        assert_eq!(
            (read.iter().map(|line| line.text_or_empty("a")).collect::<String>(), is_whole),
            ("xy".into(), false)
        );
        assert!(line.objects("text").1 && line.objects("absent").1);
    }

    #[test]
    fn texts_are_joined_with_their_escapes() {
        let parts = [r#""a\"b""#, r#""\ud83d\ude00""#, "7", r#""é""#];
        let parts = parts.map(|part| RawValue::from_string(part.to_owned()).unwrap());
        let mut joined = Joined::default();
        joined.add_words("[x]");
        parts.iter().for_each(|part| joined.add(part));
        assert_eq!(joined.into_raw().unwrap().get(), r#""[x]\na\"b\n\ud83d\ude00\né""#);
        assert_eq!(preview(&parts[0], 2).as_deref(), Some("a\""));
        assert!(Joined::default().into_raw().is_none());
    }
}
