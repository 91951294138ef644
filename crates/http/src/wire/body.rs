//! The body of an answer: decoded, counted and limited, however it is read.
//!
//! Limits apply to the decoder's output, piece by piece, so a bomb stops at the piece that exceeds the limit. A
//! broken body stays broken: it is never mistaken for a shorter one. Never retries; the governor was told about the
//! answer when its head arrived.

use super::decode::{CODINGS_MAX, Coding, Reader, codings, decoded};
use crate::causes::Cause;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, Method, StatusCode, Version};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::io::{StreamReader, read_buf};

/// Why a body cannot be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyFault {
    /// The body is larger than allowed. Holds the limit.
    #[error("the answer is larger than {0} bytes; `max_decoded_bytes` allows more")]
    TooLarge(u64),
    /// A decompression bomb: the body grows too much by decoding. Holds the allowed ratio.
    #[error(
        "the answer grows more than {0} times by decoding, like a decompression bomb; \
         `max_ratio` allows more"
    )]
    RatioTooHigh(u32),
    /// An unknown `Content-Encoding`.
    #[error("the answer has an unknown Content-Encoding")]
    UnknownCoding,
    /// Too many nested encodings. Holds the limit.
    #[error("the answer has more than {0} nested Content-Encodings")]
    TooManyCodings(usize),
    /// The encoded data is damaged, or it ends too early.
    #[error("the encoded answer is damaged or ends too early, so it is not complete")]
    Corrupt,
    /// The connection broke, or the length does not match.
    #[error("the answer broke off, so it is not complete")]
    Lost,
    /// No data for too long. Holds the limit.
    #[error("no data for {:.1} s in the middle of the answer; `idle_timeout` allows more", .0.as_secs_f64())]
    Idle(Duration),
    /// The caller's deadline came before the end.
    #[error("the deadline of the call came before the end of the answer")]
    Deadline,
}

/// How the body of an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// It is complete.
    Complete,
    /// More data followed than was recorded, or it came too slowly.
    TooLarge,
    /// It broke off.
    Broken,
}

/// Limits of one body.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Bytes of decoder output.
    pub decoded_bytes: u64,
    /// Growth by decoding, as a factor.
    pub ratio: u32,
    /// Longest time without data.
    pub idle: Duration,
}

/// 64 MiB: an answer is kept in memory as a whole. An API page is a thousandth of it; a download raises the limit.
const DECODED_BYTES_MAX: u64 = 64 << 20;
/// JSON and logs shrink to a tenth, very repetitive ones to a hundredth; bombs to a thousandth and less.
const RATIO_MAX: u32 = 200;
/// Smaller bodies may have any ratio: a megabyte is harmless, and short repetitive bodies are common.
const RATIO_FREE_BYTES: u64 = 1 << 20;
/// Half a minute without a byte is a dead connection, not a slow one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

impl Default for BodyLimits {
    fn default() -> Self {
        Self { decoded_bytes: DECODED_BYTES_MAX, ratio: RATIO_MAX, idle: IDLE_TIMEOUT }
    }
}

/// A fault and its cause.
#[derive(Debug)]
pub struct BodyError {
    /// The fault.
    pub fault: BodyFault,
    /// The failure underneath, where there is one.
    pub cause: Option<Cause>,
}

impl From<BodyFault> for BodyError {
    fn from(fault: BodyFault) -> Self {
        Self { fault, cause: None }
    }
}

/// A body that is being read.
pub struct Body {
    /// Data read for the classifier and not yet by the caller.
    pub(crate) front: Bytes,
    state: State,
    /// Cause of a fault that was not yet reported to the caller.
    cause: Option<Cause>,
    limits: BodyLimits,
    deadline: Option<Instant>,
    came_out: u64,
}

// Omits the content.
gleaner_base::debug_only!(Body, |it| came_out = it.came_out);

enum State {
    Plain(reqwest::Response),
    Encoded { reader: Reader, went_in: Arc<AtomicU64> },
    Ended,
    Broken(BodyFault),
}

/// Buffer of one decoded piece: the decoder's output for a network packet.
const PIECE: usize = 32 * 1024;
/// Longest wait for the beginning of a body. It comes with the head or soon after; the request's slot is held
/// meanwhile, and the classifier can do without.
const PEEK_TIMEOUT: Duration = Duration::from_secs(2);

impl Body {
    /// Takes the body of an answer. `headers` are the answer's; those about the encoding are removed when the body is
    /// decoded here.
    pub fn new(
        method: &Method,
        response: reqwest::Response,
        headers: &mut HeaderMap,
        limits: BodyLimits,
        deadline: Option<Instant>,
    ) -> Self {
        let state = if is_bodiless(method, response.status()) {
            State::Ended
        } else {
            match codings(headers) {
                Ok(codings) if codings.is_empty() => State::Plain(response),
                Ok(codings) => {
                    [CONTENT_ENCODING, CONTENT_LENGTH].iter().for_each(|name| drop(headers.remove(name)));
                    State::encoded(response, &codings)
                }
                Err(fault) => State::Broken(fault),
            }
        };
        Self { front: Bytes::new(), state, cause: None, limits, deadline, came_out: 0 }
    }

    /// Reads the first `bytes`, if they come within `time`, and keeps them for the caller. A failure is kept too: the
    /// head of the answer counts, whatever happens to its body.
    pub(crate) async fn peek(&mut self, bytes: usize, time: Duration) {
        self.read_front(bytes, time.min(PEEK_TIMEOUT)).await;
    }

    /// A body from a recording.
    #[must_use]
    pub fn recorded(front: Bytes, end: BodyEnd, limits: BodyLimits) -> Self {
        let state = if end == BodyEnd::Complete { State::Ended } else { State::Broken(BodyFault::Lost) };
        Self { front, state, cause: None, limits, deadline: None, came_out: 0 }
    }

    /// Reads until more than `bytes` are there, or all, or `time` is over. The caller still gets the whole body.
    pub(crate) async fn read_ahead(&mut self, bytes: usize, time: Duration) -> BodyEnd {
        self.read_front(bytes.saturating_add(1), time).await;
        match self.state {
            State::Broken(_) => BodyEnd::Broken,
            State::Ended if self.front.len() <= bytes => BodyEnd::Complete,
            _ => BodyEnd::TooLarge,
        }
    }

    /// Reads on until `bytes` are there, if they come in time, and keeps them.
    async fn read_front(&mut self, bytes: usize, time: Duration) {
        let mut front = BytesMut::from(&self.front[..]);
        let reading = async {
            while front.len() < bytes {
                match self.piece().await {
                    Ok(Some(piece)) => front.extend_from_slice(&piece),
                    Ok(None) => break,
                    Err(error) => {
                        self.cause = error.cause;
                        break;
                    }
                }
            }
        };
        // On a timeout the data so far is used.
        let _whether_in_time = timeout(time, reading).await;
        self.front = front.freeze();
    }

    /// The next piece; `None` at the end of a body that is complete.
    ///
    /// # Errors
    /// The body is too large, broken or late.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        if !self.front.is_empty() {
            return Ok(Some(std::mem::take(&mut self.front)));
        }
        self.piece().await
    }

    /// All that is left.
    pub(crate) async fn bytes(&mut self) -> Result<Bytes, BodyError> {
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        if matches!(self.state, State::Ended) {
            return Ok(first);
        }
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut all = BytesMut::with_capacity(first.len() + second.len() + PIECE);
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        while let Some(piece) = self.chunk().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, BodyError> {
        let result = self.timely_piece().await.and_then(|piece| {
            self.count(piece.as_ref().map_or(0, Bytes::len))?;
            Ok(piece)
        });
        match &result {
            Ok(Some(_)) if !self.state.is_complete() => {}
            Ok(_) => self.state = State::Ended,
            Err(error) => self.state = State::Broken(error.fault),
        }
        result
    }

    async fn timely_piece(&mut self) -> Result<Option<Bytes>, BodyError> {
        let mut piece = pin!(self.state.piece(&mut self.cause));
        // Most pieces are ready, and then no timer is needed.
        if let Poll::Ready(result) = poll_fn(|context| Poll::Ready(piece.as_mut().poll(context))).await {
            return result;
        }
        let idle_ends = Instant::now() + self.limits.idle;
        let end = self.deadline.map_or(idle_ends, |deadline| deadline.min(idle_ends));
        match timeout_at(end, piece).await {
            Ok(result) => result,
            Err(_elapsed) if end < idle_ends => Err(BodyFault::Deadline.into()),
            Err(_elapsed) => Err(BodyFault::Idle(self.limits.idle).into()),
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), BodyFault> {
        self.came_out = self.came_out.saturating_add(bytes as u64);
        if self.came_out > self.limits.decoded_bytes {
            return Err(BodyFault::TooLarge(self.limits.decoded_bytes));
        }
        if let State::Encoded { went_in, .. } = &self.state {
            let fair = went_in.load(Ordering::Relaxed).saturating_mul(u64::from(self.limits.ratio));
            if self.came_out > fair.max(RATIO_FREE_BYTES) {
                return Err(BodyFault::RatioTooHigh(self.limits.ratio));
            }
        }
        Ok(())
    }
}

impl State {
    fn encoded(response: reqwest::Response, codings: &[Coding]) -> Self {
        debug_assert!(codings.len() <= CODINGS_MAX, "more are refused when the header is read");
        let went_in = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&went_in);
        let pieces = response.bytes_stream().map(move |piece| {
            let piece = piece.map_err(io::Error::other)?;
            counter.fetch_add(piece.len() as u64, Ordering::Relaxed);
            Ok::<_, io::Error>(piece)
        });
        Self::Encoded { reader: decoded(StreamReader::new(pieces), codings), went_in }
    }

    /// Whether no more data can come, so that no read is needed. HTTP/2 may still send trailers.
    fn is_complete(&self) -> bool {
        match self {
            Self::Plain(response) => response.version() <= Version::HTTP_11 && response.content_length() == Some(0),
            Self::Encoded { .. } | Self::Broken(_) => false,
            Self::Ended => true,
        }
    }

    async fn piece(&mut self, cause: &mut Option<Cause>) -> Result<Option<Bytes>, BodyError> {
        match self {
            Self::Plain(response) => match response.chunk().await {
                Ok(piece) => Ok(piece),
                Err(error) => Err(lost(error)),
            },
            Self::Encoded { reader, went_in } => {
                let mut piece = BytesMut::with_capacity(PIECE);
                match read_buf(reader, &mut piece).await {
                    Ok(0) => Ok(None),
                    Ok(_) => Ok(Some(piece.freeze())),
                    // An empty body with a Content-Encoding is still empty.
                    Err(error) if went_in.load(Ordering::Relaxed) == 0 && !is_of_the_wire(&error) => Ok(None),
                    Err(error) => Err(broken(error)),
                }
            }
            Self::Ended => Ok(None),
            Self::Broken(fault) => Err(BodyError { fault: *fault, cause: cause.take() }),
        }
    }
}

/// Answers that have no body whatever their headers say (RFC 9110, section 6.4.1).
fn is_bodiless(method: &Method, status: StatusCode) -> bool {
    *method == Method::HEAD || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED
}

fn is_of_the_wire(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<reqwest::Error>())
}

fn lost(error: reqwest::Error) -> BodyError {
    // Its text would show the URL.
    BodyError { fault: BodyFault::Lost, cause: Some(error.without_url().into()) }
}

/// An error of the decoder, or of the connection, passed on by the decoder.
fn broken(error: io::Error) -> BodyError {
    match error.downcast::<reqwest::Error>() {
        Ok(error) => lost(error),
        Err(error) => BodyError { fault: BodyFault::Corrupt, cause: Some(error.into()) },
    }
}
