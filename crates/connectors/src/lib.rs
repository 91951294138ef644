//! The connectors that come with the program, a folder each: `manifest.json`, what is collected (`collect.rs`),
//! and pure parsers.
//!
//! It never writes to what it collects from, and knows nothing of stores and processes.

#![warn(missing_docs)]

mod chatgpt;

use gleaner_sdk::Connector;

/// A connector that comes with the program.
#[derive(Clone, Copy)]
pub struct FirstParty {
    /// What the owner types to add it.
    pub name: &'static str,
    /// The manifest, as JSON.
    pub manifest: &'static str,
    /// What runs.
    pub connector: &'static (dyn Connector + Sync),
}

impl std::fmt::Debug for FirstParty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FirstParty").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All of them, in the order of their names.
pub const ALL: &[FirstParty] =
    &[FirstParty { name: "chatgpt", manifest: chatgpt::MANIFEST, connector: &chatgpt::ChatGpt }];
