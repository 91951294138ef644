//! Signals of the provider: status, Retry-After and quota headers, reduced to an outcome.

pub(crate) mod classify;
pub(crate) mod outcome;
pub(crate) mod quota;
mod quota_fields;
pub(crate) mod quota_headers;
pub(crate) mod retry_after;
