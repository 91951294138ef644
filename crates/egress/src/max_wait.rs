//! Reads `Gleaner-Max-Wait`: the longest wait of a request before it is sent, in seconds.
//!
//! An invalid value is refused, not guessed: the caller relies on its limit.

use crate::respond::Reply;
use http::{HeaderMap, StatusCode};
use std::time::Duration;

const NAME: &str = "gleaner-max-wait";
/// A day: no gate is longer.
const LONGEST_S: f64 = 86_400.0;
/// Length of the longest valid number, with nanoseconds.
const LENGTH_MAX: usize = 16;

/// The caller's limit; `None` when it sets none.
pub(crate) fn read(headers: &HeaderMap) -> Result<Option<Duration>, Reply> {
    let mut values = headers.get_all(NAME).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let wait = value.to_str().ok().and_then(parse);
    match (wait, values.next()) {
        (Some(wait), None) => Ok(Some(wait)),
        _ => Err(Reply::new(
            StatusCode::BAD_REQUEST,
            "bad_max_wait",
            "Gleaner-Max-Wait is not a number of seconds between 0 and 86400",
            "send it once, for example `Gleaner-Max-Wait: 30` or `0.5`, or leave it out",
        )),
    }
}

fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let is_plain = text.len() <= LENGTH_MAX && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = text.parse().ok().filter(|_| is_plain)?;
    (seconds <= LONGEST_S).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_fractions_are_read_and_garbage_is_not() {
        for (text, expected) in [
            ("0", Some(0)),
            ("30", Some(30_000)),
            (" 0.25 ", Some(250)),
            (".5", Some(500)),
            ("86400", Some(86_400_000)),
            ("86401", None),
            ("-1", None),
            ("+1", None),
            ("1e3", None),
            ("inf", None),
            ("NaN", None),
            ("5s", None),
            ("1.2.3", None),
            (".", None),
            ("", None),
            ("00000000000000000000005", None),
        ] {
            assert_eq!(parse(text), expected.map(Duration::from_millis), "{text:?}");
        }
    }
}
