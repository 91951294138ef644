//! From a real store to what a schedule decides: each kind of evidence, written as runs write it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod actions;
mod evidence;
mod home;
