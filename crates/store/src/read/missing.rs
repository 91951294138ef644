//! The one definition of *missing*: everything that is known of and not stored.
//!
//! It is every gap that is not closed, also one that the owner ignores; every record in quarantine that no such gap is
//! about; and every key that the last report about a list left without an outcome. Terminal, API and console count with it, so that their figures agree.

use super::{GapCause, Reader, StreamCoverage};
use crate::error::StoreError;

/// What is missing, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Gaps because the provider rate-limited us.
    pub source: u64,
    /// Gaps that the limits of a run deferred.
    pub own_budget: u64,
    /// Gaps that failed and are retried.
    pub other: u64,
    /// Gaps that were given up.
    pub given_up: u64,
    /// Gaps that the owner ignores.
    pub ignored: u64,
    /// Records that do not fit their schema.
    pub quarantined: u64,
    /// Keys that were listed, without record, gap or skip.
    pub unaccounted: u64,
}

impl Missing {
    /// Of one stream.
    #[must_use]
    pub fn of_stream(stream: &StreamCoverage) -> Self {
        let unaccounted = stream.listing.as_ref().map_or(0, |listing| listing.unaccounted);
        let quarantined = stream.summary.quarantined.saturating_sub(stream.gaps_in_quarantine);
        let mut missing = Self { quarantined, unaccounted, ..Self::default() };
        for count in &stream.gaps {
            *match GapCause::of_count(count).origin() {
                "source" => &mut missing.source,
                "own_budget" => &mut missing.own_budget,
                "given_up" => &mut missing.given_up,
                "ignored" => &mut missing.ignored,
                _ => &mut missing.other,
            } += count.count;
        }
        missing
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            source: self.source + other.source,
            own_budget: self.own_budget + other.own_budget,
            other: self.other + other.other,
            given_up: self.given_up + other.given_up,
            ignored: self.ignored + other.ignored,
            quarantined: self.quarantined + other.quarantined,
            unaccounted: self.unaccounted + other.unaccounted,
        }
    }

    /// All of it.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.wanted() + self.ignored
    }

    /// All but what the owner ignores.
    #[must_use]
    pub const fn wanted(&self) -> u64 {
        self.source + self.own_budget + self.other + self.given_up + self.quarantined + self.unaccounted
    }

    /// The causes that occur, each with its stable code and what a person is told.
    pub fn causes(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
        let causes = [
            ("source", self.source, "because the provider rate-limited us"),
            ("own_budget", self.own_budget, "deferred by the limits of a run"),
            ("other", self.other, "failed, will be retried"),
            ("given_up", self.given_up, "given up"),
            ("quarantined", self.quarantined, "in quarantine, because they do not fit their schema"),
            ("unaccounted", self.unaccounted, "listed, without an outcome"),
            ("ignored", self.ignored, "ignored by you"),
        ];
        causes.into_iter().filter(|(_, count, _)| *count > 0)
    }
}

impl Reader {
    /// What is missing of a connection.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn missing(&self, name: &str) -> Result<Missing, StoreError> {
        let streams = self.coverage(name)?;
        Ok(streams.iter().map(Missing::of_stream).fold(Missing::default(), Missing::and))
    }
}
