//! Settings of a fetch, each default with its reason.

use gleaner_http::governor::keyed::RegistryConfig;
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum body size: pages, pictures and papers are smaller, videos are not.
pub const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Concurrent requests: more fill a home connection, and 1024 open files are a common limit.
pub const CONCURRENCY: usize = 256;
/// Longest wait for a host that is rate-limited or does not answer. Five minutes: longer is for the next pass, so
/// that other hosts need not wait.
pub const WAIT_MAX: Duration = Duration::from_secs(300);

/// Settings of a fetch.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The results folder. Created if missing.
    pub out: PathBuf,
    /// The user agent. Its first word selects the group of robots.txt.
    pub user_agent: String,
    /// Whether robots.txt is obeyed.
    pub obeys_robots: bool,
    /// Maximum size of a decoded body.
    pub body_bytes_max: u64,
    /// Concurrent requests.
    pub concurrency: usize,
    /// Longest wait for a host before its URLs fail in this pass.
    pub wait_max: Duration,
    /// Whether a redirect to another origin may lead to a private address.
    pub allows_private_redirects: bool,
    /// Pace, circuit and retries of each host.
    pub governor: RegistryConfig,
}

impl Settings {
    /// The defaults.
    #[must_use]
    pub fn new(out: PathBuf) -> Self {
        Self {
            out,
            user_agent: concat!("gleaner/", env!("CARGO_PKG_VERSION")).to_owned(),
            obeys_robots: true,
            body_bytes_max: BODY_BYTES_MAX,
            concurrency: CONCURRENCY,
            wait_max: WAIT_MAX,
            allows_private_redirects: false,
            governor: RegistryConfig::default(),
        }
    }

    /// The user agent for robots.txt.
    pub(crate) fn product(&self) -> &str {
        let is_part = |c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '_');
        let end = self.user_agent.find(|c| !is_part(c)).unwrap_or(self.user_agent.len());
        &self.user_agent[..end]
    }
}

/// Source of the URLs, one per line.
pub enum List {
    /// A file, which must not change meanwhile. Anything but a regular file is read like a pipe.
    File(PathBuf),
    /// A stream; it is copied into the results folder while it is read.
    Pipe(Box<dyn Read + Send>),
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Pipe(_) => f.write_str("Pipe"),
        }
    }
}
