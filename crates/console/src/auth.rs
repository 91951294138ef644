//! Which requests are answered: the guard, the owner's keys, and the bound on wrong ones.

pub(crate) mod auth_attempts;
pub(crate) mod guard;
pub(crate) mod keys;
mod private_file;
