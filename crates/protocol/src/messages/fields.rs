//! Fields of an object by name, and their faults. `wire.rs` reads each type.

use crate::json::view::{Member, View};
use crate::words::violation::ViolationCode;
use std::borrow::Cow;

/// A fault of a field, before its line and stream are known.
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
    /// The fields of a parsed object.
    pub(crate) const fn nested(members: &'m [Member<'a>]) -> Self {
        Self { members }
    }

    /// The field; `None` if absent or `null`.
    pub(crate) fn optional(self, name: &'static str) -> Option<View<'a>> {
        self.any(name).filter(|view| !view.is_null())
    }

    /// The field, also `null`.
    pub(crate) fn any(self, name: &'static str) -> Option<View<'a>> {
        self.members.iter().find(|(key, _)| key == name).map(|&(_, view)| view)
    }

    pub(crate) fn required(self, name: &'static str) -> Result<View<'a>, Fault> {
        self.optional(name).ok_or_else(|| Fault::missing(name))
    }

    /// A field with a single allowed value. With `=` it is required.
    pub(crate) fn constant(self, name: &'static str, text: &str, must: &str) -> Result<(), Fault> {
        match self.optional(name) {
            Some(view) if view.text() != text => Err(Fault::malformed(name, view)),
            None if must == "=" => Err(Fault::missing(name)),
            Some(_) | None => Ok(()),
        }
    }
}

/// Fields with stored names. SQLite and C programs end a text at U+0000, so two names would look equal.
const STORED_NAMES: [&str; 5] = ["stream", "key", "record_key", "parent_stream", "state_stream"];

/// A name: not empty, no half characters, and without U+0000 where it is stored.
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
    use crate::messages::wire::{Holds, Optional, Required};

    #[test]
    fn null_counts_as_absent_and_a_wrong_type_does_not() {
        let members = View::whole(r#"{"a":null,"b":1,"c":"","d":"\ud800"}"#).members().unwrap();
        let fields = Fields::nested(&members);
        let read = |name| Optional::read(fields, name);
        assert_eq!(read("a"), Ok(None::<String>));
        assert_eq!(Required::read(fields, "a"), Err::<String, _>(Fault::missing("a")));
        let code = |name| read(name).map_err(|fault| fault.code);
        assert_eq!(code("b"), Err(ViolationCode::MalformedField));
        assert_eq!(code("c"), Err(ViolationCode::MalformedField));
        assert_eq!(code("d"), Err(ViolationCode::LoneSurrogate));
    }
}
