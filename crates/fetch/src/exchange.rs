//! One request with its permit, and the handling of its answer.
//!
//! The registry gets the outcome when the head arrives. The body is read afterwards: it says nothing about the pace.

use crate::bodies::{Bodies, BodyWriter, Stored};
use crate::frontier::{KeyId, SiteId};
use crate::job::Job;
use crate::result_line::ResultLine;
use crate::robots::ROBOTS_BYTES_MAX;
use crate::url_list::Target;
use crate::wire::{Head, Wire};
use gleaner_http::governor::{
    Classifier as _, DefaultClassifier, Outcome, PressureReason, ResponseView, Time, Verdict, WallTime,
};
use gleaner_http::wire::{Body, BodyFault, NoAnswer, RedirectFault, is_redirect, redirect_target};
use gleaner_http::{DomainPermit, Domains, End as CallEnd, Headers, Later, Next};
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

/// State shared by all requests.
pub(crate) struct Shared<W> {
    pub(crate) wire: W,
    pub(crate) domains: Domains,
    pub(crate) bodies: Arc<Bodies>,
    pub(crate) heard: Sender<Heard>,
}

/// A request was answered or lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) site: SiteId,
    pub(crate) key: KeyId,
    pub(crate) verdict: Verdict,
}

/// Permission to send one request.
pub(crate) struct Turn {
    pub(crate) site: SiteId,
    pub(crate) key: KeyId,
    pub(crate) permit: DomainPermit,
}

/// Result of a request.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) site: SiteId,
    pub(crate) job: Box<Job>,
    pub(crate) end: End,
}

#[derive(Debug)]
pub(crate) enum End {
    /// The URL is finished.
    Line(Box<ResultLine>),
    /// The robots.txt of a host; `None` when it has none.
    Rules(Option<Vec<u8>>),
    /// A redirect.
    Redirect(Target),
    /// Retry, not before this time.
    Again(Time),
    /// Retry after the others: the retry budget is used up.
    AfterOthers,
    /// Failed for good: status and reason.
    Failed(Option<u16>, String),
    /// Our own disk failed.
    Disk(io::Error),
}

/// Sends `job` once.
pub(crate) async fn exchange<W: Wire>(shared: Arc<Shared<W>>, mut job: Box<Job>, turn: Turn) -> Ended {
    let Turn { site, key, mut permit } = turn;
    permit.sent();
    let sent = Instant::now();
    let asked = shared.wire.ask(job.ask()).await;
    job.latency = Some(sent.elapsed());
    let outcome = match &asked {
        Ok(head) => classify(head),
        Err(no_answer) => no_answer.outcome(),
    };
    job.status = asked.as_ref().ok().map(|head| head.status.as_u16());
    let next = permit.answer(&outcome, job.status, job.tries).await;
    job.tries += 1;
    job.attempts += 1;
    // The scheduler is gone, so the message does not matter.
    let _ = shared.heard.send(Heard { site, key, verdict: outcome.verdict }).await;
    let end = match next {
        Next::RetryAt(at) => End::Again(at),
        Next::End(end) => match end.later(outcome.verdict) {
            Some(Later::In(wait)) => End::Again(shared.domains.clock().now() + wait),
            // It is not the URL's fault; other requests earn the next retry.
            Some(Later::AfterOthers) => End::AfterOthers,
            None => conclude(&shared, &job, asked, end).await,
        },
    };
    Ended { site, job, end }
}

fn classify(head: &Head) -> Outcome {
    let headers = Headers(&head.headers);
    let wall_now = WallTime::from_unix_millis(gleaner_base::clock::unix_millis());
    DefaultClassifier::new().classify(&ResponseView::new(head.status.as_u16(), &headers), wall_now)
}

/// The result of an answer that is not retried.
async fn conclude<W: Wire>(shared: &Shared<W>, job: &Job, asked: Result<Head, NoAnswer>, ended: CallEnd) -> End {
    let head = match asked {
        Ok(head) => head,
        Err(no_answer) => return End::Failed(None, no_answer.in_one_line()),
    };
    let status = head.status.as_u16();
    if is_redirect(head.status) {
        return redirect(job, &head);
    }
    if job.rules_of.is_some() {
        return rules(head).await;
    }
    if status == 304 {
        let line = job.unchanged(&head.headers);
        let unasked =
            || End::Failed(Some(status), "the host answered 304 Not Modified to an unconditional request".to_owned());
        return line.map_or_else(unasked, |line| End::Line(Box::new(line)));
    }
    if head.status.is_success() {
        return store(shared, job, head).await;
    }
    let more = match ended {
        CallEnd::Pressure { reason: PressureReason::UpstreamPressure, .. } => "; it seems to block us",
        CallEnd::Pressure { .. } => " on every attempt",
        _ => "",
    };
    End::Failed(Some(status), format!("the host answered {status}{more}"))
}

fn redirect(job: &Job, head: &Head) -> End {
    let status = Some(head.status.as_u16());
    let refuse = |fault: RedirectFault| End::Failed(status, refused(fault));
    match redirect_target(&job.url, &head.headers) {
        Ok(url) => match Target::from_url(url) {
            Ok(target) => End::Redirect(target),
            Err(why) => End::Failed(status, format!("the redirect is not followed: {why}")),
        },
        Err(fault) => refuse(fault),
    }
}

pub(crate) fn refused(fault: RedirectFault) -> String {
    match fault {
        RedirectFault::PrivateTarget => {
            "the redirect is not followed: it leads to an address that is not public".into()
        }
        fault => format!("the redirect is not followed: {fault}"),
    }
}

/// The result of a robots.txt request (RFC 9309, section 2.3.1).
async fn rules(head: Head) -> End {
    let status = head.status.as_u16();
    if head.status.is_client_error() && status != 429 {
        return End::Rules(None);
    }
    if !head.status.is_success() {
        return End::Failed(Some(status), format!("it answered {status}"));
    }
    let (mut body, mut file) = (head.body, Vec::new());
    while file.len() <= ROBOTS_BYTES_MAX {
        match body.chunk().await {
            Ok(Some(piece)) => file.extend_from_slice(&piece),
            Ok(None) => break,
            Err(error) => return End::Failed(Some(status), error.fault.to_string()),
        }
    }
    End::Rules(Some(file))
}

async fn store<W: Wire>(shared: &Shared<W>, job: &Job, head: Head) -> End {
    let status = head.status.as_u16();
    match save(head.body, shared.bodies.writer()).await {
        Ok(Ok(writer)) => match finish(writer).await {
            Ok(stored) => End::Line(Box::new(job.stored(status, &head.headers, stored))),
            Err(error) => End::Disk(error),
        },
        Ok(Err(fault)) => {
            let is_lost = matches!(fault, BodyFault::Lost | BodyFault::Idle(_));
            let again = is_lost.then(|| shared.domains.retry_lost_body(job.tries.saturating_sub(1))).flatten();
            again.map_or_else(|| End::Failed(Some(status), told(fault)), End::Again)
        }
        Err(error) => End::Disk(error),
    }
}

/// Messages without names of Rust settings.
fn told(fault: BodyFault) -> String {
    match fault {
        BodyFault::TooLarge(limit_bytes) => format!("the answer is larger than {limit_bytes} bytes"),
        BodyFault::RatioTooHigh(limit) => {
            format!("the answer grows more than {limit} times by decoding, like a decompression bomb")
        }
        BodyFault::Idle(limit) => format!("no data for {} s in the middle of the answer", limit.as_secs()),
        BodyFault::Deadline => "the answer was too slow".to_owned(),
        other => other.to_string(),
    }
}

/// Outer error: our disk. Inner: the body.
async fn save(mut body: Body, mut writer: BodyWriter) -> io::Result<Result<BodyWriter, BodyFault>> {
    loop {
        match body.chunk().await {
            Ok(Some(piece)) => {
                if writer.add(&piece) {
                    writer = blocking(move || writer.flush().map(|()| writer)).await?;
                }
            }
            Ok(None) => return Ok(Ok(writer)),
            Err(error) => return Ok(Err(error.fault)),
        }
    }
}

async fn finish(writer: BodyWriter) -> io::Result<Stored> {
    blocking(move || writer.finish()).await
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}
