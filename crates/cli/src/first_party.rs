//! The connectors that come with the program, in one table: the name, the manifest, and what runs.
//!
//! Whoever is in it runs through the SDK, because there is no other way to be in it: so each of them holds
//! every record against its schema before the record leaves. What else we write as a connector is judged by
//! what it does, in `first_party/tests.rs`.

#[cfg(test)]
mod tests;

use crate::demo;
use gleaner_connectors::FirstParty;
use gleaner_sdk::run_connector;
use std::process::ExitCode;

/// The one that cannot be added: what it collects from is there only while `gleaner demo` runs.
const DEMO: FirstParty = FirstParty {
    name: "demo",
    manifest: demo::MANIFEST,
    needs: "the provider of `gleaner demo`",
    connector: &demo::connector::Demo,
};

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static FirstParty> {
    gleaner_connectors::ALL.iter().chain([const { &DEMO }])
}

/// The one that is typed after `gleaner connector`.
pub(crate) fn find(name: &str) -> Option<&'static FirstParty> {
    all().find(|known| known.name == name)
}

/// The whole of its process.
pub(crate) fn run(known: &FirstParty) -> ExitCode {
    run_connector(known.manifest, known.connector)
}
