//! The seam at which exchanges are written down, and at which answers come from a recording instead of a
//! provider.
//!
//! Why in the client: here a request is what goes out, hop by hop and attempt by attempt, and an answer is
//! what came, decoded. What is masked, which file it is and which answer fits is for whoever implements the
//! two traits. A client that plays opens no socket and waits for nothing: there is no provider to spare, so
//! the governor is not asked. Of the run's budget its requests still count.

use super::response::Answer;
use crate::wire::{BodyEnd, NoAnswer};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A request as it goes out: one hop, one attempt. It holds credentials.
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

/// An answer as it came, its body decoded. It may hold anything.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// All headers.
    pub headers: Vec<(String, String)>,
    /// The body, as far as it was read.
    pub body: Vec<u8>,
    /// Whether that is all of it.
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

/// Writes down what was asked and what came back. Called once per attempt, from any thread.
pub trait Recorder: Send + Sync + fmt::Debug {
    /// How much of a body is wanted.
    fn body_bytes_max(&self) -> usize;

    /// One exchange, which took so long.
    fn record(&self, asked: &Asked, came: Result<&Reply, NoReply>, took: Duration);
}

/// Answers in a provider's place.
pub trait Player: Send + Sync + fmt::Debug {
    /// The answer to this request, or that there was none, as it was recorded.
    ///
    /// # Errors
    ///
    /// Why there is no such recording, for people.
    fn play(&self, asked: &Asked) -> Result<Result<Reply, NoReply>, String>;
}

/// What a client writes down, and where its answers come from. For most: nothing, and the provider.
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
    pub(crate) fn of(request: &reqwest::Request) -> Self {
        Self {
            method: request.method().as_str().to_owned(),
            url: request.url().as_str().to_owned(),
            headers: pairs(request.headers()),
            body: request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default().to_vec(),
        }
    }
}

impl Reply {
    /// An answer, of whose body so much has been read.
    pub(crate) fn of(answer: &Answer, body_end: BodyEnd) -> Self {
        let (status, body) = (answer.status.as_u16(), answer.body.front.to_vec());
        Self { status, headers: pairs(&answer.headers), body, body_end }
    }

    /// Status and headers, if they can be those of an answer.
    pub(crate) fn head(&self) -> Result<(StatusCode, HeaderMap), NoAnswer> {
        let not_one = |what: &str| NoAnswer::not_recorded(format!("the recorded answer has {what}"));
        let status = StatusCode::from_u16(self.status).map_err(|_| not_one("a status that HTTP does not know"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let parsed = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()));
            let (Ok(name), Ok(value)) = parsed else {
                return Err(not_one("a header that HTTP does not allow"));
            };
            headers.try_append(name, value).map_err(|_| not_one("more headers than an answer may have"))?;
        }
        Ok((status, headers))
    }
}

/// Headers as texts. What is no text is replaced: nothing here is sent.
fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

// Shows the method alone: the rest carries credentials.
gleaner_base::debug_only!(Asked, |it| method = it.method);

// Shows the status alone.
gleaner_base::debug_only!(Reply, |it| status = it.status);
