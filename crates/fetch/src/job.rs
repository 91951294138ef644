//! One URL in progress, and its result line.

use crate::bodies::Stored;
use crate::frontier::SiteId;
use crate::result_line::{ResultLine, VALIDATOR_BYTES_MAX};
use crate::url_list::{Target, UrlKey};
use crate::wire::Ask;
use gleaner_http::governor::Time;
use gleaner_http::wire::{RedirectFault, names_private_address};
use http::header::{ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderName};
use std::time::Duration;
use url::Url;

/// Maximum of redirects of a page: as in reqwest.
const HOPS_MAX: usize = 10;
/// Redirects of a robots.txt (RFC 9309 asks for five).
const ROBOTS_HOPS_MAX: usize = 5;

/// A URL in progress.
#[derive(Debug)]
pub(crate) struct Job {
    /// As in the list.
    pub(crate) listed: Box<str>,
    /// The current URL, after redirects.
    pub(crate) url: Url,
    /// It is the robots.txt of this site.
    pub(crate) rules_of: Option<SiteId>,
    /// Result of the previous pass.
    pub(crate) previous: Option<Box<ResultLine>>,
    /// Keys of the redirects so far.
    hops: Vec<UrlKey>,
    /// A redirect led to another origin.
    is_away: bool,
    may_be_private: bool,
    first_origin: String,
    /// Requests to the current URL, and in total.
    pub(crate) tries: u32,
    pub(crate) attempts: u32,
    pub(crate) waited: Duration,
    /// Since when it waits for a retry.
    pub(crate) waits_since: Option<Time>,
    pub(crate) latency: Option<Duration>,
    /// The last status.
    pub(crate) status: Option<u16>,
}

impl Job {
    pub(crate) fn new(listed: &str, target: Target, allows_private: bool) -> Self {
        // A listed private address is intended, and so are redirects near it.
        let is_local = target.url.host_str().is_some_and(|host| host == "localhost" || host.ends_with(".localhost"));
        Self {
            listed: listed.into(),
            may_be_private: allows_private || is_local || names_private_address(&target.url),
            first_origin: target.origin(),
            url: target.url,
            rules_of: None,
            previous: None,
            hops: Vec::new(),
            is_away: false,
            tries: 0,
            attempts: 0,
            waited: Duration::ZERO,
            waits_since: None,
            latency: None,
            status: None,
        }
    }

    /// The request to send. Validators belong to the URL that sent them.
    pub(crate) fn ask(&self) -> Ask {
        let known = self.previous.as_ref().filter(|known| known.final_url.as_deref() == Some(self.url.as_str()));
        Ask {
            url: self.url.clone(),
            etag: known.and_then(|known| known.etag.clone()),
            last_modified: known.and_then(|known| known.last_modified.clone()),
            must_be_public: self.is_away && !self.may_be_private,
        }
    }

    /// Follows a redirect.
    pub(crate) fn redirect(&mut self, target: &Target) -> Result<(), RedirectFault> {
        let max = if self.rules_of.is_some() { ROBOTS_HOPS_MAX } else { HOPS_MAX };
        let from = Target { url: self.url.clone(), domain: target.domain.clone() }.key();
        self.hops.push(from);
        if self.hops.contains(&target.key()) {
            return Err(RedirectFault::Loop);
        }
        if self.hops.len() > max {
            return Err(RedirectFault::TooMany(max as u32));
        }
        self.is_away = target.origin() != self.first_origin;
        if self.is_away && !self.may_be_private && names_private_address(&target.url) {
            return Err(RedirectFault::PrivateTarget);
        }
        self.url = target.url.clone();
        self.tries = 0;
        Ok(())
    }

    fn line(&self) -> ResultLine {
        ResultLine {
            url: self.listed.to_string(),
            final_url: (self.attempts > 0).then(|| self.url.to_string()),
            attempts: self.attempts,
            waited_ms: millis(self.waited),
            latency_ms: self.latency.map(millis),
            ..ResultLine::default()
        }
    }

    pub(crate) fn failed(&self, status: Option<u16>, error: String) -> ResultLine {
        ResultLine { status, error: Some(error), ..self.line() }
    }

    pub(crate) fn stored(&self, status: u16, headers: &HeaderMap, stored: Stored) -> ResultLine {
        ResultLine {
            status: Some(status),
            bytes: Some(stored.bytes),
            sha256: Some(stored.sha256),
            path: Some(stored.path),
            etag: validator(headers, ETAG),
            last_modified: validator(headers, LAST_MODIFIED),
            ..self.line()
        }
    }

    /// The body of the previous pass is unchanged; `None` when there is none.
    pub(crate) fn unchanged(&self, headers: &HeaderMap) -> Option<ResultLine> {
        let known = self.previous.as_ref()?;
        Some(ResultLine {
            status: Some(304),
            bytes: known.bytes,
            sha256: known.sha256.clone(),
            path: known.path.clone(),
            etag: validator(headers, ETAG).or_else(|| known.etag.clone()),
            last_modified: validator(headers, LAST_MODIFIED).or_else(|| known.last_modified.clone()),
            ..self.line()
        })
    }
}

fn validator(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (!value.is_empty() && value.len() <= VALIDATOR_BYTES_MAX).then(|| value.to_owned())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::from_url(Url::parse(url).unwrap()).unwrap()
    }

    fn job(url: &str) -> Job {
        Job::new(url, target(url), false)
    }

    #[test]
    fn redirects_end_at_a_loop_at_ten_and_before_private_addresses() {
        let mut looping = job("http://a.example/1");
        looping.redirect(&target("http://b.example/2")).unwrap();
        assert_eq!(looping.redirect(&target("http://a.example/1#again")), Err(RedirectFault::Loop));
        assert_eq!(job("http://a.example/").redirect(&target("http://a.example/")), Err(RedirectFault::Loop));
        let mut long = job("http://a.example/");
        for hop in 0..HOPS_MAX {
            long.redirect(&target(&format!("http://a.example/{hop}"))).unwrap();
        }
        assert_eq!(long.redirect(&target("http://a.example/x")), Err(RedirectFault::TooMany(10)));
        let mut away = job("http://a.example/");
        assert_eq!(away.redirect(&target("http://169.254.169.254/")), Err(RedirectFault::PrivateTarget));
        let mut away = job("http://a.example/");
        away.redirect(&target("http://b.example/")).unwrap();
        assert!(away.ask().must_be_public);
        let mut local = job("http://127.0.0.1/");
        local.redirect(&target("http://127.0.0.2/")).unwrap();
        assert!(!local.ask().must_be_public, "who names a private address means it");
    }

    #[test]
    fn a_version_is_sent_only_to_where_it_was_told() {
        let known = ResultLine {
            final_url: Some("http://a.example/there".to_owned()),
            etag: Some("\"1\"".to_owned()),
            ..ResultLine::default()
        };
        let mut job = job("http://a.example/here");
        job.previous = Some(Box::new(known));
        assert_eq!(job.ask().etag, None);
        job.redirect(&target("http://a.example/there")).unwrap();
        assert_eq!(job.ask().etag.as_deref(), Some("\"1\""));
    }
}
