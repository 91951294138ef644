//! The one place that chooses who does the cryptography of TLS.
//!
//! ring: it builds with a C compiler and nothing else. A program that has installed another provider for
//! its process keeps it. Certificates are checked as the platform checks them; there is no way around it.

#[cfg(feature = "proxy")]
use rustls::crypto::CryptoProvider;
#[cfg(feature = "proxy")]
use std::sync::Arc;

/// What the process has chosen, or ring.
#[cfg(feature = "proxy")]
pub(crate) fn provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()))
}

/// Makes the choice known to libraries that ask the process for it.
#[cfg(feature = "client")]
pub(crate) fn install() {
    // Somebody else was first: then theirs is used, by us too.
    let _theirs_if_any = rustls::crypto::ring::default_provider().install_default();
}
