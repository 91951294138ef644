//! A secret in a file that a variable names, as in `GITHUB_TOKEN_FILE=/run/secrets/github`.
//!
//! Links are followed: orchestrators pass secrets through them. Anything but a file is rejected before it is read,
//! because a pipe or a device may never end. An error repeats the path only if it exists: people put the secret
//! itself into such a variable.

use crate::secret::{Secret, VALUE_BYTES_MAX, ValueFault};
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use zeroize::Zeroize as _;

/// Why a file gives no secret.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// The file does not exist.
    #[error("it names a file that is not there; give the path of a file, not the secret itself")]
    Missing,
    /// It cannot be read.
    #[error("{path:?} cannot be read ({source}); check its permissions")]
    Unreadable {
        /// The file.
        path: String,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// A folder, a pipe or a device.
    #[error("{path:?} is not a plain file; give the path of one")]
    NotAFile {
        /// Its path.
        path: String,
    },
    /// Its content is not a valid secret.
    #[error("{path:?} holds no usable secret: {fault}")]
    Value {
        /// The file.
        path: String,
        /// Why.
        fault: ValueFault,
    },
}

/// A file's secret, and whether other users may read it.
pub(crate) fn read(path: &Path) -> Result<(Secret, bool), FileFault> {
    let shown = || path.display().to_string();
    let unreadable = |source: io::Error| match path.symlink_metadata() {
        Ok(_) => FileFault::Unreadable { path: shown(), source },
        Err(_) => FileFault::Missing,
    };
    let opened = OpenOptions::new().read(true).custom_flags(nonblocking()).open(path);
    let file = opened.map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(FileFault::NotAFile { path: shown() });
    }
    let exposed = metadata.mode() & 0o077 != 0;
    // Allocated at once: a growing buffer leaves copies behind. Two bytes more for a line end, and one to detect a
    // longer file.
    let max = VALUE_BYTES_MAX + 2;
    let mut bytes = Vec::with_capacity(max + 1);
    if let Err(error) = file.take(max as u64 + 1).read_to_end(&mut bytes) {
        bytes.zeroize();
        return Err(unreadable(error));
    }
    strip_line_end(&mut bytes);
    let secret = Secret::from_bytes(bytes).map_err(|fault| FileFault::Value { path: shown(), fault })?;
    Ok((secret, exposed))
}

/// Strips one line end, which editors and `echo` add.
pub(crate) fn strip_line_end(bytes: &mut Vec<u8>) {
    if bytes.pop_if(|byte| *byte == b'\n').is_some() {
        bytes.pop_if(|byte| *byte == b'\r');
    }
}

/// Nonblocking, so that a pipe without a writer cannot hang us.
fn nonblocking() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0)
}
