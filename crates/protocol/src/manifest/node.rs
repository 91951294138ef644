//! A value of the manifest with its path, for faults.

use super::MANIFEST_BYTES_MAX;
use super::fault::{Faults, ManifestFaultCode};
use crate::json::scan::{ScanError, Scanner};
use crate::json::view::View;
use crate::words::violation::ViolationCode;

#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    path: String,
    view: View<'a>,
}

impl<'a> Node<'a> {
    /// The whole manifest: one JSON object of limited size, without duplicate keys.
    pub(super) fn root(bytes: &'a [u8], faults: &mut Faults) -> Option<Self> {
        let read = || {
            if bytes.len() > MANIFEST_BYTES_MAX {
                return Err((ManifestFaultCode::TooLarge, MANIFEST_BYTES_MAX, "at most 4 MiB"));
            }
            let no_text = |error: std::str::Utf8Error| (ManifestFaultCode::NotJson, error.valid_up_to(), "UTF-8 text");
            let text = std::str::from_utf8(bytes).map_err(no_text)?;
            Scanner::default().object(bytes).map_err(|error| match error {
                ScanError::Fault { code: ViolationCode::DuplicateKey, offset } => {
                    (ManifestFaultCode::DuplicateKey, offset, "each key once")
                }
                ScanError::Fault { offset, .. } => {
                    (ManifestFaultCode::NotJson, offset, "one JSON object, nested less than 128 levels deep")
                }
                ScanError::Incomplete => (ManifestFaultCode::NotJson, bytes.len(), "one complete JSON object"),
            })?;
            Ok(Self { path: String::new(), view: View::whole(text) })
        };
        let rejected = |(code, at, allowed)| faults.error_at(code, "$", &format!("wrong at byte {at}"), allowed);
        read().map_err(rejected).ok()
    }

    pub(super) fn path(&self) -> &str {
        if self.path.is_empty() { "$" } else { &self.path }
    }

    pub(super) const fn text(&self) -> &'a str {
        self.view.text()
    }

    pub(super) const fn view(&self) -> View<'a> {
        self.view
    }

    /// The field of this name; `None` if absent or `null`.
    pub(super) fn child(&self, name: &str) -> Option<Self> {
        let members = self.view.members()?;
        let (_, view) = members.into_iter().find(|(key, view)| key == name && !view.is_null())?;
        Some(Self { path: self.path_of(name), view })
    }

    pub(super) fn required(&self, name: &str, faults: &mut Faults) -> Option<Self> {
        let child = self.child(name);
        if child.is_none() {
            faults.error_at(ManifestFaultCode::Missing, &self.path_of(name), "", "a value");
        }
        child
    }

    /// All fields, with their names.
    pub(super) fn children(&self, faults: &mut Faults) -> Vec<(String, Self)> {
        let Some(members) = self.view.members() else {
            self.wrong_type("an object", faults);
            return Vec::new();
        };
        let child = |(name, view): (std::borrow::Cow<'a, str>, View<'a>)| {
            let path = self.path_of(&name);
            (name.into_owned(), Self { path, view })
        };
        members.into_iter().map(child).collect()
    }

    pub(super) fn elements(&self, faults: &mut Faults) -> Option<Vec<Self>> {
        let Some(views) = self.view.elements() else {
            self.wrong_type("a list", faults);
            return None;
        };
        let element = |(index, view): (usize, View<'a>)| Self { path: format!("{}[{index}]", self.path), view };
        Some(views.into_iter().enumerate().map(element).collect())
    }

    /// This value as a nonempty text.
    pub(super) fn as_text(&self, faults: &mut Faults) -> Option<String> {
        match self.view.name() {
            Some(text) if !text.trim().is_empty() => Some(text.into_owned()),
            Some(_) | None => {
                self.wrong_type("a text that is not empty", faults);
                None
            }
        }
    }

    pub(super) fn required_text(&self, name: &str, faults: &mut Faults) -> Option<String> {
        self.required(name, faults)?.as_text(faults)
    }

    pub(super) fn optional_text(&self, name: &str, faults: &mut Faults) -> Option<String> {
        self.child(name)?.as_text(faults)
    }

    /// The texts of a list; empty when absent.
    pub(super) fn texts(&self, name: &str, faults: &mut Faults) -> Vec<String> {
        let elements = self.child(name).and_then(|list| list.elements(faults)).unwrap_or_default();
        elements.iter().filter_map(|element| element.as_text(faults)).collect()
    }

    pub(super) fn flag(&self, name: &str, default: bool, faults: &mut Faults) -> bool {
        self.optional_flag(name, faults).unwrap_or(default)
    }

    pub(super) fn optional_flag(&self, name: &str, faults: &mut Faults) -> Option<bool> {
        let child = self.child(name)?;
        let flag = child.view.flag();
        if flag.is_none() {
            child.wrong_type("true or false", faults);
        }
        flag
    }

    /// A word of a fixed vocabulary.
    pub(super) fn word<T: Copy>(
        &self,
        name: &str,
        all: &[T],
        code: fn(T) -> &'static str,
        faults: &mut Faults,
    ) -> Option<T> {
        let child = self.child(name)?;
        let word = child.view.name().and_then(|text| all.iter().copied().find(|word| code(*word) == text));
        if word.is_none() {
            let allowed = all.iter().map(|word| code(*word)).collect::<Vec<_>>().join(", ");
            faults.error_at(ManifestFaultCode::NotAllowed, child.path(), child.text(), &allowed);
        }
        word
    }

    /// A whole number in a range.
    pub(super) fn number(&self, name: &str, range: std::ops::RangeInclusive<u64>, faults: &mut Faults) -> Option<u64> {
        let child = self.child(name)?;
        let number = child.view.count().filter(|number| range.contains(number));
        if number.is_none() {
            let code =
                if child.view.is_number() { ManifestFaultCode::OutOfRange } else { ManifestFaultCode::WrongType };
            let allowed = format!("a whole number from {} to {}", range.start(), range.end());
            faults.error_at(code, child.path(), child.text(), &allowed);
        }
        number
    }

    pub(super) fn wrong_type(&self, allowed: &str, faults: &mut Faults) {
        faults.error_at(ManifestFaultCode::WrongType, self.path(), self.text(), allowed);
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}
