//! TLS of the console's own: a certificate and its key, from files of the owner's.
//!
//! What is wrong with them is said at the start, and not by a browser: a file that is not there, a key that does not fit, a
//! certificate whose time is over or has not come. ring does the cryptography, as everywhere here. Nothing is made or renewed.

use crate::error::ConsoleError;
use gleaner_engine::WallTime;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The largest file: a chain of some dozen certificates.
const BYTES_MAX: u64 = 1024 * 1024;

/// Where certificate and key are, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and after it those that vouch for it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    /// It cannot be read.
    #[error("cannot read {}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Others may read the key.
    #[error("the key {} can be read by others", .0.display())]
    NotPrivate(PathBuf),
    /// There is no certificate in it.
    #[error("{} holds no certificate in PEM", .0.display())]
    NoCertificate(PathBuf),
    /// There is no key in it.
    #[error("{} holds no private key in PEM that can be used", .0.display())]
    NoKey(PathBuf),
    /// They are of two different pairs.
    #[error("the key {} does not fit the certificate {}", key.display(), certificate.display())]
    DoNotFit {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// Its time is over, or has not come.
    #[error("the certificate {} {when}", path.display())]
    NotNow {
        /// Which.
        path: PathBuf,
        /// What is the matter, with its date.
        when: String,
    },
    /// It cannot be used for another reason.
    #[error("the certificate {} cannot be used: {why}", path.display())]
    Other {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
}

impl TlsFault {
    /// What to do about it.
    #[must_use]
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::File { .. } => "correct serve.tls_certificate and serve.tls_key".to_owned(),
            Self::NotPrivate(path) => format!("look who had access, then run: chmod 600 '{}'", path.display()),
            Self::NoCertificate(_) | Self::NoKey(_) | Self::Other { .. } => {
                "give files in PEM: -----BEGIN CERTIFICATE----- and -----BEGIN PRIVATE KEY-----".to_owned()
            }
            Self::DoNotFit { .. } => "give the key that the certificate was made with".to_owned(),
            Self::NotNow { .. } => "renew it, or set the clock of this machine".to_owned(),
        }
    }
}

impl From<TlsFault> for ConsoleError {
    fn from(fault: TlsFault) -> Self {
        Self::Tls(fault)
    }
}

/// Reads both files, and answers what speaks TLS with them.
pub(crate) fn acceptor(files: &TlsFiles, now: WallTime) -> Result<TlsAcceptor, TlsFault> {
    let TlsFiles { certificate, key } = files;
    let chain = CertificateDer::pem_slice_iter(&read(certificate)?).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|_| TlsFault::NoCertificate(certificate.clone()))?;
    let own = chain.first().ok_or_else(|| TlsFault::NoCertificate(certificate.clone()))?;
    is_valid_now(own, certificate, now)?;
    is_private(key)?;
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| TlsFault::NoKey(key.clone()))?;
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
    let other = |error: rustls::Error| TlsFault::Other { path: certificate.clone(), why: error.to_string() };
    provider.key_provider.load_private_key(secret.clone_key()).map_err(|_| TlsFault::NoKey(key.clone()))?;
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(other)?;
    let mut config = match builder.with_no_client_auth().with_single_cert(chain, secret) {
        Ok(config) => config,
        Err(rustls::Error::InconsistentKeys(_)) => {
            return Err(TlsFault::DoNotFit { certificate: certificate.clone(), key: key.clone() });
        }
        Err(error) => return Err(other(error)),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsFault> {
    let cannot = |why: String| TlsFault::File { path: path.to_owned(), why };
    let found = fs::metadata(path).map_err(|error| cannot(error.to_string()))?;
    if !found.is_file() || found.len() > BYTES_MAX {
        return Err(cannot("it is no file, or too large for one of this kind".to_owned()));
    }
    fs::read(path).map_err(|error| cannot(error.to_string()))
}

/// The certificate is for everybody, the key is not. Root may have given it to a group of ours.
fn is_private(key: &Path) -> Result<(), TlsFault> {
    let found = fs::metadata(key).map_err(|error| TlsFault::File { path: key.to_owned(), why: error.to_string() })?;
    let is_open = found.mode() & 0o007 != 0;
    if is_open { Err(TlsFault::NotPrivate(key.to_owned())) } else { Ok(()) }
}

fn is_valid_now(certificate: &CertificateDer<'_>, path: &Path, now: WallTime) -> Result<(), TlsFault> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return Err(TlsFault::NoCertificate(path.to_owned()));
    };
    let now = i64::try_from(now.as_unix_millis() / 1000).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    let when = if now > validity.not_after.timestamp() {
        format!("expired on {}", validity.not_after)
    } else if now < validity.not_before.timestamp() {
        format!("is not valid before {}", validity.not_before)
    } else {
        return Ok(());
    };
    Err(TlsFault::NotNow { path: path.to_owned(), when })
}
