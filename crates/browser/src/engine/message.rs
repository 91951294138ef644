//! Messages of browser and driver. They differ in framing and some field names; the content is the same: an answer to
//! a call, or an event. Pure.

use serde::Deserialize;
use serde_json::Value;

/// Bytes kept of an overlong message: they contain `{"id":` and a number.
pub(crate) const BEGINNING_BYTES: usize = 64;

/// A framed message.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    Message(Box<Message>),
    /// An overlong message, and the call it answers, if any.
    TooLong(Option<u64>),
    /// An unreadable message, also one nested too deeply, and the call it answers, if any.
    Garbage(Option<u64>),
}

/// Collects bytes into messages. Overlong ones are skipped, not collected.
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
    /// A driver's log lines before it refused.
    pub(crate) log: Vec<String>,
    /// The session of a browser, or the object of a driver, that it is about.
    #[serde(alias = "sessionId", alias = "guid")]
    pub(crate) about: Option<String>,
}

/// An error answer.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "RawRefusal")]
pub(crate) struct Refusal {
    /// Its kind. A browser names none.
    pub(crate) name: String,
    pub(crate) message: String,
    pub(crate) log: Vec<String>,
}

/// The form of a browser and, one level deeper, of a driver.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawRefusal {
    name: String,
    message: String,
    error: Option<Box<Self>>,
}

impl From<RawRefusal> for Refusal {
    fn from(said: RawRefusal) -> Self {
        let RawRefusal { name, message, error } = said;
        let (name, message) = error.map_or((name, message), |inner| (inner.name, inner.message));
        Self { name, message, log: Vec::new() }
    }
}

/// Parses a complete message.
pub(crate) fn read(text: &[u8]) -> Frame {
    serde_json::from_slice(text)
        .map_or_else(|_| Frame::Garbage(id_at_beginning(text)), |message| Frame::Message(Box::new(message)))
}

/// Parses the beginning of an overlong one.
pub(crate) fn cut(beginning: &[u8]) -> Frame {
    Frame::TooLong(id_at_beginning(beginning))
}

fn id_at_beginning(text: &[u8]) -> Option<u64> {
    let rest = text.strip_prefix(b"{\"id\":")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // A cut number may be wrong.
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
