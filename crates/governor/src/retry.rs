//! What a failure leads to: the pause before a retry, how many retries there may be, and when the circuit opens.

pub(crate) mod answer_window;
pub(crate) mod backoff;
pub(crate) mod breaker;
pub(crate) mod budget;
pub(crate) mod circuit;
