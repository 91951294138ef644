//! What a request says about itself, as far as the guard wants to know.
//!
//! A header that is there twice is one that two programs read differently, so it counts as unclear and is never good
//! for anything.

use super::Door;
use http::header::{AUTHORIZATION, COOKIE, HOST, HeaderName, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, Method};

/// The name of the cookie. Cookies do not tell ports apart, so its value is of no use to whoever else listens on this
/// machine without also being in its requests' `Origin`.
pub(crate) const SESSION_COOKIE: &str = "gleaner_session";
/// Longest value of a header that is looked at. All of ours are far shorter.
const VALUE_BYTES_MAX: usize = 4096;

/// One header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said<'a> {
    /// It is not there.
    Nothing,
    /// It is there once, as text.
    Once(&'a str),
    /// It is there more than once, or is no text.
    Unclear,
}

impl<'a> Said<'a> {
    fn of(headers: &'a HeaderMap, name: HeaderName) -> Self {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Nothing,
            (Some(value), None) if value.len() <= VALUE_BYTES_MAX => value.to_str().map_or(Self::Unclear, Self::Once),
            (Some(_), _) => Self::Unclear,
        }
    }
}

/// A credential, before anybody has looked whether it is a good one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presented<'a> {
    /// None.
    Nothing,
    /// A bearer token.
    Bearer(&'a str),
    /// A session by cookie.
    Session(&'a str),
    /// Something that is no credential of ours.
    Unclear,
}

/// Only which kind: the value is a secret.
impl std::fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Bearer(_) => "Bearer",
            Self::Session(_) => "Session",
            Self::Unclear => "Unclear",
        })
    }
}

/// What a request says about itself.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a Method,
    pub(crate) door: Door,
    pub(crate) host: Said<'a>,
    pub(crate) origin: Said<'a>,
    pub(crate) fetch_site: Said<'a>,
    pub(crate) presented: Presented<'a>,
}

impl<'a> Asked<'a> {
    pub(crate) fn of(request: &'a Parts) -> Self {
        let headers = &request.headers;
        Self {
            method: &request.method,
            door: Door::of(&request.method, request.uri.path()),
            host: host(request),
            origin: Said::of(headers, ORIGIN),
            fetch_site: Said::of(headers, HeaderName::from_static("sec-fetch-site")),
            presented: presented(headers),
        }
    }
}

/// A request line with a whole address says the name twice; then both must be the same.
fn host(request: &Parts) -> Said<'_> {
    let host = Said::of(&request.headers, HOST);
    match (request.uri.authority(), host) {
        (None, host) => host,
        (Some(authority), Said::Once(host)) if authority.as_str() == host => Said::Once(host),
        (Some(_), _) => Said::Unclear,
    }
}

/// A token wins over a cookie, also when it is wrong: whoever sends one means it.
fn presented(headers: &HeaderMap) -> Presented<'_> {
    match Said::of(headers, AUTHORIZATION) {
        Said::Nothing => cookie(headers),
        Said::Unclear => Presented::Unclear,
        Said::Once(value) => match value.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Presented::Bearer(token.trim()),
            Some(_) | None => Presented::Unclear,
        },
    }
}

/// Browsers send all cookies of a machine in one header; ours must be there once.
fn cookie(headers: &HeaderMap) -> Presented<'_> {
    let cookies = match Said::of(headers, COOKIE) {
        Said::Nothing => return Presented::Nothing,
        Said::Unclear => return Presented::Unclear,
        Said::Once(cookies) => cookies,
    };
    let mut ours = cookies
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| *name == SESSION_COOKIE)
        .map(|(_, value)| value);
    match (ours.next(), ours.next()) {
        (None, _) => Presented::Nothing,
        (Some(session), None) => Presented::Session(session),
        (Some(_), Some(_)) => Presented::Unclear,
    }
}
