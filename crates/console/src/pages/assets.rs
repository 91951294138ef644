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

struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const ASSETS: [Asset; 6] = [
    Asset { name: "style.css", kind: "text/css; charset=utf-8", bytes: include_bytes!("../../assets/style.css") },
    Asset { name: "console.js", kind: SCRIPT, bytes: include_bytes!("../../assets/console.js") },
    Asset { name: "htmx.js", kind: SCRIPT, bytes: include_bytes!("../../assets/htmx-2.0.11.min.js") },
    Asset { name: "uplot.js", kind: SCRIPT, bytes: include_bytes!("../../assets/uplot-1.6.32.min.js") },
    Asset {
        name: "uplot.css",
        kind: "text/css; charset=utf-8",
        bytes: include_bytes!("../../assets/uplot-1.6.32.min.css"),
    },
    Asset { name: "icon.svg", kind: "image/svg+xml", bytes: include_bytes!("../../assets/icon.svg") },
];
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The addresses, in the order of the files.
static ADDRESSES: LazyLock<Vec<String>> = LazyLock::new(|| ASSETS.iter().map(address).collect());

fn address(asset: &Asset) -> String {
    let hash = blake3::hash(asset.bytes).to_hex();
    format!("/assets/{}/{}", &hash[..HASH_CHARS], asset.name)
}

/// The address of a file; empty for one that is not there.
pub(crate) fn address_of(name: &str) -> &'static str {
    ASSETS.iter().position(|asset| asset.name == name).and_then(|at| ADDRESSES.get(at)).map_or("", |address| address)
}

/// Gives a file out. An address of another version is not there.
pub(crate) async fn file(UrlPath((hash, name)): UrlPath<(String, String)>) -> Result<Response, PageProblem> {
    let asked = format!("/assets/{hash}/{name}");
    let at = ADDRESSES.iter().position(|address| *address == asked);
    let asset = at.and_then(|at| ASSETS.get(at)).ok_or_else(Problem::no_route)?;
    let headers = [(CONTENT_TYPE, asset.kind), (CACHE_CONTROL, "private, max-age=31536000, immutable")];
    Ok((headers, asset.bytes).into_response())
}

/// How the door looks: the style of everything, for those who are not inside yet. There is nothing of anybody's in it.
pub(crate) async fn sign_in_style() -> Response {
    let style = &ASSETS[0];
    ([(CONTENT_TYPE, style.kind)], style.bytes).into_response()
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
