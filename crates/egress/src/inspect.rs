//! Status and metrics of the sidecar, under `/.gleaner/`. Never waits, and never asks the upstream.

use crate::body::AnswerBody;
use crate::handler::Sidecar;
use crate::respond::{Reply, json, plain};
use gleaner_http::{SendGovernor, Status, prometheus_text};
use http::header::{self, HeaderValue};
use http::{Method, Response, StatusCode};
use serde::Serialize;
use std::sync::atomic::Ordering;

/// Path of the sidecar's own pages; all other paths go to the upstream.
const FOLDER: &str = "/.gleaner";
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Status of a sidecar.
#[derive(Serialize)]
struct SidecarStatus {
    upstream: String,
    listen: String,
    uptime_s: f64,
    connections: usize,
    requests: usize,
    keys: Vec<Status>,
}

/// The page of the sidecar at `path`; `None` when the path belongs to the upstream.
pub(crate) fn page(path: &str) -> Option<&str> {
    path.strip_prefix(FOLDER).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Shows a page.
pub(crate) fn show(sidecar: &Sidecar, method: &Method, page: &str) -> Result<Response<AnswerBody>, Reply> {
    if !matches!(page, "/status" | "/metrics") {
        let error = "the sidecar has no such page";
        let hint = "use /.gleaner/status or /.gleaner/metrics";
        return Err(Reply::new(StatusCode::NOT_FOUND, "no_such_page", error, hint));
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let error = "the sidecar's pages are read-only";
        let mut refusal = Reply::new(StatusCode::METHOD_NOT_ALLOWED, "read_only", error, "use GET").into_response();
        refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok(refusal);
    }
    Ok(if page == "/status" { json(StatusCode::OK, &status(sidecar)) } else { metrics(sidecar) })
}

fn status(sidecar: &Sidecar) -> SidecarStatus {
    SidecarStatus {
        upstream: sidecar.upstream.to_string(),
        listen: sidecar.listen.to_string(),
        uptime_s: sidecar.started.elapsed().as_secs_f64(),
        connections: sidecar.connections.load(Ordering::Relaxed),
        requests: sidecar.requests(),
        keys: sidecar.governors.all().iter().map(SendGovernor::status).collect(),
    }
}

fn metrics(sidecar: &Sidecar) -> Response<AnswerBody> {
    // Writing to a string does not fail.
    let text = prometheus_text(&sidecar.governors).unwrap_or_default();
    plain(StatusCode::OK, OPENMETRICS, text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_folder_is_kept_from_the_upstream() {
        assert_eq!(page("/.gleaner/status"), Some("/status"));
        assert_eq!(page("/.gleaner"), Some(""));
        for theirs in ["/", "/.gleanerx", "/v1/.gleaner/status", "/.glean", "//.gleaner/status"] {
            assert_eq!(page(theirs), None, "{theirs}");
        }
    }
}
