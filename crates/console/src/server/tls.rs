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
use std::fmt::Display;
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

/// Why there is no TLS, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TlsFault {
    message: String,
    pub(crate) hint: String,
}

const PEM: &str = "give files in PEM: -----BEGIN CERTIFICATE----- and -----BEGIN PRIVATE KEY-----";

impl TlsFault {
    fn new(message: String, hint: impl Into<String>) -> Self {
        Self { message, hint: hint.into() }
    }

    fn unreadable(path: &Path, why: impl Display) -> Self {
        let hint = "correct serve.tls_certificate and serve.tls_key";
        Self::new(format!("cannot read {}: {why}", path.display()), hint)
    }

    fn no_certificate(path: &Path) -> Self {
        Self::new(format!("{} holds no certificate in PEM", path.display()), PEM)
    }

    fn no_key(path: &Path) -> Self {
        Self::new(format!("{} holds no private key in PEM that can be used", path.display()), PEM)
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
    let chain = chain.map_err(|_| TlsFault::no_certificate(certificate))?;
    let own = chain.first().ok_or_else(|| TlsFault::no_certificate(certificate))?;
    is_valid_now(own, certificate, now)?;
    is_private(key)?;
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| TlsFault::no_key(key))?;
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
    let other = |error: rustls::Error| {
        TlsFault::new(format!("the certificate {} cannot be used: {error}", certificate.display()), PEM)
    };
    provider.key_provider.load_private_key(secret.clone_key()).map_err(|_| TlsFault::no_key(key))?;
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(other)?;
    let mut config = match builder.with_no_client_auth().with_single_cert(chain, secret) {
        Ok(config) => config,
        Err(rustls::Error::InconsistentKeys(_)) => {
            let message = format!("the key {} does not fit the certificate {}", key.display(), certificate.display());
            return Err(TlsFault::new(message, "give the key that the certificate was made with"));
        }
        Err(error) => return Err(other(error)),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsFault> {
    let found = fs::metadata(path).map_err(|error| TlsFault::unreadable(path, error))?;
    if !found.is_file() || found.len() > BYTES_MAX {
        return Err(TlsFault::unreadable(path, "it is no file, or too large for one of this kind"));
    }
    fs::read(path).map_err(|error| TlsFault::unreadable(path, error))
}

/// The certificate is for everybody, the key is not. Root may have given it to a group of ours.
fn is_private(key: &Path) -> Result<(), TlsFault> {
    let found = fs::metadata(key).map_err(|error| TlsFault::unreadable(key, error))?;
    if found.mode() & 0o007 == 0 {
        return Ok(());
    }
    let hint = format!("look who had access, then run: chmod 600 '{}'", key.display());
    Err(TlsFault::new(format!("the key {} can be read by others", key.display()), hint))
}

fn is_valid_now(certificate: &CertificateDer<'_>, path: &Path, now: WallTime) -> Result<(), TlsFault> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return Err(TlsFault::no_certificate(path));
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
    let message = format!("the certificate {} {when}", path.display());
    Err(TlsFault::new(message, "renew it, or set the clock of this machine"))
}
