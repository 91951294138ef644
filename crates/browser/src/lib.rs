//! A browser for one run of one connection: started for it, with a profile that nobody else uses, and gone when the
//! run is, whatever happened.
//!
//! **One way in:** [`acquire_isolated_browser`]. It takes the profile's lock, starts a Chromium that can only be spoken
//! to through a pipe, by us or by patchright's driver ([`EngineChoice`]), and hands out a [`Browser`] with its [`Page`]s. Every call has a deadline, and none of them waits
//! for a renderer that hangs. Dropping the browser ends all its processes.
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
//! | what is started, and where | [`BrowserRequest`], [`ProfileName`], [`Limits`]; [`outlook`] |
//! | the browser: pages, downloads, what it did on its own | [`Browser`], [`Notice`] |
//! | one page | [`Page`], [`PageRequest`] |
//! | signing in: checkpoints, a watchdog, questions to the owner | [`session`] |
//! | what can go wrong | [`BrowserError`] |
//!
//! # What is deliberately absent
//!
//! - A port, and with it any way for another program to attach; and any way for us to attach to a browser that runs.
//! - A browser that outlives its run, and one that two connections share.
//! - An async interface: a connector waits for one thing at a time, and the threads are ours.
//! - Output. What an owner should know is a [`Notice`], which the connector says where it says things.
//!
//! # Files
//!
//! - `acquire.rs`, `request.rs`: the one way to a browser; what is asked for, and by whom it was said
//! - `browser.rs`, `page.rs`, `page/form.rs`, `page/fetch.rs`: what a connector sees: pages, forms, requests with the
//!   page's session
//! - `engine.rs`, `engine/choice.rs`: the seam to what drives a browser, and the deadline of a call; which engine it
//!   is
//! - `engine/driven.rs`: what both engines do in the same way: pages, popups, the end
//! - `engine/open_pages.rs`, `engine/downloads.rs`, `engine/keys.rs`: for both: pages that are open, closed or not
//!   yet claimed; downloads within their bounds; keys by their names
//! - `engine/connection.rs`, `engine/message.rs`: calls, answers and the two threads, whoever is at the other end;
//!   messages
//! - `engine/pipe.rs`, `engine/pipe/`: the engine that is our own: `frames` (bytes to messages), `world` (what the
//!   browser tells, and what is done about it), `page`
//! - `engine/patchright.rs`, `engine/patchright/`: feature `patchright`: the engine that speaks to patchright's
//!   driver: `driver` (where it is, which version), `frames`, `objects` (what it told us of), `value` (what a script
//!   gave), `page`
//! - `process.rs`, `process/footprint.rs`: the process that is spoken to, and who ends it when we cannot; what it may
//!   take
//! - `process/program.rs`, `process/arguments.rs`: where the browser is; with which words it is started
//! - `process/tree.rs`: all its processes, wherever they went
//! - `profile.rs`, `profile/`: the profile: `name`, `folder` (ours alone), `lock` (one run), `singleton` (Chromium's
//!   own lock), `damage` (put aside, never deleted), `size`
//! - `limits.rs`, `notice.rs`, `error.rs`: bounds with reasons; what an owner should know; what can go wrong
//! - `session/watchdog.rs`: whether it makes progress; pure
//! - `session/establish.rs`: the thread that has the run: checkpoints in, questions out, an end in any case
//! - `session/flow.rs`: what a connector's sign-in code may do, on its own thread
//! - `session/page_facts.rs`: what a question says about the page, within a bound
//! - `session/capture.rs`, `session/run_folder.rs`: what pages looked like, without what was typed; where files of a
//!   run are

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
