//! Answers for the tests of the laws.

use super::{Answer, Decision, Scenario};

pub(super) fn scenario() -> Scenario {
    Scenario::parse("example.toml", "name = \"example\"").unwrap()
}

pub(super) fn accepted() -> Answer {
    Answer::new(Decision::Accepted, None, Vec::new(), &scenario())
}

pub(super) fn refused(retry_after_s: Option<u64>) -> Answer {
    let headers = retry_after_s.map(|seconds| ("retry-after", seconds.to_string())).into_iter().collect();
    Answer::new(Decision::Rejected, None, headers, &scenario())
}
