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
