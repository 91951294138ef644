//! The HTTP server of `gleaner serve`: what is collected and how it goes, as pages and as JSON, and the owner's actions.
//!
//! **One guard before everything.** Host, origin and credential of a request are judged before anybody looks at its path,
//! so a stranger cannot tell what is there from what is not. **It reads, and asks others to act.** The store is opened for
//! reading only; whatever changes something goes through [`gleaner_app::App`]. **It is bounded.** Connections, heads, bodies,
//! questions to the store, long answers, streams of events and wrong credentials have a most each, so that nobody who
//! talks to the console slows collection down.
//!
//! | for | see |
//! |---|---|
//! | starting it, and the link that signs a browser in | [`Console`], [`Settings`] |
//! | from where it can be reached | [`BindPolicy`] |
//! | the token for programs of the owner's | [`token_of`] |
//! | the API itself | `openapi.json`, served as `/api/v1/openapi.json` |
//!
//! # What is deliberately absent
//!
//! - A way to change anything by GET.
//! - CORS: no page of another origin may ask anything.
//! - Secrets in answers: credentials and answers to questions go in and never come out.
//! - A way in without a credential, whatever the address; and an address other than loopback in the clear.

mod api;
mod auth;
mod date;
mod error;
mod pages;
mod problem;
mod server;

pub use auth::guard::OtherName;
pub use auth::keys::token_of;
pub use error::ConsoleError;
pub use server::base_path::BasePath;
pub use server::bind_policy::BindPolicy;
pub use server::tls::{TlsFault, TlsFiles};
pub use server::{Console, LISTEN_DEFAULT, Settings};

/// Every method and path, for tests that compare them with the description.
#[must_use]
pub fn routes() -> Vec<(String, &'static str)> {
    server::routes::Routes::api().listed()
}

/// Every method and path of a page or a form.
#[must_use]
pub fn page_routes() -> Vec<(String, &'static str)> {
    pages::all().listed()
}

/// The description of the API, in OpenAPI 3.1.
#[must_use]
pub const fn openapi() -> &'static str {
    server::routes::OPENAPI
}
