//! Target of a request in a form that may be shown: origin and path.
//!
//! Queries carry tokens and names of people, so an error or a log line never gets the URL itself.

use std::fmt;
use url::Url;

/// An origin and a path, for errors. Holds no query, fragment or user name.
#[derive(Clone, PartialEq, Eq)]
pub struct ShownUrl(Box<str>);

/// Longer paths are cut: an error is one line.
const PATH_MAX: usize = 200;

impl ShownUrl {
    pub(crate) fn new(url: &Url) -> Self {
        // The path of a URL is ASCII, so it may be cut at any byte.
        let path = url.path();
        let (path, rest) = path.split_at(path.len().min(PATH_MAX));
        let cut = if rest.is_empty() { "" } else { "…" };
        Self(format!("{}{path}{cut}", url.origin().ascii_serialization()).into())
    }
}

impl fmt::Display for ShownUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ShownUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_shows_origin_and_path_and_nothing_else() {
        for (url, shown) in [
            ("https://me:secret@api.example.com/v1/users?token=secret#secret", "https://api.example.com/v1/users"),
            ("http://[::1]:8080", "http://[::1]:8080/"),
            ("https://exämple.com/ä", "https://xn--exmple-cua.com/%C3%A4"),
        ] {
            assert_eq!(ShownUrl::new(&Url::parse(url).unwrap()).to_string(), shown);
        }
        let long = Url::parse(&format!("https://a.example/{}", "x".repeat(5000))).unwrap();
        assert!(ShownUrl::new(&long).to_string().len() < 300);
    }
}
