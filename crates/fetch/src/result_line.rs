//! The line that one URL ends as: what a user reads, what a restart goes by, and what the next pass asks with.

use serde::{Deserialize, Serialize};

/// What became of one URL. One JSON object per line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultLine {
    /// As the list has it.
    pub url: String,
    /// Where it led to, when something was asked.
    pub final_url: Option<String>,
    /// The last status; none when there was no answer.
    pub status: Option<u16>,
    /// Requests that were sent for it, redirects and retries included.
    pub attempts: u32,
    /// Time that it waited for its turn while it was next, pauses before retries included.
    pub waited_ms: u64,
    /// From the last request to the head of its answer.
    pub latency_ms: Option<u64>,
    /// Size of the body, decoded.
    pub bytes: Option<u64>,
    /// Its SHA-256, in hexadecimal.
    pub sha256: Option<String>,
    /// Where it is, below the folder of results.
    pub path: Option<String>,
    /// Why there is none.
    pub error: Option<String>,
    /// What the server calls this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// When the server says that it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// Longest name of a version that is kept: nobody's is longer, and it is sent with every request.
pub(crate) const VALIDATOR_BYTES_MAX: usize = 1024;

impl ResultLine {
    /// A URL that was never asked for.
    pub(crate) fn refused(url: &str, error: String) -> Self {
        Self { url: url.to_owned(), error: Some(error), ..Self::default() }
    }

    /// Whether there is a body or was one before.
    #[must_use]
    pub const fn is_fetched(&self) -> bool {
        self.error.is_none()
    }

    pub(crate) fn to_json(&self) -> String {
        // Strings and numbers alone: it cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}
