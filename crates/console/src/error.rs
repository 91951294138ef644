//! Why the console cannot be there at all. What goes wrong with a single request is a [`Problem`](crate::problem).

use crate::server::tls::TlsFault;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Why the console was not started.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The address is taken, or not ours to use.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// It would be reached from elsewhere, and nobody said under which name.
    #[error("{0} can be reached from other machines, and no name was given under which it may be asked")]
    NotLoopback(SocketAddr),
    /// A credential would cross a network that others can listen to.
    #[error("{0} can be reached from other machines, and neither TLS nor a proxy with TLS is configured")]
    InTheClear(SocketAddr),
    /// Certificate or key cannot be used.
    #[error(transparent)]
    Tls(TlsFault),
    /// The system refused.
    #[error("cannot {what} {}: {error}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Others may read it.
    #[error("{} can be read by others, or is not a file of yours", path.display())]
    NotPrivate {
        /// Which.
        path: PathBuf,
        /// What it should be.
        mode: &'static str,
    },
    /// It is not what we wrote.
    #[error("{} holds no token", .0.display())]
    BadToken(PathBuf),
    /// No thread, or no runtime on it.
    #[error("cannot start the console's thread: {0}")]
    Thread(io::Error),
    /// The system has no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
}

impl ConsoleError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Listen { .. } => "choose another address: --listen 127.0.0.1:PORT".to_owned(),
            Self::NotLoopback(_) => {
                "listen on 127.0.0.1 and use an SSH tunnel, or give the name: --allow-host NAME".to_owned()
            }
            Self::InTheClear(_) => {
                "give serve.tls_certificate and serve.tls_key, or say that a proxy of yours speaks TLS \
                                    before it: serve.behind_proxy = \"yes\"; or listen on 127.0.0.1"
                    .to_owned()
            }
            Self::Tls(fault) => fault.hint.clone(),
            Self::File { path, .. } => format!("see that you may write to {}", path.display()),
            Self::NotPrivate { path, mode } => {
                format!("look who had access, then run: chmod {mode} '{}'", path.display())
            }
            Self::BadToken(path) => format!("remove it, and a new one is made: rm '{}'", path.display()),
            Self::Thread(_) | Self::Random(_) => "see whether the machine is short of memory or processes".to_owned(),
        }
    }

    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File { what, path, error }
    }
}
