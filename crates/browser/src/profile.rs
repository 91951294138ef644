//! The profile of a browser: a folder that one run at a time may use, and only its owner may look into.

mod name;

pub use name::ProfileName;

/// A profile that this process alone may use.
#[derive(Debug)]
pub(crate) struct HeldProfile;
