//! JSON text as it was written: tokens, one pass over a line, values that stay text.

pub(crate) mod json_string;
pub(crate) mod key_ledger;
pub(crate) mod lex;
pub(crate) mod raw_json;
pub(crate) mod scan;
pub(crate) mod view;
