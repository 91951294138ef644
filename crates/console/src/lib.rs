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
//!
//! # Files
//!
//! - `error.rs`: why the console cannot start
//! - `server.rs`: public names; a thread with a runtime of its own, started and stopped
//! - `auth/guard.rs`, `auth/guard/`: pure: who may ask anything at all, before the path is looked at
//! - `auth/keys.rs`, `auth/private_file.rs`, `auth/auth_attempts.rs`: token, sessions and one-time links as hashes;
//!   files of the owner's alone; wrong credentials, counted
//! - `server/bind_policy.rs`, `server/tls.rs`, `server/base_path.rs`: from where it can be reached; certificate and
//!   key, judged at the start; addresses without the base path inside and with it outside
//! - `server/listener.rs`, `server/slow_clients.rs`: connections and their bounds; clients that do not read
//! - `server/handler.rs`, `server/security_headers.rs`, `problem.rs`: one request from its head to its answer; what
//!   every answer has; the one shape of errors
//! - `server/routes.rs`: every path and method, once; the same for people and programs, held together by a test
//! - `server/extract.rs`, `server/respond.rs`, `server/app_state.rs`: what a request brings, within bounds; long
//!   answers, within bounds; what handlers share
//! - `server/reading.rs`, `server/job_queue.rs`, `date.rs`: questions to the store off the server's thread; jobs that
//!   take long, once at a time; dates
//! - `server/events.rs`, `server/metrics.rs`: one look at the store for all streams of events; Prometheus
//! - `api/`: one file per resource: its form on the wire and its handlers; `export` is a download, piece by piece
//! - `pages.rs`, `pages/frame.rs`, `pages/assets.rs`, `pages/error_page.rs`: every page and form; what is around a
//!   page; files by their content; a problem that a person reads
//! - `pages/screenshot.rs`, `pages/address.rs`: the picture of a step to be done by hand; addresses of pages
//! - `pages/escape.rs`, `pages/words.rs`, `pages/json_text.rs`: text from outside, with its escapes made visible;
//!   dates and numbers; JSON for people
//! - `pages/rate.rs`, `pages/rate_chart.rs`, `pages/trace.rs`, `pages/completeness.rs`: the collection rate and its chart;
//!   what was said during a run; coverage and what is missing, added up
//! - `pages/change.rs`: the forms that change something

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
