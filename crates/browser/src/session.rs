//! Signing in with a browser: checkpoints, a watchdog, and questions to the owner.
//!
//! A connector's sign-in code waits for other people's pages. So it runs on its own thread ([`SessionFlow`]), and the
//! run stays with the caller, which receives checkpoints ([`establish`]). If none arrives for too long
//! (`watchdog.rs`), the visible state is captured within a timeout, the browser is ended, and the run reports why,
//! whatever the flow still does. Never stores a password, and never waits for a page without a timeout.

mod capture;
mod establish;
mod flow;
mod page_facts;
mod run_folder;
mod watchdog;

pub use establish::{SessionOptions, establish};
pub use flow::SessionFlow;
