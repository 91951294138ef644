//! Interface for recording exchanges, and for replaying answers from a recording.
//!
//! Why in the client: here each hop and attempt is visible as sent, and each answer decoded. The implementors of the
//! two traits decide about masking, files and matching. A client that replays opens no socket and never waits: there
//! is no provider to protect, so the governor is not asked. Its requests still count against the run budget.

use super::response::Answer;
use crate::wire::{BodyEnd, NoAnswer};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A request as sent: one hop, one attempt. It holds credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// The whole URL.
    pub url: String,
    /// All headers, cookies among them.
    pub headers: Vec<(String, String)>,
    /// The body; empty where there is none.
    pub body: Vec<u8>,
}

/// An answer as received, with its body decoded. It may hold private data.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// All headers.
    pub headers: Vec<(String, String)>,
    /// The body, as far as it was read.
    pub body: Vec<u8>,
    /// Whether the body is complete.
    pub body_end: BodyEnd,
}

/// Why there was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReply {
    /// No connection.
    Connect,
    /// No answer in time.
    Timeout,
    /// The connection broke.
    Lost,
    /// The certificate was not trusted.
    Untrusted,
    /// A redirect led to an address that is not public.
    PrivateTarget,
}

/// Records requests and answers. Called once per attempt, from any thread.
pub trait Recorder: Send + Sync + fmt::Debug {
    /// Maximum number of body bytes to record.
    fn body_bytes_max(&self) -> usize;

    /// Records one exchange and its duration.
    fn record(&self, asked: &Asked, came: Result<&Reply, NoReply>, took: Duration);
}

/// Replays answers in place of a provider.
pub trait Player: Send + Sync + fmt::Debug {
    /// The recorded answer to this request, or the recorded failure.
    ///
    /// # Errors
    ///
    /// The recording has no such request; the text is for people.
    fn play(&self, asked: &Asked) -> Result<Result<Reply, NoReply>, String>;
}

/// Recorder and player of a client. Most have neither.
#[derive(Default)]
pub(crate) struct RecordReplay {
    pub(crate) recorder: Option<Arc<dyn Recorder>>,
    pub(crate) player: Option<Arc<dyn Player>>,
}

impl RecordReplay {
    pub(crate) const fn is_off(&self) -> bool {
        self.recorder.is_none() && self.player.is_none()
    }
}

impl Asked {
    pub(crate) fn from_request(request: &reqwest::Request) -> Self {
        Self {
            method: request.method().as_str().to_owned(),
            url: request.url().as_str().to_owned(),
            headers: pairs(request.headers()),
            body: request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default().to_vec(),
        }
    }
}

impl Reply {
    /// An answer, with the body read so far.
    pub(crate) fn from_answer(answer: &Answer, body_end: BodyEnd) -> Self {
        let (status, body) = (answer.status.as_u16(), answer.body.front.to_vec());
        Self { status, headers: pairs(&answer.headers), body, body_end }
    }

    /// Status and headers, if they are valid.
    pub(crate) fn head(&self) -> Result<(StatusCode, HeaderMap), NoAnswer> {
        let not_one = |what: &str| NoAnswer::not_recorded(format!("the recorded answer has {what}"));
        let status = StatusCode::from_u16(self.status).map_err(|_| not_one("an invalid status"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let parsed = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()));
            let (Ok(name), Ok(value)) = parsed else {
                return Err(not_one("an invalid header"));
            };
            headers.try_append(name, value).map_err(|_| not_one("too many headers"))?;
        }
        Ok((status, headers))
    }
}

/// Headers as text. Invalid UTF-8 is replaced: nothing here is sent.
fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

// Shows only the method: the rest carries credentials.
gleaner_base::debug_only!(Asked, |it| method = it.method);

// Shows only the status.
gleaner_base::debug_only!(Reply, |it| status = it.status);
