//! What can be set of a fetch, each default with its reason.

use gleaner_http::governor::keyed::RegistryConfig;
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

/// The largest body: pages, pictures and papers are smaller, films are not.
pub const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Requests under way at a time: beyond it a home connection is full, and 1024 open files are many programs' limit.
pub const CONCURRENCY: usize = 256;
/// How long a host is waited for that asks us to stay away or does not answer. Five minutes: longer is another day's
/// pass, and the others should not have to wait for it.
pub const WAIT_MAX: Duration = Duration::from_secs(300);

/// How a list is fetched.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of results. Made if it is not there.
    pub out: PathBuf,
    /// Who we say that we are. Its first word is the name that robots.txt is read for.
    pub user_agent: String,
    /// Whether robots.txt is obeyed.
    pub obeys_robots: bool,
    /// The largest body, decoded.
    pub body_bytes_max: u64,
    /// Requests under way at a time.
    pub concurrency: usize,
    /// How long a host is waited for before its URLs are given up for this pass.
    pub wait_max: Duration,
    /// Whether a redirect from elsewhere may lead to an address that is not public.
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

    /// The name that robots.txt is read for.
    pub(crate) fn product(&self) -> &str {
        let is_part = |c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '_');
        let end = self.user_agent.find(|c| !is_part(c)).unwrap_or(self.user_agent.len());
        &self.user_agent[..end]
    }
}

/// Where the URLs are, one per line.
pub enum List {
    /// In a file, which must not be changed meanwhile. What is no plain file is read like a pipe.
    File(PathBuf),
    /// They come from somewhere, once; they are copied into the folder of results while they are read.
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
