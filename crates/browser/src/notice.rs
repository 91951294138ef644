//! Notices for the owner about a browser's start. Nothing is printed here: the caller passes them on.

use std::fmt;
use std::path::PathBuf;

/// An automatic decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The user is root, and Chromium does not start as root with its sandbox.
    NoSandbox,
    /// There is no display, so there is no window.
    NoDisplay,
    /// Patchright's driver is unusable, so our own engine drives. Holds the problem and the fix.
    DriverUnfit(String),
    /// The lock of a dead browser was removed. Holds its process.
    StaleLockRemoved(u32),
    /// The profile was damaged. It is kept beside, and the owner has to sign in again. Holds its new path.
    ProfileQuarantined(PathBuf),
    /// Caches were deleted because the profile was too large. Holds the bytes.
    CachesRemoved(u64),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSandbox => f.write_str("the browser runs without its sandbox, because this is the root user"),
            Self::NoDisplay => f.write_str("the browser has no window, because there is no display"),
            Self::DriverUnfit(why) => write!(f, "{why} (the browser is driven without it)"),
            Self::StaleLockRemoved(pid) => write!(f, "a stale lock of process {pid} was removed"),
            Self::ProfileQuarantined(kept) => {
                write!(f, "the browser profile was damaged and is kept as {}; please sign in again", kept.display())
            }
            Self::CachesRemoved(bytes) => write!(f, "{bytes} bytes of the browser's caches were deleted"),
        }
    }
}
