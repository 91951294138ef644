//! What can go wrong with a browser, by what can be done about it.
//!
//! Messages name places of addresses, never their queries: what comes after a question mark may be a secret.

use std::path::PathBuf;
use std::time::Duration;

/// Why a browser could not be had, or did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// The profile's name is not one.
    #[error("{name:?} is no name for a browser profile: {why}")]
    ProfileName {
        /// As it was given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The profile's folder is not to be trusted: a link, or somebody else's.
    #[error("the browser profile {} {why}; move it away, and sign in again", path.display())]
    ProfileUnsafe {
        /// Where.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another run of ours has the profile.
    #[error("the browser profile {} is in use {}; wait for it, or stop that run", path.display(), by(*pid, since.as_deref()))]
    ProfileHeld {
        /// Where.
        path: PathBuf,
        /// The process, if it says.
        pid: Option<u32>,
        /// Since when, if it says.
        since: Option<String>,
    },
    /// A Chromium that is not ours, or no longer, has the profile open.
    #[error("the browser profile {} is open in process {pid}{}; close that browser first", path.display(), on(host.as_deref()))]
    ProfileInUse {
        /// Where.
        path: PathBuf,
        /// The process.
        pid: u32,
        /// The machine, if it is another one.
        host: Option<String>,
    },
    /// The profile takes more of the disk than it may, caches left out.
    #[error("the browser profile {} takes {bytes} bytes, {max} are allowed; delete it, and sign in again", path.display())]
    ProfileTooLarge {
        /// Where.
        path: PathBuf,
        /// How much.
        bytes: u64,
        /// How much may be.
        max: u64,
    },
    /// A file or folder could not be used.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A setting that is none.
    #[error("{name} is {value:?}; {allowed}")]
    Setting {
        /// Of which name.
        name: &'static str,
        /// As it was given.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// There is no browser. Holds where it was looked for.
    #[error("no Chromium was found ({0}); install one, or set PDPP_BROWSER_PATH to the program")]
    NoBrowser(String),
    /// The driver that was asked for is not there, or is not one that is understood.
    #[error("the driver of patchright cannot be used: {why}; {remedy}")]
    Driver {
        /// What is wrong with it.
        why: String,
        /// What to do about it.
        remedy: String,
    },
    /// The browser did not start.
    #[error("the browser {} did not start: {why}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What it said.
        why: String,
    },
    /// It took too long.
    #[error("the browser did not {what} within {}", seconds(*within))]
    TimedOut {
        /// What it was told.
        what: &'static str,
        /// How long it had.
        within: Duration,
    },
    /// What was waited for did not come: the page answers, and it is not there.
    #[error("{selector:?} was not on the page within {}", seconds(*within))]
    NotThere {
        /// What was looked for.
        selector: String,
        /// How long.
        within: Duration,
    },
    /// The browser is gone. Holds what is known about it.
    #[error("the browser is gone: {0}")]
    Gone(String),
    /// The page is gone: it was closed, or its renderer died. Holds what is known about it.
    #[error("the page is gone: {0}")]
    PageGone(String),
    /// The document was replaced by another one while it was asked something.
    #[error("the page went elsewhere in the meantime; ask again")]
    Replaced,
    /// An address could not be reached.
    #[error("cannot open {place}: {why}")]
    Navigation {
        /// The address without what may be secret in it.
        place: String,
        /// In the browser's words.
        why: String,
    },
    /// The page's own code failed. Holds its words, at most a line.
    #[error("a script in the page failed: {0}")]
    Script(String),
    /// An answer is larger than may be.
    #[error("{what} is larger than {max} bytes")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How large it may be.
        max: u64,
    },
    /// There are as many as there may be.
    #[error("there are {max} {what} already, and no more are allowed")]
    TooMany {
        /// What.
        what: &'static str,
        /// How many there may be.
        max: u64,
    },
    /// The browser answered what we do not understand.
    #[error("the browser's answer to {method} is not understood: {why}")]
    Protocol {
        /// The call.
        method: String,
        /// What is wrong.
        why: String,
    },
}

impl BrowserError {
    /// Whether a call ran out of its time.
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
