//! Shared by tests of several crates. In no program, and never listens on anything but loopback.
//!
//! | | |
//! |---|---|
//! | [`http`] | a server whose answers a test gives |
//! | [`site`] | a website with a sign-in, limits, and pages that misbehave |

pub mod http;
pub mod site;
