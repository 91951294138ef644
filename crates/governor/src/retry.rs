//! Reaction to failures: backoff before a retry, retry budget, circuit breaker.

pub(crate) mod answer_window;
pub(crate) mod backoff;
pub(crate) mod breaker;
pub(crate) mod budget;
pub(crate) mod circuit;
