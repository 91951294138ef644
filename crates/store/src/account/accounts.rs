//! Whether an account stands behind a cursor: a slice commits its cursor before the coverage report that it is about.
//!
//! A run that is killed between the two leaves a cursor for which nobody vouched. `cursors.proven` is the last cursor of
//! the stream that a run vouched for at its end; it differs from `token` meanwhile. The next run continues from the newer
//! cursor only if the store can do without the report: its run owed no detail when it committed the cursor (`owed`).
//! Otherwise it continues from the proven cursor. That takes the place of a report only where the keys of reports are
//! those of the list's records, so the cursor stays unproven until a report has shown that. A stream that no report was
//! ever about is not held back: its connector claims nothing.

use crate::account::coverage_keys::Place;
use crate::account::owed::Asked;
use crate::error::{Failure, from_sql};
use crate::run::session::{Bookmark, RunTables, Session, raw_json};
use crate::sql::{execute, exists};
use gleaner_engine::{CoveragePair, Cursor, ExpectedReport, ReportedKeys, RunOutcome, Shortfall, Track};
use gleaner_protocol::TerminalReason;
use std::collections::BTreeMap;

/// What stands behind the cursor that a run goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lineage {
    /// An account.
    Proven,
    /// The store found the list complete. That counts once a report shows that its keys are those of the list.
    Complete,
    /// Nothing, and no report about it is expected.
    Assumed,
}

/// The reports of a run, by stream and list.
#[derive(Debug, Default)]
pub(crate) struct Reported(BTreeMap<(String, String), Report>);

#[derive(Debug)]
struct Report {
    pair: CoveragePair,
    /// Its number.
    number: i64,
    /// Whether it was complete and no slice has moved the cursor since.
    is_complete: bool,
}

impl<T: Track> Session<T> {
    /// Decides from which cursors a run goes on that waited for a report when their run ended.
    pub(crate) fn choose_cursors(&mut self) -> Result<(), Failure> {
        // What a scoped run walks over is accounted for by the other tracks.
        let Some(reach) = self.start.about.reach.clone().filter(|_| T::ACCOUNTS) else { return Ok(()) };
        for bookmark in &mut self.bookmarks {
            let expected = reach.expected_reports(bookmark.cursor.stream());
            if bookmark.lineage == Lineage::Proven || !bookmark.is_good || expected.is_empty() {
                continue;
            }
            let may_be_known = expected.iter().all(|report| report.keys != ReportedKeys::Other);
            let is_known = expected.iter().all(|report| report.keys == ReportedKeys::OfList);
            match (bookmark.is_complete && may_be_known, is_known) {
                (true, true) => bookmark.lineage = Lineage::Proven,
                (true, false) => bookmark.lineage = Lineage::Complete,
                (false, _) => bookmark.go_back()?,
            }
        }
        Ok(())
    }
}

impl<T: Track> Bookmark<T> {
    fn go_back(&mut self) -> Result<(), Failure> {
        match &self.proven {
            None => self.is_good = false,
            Some(proven) => {
                let token = raw_json(proven.clone())?;
                self.cursor = Cursor::restore(self.cursor.stream().to_owned(), token, self.cursor.seq());
                self.lineage = Lineage::Proven;
            }
        }
        Ok(())
    }
}

impl<T: Track> Session<T> {
    /// The cursor that the next run goes back to if this one does not vouch for what it commits.
    pub(crate) fn proven(&self, stream: &str) -> Option<&str> {
        let bookmark = self.gone_on_from(stream)?;
        let is_proven = bookmark.lineage == Lineage::Proven;
        if is_proven { Some(bookmark.cursor.token().as_str()) } else { bookmark.proven.as_deref() }
    }

    /// Whether a report about this pair was judged before.
    pub(crate) fn has_report(&self, pair: &CoveragePair) -> bool {
        self.reported.0.contains_key(&(pair.stream.clone(), pair.state_stream.clone()))
    }

    pub(crate) fn note_reported(&mut self, pair: &CoveragePair, number: i64, is_complete: bool) {
        let report = Report { pair: pair.clone(), number, is_complete };
        self.reported.0.insert((pair.stream.clone(), pair.state_stream.clone()), report);
    }

    /// The reports that were judged, and where their keys are.
    pub(crate) fn reports(&self) -> impl Iterator<Item = (&CoveragePair, Place)> {
        self.reported.0.values().map(|report| (&report.pair, (self.run, report.number)))
    }

    /// A slice has moved the cursor of this stream.
    pub(crate) fn note_passed(&mut self, list: &str) {
        let of_list = self.reported.0.iter_mut().filter(|((_, state_stream), _)| state_stream == list);
        of_list.for_each(|(_, report)| report.is_complete = false);
    }
}

impl<T: Track> RunTables<'_, T> {
    /// Whether the run owes no detail of a list whose cursor it commits, and went on from where nothing was owed.
    pub(crate) fn is_complete(&self, list: &str, asked: Asked) -> Result<bool, Failure> {
        let gone_on_from = self.session.gone_on_from(list);
        let is_assumed = gone_on_from.is_some_and(|bookmark| bookmark.lineage == Lineage::Assumed);
        let id = self.session.streams.of(list)?;
        Ok(!is_assumed && self.session.owed.has_records(self.connection, id)? && self.is_paid(id, asked)?)
    }

    /// Whether all reports came that the cursor of this list waits for, and nothing that needs one came after them. A run
    /// that succeeded owes the reports that its manifest demands, and what those left open is a gap by now; another
    /// report that its connector once sent is owed if a record of the list has no detail. Any other run owes all of them.
    fn has_reported(
        &self,
        (name, list): (&str, i64),
        expected: &[ExpectedReport],
        has_succeeded: bool,
    ) -> Result<bool, Failure> {
        let report = |of: &ExpectedReport| {
            let report = self.session.reported.0.get(&(of.pair.stream.clone(), of.pair.state_stream.clone()));
            report.map(|report| report.is_complete)
        };
        if !has_succeeded {
            // A connector that never reported may do so yet.
            return Ok(!expected.is_empty() && expected.iter().all(|of| report(of) == Some(true)));
        }
        let demanded = expected.iter().all(|of| !of.is_declared || report(of).is_some());
        let all_came = expected.iter().all(|of| report(of).is_some());
        Ok(demanded && self.is_paid(list, Asked::AtEnd)? && (all_came || self.is_complete(name, Asked::AtEnd)?))
    }

    /// Vouches for the cursors of a run that gave its account. Answers the reports that kept it from doing so, because
    /// they did not come: the next run does not resume from these cursors.
    pub(crate) fn vouch_for_cursors(&self, outcome: &RunOutcome) -> Result<Vec<Shortfall>, Failure> {
        let Self { connection, session } = *self;
        let mut unproven = Vec::new();
        let reach = session.start.about.reach.as_ref();
        for (name, stream) in session.streams.all() {
            let expected = reach.map_or(&[][..], |reach| reach.expected_reports(name));
            let is_sound = match session.gone_on_from(name).map(|bookmark| bookmark.lineage) {
                None | Some(Lineage::Proven) => true,
                Some(Lineage::Complete) => self.are_keys_of_list(name, expected)?,
                Some(Lineage::Assumed) => false,
            };
            let has_succeeded = outcome.reason == TerminalReason::Succeeded;
            if is_sound && self.has_reported((name, stream), expected, has_succeeded)? {
                let sql = "UPDATE cursors SET proven = token WHERE stream = ?1 AND track = ?2 AND run = ?3";
                execute(connection, sql, (stream, session.track(), session.run))?;
            } else if has_succeeded && T::ACCOUNTS && is_sound && !self.is_paid(stream, Asked::AtEnd)? {
                let moved = "SELECT 1 FROM cursors WHERE stream = ?1 AND track = ?2 AND run = ?3";
                if exists(connection, moved, (stream, session.track(), session.run))? {
                    unproven.extend(self.reports_missing(expected, outcome));
                }
            }
        }
        Ok(unproven)
    }

    /// The expected reports that did not come and that the outcome does not name.
    fn reports_missing<'a>(
        &self,
        expected: &'a [ExpectedReport],
        outcome: &'a RunOutcome,
    ) -> impl Iterator<Item = Shortfall> {
        let is_named = |pair: &CoveragePair| {
            let is_its = |short: &Shortfall| (&short.stream, &short.state_stream) == (&pair.stream, &pair.state_stream);
            outcome.shortfalls.iter().any(is_its)
        };
        let pairs = expected.iter().map(|report| &report.pair);
        pairs.filter(move |pair| !self.session.has_report(pair) && !is_named(pair)).map(|pair| Shortfall {
            stream: pair.stream.clone(),
            state_stream: pair.state_stream.clone(),
            unaccounted: None,
            unconfirmed: 0,
            keys: Vec::new(),
        })
    }

    /// Whether reports have shown that the store looked for the right keys, and for those of every stream that has reports.
    fn are_keys_of_list(&self, list: &str, expected: &[ExpectedReport]) -> Result<bool, Failure> {
        let sql = "SELECT 1 FROM parents WHERE stream = ?1 AND parent = ?2 AND keys = 'of_list'";
        for report in expected {
            if !exists(self.connection, sql, (self.session.streams.of(&report.pair.stream)?, list))? {
                return Ok(false);
            }
        }
        let sql = "SELECT count(*) FROM parents p JOIN streams s ON s.id = p.stream
                   WHERE s.connection = ?1 AND p.parent = ?2 AND p.keys IS NOT NULL";
        let reported = self.connection.query_row(sql, (self.session.connection, list), |row| row.get::<_, i64>(0))?;
        Ok(from_sql(reported) == expected.len() as u64)
    }
}
