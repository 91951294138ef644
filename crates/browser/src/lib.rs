//! A browser for one run of one connection: started for it, with an exclusive profile, and gone with the run,
//! whatever happens.
//!
//! **One entry point:** [`acquire_isolated_browser`]. It locks the profile, starts a Chromium that is controlled only
//! through a pipe, by us or by patchright's driver ([`EngineChoice`]), and returns a [`Browser`] with its [`Page`]s.
//! Every call has a deadline, and none waits for a hanging renderer. Dropping the browser ends all its processes.
//!
//! ```no_run
//! use gleaner_browser::{BrowserError, BrowserRequest, acquire_isolated_browser};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), BrowserError> {
//! let surroundings = |name: &str| std::env::var(name).ok();
//! let browser = acquire_isolated_browser(&BrowserRequest::new("example", None, &surroundings)?)?;
//! let page = browser.new_page(Duration::from_secs(5))?;
//! page.navigate("https://service.example/login", Duration::from_secs(30))?;
//! page.fill("input[name=user]", "ada", Duration::from_secs(10))?;
//! page.click("button[type=submit]", Duration::from_secs(10))?;
//! page.wait_for("#inbox", Duration::from_secs(30))?;
//! let unread: u32 = page.evaluate("document.querySelectorAll('.unread').length", Duration::from_secs(5))?;
//! # let _ = unread;
//! browser.close(Duration::from_secs(5))
//! # }
//! ```
//!
//! | for | see |
//! |---|---|
//! | settings of a start | [`BrowserRequest`], [`ProfileName`], [`Limits`]; [`outlook`] |
//! | the browser: pages, downloads, notices | [`Browser`], [`Notice`] |
//! | one page | [`Page`], [`PageRequest`] |
//! | signing in: checkpoints, a watchdog, questions to the owner | [`session`] |
//! | errors | [`BrowserError`] |
//!
//! # Deliberately absent
//!
//! - A port, through which another program could attach; and a way to attach to a running browser.
//! - A browser that outlives its run, and one shared by two connections.
//! - An async interface: a connector waits for one thing at a time, and this crate manages threads.
//! - Output. A message for the owner is a [`Notice`], which the connector passes on.
//!
//! # Files
//!
//! - `acquire.rs`, `request.rs`: the entry point; the settings of a start
//! - `browser.rs`, `page.rs`, `page/form.rs`, `page/fetch.rs`: the connector's view: pages, forms, requests with the
//!   page's session
//! - `engine.rs`, `engine/choice.rs`: the interface of an engine, and the deadline of a call; selection of an engine
//! - `engine/driven.rs`: common part of both engines: pages, popups, closing
//! - `engine/open_pages.rs`, `engine/downloads.rs`, `engine/keys.rs`: for both: open, closed and unclaimed pages;
//!   limits of downloads; keys by name
//! - `engine/connection.rs`, `engine/message.rs`: calls, answers and the two threads; messages
//! - `engine/pipe.rs`, `engine/pipe/`: our own engine: `frames` (bytes to messages), `world` (state from events),
//!   `page`
//! - `engine/patchright.rs`, `engine/patchright/`: feature `patchright`: the engine that uses patchright's driver:
//!   `driver` (location and version), `frames`, `objects` (state), `value` (script values), `page`
//! - `process.rs`, `process/footprint.rs`: the controlled process and its keeper; its limits
//! - `process/program.rs`, `process/arguments.rs`: location of the browser; its arguments
//! - `process/tree.rs`: all its processes
//! - `profile.rs`, `profile/`: the profile: `name`, `folder` (private), `lock` (one run), `singleton` (Chromium's own
//!   lock), `damage` (quarantine), `size`
//! - `limits.rs`, `notice.rs`, `error.rs`: limits with reasons; notices for the owner; errors
//! - `session/watchdog.rs`: detects a sign-in without progress; pure
//! - `session/establish.rs`: the thread of the run: checkpoints in, questions out, an end in any case
//! - `session/flow.rs`: interface for a connector's sign-in code, on its own thread
//! - `session/page_facts.rs`: address and title of a page for a question, within a timeout
//! - `session/capture.rs`, `session/run_folder.rs`: captures of pages, without typed text; the folder of a run

#![warn(missing_docs)]

mod acquire;
mod browser;
mod engine;
mod error;
mod limits;
mod notice;
mod page;
mod process;
mod profile;
mod request;
pub mod session;

pub use acquire::acquire_isolated_browser;
pub use browser::{Browser, BrowserCounts, Download};
pub use engine::EngineKind;
pub use engine::choice::{Outlook, outlook};
pub use error::BrowserError;
pub use limits::Limits;
pub use notice::Notice;
pub use page::{Navigation, Page, PageRequest, PageResponse};
pub use profile::ProfileName;
pub use request::{BrowserRequest, EngineChoice, Window};
