//! From a browser that was started to a session of the owner's: with checkpoints, a watchdog, and somebody to ask.
//!
//! Signing in is a connector's own code, and it waits for pages that other people make. So it runs on a thread of its
//! own ([`SessionFlow`]), and the run stays with the caller, which sees checkpoints go by ([`establish`]). When none
//! does for too long (`watchdog.rs`), what can be seen is written down within a bound, the browser is ended, and the
//! run says why, whatever the flow is still doing. Never keeps a password, and never waits for a page without a bound.

mod capture;
mod establish;
mod flow;
mod page_facts;
mod run_folder;
mod watchdog;

pub use establish::{SessionOptions, establish};
pub use flow::SessionFlow;
