//! Reads and writes the fields of messages: each message lists its fields once, for both directions.
//!
//! Why not a derived parser: it reports "invalid type at line 1 column 97" and repeats the value. Here a fault is a
//! code, a field name and a position, never the value. `null` counts as absent, because programs in other languages
//! write it for "nothing". Why not a derived writer: bodies, cursors and locators must stay the same bytes, and a
//! derived writer would wrap or reformat them.

use crate::json::raw_json::RawJson;
use crate::json::view::View;
use crate::messages::fields::{Fault, Fields, read_name};
use crate::messages::line_writer::{LineWriter, write_string};
use std::borrow::Cow;

/// A value of a field.
pub(crate) trait Value: Sized {
    /// Parses it; `field` is for the fault.
    fn read(field: &'static str, view: View<'_>) -> Result<Self, Fault>;
    fn write(&self, out: &mut Vec<u8>);
}

/// How a field holds its value.
pub(crate) trait Holds<T> {
    fn read(fields: Fields<'_, '_>, name: &'static str) -> Result<T, Fault>;
    fn write<'o>(value: &T, line: LineWriter<'o>, name: &str) -> LineWriter<'o>;
}

/// The field is required.
pub(crate) struct Required;
/// The field is optional.
pub(crate) struct Optional;
/// The field is optional; written as `null` when absent.
pub(crate) struct Nullable;
/// The field is a required list.
pub(crate) struct List;
/// The field is an optional list; absent means empty.
pub(crate) struct OptionalList;
/// A flag; absent means `false`.
pub(crate) struct Flag;
/// A text for people: it may be empty, and half a character in it is replaced.
pub(crate) struct Sentence;

impl<T: Value> Holds<T> for Required {
    fn read(fields: Fields<'_, '_>, name: &'static str) -> Result<T, Fault> {
        T::read(name, fields.required(name)?)
    }
    fn write<'o>(value: &T, line: LineWriter<'o>, name: &str) -> LineWriter<'o> {
        line.value(name, |out| value.write(out))
    }
}

impl<T: Value> Holds<Option<T>> for Optional {
    fn read(fields: Fields<'_, '_>, name: &'static str) -> Result<Option<T>, Fault> {
        fields.optional(name).map(|view| T::read(name, view)).transpose()
    }
    fn write<'o>(value: &Option<T>, line: LineWriter<'o>, name: &str) -> LineWriter<'o> {
        match value {
            Some(value) => Required::write(value, line, name),
            None => line,
        }
    }
}

impl<T: Value> Holds<Option<T>> for Nullable {
    fn read(fields: Fields<'_, '_>, name: &'static str) -> Result<Option<T>, Fault> {
        Optional::read(fields, name)
    }
    fn write<'o>(value: &Option<T>, line: LineWriter<'o>, name: &str) -> LineWriter<'o> {
        match value {
            Some(value) => Required::write(value, line, name),
            None => line.constant(name, "null"),
        }
    }
}

impl<T: Value> Holds<Vec<T>> for List {
    fn read(fields: Fields<'_, '_>, name: &'static str) -> Result<Vec<T>, Fault> {
        let view = fields.required(name)?;
        let elements = view.elements().ok_or_else(|| Fault::malformed(name, view))?;
        elements.into_iter().map(|element| T::read(name, element)).collect()
    }
    fn write<'o>(value: &Vec<T>, line: LineWriter<'o>, name: &str) -> LineWriter<'o> {
        line.list(name, value, |out, element| element.write(out))
    }
}

impl<T: Value> Holds<Vec<T>> for OptionalList {
    fn read(fields: Fields<'_, '_>, name: &'static str) -> Result<Vec<T>, Fault> {
        if fields.optional(name).is_some() { List::read(fields, name) } else { Ok(Vec::new()) }
    }
    fn write<'o>(value: &Vec<T>, line: LineWriter<'o>, name: &str) -> LineWriter<'o> {
        if value.is_empty() { line } else { List::write(value, line, name) }
    }
}

impl Holds<bool> for Flag {
    fn read(fields: Fields<'_, '_>, name: &'static str) -> Result<bool, Fault> {
        Ok(Optional::read(fields, name)?.unwrap_or(false))
    }
    fn write<'o>(value: &bool, line: LineWriter<'o>, name: &str) -> LineWriter<'o> {
        Optional::write(&value.then_some(true), line, name)
    }
}

impl Holds<String> for Sentence {
    fn read(fields: Fields<'_, '_>, name: &'static str) -> Result<String, Fault> {
        let view = fields.required(name)?;
        view.sentence().map(Cow::into_owned).ok_or_else(|| Fault::malformed(name, view))
    }
    fn write<'o>(value: &String, line: LineWriter<'o>, name: &str) -> LineWriter<'o> {
        Required::write(value, line, name)
    }
}

impl Holds<Option<String>> for Sentence {
    fn read(fields: Fields<'_, '_>, name: &'static str) -> Result<Option<String>, Fault> {
        fields.optional(name).map(|_| Self::read(fields, name)).transpose()
    }
    fn write<'o>(value: &Option<String>, line: LineWriter<'o>, name: &str) -> LineWriter<'o> {
        Optional::write(value, line, name)
    }
}

/// A nonempty name.
impl Value for String {
    fn read(field: &'static str, view: View<'_>) -> Result<Self, Fault> {
        read_name(field, view).map(Cow::into_owned)
    }
    fn write(&self, out: &mut Vec<u8>) {
        write_string(out, self);
    }
}

impl Value for u64 {
    fn read(field: &'static str, view: View<'_>) -> Result<Self, Fault> {
        view.count().ok_or_else(|| Fault::malformed(field, view))
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_string().as_bytes());
    }
}

impl Value for bool {
    fn read(field: &'static str, view: View<'_>) -> Result<Self, Fault> {
        view.flag().ok_or_else(|| Fault::malformed(field, view))
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }
}

/// Any value as written.
impl Value for RawJson<'static> {
    fn read(_: &'static str, view: View<'_>) -> Result<Self, Fault> {
        Ok(view.raw().into_owned())
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_str().as_bytes());
    }
}

/// Values by name, each as written.
impl Value for Vec<(String, RawJson<'static>)> {
    fn read(field: &'static str, view: View<'_>) -> Result<Self, Fault> {
        let members = view.members().ok_or_else(|| Fault::malformed(field, view))?;
        Ok(members.into_iter().map(|(name, value)| (name.into_owned(), value.raw().into_owned())).collect())
    }
    fn write(&self, out: &mut Vec<u8>) {
        let object = LineWriter::object(out);
        self.iter().fold(object, |object, (name, value)| object.value(name, |out| value.write(out))).close();
    }
}

/// Implements [`Value`] for a fixed vocabulary: each member is written as its code.
macro_rules! code_value {
    ($name:ident) => {
        impl $crate::messages::wire::Value for $name {
            fn read(
                field: &'static str,
                view: $crate::json::view::View<'_>,
            ) -> Result<Self, $crate::messages::fields::Fault> {
                let word = view.name().and_then(|word| Self::from_code(&word));
                word.ok_or_else(|| $crate::messages::fields::Fault::malformed(field, view))
            }
            fn write(&self, out: &mut Vec<u8>) {
                $crate::messages::line_writer::write_string(out, self.code());
            }
        }
    };
}

/// Reads and writes a struct whose fields are those of an object, in this order: `field: holder`, and after `=`
/// another parser. Brackets contain constants: `[name = value]` is required when read, `[name ~ value]` is optional.
macro_rules! wire_fields {
    ($name:ident {
        $( $([$constant:ident $must:tt $value:literal])* $field:ident: $holds:ty $(= $read:path)? ),+ $(,)?
        $(; $([$last:ident $last_must:tt $last_value:literal])+ )?
    }) => {
        impl $name {
            pub(crate) fn read_fields(fields: $crate::messages::fields::Fields<'_, '_>) -> Result<Self, $crate::messages::fields::Fault> {
                $( $( fields.constant(stringify!($constant), stringify!($value), stringify!($must))?; )* )+
                $( $( fields.constant(stringify!($last), stringify!($last_value), stringify!($last_must))?; )+ )?
                Ok(Self { $( $field: $crate::messages::wire::reader!($holds $(, $read)?)(fields, stringify!($field))?, )+ })
            }

            pub(crate) fn write_fields<'o>(
                &self,
                line: $crate::messages::line_writer::LineWriter<'o>,
            ) -> $crate::messages::line_writer::LineWriter<'o> {
                $(
                    $( let line = line.constant(stringify!($constant), stringify!($value)); )*
                    let line = <$holds as $crate::messages::wire::Holds<_>>::write(&self.$field, line, stringify!($field));
                )+
                $( $( let line = line.constant(stringify!($last), stringify!($last_value)); )+ )?
                line
            }
        }
    };
}

macro_rules! reader {
    ($holds:ty) => {
        <$holds as $crate::messages::wire::Holds<_>>::read
    };
    ($holds:ty, $read:path) => {
        $read
    };
}

/// The same for a struct that is a value inside a message.
macro_rules! wire_object {
    ($name:ident $fields:tt) => {
        $crate::messages::wire::wire_fields!($name $fields);

        impl $crate::messages::wire::Value for $name {
            fn read(
                field: &'static str,
                view: $crate::json::view::View<'_>,
            ) -> Result<Self, $crate::messages::fields::Fault> {
                let members = view.members().ok_or_else(|| $crate::messages::fields::Fault::malformed(field, view))?;
                Self::read_fields($crate::messages::fields::Fields::nested(&members))
            }
            fn write(&self, out: &mut Vec<u8>) {
                self.write_fields($crate::messages::line_writer::LineWriter::object(out)).close();
            }
        }
    };
}

pub(crate) use {code_value, reader, wire_fields, wire_object};
