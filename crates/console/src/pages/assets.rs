//! Files that pages load: compiled in, and named by their content.
//!
//! The address of a file has a hash of it, so a browser may keep it for good and still has the new one after an upgrade.
//! There is no build step and no other host.

use super::error_page::PageProblem;
use crate::problem::Problem;
use crate::server::extract::UrlPath;
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use std::sync::LazyLock;

/// Letters of the hash that stand in an address.
const HASH_CHARS: usize = 16;

/// Its name, its type and its bytes.
type Asset = (&'static str, &'static str, &'static [u8]);

const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const ASSETS: [Asset; 6] = [
    ("style.css", STYLE, include_bytes!("../../assets/style.css")),
    ("console.js", SCRIPT, include_bytes!("../../assets/console.js")),
    ("htmx.js", SCRIPT, include_bytes!("../../assets/htmx-2.0.11.min.js")),
    ("uplot.js", SCRIPT, include_bytes!("../../assets/uplot-1.6.32.min.js")),
    ("uplot.css", STYLE, include_bytes!("../../assets/uplot-1.6.32.min.css")),
    ("icon.svg", "image/svg+xml", include_bytes!("../../assets/icon.svg")),
];

/// The addresses, in the order of the files.
static ADDRESSES: LazyLock<Vec<String>> = LazyLock::new(|| ASSETS.iter().map(address).collect());

fn address((name, _, bytes): &Asset) -> String {
    let hash = blake3::hash(bytes).to_hex();
    format!("/assets/{}/{name}", &hash[..HASH_CHARS])
}

/// The address of a file; empty for one that is not there.
pub(crate) fn address_of(name: &str) -> &'static str {
    ASSETS.iter().position(|(known, ..)| *known == name).and_then(|at| ADDRESSES.get(at)).map_or("", |address| address)
}

/// Gives a file out. An address of another version is not there.
pub(crate) async fn file(UrlPath((hash, name)): UrlPath<(String, String)>) -> Result<Response, PageProblem> {
    let asked = format!("/assets/{hash}/{name}");
    let at = ADDRESSES.iter().position(|address| *address == asked);
    let (_, kind, bytes) = *at.and_then(|at| ASSETS.get(at)).ok_or_else(Problem::no_route)?;
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "private, max-age=31536000, immutable")];
    Ok((headers, bytes).into_response())
}

/// How the door looks: the style of everything, for those who are not inside yet. There is nothing of anybody's in it.
pub(crate) async fn sign_in_style() -> Response {
    let (_, kind, bytes) = ASSETS[0];
    ([(CONTENT_TYPE, kind)], bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_a_template_names_is_there_and_has_its_own_address() {
        let layout = include_str!("../../templates/layout.html");
        let connection = include_str!("../../templates/connection.html");
        for part in [layout, connection].iter().flat_map(|text| text.split("frame.asset(\"").skip(1)) {
            let name = part.split('"').next().unwrap();
            assert!(address_of(name).starts_with("/assets/"), "{name}");
        }
        assert_eq!(address_of("no.css"), "");
        let mut addresses = ADDRESSES.clone();
        addresses.dedup();
        assert_eq!(addresses.len(), ASSETS.len());
    }
}
