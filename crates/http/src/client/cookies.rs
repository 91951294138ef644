//! Cookies: kept from answers, and sent back to where they came from.
//!
//! Why not leave it to reqwest: it counts owners of the jar and looks into it several times for each
//! request, and the APIs that this client is for set none. Here a jar that nothing was ever put into costs one
//! look at a flag. Which cookie belongs where is still the jar's own business. Never replaces what the
//! caller sends as `Cookie`.

use crate::headers::has;
use http::HeaderMap;
use http::header::{COOKIE, SET_COOKIE};
use reqwest::cookie::{CookieStore, Jar};
use std::sync::atomic::{AtomicBool, Ordering};
use url::Url;

/// The cookies of one client.
#[derive(Default)]
pub(crate) struct Cookies {
    jar: Jar,
    /// Whether anything was ever put into the jar.
    is_used: AtomicBool,
}

impl Cookies {
    /// Adds what belongs to `url`, unless the caller has cookies of its own.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap, url: &Url) {
        if !self.is_used.load(Ordering::Acquire) || headers.contains_key(COOKIE) {
            return;
        }
        if let Some(value) = self.jar.cookies(url) {
            headers.insert(COOKIE, value);
        }
    }

    /// Keeps what an answer from `url` sets.
    pub(crate) fn keep(&self, headers: &HeaderMap, url: &Url) {
        if has(headers, &SET_COOKIE) {
            self.jar.set_cookies(&mut headers.get_all(SET_COOKIE).iter(), url);
            self.is_used.store(true, Ordering::Release);
        }
    }
}
