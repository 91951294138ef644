//! The connectors that come with the program, a folder each: `manifest.json`, what is collected (`collect.rs`),
//! and pure parsers.
//!
//! It never writes to what it collects from, and knows nothing of stores and processes.

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
