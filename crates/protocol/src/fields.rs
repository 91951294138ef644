//! Reading the fields of a message by name, each with the fault it may have.
//!
//! Why by hand: a derived reader says "invalid type at line 1 column 97" and repeats the value. Here
//! a fault is a code, the name of the field and its place, and the value is never repeated. `null`
//! counts as absent, because programs in other languages write it for "nothing".

use crate::raw_json::RawJson;
use crate::view::{Member, View};
use crate::violation::ViolationCode;
use std::borrow::Cow;

/// What is wrong with a field, before it is known in which line and stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: ViolationCode,
    pub(crate) field: &'static str,
    pub(crate) offset: usize,
}

impl Fault {
    pub(crate) const fn malformed(field: &'static str, view: View<'_>) -> Self {
        Self { code: ViolationCode::MalformedField, field, offset: view.offset() }
    }

    pub(crate) const fn missing(field: &'static str) -> Self {
        Self { code: ViolationCode::MissingField, field, offset: 0 }
    }
}

/// The fields of one object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a, 'm> {
    members: &'m [Member<'a>],
}

impl<'a, 'm> Fields<'a, 'm> {
    /// The fields of an object that was taken apart.
    pub(crate) const fn nested(members: &'m [Member<'a>]) -> Self {
        Self { members }
    }

    /// The field, unless it is absent or `null`.
    pub(crate) fn optional(self, name: &'static str) -> Option<View<'a>> {
        self.any(name).filter(|view| !view.is_null())
    }

    /// The field, `null` included.
    pub(crate) fn any(self, name: &'static str) -> Option<View<'a>> {
        self.members.iter().find(|(key, _)| key == name).map(|&(_, view)| view)
    }

    pub(crate) fn required(self, name: &'static str) -> Result<View<'a>, Fault> {
        self.optional(name).ok_or_else(|| Fault::missing(name))
    }

    /// Any value as it was written.
    pub(crate) fn optional_raw(self, name: &'static str) -> Option<RawJson<'static>> {
        self.optional(name).map(|view| view.raw().into_owned())
    }

    /// An object as it was written.
    pub(crate) fn optional_object(self, name: &'static str) -> Result<Option<RawJson<'static>>, Fault> {
        self.read(name, |view| view.is_object().then(|| view.raw().into_owned()))
    }

    /// A string that names something and is not empty.
    pub(crate) fn required_name(self, name: &'static str) -> Result<Cow<'a, str>, Fault> {
        read_name(name, self.required(name)?)
    }

    pub(crate) fn optional_name(self, name: &'static str) -> Result<Option<Cow<'a, str>>, Fault> {
        self.optional(name).map(|view| read_name(name, view)).transpose()
    }

    /// A string for people; it may be empty.
    pub(crate) fn required_sentence(self, name: &'static str) -> Result<String, Fault> {
        let view = self.required(name)?;
        view.sentence().map(Cow::into_owned).ok_or_else(|| Fault::malformed(name, view))
    }

    pub(crate) fn optional_sentence(self, name: &'static str) -> Result<Option<String>, Fault> {
        self.read(name, |view| view.sentence().map(Cow::into_owned))
    }

    pub(crate) fn required_count(self, name: &'static str) -> Result<u64, Fault> {
        let view = self.required(name)?;
        view.count().ok_or_else(|| Fault::malformed(name, view))
    }

    pub(crate) fn optional_count(self, name: &'static str) -> Result<Option<u64>, Fault> {
        self.read(name, View::count)
    }

    pub(crate) fn required_flag(self, name: &'static str) -> Result<bool, Fault> {
        let view = self.required(name)?;
        view.flag().ok_or_else(|| Fault::malformed(name, view))
    }

    pub(crate) fn optional_flag(self, name: &'static str) -> Result<Option<bool>, Fault> {
        self.read(name, View::flag)
    }

    /// A list of names; absent is an empty one.
    pub(crate) fn names(self, name: &'static str) -> Result<Vec<String>, Fault> {
        let Some(view) = self.optional(name) else { return Ok(Vec::new()) };
        let elements = view.elements().ok_or_else(|| Fault::malformed(name, view))?;
        elements.into_iter().map(|element| read_name(name, element).map(Cow::into_owned)).collect()
    }

    /// A word of a closed vocabulary.
    pub(crate) fn required_word<T>(self, name: &'static str, read: fn(&str) -> Option<T>) -> Result<T, Fault> {
        let view = self.required(name)?;
        view.name().and_then(|word| read(&word)).ok_or_else(|| Fault::malformed(name, view))
    }

    pub(crate) fn optional_word<T>(self, name: &'static str, read: fn(&str) -> Option<T>) -> Result<Option<T>, Fault> {
        self.read(name, |view| view.name().and_then(|word| read(&word)))
    }

    /// A field that has one value only, and must have it.
    pub(crate) fn constant(self, name: &'static str, text: &'static str) -> Result<(), Fault> {
        let view = self.required(name)?;
        if view.text() == text { Ok(()) } else { Err(Fault::malformed(name, view)) }
    }

    /// The same for a field that may be left out.
    pub(crate) fn optional_constant(self, name: &'static str, text: &'static str) -> Result<(), Fault> {
        self.read(name, |view| (view.text() == text).then_some(())).map(|_| ())
    }

    fn read<T>(self, name: &'static str, read: impl Fn(View<'a>) -> Option<T>) -> Result<Option<T>, Fault> {
        let Some(view) = self.optional(name) else { return Ok(None) };
        read(view).map(Some).ok_or_else(|| Fault::malformed(name, view))
    }
}

/// Fields whose text is a stored name. SQLite and C programs end a text at U+0000, so two names would look like one.
const STORED_NAMES: [&str; 5] = ["stream", "key", "record_key", "parent_stream", "state_stream"];

/// A string that names something: not empty, no half characters, and without U+0000 where it is a stored name.
pub(crate) fn read_name<'a>(field: &'static str, view: View<'a>) -> Result<Cow<'a, str>, Fault> {
    match view.name() {
        Some(name) if name.contains('\0') && STORED_NAMES.contains(&field) => Err(Fault::malformed(field, view)),
        Some(name) if !name.is_empty() => Ok(name),
        None if view.is_string() => Err(Fault { code: ViolationCode::LoneSurrogate, field, offset: view.offset() }),
        Some(_) | None => Err(Fault::malformed(field, view)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_counts_as_absent_and_a_wrong_type_does_not() {
        let members = View::of(r#"{"a":null,"b":1,"c":"","d":"\ud800"}"#).members().unwrap();
        let fields = Fields::nested(&members);
        assert_eq!(fields.optional_name("a"), Ok(None));
        assert_eq!(fields.required_name("a"), Err(Fault::missing("a")));
        let code = |name| fields.optional_name(name).map_err(|fault| fault.code);
        assert_eq!(code("b"), Err(ViolationCode::MalformedField));
        assert_eq!(code("c"), Err(ViolationCode::MalformedField));
        assert_eq!(code("d"), Err(ViolationCode::LoneSurrogate));
    }
}
