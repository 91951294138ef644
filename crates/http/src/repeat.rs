//! Which requests may be sent a second time without doing something twice.
//!
//! A refused request is safe to repeat if repeating it means the same (RFC 9110, section 9.2.2), or if
//! the answer proves that nothing was done: 429, a 503 that says when to come back, or a connection that
//! was never made. A lost answer to a POST proves nothing, so it is not repeated.

use http::{Method, StatusCode};

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The provider never saw the request: no name, no connection, no TLS.
    NotSent,
    /// Anything may have happened to it.
    Lost,
}

/// What is known about a request that decides whether it may be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeatable {
    /// Its method is idempotent.
    idempotent: bool,
    /// Its body is still there.
    body_kept: bool,
}

impl Repeatable {
    /// A request with this method; `body_kept` says whether its body can be sent again.
    #[must_use]
    pub fn new(method: &Method, body_kept: bool) -> Self {
        Self { idempotent: method.is_idempotent(), body_kept }
    }

    /// After an answer.
    #[must_use]
    pub fn after_answer(&self, status: StatusCode, says_when: bool) -> bool {
        let nothing_done =
            status == StatusCode::TOO_MANY_REQUESTS || (status == StatusCode::SERVICE_UNAVAILABLE && says_when);
        self.body_kept && (self.idempotent || nothing_done)
    }

    /// After no answer.
    #[must_use]
    pub fn after_failure(&self, failure: Failure) -> bool {
        self.body_kept && (self.idempotent || failure == Failure::NotSent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_nothing_twice_is_repeated() {
        let (get, post) = (Repeatable::new(&Method::GET, true), Repeatable::new(&Method::POST, true));
        for (request, status, says_when, expected) in [
            (&get, 500, false, true),
            (&get, 429, false, true),
            (&post, 429, false, true),
            (&post, 503, true, true),
            (&post, 503, false, false),
            (&post, 500, true, false),
            (&post, 408, false, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(request.after_answer(status, says_when), expected, "{request:?} {status} {says_when}");
        }
        assert!(get.after_failure(Failure::Lost) && post.after_failure(Failure::NotSent));
        assert!(!post.after_failure(Failure::Lost));
    }

    #[test]
    fn what_is_gone_cannot_be_repeated() {
        let put = Repeatable::new(&Method::PUT, false);
        assert!(!put.after_answer(StatusCode::TOO_MANY_REQUESTS, true) && !put.after_failure(Failure::NotSent));
    }
}
