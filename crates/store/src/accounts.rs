//! Whether an account stands behind a cursor: a slice commits its cursor before the coverage report that it is about.
//!
//! A run that is killed between the two leaves a cursor for which nobody vouched. `cursors.proven` is the last cursor of
//! the stream that a run vouched for at its end; it differs from `token` meanwhile. The next run goes on from the newer
//! cursor only if the store can do without the report: every record of the list that came before the cursor has its
//! detail or an open gap. Otherwise it goes on from the proven cursor. That takes the place of a report only where the
//! keys of reports are those of the list's records, so the cursor stays unproven until a report has shown that. A stream
//! that no report was ever about is not held back: its connector claims nothing.

use crate::coverage_keys::is_list_complete;
use crate::error::{Failure, StoreError, from_sql};
use crate::session::{Bookmark, Session, exists, raw_json};
use crate::store::Store;
use gleaner_engine::{CoveragePair, Cursor, ExpectedReport, ReportedKeys, RunOutcome, Track};
use gleaner_protocol::TerminalReason;
use rusqlite::Connection;
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

/// The reports of a run, by stream and list: whether it was complete and no slice has moved the cursor since.
#[derive(Debug, Default)]
pub(crate) struct Reported(BTreeMap<(String, String), bool>);

impl Store {
    /// Decides from which cursors a run goes on that waited for a report when their run ended.
    pub(crate) fn choose_cursors<T: Track>(&self, session: &mut Session<T>) -> Result<(), StoreError> {
        // What a scoped run walks over is accounted for by the other tracks.
        let Some(reach) = session.start.about.reach.clone().filter(|_| T::ACCOUNTS) else { return Ok(()) };
        for at in 0..session.bookmarks.len() {
            let bookmark = &session.bookmarks[at];
            let expected = reach.expected_reports(bookmark.cursor.stream());
            if bookmark.lineage == Lineage::Proven || !bookmark.is_good || expected.is_empty() {
                continue;
            }
            let is_complete = self.read(|connection| {
                let mut is_complete = expected.iter().all(|report| report.keys != ReportedKeys::Other);
                for report in expected {
                    is_complete =
                        is_complete && is_list_complete(connection, session, &report.pair, bookmark.next_seq)?;
                }
                Ok(is_complete)
            })?;
            let is_known = expected.iter().all(|report| report.keys == ReportedKeys::OfList);
            match (is_complete, is_known) {
                (true, true) => session.bookmarks[at].lineage = Lineage::Proven,
                (true, false) => session.bookmarks[at].lineage = Lineage::Complete,
                (false, _) => self.read(|_| session.bookmarks[at].go_back())?,
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

    pub(crate) fn note_reported(&mut self, pair: &CoveragePair, is_complete: bool) {
        self.reported.0.insert((pair.stream.clone(), pair.state_stream.clone()), is_complete);
    }

    /// A slice has moved the cursor of this stream.
    pub(crate) fn note_passed(&mut self, list: &str) {
        let of_list = self.reported.0.iter_mut().filter(|((_, state_stream), _)| state_stream == list);
        of_list.for_each(|(_, is_complete)| *is_complete = false);
    }

    /// Whether all reports came that the cursor of this stream waits for. A run that succeeded owes those that its
    /// manifest demands, and what they left open is a gap by now. Any other run owes all that its connector ever sent.
    fn has_reported(&self, expected: &[ExpectedReport], has_succeeded: bool) -> bool {
        let came = |report: &ExpectedReport| {
            let pair = (report.pair.stream.clone(), report.pair.state_stream.clone());
            let is_complete = self.reported.0.get(&pair).copied();
            if has_succeeded { !report.is_declared || is_complete.is_some() } else { is_complete == Some(true) }
        };
        // A connector that never reported may do so yet.
        (has_succeeded || !expected.is_empty()) && expected.iter().all(came)
    }
}

/// Vouches for the cursors of a run that gave its account.
pub(crate) fn settle<T: Track>(
    connection: &Connection,
    session: &Session<T>,
    outcome: &RunOutcome,
) -> Result<(), Failure> {
    let reach = session.start.about.reach.as_ref();
    for (name, stream) in session.streams.all() {
        let expected = reach.map_or(&[][..], |reach| reach.expected_reports(name));
        let is_sound = match session.gone_on_from(name).map(|bookmark| bookmark.lineage) {
            None | Some(Lineage::Proven) => true,
            Some(Lineage::Complete) => are_keys_of_list(connection, session, name, expected)?,
            Some(Lineage::Assumed) => false,
        };
        if is_sound && session.has_reported(expected, outcome.reason == TerminalReason::Succeeded) {
            let sql = "UPDATE cursors SET proven = token WHERE stream = ?1 AND track = ?2 AND run = ?3";
            connection.prepare_cached(sql)?.execute((stream, session.track(), session.run))?;
        }
    }
    Ok(())
}

/// Whether reports have shown that the store looked for the right keys, and for those of every stream that has reports.
fn are_keys_of_list<T: Track>(
    connection: &Connection,
    session: &Session<T>,
    list: &str,
    expected: &[ExpectedReport],
) -> Result<bool, Failure> {
    let sql = "SELECT 1 FROM parents WHERE stream = ?1 AND parent = ?2 AND keys = 'of_list'";
    for report in expected {
        if !exists(connection, sql, (session.streams.of(&report.pair.stream)?, list))? {
            return Ok(false);
        }
    }
    let sql = "SELECT count(*) FROM parents p JOIN streams s ON s.id = p.stream
               WHERE s.connection = ?1 AND p.parent = ?2 AND p.keys IS NOT NULL";
    let reported = connection.query_row(sql, (session.connection, list), |row| row.get::<_, i64>(0))?;
    Ok(from_sql(reported) == expected.len() as u64)
}
