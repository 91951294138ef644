//! Cookies: stored from answers, and sent back to their origin.
//!
//! Why not reqwest's own: it counts references to the jar and checks it several times per request, while APIs rarely
//! set cookies. Here an unused jar costs one check of a flag. The jar still decides which cookie belongs where. Never
//! replaces a `Cookie` header of the caller.

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
    /// Whether the jar was ever filled.
    is_used: AtomicBool,
}

impl Cookies {
    /// Adds the cookies for `url`, unless the caller sends its own.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap, url: &Url) {
        if !self.is_used.load(Ordering::Acquire) || headers.contains_key(COOKIE) {
            return;
        }
        if let Some(value) = self.jar.cookies(url) {
            headers.insert(COOKIE, value);
        }
    }

    /// Stores the cookies that an answer from `url` sets.
    pub(crate) fn keep(&self, headers: &HeaderMap, url: &Url) {
        if has(headers, &SET_COOKIE) {
            self.jar.set_cookies(&mut headers.get_all(SET_COOKIE).iter(), url);
            self.is_used.store(true, Ordering::Release);
        }
    }
}
