//! A connector's current wait: its end, and its reason.
//!
//! Why a separate report: during a backoff nothing else happens, so a rate alone would claim that requests are sent.
//! An unknown reason is kept and shown as a code; a connector may have more reasons than we do. There is no field for
//! an account, a URL or a sentence.

use crate::messages::done::is_code;
use crate::messages::observability::{Evidence, Report};
use crate::words::vocabulary::wire_reasons;
use serde::{Deserialize, Serialize};

/// One wait of a connector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    object: WaitingTag,
    /// End, in RFC 3339. A wait that may end earlier ends when the connector says so.
    pub until: String,
    /// Reason, as a code: one of [`WaitingReason`], or another.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum WaitingTag {
    #[serde(rename = "waiting")]
    Waiting,
}

/// The longest time in RFC 3339: nanoseconds and an offset.
const TIME_BYTES_MAX: usize = 40;

impl Waiting {
    /// A wait. `None` when `until` is not a time or `reason` is not a code.
    #[must_use]
    pub fn new(until: impl Into<String>, reason: impl Into<String>) -> Option<Self> {
        let waiting = Self { object: WaitingTag::Waiting, until: until.into(), reason: reason.into() };
        waiting.is_plausible().then_some(waiting)
    }

    fn is_plausible(&self) -> bool {
        is_code(&self.reason) && is_like_a_time(&self.until)
    }

    /// The reason for people: it follows "waiting until …: ".
    #[must_use]
    pub fn because(&self) -> String {
        match WaitingReason::from_code(&self.reason) {
            Some(reason) => reason.because().to_owned(),
            None => format!("the connector says {}", self.reason),
        }
    }

    /// One sentence about a wait, with its end as given.
    #[must_use]
    pub fn sentence(&self, until: &str) -> String {
        format!("waiting until {until}: {}", self.because())
    }
}

/// `null` ends the wait.
impl Report for Option<Waiting> {
    fn is_plausible(&self) -> bool {
        self.as_ref().is_none_or(Waiting::is_plausible)
    }

    const NULL: Evidence<Self> = Evidence::Valid(None);
}

/// Whether this has the shape of RFC 3339. Code that compares times parses it fully.
fn is_like_a_time(text: &str) -> bool {
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let bytes = text.as_bytes();
    let fits = |(byte, shape): (&u8, &u8)| {
        if *shape == b'd' { byte.is_ascii_digit() } else { byte.eq_ignore_ascii_case(shape) }
    };
    let is_rest = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'Z' | b'z' | b'+' | b'-' | b':');
    (shape.len() + 1..=TIME_BYTES_MAX).contains(&bytes.len())
        && bytes.iter().zip(shape).all(fits)
        && bytes[shape.len()..].iter().all(is_rest)
}

wire_reasons! {
    /// Reason of a wait. Other reasons are shown as their codes.
    pub enum WaitingReason {
        /// The provider sent a Retry-After.
        RetryAfter = "retry_after", "the provider sent Retry-After";
        /// The provider refused requests without a Retry-After.
        Throttle = "throttle", "the provider refused requests";
        /// A quota is used up until it resets.
        Quota = "quota", "the provider's quota is used up";
        /// The account looks banned.
        Ban = "ban", "the provider seems to have blocked the account";
        /// The circuit is open: most requests failed.
        Circuit = "circuit", "most requests to the provider failed";
        /// The provider failed, and the request is retried.
        ServerError = "server_error", "the provider failed";
        /// The provider answers late.
        Latency = "latency", "the provider answers late";
        /// A learned window is used up.
        Window = "window", "the provider's limit for this period is used up";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::observability::read_evidence;

    const TEXT: &str = r#"{"object":"waiting","until":"2031-01-01T12:03:20.000Z","reason":"retry_after"}"#;

    #[test]
    fn a_wait_is_read_and_written_alike_and_null_ends_it() {
        let waiting = Waiting::new("2031-01-01T12:03:20.000Z", "retry_after").unwrap();
        assert_eq!(read_evidence::<Option<Waiting>>(TEXT), Evidence::Valid(Some(waiting.clone())));
        assert_eq!(serde_json::to_string(&waiting).unwrap(), TEXT);
        assert_eq!(read_evidence::<Option<Waiting>>("null"), Evidence::Valid(None));
        assert_eq!(waiting.sentence("12:03:20"), "waiting until 12:03:20: the provider sent Retry-After");
    }

    #[test]
    fn a_reason_that_is_not_known_is_shown_as_its_code() {
        let text = TEXT.replace("retry_after", "moon_phase");
        let read = read_evidence::<Option<Waiting>>(&text);
        let waiting = read.valid().unwrap().as_ref().unwrap();
        assert_eq!(waiting.sentence("12:03:20"), "waiting until 12:03:20: the connector says moon_phase");
    }

    #[test]
    fn what_cannot_be_a_wait_is_dropped() {
        for (from, to) in [
            ("\"waiting\"", "\"wait\""),
            ("2031-01-01T12:03:20.000Z", "soon"),
            ("2031-01-01T12:03:20.000Z", "2031-01-01T12:03:20"),
            ("2031-01-01T12:03:20.000Z", "2031-01-01T12:03:20Z me@example.test"),
            ("\"2031-01-01T12:03:20.000Z\"", "1924992000"),
            ("retry_after", "Retry After"),
            ("retry_after", ""),
            ("\"retry_after\"", "7"),
        ] {
            assert_eq!(read_evidence::<Option<Waiting>>(&TEXT.replace(from, to)), Evidence::Malformed, "{to}");
        }
        let with_account = TEXT.replacen('{', r#"{"account":"me@example.test","#, 1);
        let written = serde_json::to_string(read_evidence::<Option<Waiting>>(&with_account).valid().unwrap()).unwrap();
        assert_eq!(written, TEXT, "an account that was smuggled in does not come out");
    }
}
