//! Result line of one URL: for the user, for a restart, and for the next pass.

use serde::{Deserialize, Serialize};

/// Result of one URL. One JSON object per line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultLine {
    /// As in the list.
    pub url: String,
    /// The URL after redirects, if a request was sent.
    pub final_url: Option<String>,
    /// The last status; absent without an answer.
    pub status: Option<u16>,
    /// Requests sent for it, redirects and retries included.
    pub attempts: u32,
    /// Time that it waited for its turn while it was next, backoff included.
    pub waited_ms: u64,
    /// Time from the last request to the head of its answer.
    pub latency_ms: Option<u64>,
    /// Size of the decoded body.
    pub bytes: Option<u64>,
    /// SHA-256 of the body, in hexadecimal.
    pub sha256: Option<String>,
    /// Path of the body, below the results folder.
    pub path: Option<String>,
    /// Why there is no body.
    pub error: Option<String>,
    /// The server's ETag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The server's Last-Modified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// Maximum length of a stored validator: real ones are shorter, and it is sent with every request.
pub(crate) const VALIDATOR_BYTES_MAX: usize = 1024;

impl ResultLine {
    /// A URL that was not requested.
    pub(crate) fn refused(url: &str, error: String) -> Self {
        Self { url: url.to_owned(), error: Some(error), ..Self::default() }
    }

    /// Whether there is a body, also an unchanged one.
    #[must_use]
    pub const fn is_fetched(&self) -> bool {
        self.error.is_none()
    }

    pub(crate) fn to_json(&self) -> String {
        // Strings and numbers alone: it cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}
