//! How much of what should be here is here, added up over streams, and honest where nobody can know.

use super::words::{counted, number, percent};
use gleaner_protocol::{CoveragePolicy, Manifest};
use gleaner_store::{GapCause, Share, StreamCoverage};
use std::collections::BTreeMap;

/// Several streams together. Those of which nobody knows the whole are counted and not guessed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    here: u64,
    whole: u64,
    known: u64,
    unknown: u64,
}

impl Shares {
    pub(crate) fn add(&mut self, stream: &StreamCoverage, policy: CoveragePolicy) {
        match stream.share(policy) {
            Share::Known(_) => {
                self.here += stream.summary.records;
                self.whole += stream.summary.records + stream.missing();
                self.known += 1;
            }
            Share::Unknown(_) => self.unknown += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.here += other.here;
        self.whole += other.whole;
        self.known += other.known;
        self.unknown += other.unknown;
    }

    /// In hundredths of a percent, rounded down.
    pub(crate) fn hundredths(&self) -> Option<u64> {
        let share = (self.known > 0).then(|| u128::from(self.here) * 10_000 / u128::from(self.whole.max(1)));
        share.map(|share| u64::try_from(share).unwrap_or(10_000))
    }

    pub(crate) fn percent(&self) -> Option<String> {
        self.hundredths().map(percent)
    }

    /// What the figure does not cover.
    pub(crate) fn note(&self) -> String {
        match (self.known, self.unknown) {
            (0, 0) => "nothing is collected yet".to_owned(),
            (_, 0) => "of everything that is known of".to_owned(),
            (0, _) => "the connectors do not say how much there is".to_owned(),
            (_, unknown) => format!(
                "of what is known of; {} of {} streams cannot say",
                number(unknown),
                number(self.known + unknown)
            ),
        }
    }
}

/// The coverage policy of each stream of a manifest.
pub(crate) fn policies(manifest: Option<&Manifest>) -> BTreeMap<String, CoveragePolicy> {
    let streams = manifest.map(|manifest| &*manifest.streams).unwrap_or_default();
    streams.iter().map(|stream| (stream.name.clone(), stream.coverage_policy)).collect()
}

/// The policy of one stream; one that the manifest no longer has was collected.
pub(crate) fn policy_of(policies: &BTreeMap<String, CoveragePolicy>, stream: &str) -> CoveragePolicy {
    policies.get(stream).copied().unwrap_or(CoveragePolicy::Collect)
}

/// What is missing, by whose doing it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) source: u64,
    pub(crate) own_budget: u64,
    pub(crate) other: u64,
    pub(crate) given_up: u64,
    pub(crate) ignored: u64,
    pub(crate) quarantined: u64,
}

impl Missing {
    pub(crate) fn add(&mut self, stream: &StreamCoverage) {
        self.quarantined += stream.summary.quarantined;
        for count in &stream.gaps {
            *match GapCause::of_count(count).origin() {
                "source" => &mut self.source,
                "own_budget" => &mut self.own_budget,
                "given_up" => &mut self.given_up,
                "ignored" => &mut self.ignored,
                _ => &mut self.other,
            } += count.count;
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.source += other.source;
        self.own_budget += other.own_budget;
        self.other += other.other;
        self.given_up += other.given_up;
        self.ignored += other.ignored;
        self.quarantined += other.quarantined;
    }

    /// Those that somebody still wants.
    pub(crate) const fn gaps(&self) -> u64 {
        self.source + self.own_budget + self.other + self.given_up
    }

    /// Gaps that somebody still wants, and records that do not fit.
    pub(crate) const fn wanted(&self) -> u64 {
        self.gaps() + self.quarantined
    }

    /// All of it in a sentence. What the owner does without is missing all the same, and said when nothing else is.
    pub(crate) fn sentence(&self) -> String {
        match (self.wanted(), self.ignored) {
            (0, 0) => "Nothing that is known of is missing.".to_owned(),
            (0, ignored) => {
                format!("Nothing is missing but {} that you ignore.", counted(ignored, "record", "records"))
            }
            (wanted, _) => format!("{} missing.", counted(wanted, "record or part is", "records or parts are")),
        }
    }

    /// Whose doing it is, in a line. A stop that the owner planned is never the service's.
    pub(crate) fn words(&self) -> String {
        let parts = [
            (self.source, "the service pushed back"),
            (self.own_budget, "put off by your own budget"),
            (self.other, "could not be had so far"),
            (self.given_up, "given up"),
            (self.quarantined, "do not fit their schema"),
            (self.ignored, "ignored by you"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts = parts.map(|(count, words)| format!("{} {words}", number(count))).collect::<Vec<_>>();
        if parts.is_empty() { "nothing that is known of".to_owned() } else { parts.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_never_called_complete() {
        let said = |source, ignored| Missing { source, ignored, ..Missing::default() }.sentence();
        assert_eq!(said(0, 0), "Nothing that is known of is missing.");
        assert_eq!(said(0, 1), "Nothing is missing but 1 record that you ignore.");
        assert_eq!(said(2, 1), "2 records or parts are missing.");
    }
}
