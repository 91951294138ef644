//! What an owner should know about how a browser was started. Nothing is printed here: whoever asked for the browser
//! says it where it says things.

use std::fmt;
use std::path::PathBuf;

/// Something that was done without having been asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// We are root, and Chromium does not start as root with its sandbox.
    NoSandbox,
    /// There is no display, so there is no window.
    NoDisplay,
    /// There is a driver of patchright, and it cannot be used: our own engine drives instead. Holds what is wrong with
    /// it, and what to do.
    DriverUnfit(String),
    /// A lock of a browser that is gone was taken away. Holds the process that had it.
    StaleLockRemoved(u32),
    /// The profile was damaged. It is kept beside, and the owner has to sign in again. Holds where it is now.
    ProfileQuarantined(PathBuf),
    /// Caches were thrown away because the profile had become too large. Holds how many bytes.
    CachesRemoved(u64),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSandbox => f.write_str("the browser runs without its sandbox, because this is the root user"),
            Self::NoDisplay => f.write_str("the browser has no window, because there is no display"),
            Self::DriverUnfit(why) => write!(f, "{why} (the browser is driven without it)"),
            Self::StaleLockRemoved(pid) => write!(f, "a lock of process {pid}, which is gone, was taken away"),
            Self::ProfileQuarantined(kept) => {
                write!(f, "the browser profile was damaged and is kept as {}; please sign in again", kept.display())
            }
            Self::CachesRemoved(bytes) => write!(f, "{bytes} bytes of the browser's caches were thrown away"),
        }
    }
}
