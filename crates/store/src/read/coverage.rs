//! How complete each stream is, from counters, and honest where nobody can know.
//!
//! A share needs a whole. It is known where the connector has reported about its lists; then the whole is
//! what is stored and everything that is known to be missing. A gap that stands for a part of a list, or a
//! stream that the last run skipped, leaves a whole that nobody knows, and then there is no share. Rounds
//! down: with anything missing it is never 100 %. A record that is missing in its new version and stored in
//! an older one counts as both, so the share is too small rather than too large.

use super::gaps::GapCount;
use super::{Missing, Reader, StreamSummary};
use crate::error::{Failure, StoreError, date_from_sql, from_sql};
use crate::run::skips::OpenSkip;
use crate::sql::rows;
use gleaner_engine::WallTime;
use gleaner_protocol::{CoveragePolicy, coded_enum};
use rusqlite::{Connection, Params};
use std::collections::BTreeMap;

/// Gaps and quarantined records of a stream that are compared with each other. Beyond that both are counted, because no
/// figure may take longer than a page.
const COMPARED_MAX: i64 = 10_000;

/// What is known about one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamCoverage {
    /// Its counters.
    pub summary: StreamSummary,
    /// What the connector last reported about its lists; absent when it never did.
    pub listing: Option<Listing>,
    /// The gaps that are not closed, by reason.
    pub gaps: Vec<GapCount>,
    /// Records in quarantine of which an open gap speaks, too. They are missing once.
    pub gaps_in_quarantine: u64,
    /// What a run left out of it that no later run has brought.
    pub skip_open: Option<OpenSkip>,
    /// Present records that a run with a time range stored although their time could not be read.
    pub times_unreadable: u64,
}

/// The last reports about a stream's lists, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Records that were named.
    pub required: u64,
    /// Of those, stored.
    pub hydrated: u64,
    /// Of those, gaps.
    pub gaps: u64,
    /// Of those, left out on purpose.
    pub skipped: u64,
    /// Of those, without an outcome and without a gap.
    pub unaccounted: u64,
    /// Of the unaccounted ones, those that the connector called hydrated and of which nothing is stored.
    pub unconfirmed: u64,
    /// Named and called hydrated, and only the list itself has them: there is nothing to collect.
    pub empty: u64,
    /// The first of the unaccounted keys.
    pub waiting: Vec<String>,
    /// The run that reported last.
    pub run_id: String,
    /// When that run ended, or began if it goes on.
    pub at: WallTime,
}

/// How much of a stream is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// In hundredths of a percent, rounded down.
    Known(u64),
    /// Nobody can say.
    Unknown(WhyUnknown),
}

coded_enum! {
    /// Why there is no share.
    pub enum WhyUnknown {
        /// The connector does not collect the stream.
        NotCollected = "not_collected";
        /// The connector never reported what there is.
        NoListing = "no_listing";
        /// It reported that there is nothing.
        NothingListed = "nothing_listed";
        /// Everything that it listed was left out as optional.
        AllSkipped = "all_skipped";
        /// It listed records, and none of them is stored.
        NoneStored = "none_stored";
        /// Gaps stand for parts of a list.
        PartOfList = "part_of_list";
        /// A run skipped it or a part of it, and no later one has brought that.
        Skipped = "skipped";
    }
}

impl WhyUnknown {
    /// What a person is told.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::NotCollected => "the connector does not collect it",
            Self::NoListing => "total unknown: no run has reported one",
            Self::NothingListed => "no share: the connector listed no records",
            Self::AllSkipped => "no share: the connector left everything out that it listed",
            Self::NoneStored => "no share: records were listed, and none of them is stored",
            Self::PartOfList => "total unknown: a part of the list is missing, of unknown size",
            Self::Skipped => "total unknown: a run skipped a part of it",
        }
    }
}

impl StreamCoverage {
    /// How much is missing of it. With anything ignored a stream is not complete.
    #[must_use]
    pub fn missing(&self) -> u64 {
        Missing::of_stream(self).total()
    }

    /// What is left out on purpose.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.listing.as_ref().map_or(0, |listing| listing.skipped)
    }

    /// Everything that is known of, if there was a listing.
    #[must_use]
    pub fn listed(&self) -> Option<u64> {
        self.listing.as_ref()?;
        Some(self.summary.records.saturating_add(self.missing()).saturating_add(self.skipped()))
    }

    /// How much of what should be here is here. What is left out on purpose should not.
    #[must_use]
    pub fn share(&self, policy: CoveragePolicy) -> Share {
        let whole = self.summary.records.saturating_add(self.missing());
        let unknown = if policy.collects_nothing() {
            Some(WhyUnknown::NotCollected)
        } else if self.listing.is_none() {
            Some(WhyUnknown::NoListing)
        } else if self.gaps.iter().any(|gap| gap.part_of_list) {
            Some(WhyUnknown::PartOfList)
        } else if self.skip_open.is_some() {
            Some(WhyUnknown::Skipped)
        } else {
            let (listed, skipped) = self.listing.as_ref().map_or((0, 0), |listing| (listing.required, listing.skipped));
            let why = match listed {
                0 => WhyUnknown::NothingListed,
                listed if skipped >= listed => WhyUnknown::AllSkipped,
                _ => WhyUnknown::NoneStored,
            };
            (whole == 0).then_some(why)
        };
        match unknown {
            Some(why) => Share::Unknown(why),
            None => Share::Known(hundredths(self.summary.records, whole)),
        }
    }
}

fn hundredths(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * 10_000 / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(10_000)
}

impl Reader {
    /// What is known about each stream of a connection, in the order in which they were declared.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn coverage(&self, name: &str) -> Result<Vec<StreamCoverage>, StoreError> {
        let mut gaps = BTreeMap::<String, Vec<GapCount>>::new();
        for count in self.gap_counts(name)? {
            gaps.entry(count.stream.clone()).or_default().push(count);
        }
        let mut listings = self.ask_of(name, listings)?;
        let mut skips =
            self.open_skips(name)?.into_iter().map(|skip| (skip.stream.clone(), skip)).collect::<BTreeMap<_, _>>();
        let mut both = self.ask_of(name, gaps_in_quarantine)?;
        let mut times = self.ask_of(name, times_unreadable)?;
        let of = |summary: StreamSummary| StreamCoverage {
            listing: listings.remove(&summary.name),
            gaps: gaps.remove(&summary.name).unwrap_or_default(),
            gaps_in_quarantine: both.remove(&summary.name).unwrap_or(0),
            skip_open: skips.remove(&summary.name),
            times_unreadable: times.remove(&summary.name).unwrap_or(0),
            summary,
        };
        Ok(self.streams(name)?.into_iter().map(of).collect())
    }
}

fn gaps_in_quarantine(connection: &Connection, of: i64) -> Result<BTreeMap<String, u64>, Failure> {
    let sql = "WITH few AS MATERIALIZED (SELECT id, name FROM streams WHERE connection = ?1
               AND quarantined BETWEEN 1 AND ?2
               AND gaps_pending + gaps_in_progress + gaps_terminal + gaps_ignored BETWEEN 1 AND ?2)
               SELECT few.name, count(DISTINCT q.key) FROM few JOIN quarantine q ON q.stream = few.id
               WHERE (q.stream, q.key) IN (SELECT stream, record_key FROM gaps WHERE stream IN (SELECT id FROM few)
               AND state IN ('pending', 'in_progress', 'terminal', 'ignored')) GROUP BY few.id";
    counts_by_stream(connection, sql, (of, COMPARED_MAX))
}

fn times_unreadable(connection: &Connection, of: i64) -> Result<BTreeMap<String, u64>, Failure> {
    let sql = "SELECT s.name, count(*) FROM streams s JOIN unreadable_times t ON t.stream = s.id
               WHERE s.connection = ?1 GROUP BY s.id";
    counts_by_stream(connection, sql, [of])
}

fn counts_by_stream(connection: &Connection, sql: &str, of: impl Params) -> Result<BTreeMap<String, u64>, Failure> {
    let counts = rows(connection, sql, of, |row| Ok((row.get(0)?, from_sql(row.get(1)?))))?;
    Ok(counts.into_iter().collect())
}

fn listings(connection: &Connection, of: i64) -> Result<BTreeMap<String, Listing>, Failure> {
    let sql = "SELECT s.name, l.required, l.hydrated, l.gaps, l.skipped, l.unaccounted, r.run_id,
               ifnull(r.ended_at, r.started_at), l.unconfirmed, l.empty, l.waiting FROM streams s JOIN listings l ON l.stream = s.id
               JOIN runs r ON r.id = l.run WHERE s.connection = ?1 ORDER BY l.run";
    let reports = rows(connection, sql, [of], |row| {
        let count = |at: usize| Ok::<_, rusqlite::Error>(from_sql(row.get(at)?));
        let listing = Listing {
            required: count(1)?,
            hydrated: count(2)?,
            gaps: count(3)?,
            skipped: count(4)?,
            unaccounted: count(5)?,
            run_id: row.get(6)?,
            at: date_from_sql(row.get(7)?),
            unconfirmed: count(8)?,
            empty: count(9)?,
            waiting: row.get::<_, Option<String>>(10)?.map(|json| keys_of(&json)).unwrap_or_default(),
        };
        Ok((row.get::<_, String>(0)?, listing))
    })?;
    let mut sums = BTreeMap::<String, Listing>::new();
    for (stream, report) in reports {
        let sum = sums.entry(stream).or_default();
        sum.required += report.required;
        sum.hydrated += report.hydrated;
        sum.gaps += report.gaps;
        sum.skipped += report.skipped;
        sum.unaccounted += report.unaccounted;
        sum.unconfirmed += report.unconfirmed;
        sum.empty += report.empty;
        sum.waiting.extend(report.waiting);
        (sum.run_id, sum.at) = (report.run_id, report.at);
    }
    Ok(sums)
}

/// A list that we wrote.
fn keys_of(json: &str) -> Vec<String> {
    serde_json::from_str(json).unwrap_or_default()
}
