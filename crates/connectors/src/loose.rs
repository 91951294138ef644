//! Reading JSON that another program wrote for itself: what is known is taken, what is odd is left, nothing is copied.
//!
//! Such files have no contract. A field that was a text yesterday may be a number tomorrow, and a whole line must not be
//! lost for it. Long texts stay as they were written, with their escapes, from the file to the record.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A text, if it is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(Option<Cow<'a, str>>);

impl Text<'_> {
    /// The text, unless it is empty.
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// The text, or none.
    pub(crate) fn or_empty(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

struct TextVisitor;

/// Everything else than a text reads as none, whatever it is.
macro_rules! none_for {
    ($($visit:ident: $kind:ty),*) => {
        $(fn $visit<E>(self, _: $kind) -> Result<Self::Value, E> { Ok(None) })*
    };
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    none_for!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// Yes, no, or not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) Option<bool>);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(match raw.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }))
    }
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
        *self = match std::mem::take(self) {
            Self::None => Self::One(raw),
            Self::One(first) => Self::Many([body(first), "\\n", body(raw)].concat()),
            Self::Many(mut text) => {
                text.push_str("\\n");
                text.push_str(body(raw));
                Self::Many(text)
            }
        };
    }

    /// Adds a text of ours.
    pub(crate) fn add_words(&mut self, words: &str) {
        let quoted = serde_json::to_string(words).unwrap_or_default();
        let inner = quoted.trim_matches('"');
        *self = match std::mem::take(self) {
            Self::None => Self::Many(inner.to_owned()),
            Self::One(first) => Self::Many([body(first), "\\n", inner].concat()),
            Self::Many(text) => Self::Many([&text, "\\n", inner].concat()),
        };
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
    let text = serde_json::from_str::<Cow<'_, str>>(raw.get()).ok()?;
    Some(text.chars().take(characters_max).collect())
}

/// The elements of a list, or none where there is none; and whether all of them could be read.
pub(crate) fn list<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> (Vec<T>, bool) {
    if !raw.get().starts_with('[') {
        return (Vec::new(), true);
    }
    let elements = serde_json::from_str::<Vec<&'a RawValue>>(raw.get()).unwrap_or_default();
    let read = elements.iter().filter_map(|element| serde_json::from_str(element.get()).ok()).collect::<Vec<_>>();
    let is_whole = read.len() == elements.len();
    (read, is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(borrow, default)]
        a: Text<'a>,
        #[serde(default)]
        b: Flag,
    }

    #[test]
    fn a_field_of_another_kind_reads_as_not_there_and_the_rest_is_kept() {
        for (line, a, b) in [
            (r#"{"a":"x","b":true}"#, Some("x"), Some(true)),
            (r#"{"a":"\n","b":"true"}"#, Some("\n"), None),
            (r#"{"a":7,"b":false,"c":[]}"#, None, Some(false)),
            (r#"{"a":{"x":[1]},"b":null}"#, None, None),
            (r#"{"a":[1,{}]}"#, None, None),
            (r#"{"a":null}"#, None, None),
        ] {
            let read = serde_json::from_str::<Line<'_>>(line).unwrap();
            assert_eq!((read.a.get(), read.b.0), (a, b), "{line}");
        }
    }

    #[test]
    fn an_element_of_another_kind_takes_no_other_with_it() {
        let raw = RawValue::from_string(r#"[{"a":"x"},7,{"a":"y"}]"#.to_owned()).unwrap();
        let (read, is_whole) = list::<Line<'_>>(&raw);
        assert_eq!((read.iter().map(|line| line.a.or_empty()).collect::<Vec<_>>(), is_whole), (vec!["x", "y"], false));
        let text = RawValue::from_string(r#""[""#.to_owned()).unwrap();
        assert!(list::<Line<'_>>(&text).1);
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
