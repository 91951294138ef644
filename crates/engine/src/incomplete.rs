//! What a run that succeeded leaves open, and what its connector did that it should not have.
//!
//! Why apart from the counts: each of these is something that an owner is told with a name, and that keeps a run from
//! being called complete. All lists are bounded; beyond their bound there is a number.

use crate::scope::ScopeRules;
use gleaner_protocol::{AbsenceReason, CoveragePolicy, Manifest, SkipResult, coded_enum};
use std::collections::BTreeMap;

/// A checkpoint whose account falls short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// The stream whose details are not accounted for.
    pub stream: String,
    /// The stream whose checkpoint waits for them.
    pub state_stream: String,
    /// How many of the listed keys nothing accounts for; none where there was no report at all.
    pub unaccounted: Option<u64>,
    /// Of those, how many the connector called hydrated.
    pub unconfirmed: u64,
    /// The first of them.
    pub keys: Vec<String>,
}

impl Shortfall {
    /// What an owner is told.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { stream, unconfirmed, keys, .. } = self;
        let Some(unaccounted) = self.unaccounted else {
            return format!("no coverage report came for {stream}");
        };
        // A key without an outcome may be stored: only a claim is held against the store.
        let what = match unconfirmed {
            0 => "without an outcome".to_owned(),
            all if *all == unaccounted => {
                "were not stored, although the connector reported them as collected".to_owned()
            }
            some => format!(
                "without an outcome, {some} of them not stored although the connector reported them as collected"
            ),
        };
        let shown = keys.iter().take(Self::KEYS_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = if unaccounted > Self::KEYS_SHOWN as u64 { ", …" } else { "" };
        format!("{unaccounted} listed {stream} {what}: {shown}{more}")
    }

    /// So many keys are in a sentence.
    const KEYS_SHOWN: usize = 5;
}

/// Something that a connector left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Of which stream, if it said.
    pub stream: Option<String>,
    /// Why, as a code.
    pub reason: Option<String>,
    /// The same in its own words.
    pub message: Option<String>,
    /// Whether the next run goes on with the rest from where this one stopped.
    pub continues: bool,
}

/// What was left out so that the run is incomplete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skips {
    /// How often.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Skipped>,
    /// The last of each stream; what was skipped of no named stream is under the empty name.
    pub by_stream: BTreeMap<String, Skipped>,
}

impl Skips {
    /// So many are kept with the run; the trace has more.
    const FIRST_MAX: usize = 20;

    /// Takes note of records that a coverage report considered, does not cover, and names in no list.
    pub(crate) fn add_uncovered(&mut self, stream: &str, records: u64) {
        let records = if records == 1 { "1 record".to_owned() } else { format!("{records} records") };
        self.add(&SkipResult {
            stream: Some(stream.to_owned()),
            reason: Some("not_covered".to_owned()),
            message: Some(format!(
                "the coverage report considered {records} more than it covers, and does not name them"
            )),
            ..SkipResult::default()
        });
    }

    /// Takes note of one.
    pub(crate) fn add(&mut self, skip: &SkipResult) {
        self.count = self.count.saturating_add(1);
        let (stream, reason, message) = (skip.stream.clone(), skip.reason.clone(), skip.message.clone());
        let skipped = Skipped { stream, reason, message, continues: skip.continuation.is_some() };
        if self.first.len() < Self::FIRST_MAX {
            self.first.push(skipped.clone());
        }
        // The last word counts, but a part that the next run goes on with does not take another one's place.
        let known = self.by_stream.entry(skip.stream.clone().unwrap_or_default()).or_insert_with(|| skipped.clone());
        *known = Skipped { continues: known.continues && skipped.continues, ..skipped };
    }
}

/// Whether a skip makes the run incomplete. It does not where the manifest says that the stream need not be collected,
/// and where the run was not asked for what was skipped.
pub(crate) fn makes_incomplete(skip: &SkipResult, manifest: &Manifest, rules: &ScopeRules) -> bool {
    let is_optional = |stream: &str| {
        let stream = manifest.stream(stream);
        stream.is_some_and(|stream| !stream.required && stream.coverage_policy != CoveragePolicy::Collect)
    };
    let stream = skip.stream.as_deref();
    // Only a scope that is narrower than the stream can have caused it.
    let by_scope = skip.reason.as_deref() == Some(AbsenceReason::OutOfScope.code())
        && stream.map_or_else(|| rules.is_limited(), |stream| rules.limits(stream));
    !by_scope && stream.is_none_or(|stream| rules.contains(stream) && !is_optional(stream))
}

/// Something that the protocol forbids and that ends no run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What.
    pub code: WarningCode,
    /// Of which stream.
    pub stream: String,
    /// How often.
    pub count: u64,
}

coded_enum! {
    /// What a connector did.
    pub enum WarningCode {
        /// Records or gaps of a stream came after its last coverage report.
        CoverageEarly = "coverage_early";
        /// A coverage report leaves gaps out of its `gap_keys` that the run wrote.
        GapKeysIncomplete = "gap_keys_incomplete";
        /// A coverage report names records, and calls every one of them an optional skip.
        EverythingSkipped = "everything_skipped";
        /// A coverage report calls records hydrated of which only the list has the key: they count as empty.
        HydratedEmpty = "hydrated_empty";
    }
}

impl Warning {
    /// What an owner is told.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { code, stream, count } = self;
        let (before, after) = match code {
            WarningCode::CoverageEarly => ("", "records or gaps came after the last coverage report"),
            WarningCode::GapKeysIncomplete => ("the coverage report leaves out ", "gaps that the run wrote"),
            WarningCode::EverythingSkipped => {
                ("the connector skipped all ", "listed records as optional; none was stored")
            }
            WarningCode::HydratedEmpty => {
                ("", "listed keys were reported as collected and no record came; they count as empty")
            }
        };
        format!("{stream}: {before}{count} {after}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_protocol::{ManifestOrigin, Scope, StreamScope};

    #[test]
    fn a_skip_makes_a_run_incomplete_unless_the_manifest_or_the_scope_allows_it() {
        let text = r#"{"connector_id":"c","connector_key":"c","version":"1","streams":[
            {"name":"must","semantics":"append_only"},
            {"name":"may","semantics":"append_only","required":false},
            {"name":"later","semantics":"append_only","required":false,"coverage_policy":"deferred"},
            {"name":"unasked","semantics":"append_only"}]}"#;
        let manifest = Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).unwrap();
        let scope = Scope::new(["must", "may", "later"].map(StreamScope::all_of).to_vec()).unwrap();
        let rules = ScopeRules::new(&manifest, &scope).unwrap();
        let check = |stream: Option<&str>, reason: Option<&str>| {
            let (stream, reason) = (stream.map(str::to_owned), reason.map(str::to_owned));
            makes_incomplete(&SkipResult { stream, reason, ..SkipResult::default() }, &manifest, &rules)
        };
        assert!(check(Some("must"), None) && check(None, Some("not_found")));
        assert!(check(Some("may"), Some("x")), "not required, and still to be collected");
        assert!(!check(Some("later"), Some("x")) && !check(Some("unasked"), Some("x")));
        assert!(check(Some("must"), Some("out_of_scope")), "the run asked for all of it");
        let some = StreamScope { resources: vec!["1".to_owned()], ..StreamScope::all_of("must") };
        let rules = ScopeRules::new(&manifest, &Scope::new(vec![some]).unwrap()).unwrap();
        let skip = |stream: Option<&str>| SkipResult {
            stream: stream.map(str::to_owned),
            reason: Some("out_of_scope".to_owned()),
            ..SkipResult::default()
        };
        assert!(!makes_incomplete(&skip(Some("must")), &manifest, &rules));
        assert!(!makes_incomplete(&skip(None), &manifest, &rules));
        assert!(check(Some("must"), Some("stream_collection_failed")));
    }

    #[test]
    fn so_many_skips_are_kept_and_all_are_counted() {
        let mut skips = Skips::default();
        (0..100).for_each(|_| skips.add(&SkipResult::default()));
        assert_eq!((skips.count, skips.first.len()), (100, 20));
    }

    #[test]
    fn a_shortfall_says_what_was_claimed_and_names_keys() {
        let keys = (1..=7).map(|n| n.to_string()).collect();
        let short = |unaccounted, unconfirmed| {
            let (stream, state_stream) = ("details".to_owned(), "trips".to_owned());
            Shortfall { stream, state_stream, unaccounted, unconfirmed, keys: Vec::clone(&keys) }.sentence()
        };
        assert_eq!(short(None, 0), "no coverage report came for details");
        assert_eq!(
            short(Some(7), 7),
            "7 listed details were not stored, although the connector reported them as collected: 1, 2, 3, 4, 5, …"
        );
        assert!(short(Some(7), 2).contains("2 of them not stored although"));
        assert!(short(Some(7), 0).starts_with("7 listed details without an outcome: 1, "), "they may be stored");
    }
}
