//! Errors of a browser, by reaction.
//!
//! Messages show addresses without their queries, which may hold secrets.

use std::path::PathBuf;
use std::time::Duration;

/// Why a browser could not be started, or a call failed.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// An invalid profile name.
    #[error("{name:?} is not a valid name for a browser profile: {why}")]
    ProfileName {
        /// The name.
        name: String,
        /// The problem.
        why: &'static str,
    },
    /// The profile's folder is not private: a link, or owned by another user.
    #[error("the browser profile {} {why}; move it away, and sign in again", path.display())]
    ProfileUnsafe {
        /// Its path.
        path: PathBuf,
        /// The problem.
        why: &'static str,
    },
    /// Another run of ours uses the profile.
    #[error("the browser profile {} is in use {}; wait for it, or stop that run", path.display(), by(*pid, since.as_deref()))]
    ProfileHeld {
        /// Its path.
        path: PathBuf,
        /// The process, if known.
        pid: Option<u32>,
        /// Start of the use, if known.
        since: Option<String>,
    },
    /// A foreign or former Chromium has the profile open.
    #[error("the browser profile {} is open in process {pid}{}; close that browser first", path.display(), on(host.as_deref()))]
    ProfileInUse {
        /// Its path.
        path: PathBuf,
        /// The process.
        pid: u32,
        /// The machine, if another one.
        host: Option<String>,
    },
    /// The profile exceeds its size limit, without caches.
    #[error("the browser profile {} takes {bytes} bytes, {max} are allowed; delete it, and sign in again", path.display())]
    ProfileTooLarge {
        /// Its path.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// A file or folder could not be used.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// The operation.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// An invalid setting.
    #[error("{name} is {value:?}; {allowed}")]
    Setting {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: &'static str,
    },
    /// No browser was found. Holds the searched places.
    #[error("no Chromium was found ({0}); install one, or set PDPP_BROWSER_PATH to the program")]
    NoBrowser(String),
    /// The requested driver is missing or unsupported.
    #[error("the driver of patchright cannot be used: {why}; {remedy}")]
    Driver {
        /// The problem.
        why: String,
        /// The fix.
        remedy: String,
    },
    /// The browser did not start.
    #[error("the browser {} did not start: {why}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The reason.
        why: String,
    },
    /// It took too long.
    #[error("the browser did not {what} within {}", seconds(*within))]
    TimedOut {
        /// The operation.
        what: &'static str,
        /// The timeout.
        within: Duration,
    },
    /// An element did not appear: the page answers, and the element is not there.
    #[error("{selector:?} was not on the page within {}", seconds(*within))]
    NotThere {
        /// The selector.
        selector: String,
        /// The timeout.
        within: Duration,
    },
    /// The browser is gone. Holds the reason.
    #[error("the browser is gone: {0}")]
    Gone(String),
    /// The page is gone: closed, or its renderer crashed. Holds the reason.
    #[error("the page is gone: {0}")]
    PageGone(String),
    /// The document was replaced during a call.
    #[error("the page navigated during the call; try again")]
    Replaced,
    /// An address could not be reached.
    #[error("cannot open {place}: {why}")]
    Navigation {
        /// The address without secret parts.
        place: String,
        /// The browser's reason.
        why: String,
    },
    /// The page's own script failed. Holds one line of its message.
    #[error("a script in the page failed: {0}")]
    Script(String),
    /// An answer exceeds the size limit.
    #[error("{what} is larger than {max} bytes")]
    TooLarge {
        /// The thing.
        what: &'static str,
        /// The limit.
        max: u64,
    },
    /// A limit is reached.
    #[error("limit reached: {max} {what}")]
    TooMany {
        /// The thing.
        what: &'static str,
        /// The limit.
        max: u64,
    },
    /// An invalid answer of the browser.
    #[error("invalid answer of the browser to {method}: {why}")]
    Protocol {
        /// The call.
        method: String,
        /// The problem.
        why: String,
    },
}

impl BrowserError {
    /// Whether a call timed out.
    pub const fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::NotThere { .. })
    }

    pub(crate) fn protocol(method: &str, why: impl Into<String>) -> Self {
        Self::Protocol { method: method.to_owned(), why: why.into() }
    }

    pub(crate) fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }
}

fn by(pid: Option<u32>, since: Option<&str>) -> String {
    let pid = pid.map_or_else(|| "by another process".to_owned(), |pid| format!("by process {pid}"));
    since.map_or_else(|| pid.clone(), |since| format!("{pid} since {since}"))
}

fn on(host: Option<&str>) -> String {
    host.map(|host| format!(" on {host}")).unwrap_or_default()
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
