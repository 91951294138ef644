//! The connectors that come with the program, in one table: the name, the manifest, and what runs.
//!
//! Whoever is in it runs through the SDK, because there is no other way to be in it: so each of them holds
//! every record against its schema before the record leaves. What else we write as a connector is judged by
//! what it does, in `validation_policy.rs`.

#[cfg(test)]
mod validation_policy;

use crate::demo;
use gleaner_sdk::{Connector, run_connector};
use std::process::ExitCode;

/// A connector that comes with the program.
pub(crate) struct FirstParty {
    /// What is typed after `gleaner connector`.
    pub(crate) name: &'static str,
    pub(crate) manifest: &'static str,
    connector: &'static (dyn Connector + Sync),
}

/// All of them.
pub(crate) const FIRST_PARTY: [FirstParty; 1] =
    [FirstParty { name: "demo", manifest: demo::MANIFEST, connector: &demo::connector::Demo }];

impl FirstParty {
    /// The one of this name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        const { &FIRST_PARTY }.iter().find(|known| known.name == name)
    }

    /// The whole of its process.
    pub(crate) fn run(&self) -> ExitCode {
        run_connector(self.manifest, self.connector)
    }
}
