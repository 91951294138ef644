//! The keys of coverage reports: a million of them are kept in a temporary table and counted there.
//!
//! The table is this connection's own, lies in a file that has no name, and needs no sync: a report
//! that a crash takes away belongs to a run that the crash took away, too. What counts is what
//! `KeysInMemory` of the engine's tests would count; a test holds the two together.

use crate::account::hydrated_keys::ReportKeys;
use crate::error::{Failure, StoreError, from_sql, to_sql};
use crate::gaps::gap_rows::{GapRow, identity_hash};
use crate::gaps::held_gaps::HeldGaps;
use crate::run::listings::{self, PendingListing};
use crate::run::session::{RunTables, Session};
use crate::sql::{execute, exists, first, rows};
use crate::store::Store;
use gleaner_engine::{
    CoveragePair, CoverageTally, CoverageVerdict, GapIdentity, ReportId, ReportedKeys, Track, WallTime,
};
use gleaner_protocol::{CoverageField, KeyBlock};
use rusqlite::Connection;

pub(crate) const REQUIRED: i64 = 1;
pub(crate) const HYDRATED: i64 = 2;
const GAP: i64 = 4;
const SKIPPED: i64 = 8;
pub(crate) const OUTCOMES: i64 = HYDRATED | GAP | SKIPPED;
/// The key was in one list twice.
const DOUBLED: i64 = 16;
/// It is called hydrated, and the store has nothing for it.
pub(crate) const MISSING: i64 = 32;
/// It is called hydrated, and its record is in quarantine.
pub(crate) const QUARANTINED: i64 = 64;
/// It is called hydrated, and only the parent has it.
pub(crate) const EMPTY: i64 = 128;
/// Keys in memory at a time.
const BATCH: i64 = 1000;

const fn bit(field: CoverageField) -> i64 {
    match field {
        CoverageField::RequiredKeys => REQUIRED,
        CoverageField::HydratedKeys => HYDRATED,
        CoverageField::GapKeys => GAP,
        CoverageField::OptionalSkipKeys => SKIPPED,
    }
}

/// Where the keys are.
const TABLE: &str = "CREATE TEMP TABLE IF NOT EXISTS coverage_keys (run INTEGER NOT NULL, report INTEGER NOT NULL,
                     key TEXT NOT NULL, lists INTEGER NOT NULL, PRIMARY KEY (run, report, key)) STRICT, WITHOUT ROWID";

/// Which report of which run.
pub(crate) type Place = (i64, i64);

fn place<T: Track>(session: &Session<T>, report: ReportId) -> Place {
    (session.run, i64::try_from(report.get()).unwrap_or(i64::MAX))
}

impl Store {
    /// Keeps keys of a report until the run ends.
    ///
    /// # Errors
    ///
    /// When there is no space for them.
    pub fn keep_coverage_keys<T: Track>(
        &mut self,
        session: &Session<T>,
        report: ReportId,
        field: CoverageField,
        keys: &KeyBlock,
    ) -> Result<(), StoreError> {
        let place = place(session, report);
        self.read(|connection| {
            connection.execute_batch(TABLE)?;
            // One transaction for the block: it costs no sync, and each row by itself would.
            all_or_nothing(connection, || keep(connection, place, field, keys))
        })
    }

    /// Counts the keys of a report. The numbers are kept for people with the next slice.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn tally_coverage<T: Track>(
        &self,
        session: &mut Session<T>,
        report: ReportId,
        pair: &CoveragePair,
    ) -> Result<CoverageTally, StoreError> {
        let place = place(session, report);
        let (tally, listing) = self.read(|connection| {
            let stream_id = session.streams.of(&pair.stream)?;
            if !is_kept(connection)? {
                return Ok((CoverageTally::default(), PendingListing::of_nothing(stream_id, &pair.state_stream)));
            }
            let tables = session.tables(connection);
            let keys = tables.keys_of(place, pair)?;
            if session.has_report(pair) {
                keys.forget_marks()?;
            }
            let mut tally = all_or_nothing(connection, || tables.count(&keys, pair))?;
            tally.expands_list = session.held.borrow().as_ref().is_some_and(HeldGaps::has_lists);
            tally.gaps_unlisted = tables.count_unlisted(place, pair)?;
            let listing = count_outcomes(connection, place, &tally, (stream_id, &pair.state_stream))?;
            // A run that is not ordinary may ask for a detail and not for its record in the list.
            let is_told = session.is_ordinary() && tally.required > 0;
            let keys = if is_told { keys.whose()? } else { ReportedKeys::Unknown };
            Ok((tally, PendingListing { keys, ..listing }))
        })?;
        // Lists that contradict each other say nothing; the run ends because of them.
        if let Ok(verdict) = tally.judge(&pair.stream) {
            let is_whole = session.is_ordinary();
            let stream = session.streams.of(&pair.stream).unwrap_or_default();
            session.pending.listings.retain(|earlier| !earlier.is_of(stream, &pair.state_stream));
            session.pending.listings.push(PendingListing { is_whole, ..listing });
            if !session.has_report(pair) {
                self.read(|connection| session.owed.reported(connection, session.run, pair))?;
            }
            session.note_reported(pair, place.1, verdict == CoverageVerdict::Complete);
        }
        Ok(tally)
    }

    /// Writes what nothing accounts for as gaps with the reason `unaccounted`, and syncs. Answers how many.
    ///
    /// # Errors
    ///
    /// When the store cannot be written. Then some of them may be there; writing them again does no harm.
    pub fn write_unaccounted<T: Track>(
        &mut self,
        session: &mut Session<T>,
        report: ReportId,
        pair: &CoveragePair,
        now: WallTime,
    ) -> Result<u64, StoreError> {
        let place = place(session, report);
        let (stream, state_stream) = (pair.stream.as_str(), pair.state_stream.as_str());
        let leases = session.leases.clone();
        let written = self.write(&leases, |transaction| {
            listings::nothing_unaccounted(transaction, session.streams.of(stream)?, state_stream)?;
            if !is_kept(transaction)? {
                return Ok(0);
            }
            let tables = session.tables(transaction);
            // Records may have come after a report that was early.
            tables.keys_of(place, pair)?.mark_again()?;
            let written = tables.open_unaccounted(pair, place, &without_outcome(), now)?;
            let sql = "UPDATE runs SET unaccounted = unaccounted + ?2 WHERE id = ?1";
            execute(transaction, sql, (session.run, to_sql(written)))?;
            Ok(written)
        })?;
        // They are gaps now; counted here, too, they would be missing twice.
        let listings = session.pending.listings.iter_mut();
        let of_report =
            listings.filter(|listing| session.streams.of(stream).is_ok_and(|id| listing.is_of(id, state_stream)));
        of_report.for_each(PendingListing::nothing_waits);
        Ok(written)
    }
}

/// Does all of it or nothing, and leaves no transaction open.
fn all_or_nothing<R>(connection: &Connection, work: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    connection.execute_batch("SAVEPOINT coverage_keys")?;
    let done = work().and_then(|done| Ok(connection.execute_batch("RELEASE coverage_keys").map(|()| done)?));
    if done.is_err() {
        // SQLite may have undone all of it by itself; what failed first is what counts.
        let _undone = connection.execute_batch("ROLLBACK TO coverage_keys; RELEASE coverage_keys");
    }
    done
}

/// Forgets the keys of a run.
pub(crate) fn forget(connection: &Connection, run: i64) -> Result<(), Failure> {
    if is_kept(connection)? {
        connection.execute("DELETE FROM temp.coverage_keys WHERE run = ?1", [run])?;
    }
    Ok(())
}

/// Forgets the keys of one report.
pub(crate) fn forget_report(connection: &Connection, place: Place) -> Result<(), Failure> {
    execute(connection, "DELETE FROM temp.coverage_keys WHERE run = ?1 AND report = ?2", place)
}

/// Makes the table, for keys that come from no report.
pub(crate) fn create_table(connection: &Connection) -> Result<(), Failure> {
    Ok(connection.execute_batch(TABLE)?)
}

/// Which keys of a report have no outcome, or one that the store does not confirm.
pub(crate) fn without_outcome() -> String {
    let (settled, named) = (HYDRATED | SKIPPED, REQUIRED | GAP);
    format!("(lists & {MISSING} != 0 OR (lists & {settled} = 0 AND lists & {named} != 0))")
}

fn is_kept(connection: &Connection) -> Result<bool, Failure> {
    let sql = "SELECT 1 FROM sqlite_temp_schema WHERE name = 'coverage_keys'";
    exists(connection, sql, [])
}

fn keep(connection: &Connection, (run, report): Place, field: CoverageField, keys: &KeyBlock) -> Result<(), Failure> {
    let sql = format!(
        "INSERT INTO temp.coverage_keys VALUES (?1, ?2, ?3, ?4) ON CONFLICT (run, report, key) \
         DO UPDATE SET lists = lists | excluded.lists | (CASE lists & excluded.lists WHEN 0 THEN 0 ELSE {DOUBLED} END)"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    for key in keys.iter() {
        statement.execute((run, report, key, bit(field)))?;
    }
    Ok(())
}

/// What the lists alone show.
fn count_lists(connection: &Connection, place: Place) -> Result<CoverageTally, Failure> {
    let one = |condition: String| -> Result<Option<String>, Failure> {
        let sql = format!(
            "SELECT key FROM temp.coverage_keys WHERE run = ?1 AND report = ?2 AND ({condition}) ORDER BY key LIMIT 1"
        );
        first(connection, &sql, place, |row| row.get(0))
    };
    let several = [HYDRATED | GAP, HYDRATED | SKIPPED, GAP | SKIPPED].map(|two| format!("lists & {two} = {two}"));
    let sql = format!(
        "SELECT count(*) FILTER (WHERE lists & {REQUIRED} != 0), \
         count(*) FILTER (WHERE lists & {REQUIRED} != 0 AND lists & {OUTCOMES} = {SKIPPED}) \
         FROM temp.coverage_keys WHERE run = ?1 AND report = ?2"
    );
    let (required, skipped) =
        connection.query_row(&sql, place, |row| Ok((from_sql(row.get(0)?), from_sql(row.get(1)?))))?;
    Ok(CoverageTally {
        duplicate: one(format!("lists & {DOUBLED} != 0"))?,
        not_required: one(format!("lists & {REQUIRED} = 0"))?,
        overlap: one(format!("lists & {REQUIRED} != 0 AND ({})", several.join(" OR ")))?,
        required,
        skipped,
        ..CoverageTally::default()
    })
}

/// The same in the numbers that people are shown: each required key once, by what became of it.
fn count_outcomes(
    connection: &Connection,
    place: Place,
    tally: &CoverageTally,
    (stream, parent): (i64, &str),
) -> Result<PendingListing, Failure> {
    let sql = format!(
        "SELECT count(*) FROM temp.coverage_keys WHERE run = ?1 AND report = ?2 AND lists & {REQUIRED} != 0 \
         AND lists & {OUTCOMES} = {HYDRATED} AND lists & {} = 0",
        MISSING | QUARANTINED | EMPTY
    );
    let hydrated = from_sql(connection.query_row(&sql, place, |row| row.get(0))?);
    let CoverageTally { required, skipped, empty, in_quarantine, unconfirmed, .. } = *tally;
    let others = [hydrated, skipped, empty, in_quarantine, tally.unaccounted()];
    Ok(PendingListing {
        required,
        hydrated,
        // Whatever list it was in: what is left is in a durable gap.
        gaps: others.into_iter().fold(required, u64::saturating_sub),
        skipped,
        unaccounted: tally.unaccounted(),
        unconfirmed,
        empty,
        waiting: tally.waiting.clone(),
        ..PendingListing::of_nothing(stream, parent)
    })
}

/// Calls with each key of a report that fits, in order, holding a batch of them at a time.
pub(crate) fn each_key(
    connection: &Connection,
    (run, report): Place,
    condition: &str,
    mut call: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let sql = format!(
        "SELECT key FROM temp.coverage_keys WHERE run = ?1 AND report = ?2 AND key > ?3 AND {condition} \
         ORDER BY key LIMIT {BATCH}"
    );
    // Keys are never empty, so the first is after this.
    let mut after = String::new();
    loop {
        let keys = rows(connection, &sql, (run, report, &after), |row| row.get::<_, String>(0))?;
        for key in &keys {
            call(key)?;
        }
        match keys.into_iter().next_back() {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

impl<T: Track> RunTables<'_, T> {
    /// Counts the keys of a report by what the store has for them.
    fn count(&self, keys: &ReportKeys<'_>, pair: &CoveragePair) -> Result<CoverageTally, Failure> {
        let mut tally = count_lists(self.connection, keys.place)?;
        keys.mark_missing()?;
        (tally.in_quarantine, tally.empty) = (keys.count(QUARANTINED)?, keys.count(EMPTY)?);
        // Called gaps, without an outcome, or called hydrated in vain: a durable gap accounts for each.
        let kinds = [
            format!("lists & {OUTCOMES} = {GAP}"),
            format!("lists & {OUTCOMES} = 0"),
            format!("lists & {OUTCOMES} = {HYDRATED} AND lists & {MISSING} != 0"),
        ];
        let mut without = [0; 3];
        for (kind, without) in kinds.iter().zip(&mut without) {
            each_key(self.connection, keys.place, &format!("{kind} AND lists & {REQUIRED} != 0"), |key| {
                if !self.has_durable_gap(pair, key)? {
                    *without += 1;
                    tally.wait_for(key);
                }
                Ok(())
            })?;
        }
        [tally.gaps_not_durable, tally.without_outcome, tally.unconfirmed] = without;
        Ok(tally)
    }

    /// The gaps of the pair that this run wrote and that its report does not name.
    fn count_unlisted(&self, (run, report): Place, pair: &CoveragePair) -> Result<u64, Failure> {
        let sql = format!(
            "SELECT count(*) FROM gaps g WHERE g.stream = ?1 AND g.state IN ('pending', 'terminal') AND g.deferred_under = ?2
             AND g.part_of_list = 0 AND substr(g.record_key, 1, 8) != 'gleaner:'
             AND (g.parent_stream = ?3 OR (g.parent_stream IS NULL AND ?4)) AND NOT EXISTS
             (SELECT 1 FROM temp.coverage_keys k WHERE k.run = ?5 AND k.report = ?6 AND k.key = g.record_key
              AND k.lists & {GAP} != 0)"
        );
        let (stream, lease) = (self.session.streams.of(&pair.stream)?, self.session.start.lease.as_str());
        let values = (stream, lease, &pair.state_stream, pair.any_parent, run, report);
        Ok(from_sql(self.connection.prepare_cached(&sql)?.query_row(values, |row| row.get(0))?))
    }

    /// Whether there is an open gap for this key, of the report's stream and parent, or without a parent where there is
    /// only one that it can mean.
    pub(crate) fn has_durable_gap(&self, pair: &CoveragePair, key: &str) -> Result<bool, Failure> {
        let start = &self.session.start;
        let without = pair.any_parent.then_some(None);
        let parents = [Some(pair.state_stream.clone())].into_iter().chain(without);
        // What stands for many may be under the grant of the track.
        let grants = [start.grant.clone(), self.session.gap_grant(true)];
        for (parent_stream, grant) in parents.flat_map(|parent| grants.each_ref().map(|grant| (parent.clone(), grant)))
        {
            let identity = GapIdentity {
                connection: start.connection.clone(),
                grant: grant.clone(),
                stream: pair.stream.clone(),
                parent_stream,
                subject: format!("key:{key}"),
            };
            let row = GapRow::find(self.connection, &identity_hash(&identity))?;
            if row.is_some_and(|row| row.gap.is_open()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_find_no_room_are_a_full_disk_and_leave_no_transaction_open() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TEMP TABLE t (x); PRAGMA temp.max_page_count = 5").unwrap();
        let fill = || {
            (0..100)
                .try_for_each(|_| Ok(connection.execute("INSERT INTO t VALUES (zeroblob(1000))", []).map(|_| ())?))
        };
        let failed = all_or_nothing(&connection, fill).unwrap_err().at(std::path::Path::new("s"));
        assert!(matches!(failed, StoreError::DiskFull(_)), "{failed}");
        assert!(connection.is_autocommit(), "a transaction is still open");
        assert_eq!(connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
        // An error after which SQLite undoes nothing by itself.
        let stumble = || {
            connection.execute("INSERT INTO t VALUES (1)", [])?;
            Ok(connection.execute_batch("SELECT * FROM nowhere")?)
        };
        all_or_nothing(&connection, stumble).unwrap_err();
        assert!(connection.is_autocommit(), "a transaction is still open");
        assert_eq!(connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    }
}
