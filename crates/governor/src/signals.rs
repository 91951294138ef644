//! What a provider says: status, Retry-After and quota headers, read into the few words that decide.

pub(crate) mod classify;
pub(crate) mod outcome;
pub(crate) mod quota;
mod quota_fields;
pub(crate) mod quota_headers;
pub(crate) mod retry_after;
