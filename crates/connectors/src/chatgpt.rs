//! ChatGPT: the owner's conversations and their messages, through the page that the owner is signed in to.
//!
//! There is no API for this. So a browser of the connection's own holds the session, and requests are made out of its
//! page, one at a time, at a pace that is found and remembered. Never writes anything at the service, and never keeps
//! a password.

mod api;
mod collect;
mod moment;
mod pages;
mod parse;
mod service;
mod session;
mod sign_in;

use crate::FirstParty;

/// The row of the table.
pub(crate) const CHATGPT: FirstParty = FirstParty {
    name: "chatgpt",
    manifest: include_str!("chatgpt/manifest.json"),
    needs: "Chromium or Chrome, and your sign-in in a window of its own, once",
    connector: &collect::ChatGpt,
};
