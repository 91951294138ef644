//! The connectors that come with the program, a folder each: `manifest.json`, what is collected (`collect.rs`),
//! and pure parsers.
//!
//! It never writes to what it collects from, and knows nothing of stores and processes.
//!
//! # Files
//!
//! - `files.rs`: what those for local files share, and a table of it
//! - `files/root.rs`, `files/walk.rs`, `files/path.rs`: a folder and what lies beneath it, opened name by name so
//!   that no link is followed; the one text form of a name
//! - `files/mark.rs`, `files/marks.rs`: what was read of a file, known again by its content; all marks as they lie on
//!   a cursor
//! - `files/lines.rs`: lines of a file that somebody is writing
//! - `files/jsonl.rs`: all of it together, for many files that only grow: which changed, slices, what is gone
//! - `files/trouble.rs`, `files/setting.rs`: what could not be read, as gaps and skips; where the files are
//! - `loose.rs`: JSON that another program wrote for itself, read without copying and without losing a line for an
//!   odd field
//! - `record.rs`, `digest.rs`: records that name each field once; sums over several parts
//! - `claude_code.rs`, `codex.rs`: sessions of two terminal tools
//! - `imessage/`: Messages of a Mac: `source` (whether its database changed, and a copy of one moment), `tables` and
//!   `parse` (rows as records), `typedstream` (texts out of archives), `buckets` (what changed in a table, by sums)
//! - `whatsapp/`: exported chats: `export` (texts and archives, bounded), `stamps` (dates of all locales, decided for
//!   a file as a whole), `words` (media, deletions), `parse` (where messages begin and end)
//! - `ical/`: calendars: `sources` (files, subscription), `lines`, `calendar` and `zones` (what is written), `rule`
//!   and `occurrences` (when it takes place), `memory` (what was sent, so that deletions show)
//! - `chatgpt/`: a service without an API, through its own pages: `session` (doing what `sign_in` decides), `api`
//!   (list and detail out of the page), `pages` (a list that counts places, walked so that nothing is stepped over),
//!   `service` (where the service is, and nowhere else), `moment`

#![warn(missing_docs)]

mod chatgpt;
mod claude_code;
mod codex;
mod digest;
mod files;
mod ical;
mod imessage;
mod loose;
mod record;
mod whatsapp;

use gleaner_sdk::Connector;

/// A connector that comes with the program.
#[derive(Clone, Copy)]
pub struct FirstParty {
    /// What the owner types to add it.
    pub name: &'static str,
    /// The manifest, as JSON.
    pub manifest: &'static str,
    /// Where it finds what it collects, in a few words for people, with the setting that says otherwise.
    pub needs: &'static str,
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
    &[chatgpt::CHATGPT, claude_code::CLAUDE_CODE, codex::CODEX, ical::ICAL, imessage::IMESSAGE, whatsapp::WHATSAPP];

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_sdk::protocol::{Manifest, ManifestOrigin};

    #[test]
    fn every_manifest_of_ours_keeps_all_rules_and_says_when_to_run_and_why() {
        assert!(ALL.is_sorted_by_key(|known| known.name));
        for known in ALL {
            let manifest = Manifest::parse(known.manifest.as_bytes(), ManifestOrigin::FirstParty).unwrap();
            assert_eq!(manifest.connector_key, known.name);
            assert!(manifest.warnings.is_empty(), "{}: {:?}", known.name, manifest.warnings);
            assert!(manifest.refresh_policy.is_some_and(|policy| !policy.rationale.is_empty()), "{}", known.name);
            assert!(!known.needs.is_empty() && !manifest.streams.is_empty(), "{}", known.name);
            for stream in &manifest.streams {
                assert!(stream.schema.is_some(), "{}: {} has no schema", known.name, stream.name);
                assert!(known.manifest.contains("\"coverage_policy\""), "{}", known.name);
            }
        }
    }
}
