//! The connector for ChatGPT, as the program starts it, with a real Chromium, against a site on loopback.
//!
//! What is believed is what the site saw and what the connector said; nothing in here looks into either.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod by_hand;
mod collecting;
mod history;
mod page_metadata;
mod session;
mod watchdog;
mod window;
