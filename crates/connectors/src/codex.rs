//! The connector for the sessions of Codex, which the tool keeps in the owner's home folder as rollouts.
//!
//! `parse.rs` knows what a line says, `collect.rs` what becomes a record.

mod collect;
mod parse;

use crate::FirstParty;
use crate::files::{Place, jsonl};
use gleaner_sdk::{Collect, Connector, Stop};

/// The row of the table.
pub(crate) const CODEX: FirstParty = FirstParty {
    name: "codex",
    manifest: include_str!("codex/manifest.json"),
    needs: "the folder sessions in ~/.codex, or in the folder that CODEX_HOME names",
    connector: &Codex,
};

struct Codex;

impl Connector for Codex {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        let place = Place::find("CODEX_HOME", ".codex")?.join("sessions");
        jsonl::collect(run, &place, &collect::Rollouts)
    }
}
