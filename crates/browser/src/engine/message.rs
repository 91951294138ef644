//! A message of whoever is spoken to. Browser and driver frame theirs differently and name some fields differently;
//! what is in them is the same: an answer to a call, or something that happened. Pure.

use serde::Deserialize;
use serde_json::Value;

/// What is kept of a message that is too long: `{"id":` and a number are in it.
pub(crate) const BEGINNING_BYTES: usize = 64;

/// What was framed.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    Message(Box<Message>),
    /// One that was longer than allowed, and the call it answers, if it does.
    TooLong(Option<u64>),
    /// Not a message that we can read, and the call it answers, if it does. One that is too deep is not read, either.
    Garbage(Option<u64>),
}

/// Collects bytes until there are messages. What is too long is skipped, not collected.
pub(crate) trait Framer: Send + 'static {
    fn push(&mut self, bytes: &[u8]) -> Vec<Frame>;
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Message {
    pub(crate) id: Option<u64>,
    pub(crate) method: Option<String>,
    pub(crate) params: Value,
    pub(crate) result: Value,
    pub(crate) error: Option<Refusal>,
    /// What a driver did before it refused, line by line.
    pub(crate) log: Vec<String>,
    /// The session of a browser, or the object of a driver, that it is about.
    #[serde(alias = "sessionId", alias = "guid")]
    pub(crate) about: Option<String>,
}

/// What is said when something is not done.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Said")]
pub(crate) struct Refusal {
    /// The kind of it. A browser names none.
    pub(crate) name: String,
    pub(crate) message: String,
    pub(crate) log: Vec<String>,
}

/// As a browser says it, and, one level deeper, a driver.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    name: String,
    message: String,
    error: Option<Box<Self>>,
}

impl From<Said> for Refusal {
    fn from(said: Said) -> Self {
        let Said { name, message, error } = said;
        let (name, message) = error.map_or((name, message), |inner| (inner.name, inner.message));
        Self { name, message, log: Vec::new() }
    }
}

/// A whole message.
pub(crate) fn read(text: &[u8]) -> Frame {
    serde_json::from_slice(text)
        .map_or_else(|_| Frame::Garbage(id_at_beginning(text)), |message| Frame::Message(Box::new(message)))
}

/// The beginning of one that was too long.
pub(crate) fn cut(beginning: &[u8]) -> Frame {
    Frame::TooLong(id_at_beginning(beginning))
}

fn id_at_beginning(text: &[u8]) -> Option<u64> {
    let rest = text.strip_prefix(b"{\"id\":")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // A number that was cut may be another one.
    if digits == rest.len() {
        return None;
    }
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_understood_as_a_browser_and_as_a_driver_says_it() {
        let refusal = |text: &str| match read(text.as_bytes()) {
            Frame::Message(message) => message.error.map(|refusal| (refusal.name, refusal.message)),
            Frame::TooLong(_) | Frame::Garbage(_) => None,
        };
        let expected = |name: &str, message: &str| Some((name.to_owned(), message.to_owned()));
        assert_eq!(refusal(r#"{"id":1,"error":{"code":-32000,"message":"no"}}"#), expected("", "no"));
        let driver = r#"{"id":1,"error":{"error":{"message":"no","name":"TimeoutError","stack":"x"}},"log":[]}"#;
        assert_eq!(refusal(driver), expected("TimeoutError", "no"));
        assert_eq!(refusal(r#"{"id":1,"error":{"value":{"s":"thrown"}}}"#), expected("", ""));
    }

    #[test]
    fn a_number_that_may_have_been_cut_is_nobodys() {
        assert_eq!(cut(b"{\"id\":77,"), Frame::TooLong(Some(77)));
        assert_eq!(cut(b"{\"id\":77"), Frame::TooLong(None));
        assert_eq!(cut(b"{\"method\":"), Frame::TooLong(None));
        let deep = format!("{{\"id\":77,\"result\":{}", "[".repeat(500));
        assert_eq!((read(deep.as_bytes()), read(b"nothing")), (Frame::Garbage(Some(77)), Frame::Garbage(None)));
    }
}
