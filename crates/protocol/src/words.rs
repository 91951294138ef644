//! Fixed vocabularies: a code for programs, a text for people.

pub(crate) mod reasons;
pub(crate) mod terminal;
pub(crate) mod violation;
pub(crate) mod vocabulary;
pub(crate) mod wording_check;
