//! The connector for the sessions of Claude Code, which the tool keeps in the owner's home folder.
//!
//! `parse.rs` knows what a line says, `collect.rs` what becomes a record.

mod collect;
mod parse;

use crate::FirstParty;
use crate::files::{Place, jsonl};
use gleaner_sdk::{Collect, Connector, Stop};

/// The row of the table.
pub(crate) const CLAUDE_CODE: FirstParty = FirstParty {
    name: "claude_code",
    manifest: include_str!("claude_code/manifest.json"),
    needs: "the folder projects in ~/.claude, or in the folder that CLAUDE_CODE_HOME names",
    connector: &ClaudeCode,
};

struct ClaudeCode;

impl Connector for ClaudeCode {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        let place = Place::find("CLAUDE_CODE_HOME", ".claude")?.join("projects");
        jsonl::collect(run, &place, &collect::Sessions)
    }
}
