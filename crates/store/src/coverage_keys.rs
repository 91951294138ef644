//! The keys of coverage reports: a million of them are kept in a temporary table and counted there.
//!
//! The table is this connection's own, lies in a file that has no name, and needs no sync: a report
//! that a crash takes away belongs to a run that the crash took away, too. What counts is what
//! [`KeysInMemory`](gleaner_engine::KeysInMemory) would count; a test holds the two together.

use crate::error::{Failure, StoreError, from_sql, to_sql};
use crate::gap_rows::{self, GapRow};
use crate::listings::{self, PendingListing};
use crate::session::Session;
use crate::slices::is_in_quarantine;
use crate::store::Store;
use gleaner_engine::{CoverageTally, GapIdentity, ReportId, Track, WallTime};
use gleaner_protocol::{AbsenceReason, CoverageField, DetailGap, GapKey, GapReason, KeyBlock};
use rusqlite::{Connection, OptionalExtension};

const REQUIRED: i64 = 1;
const HYDRATED: i64 = 2;
const GAP: i64 = 4;
const SKIPPED: i64 = 8;
const OUTCOMES: i64 = HYDRATED | GAP | SKIPPED;
/// The key was in one list twice.
const DOUBLED: i64 = 16;
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

/// Which report of which run.
type Place = (i64, i64);

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
            connection.execute_batch(
                "CREATE TEMP TABLE IF NOT EXISTS coverage_keys (run INTEGER NOT NULL, report INTEGER NOT NULL,
                 key TEXT NOT NULL, lists INTEGER NOT NULL, PRIMARY KEY (run, report, key)) STRICT, WITHOUT ROWID",
            )?;
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
        stream: &str,
        state_stream: &str,
    ) -> Result<CoverageTally, StoreError> {
        let place = place(session, report);
        let (tally, listing) = self.read(|connection| {
            let stream_id = session.streams.of(stream)?;
            if !is_kept(connection)? {
                return Ok((CoverageTally::default(), PendingListing::of_nothing(stream_id, state_stream)));
            }
            let mut tally = count_lists(connection, place)?;
            let is_gap = format!("lists & {OUTCOMES} = {GAP} AND lists & {REQUIRED} != 0");
            each_key(connection, place, &is_gap, |key| {
                let durable = has_durable_gap(connection, session, (stream, state_stream), key)?;
                tally.gaps_not_durable += u64::from(!durable);
                Ok(())
            })?;
            let is_hydrated = format!("lists & {OUTCOMES} = {HYDRATED} AND lists & {REQUIRED} != 0");
            if has_quarantine(connection, stream_id)? {
                each_key(connection, place, &is_hydrated, |key| {
                    tally.in_quarantine += u64::from(is_in_quarantine(connection, stream_id, key, session.run)?);
                    Ok(())
                })?;
            }
            let listing = count_outcomes(connection, place, &tally, (stream_id, state_stream))?;
            Ok((tally, listing))
        })?;
        // Lists that contradict each other say nothing; the run ends because of them.
        if tally.judge(stream).is_ok() {
            session.pending.listings.push(listing);
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
        stream: &str,
        state_stream: &str,
        now: WallTime,
    ) -> Result<u64, StoreError> {
        let place = place(session, report);
        let leases = session.leases.clone();
        let written = self.write(&leases, |transaction| {
            listings::nothing_unaccounted(transaction, session.streams.of(stream)?, state_stream)?;
            if !is_kept(transaction)? {
                return Ok(0);
            }
            let without = format!("lists & {} = 0 AND lists & {} != 0", HYDRATED | SKIPPED, REQUIRED | GAP);
            let mut written = 0;
            each_key(transaction, place, &without, |key| {
                if has_durable_gap(transaction, session, (stream, state_stream), key)? {
                    return Ok(());
                }
                let gap = DetailGap {
                    stream: stream.to_owned(),
                    parent_stream: Some(state_stream.to_owned()),
                    record_key: Some(GapKey::Text(key.to_owned())),
                    reason: Some(GapReason::Absence(AbsenceReason::Unaccounted)),
                    ..DetailGap::default()
                };
                gap_rows::open(transaction, session, &gap, now)?;
                written += 1;
                Ok(())
            })?;
            let sql = "UPDATE runs SET unaccounted = unaccounted + ?2 WHERE id = ?1";
            transaction.prepare_cached(sql)?.execute((session.run, to_sql(written)))?;
            Ok(written)
        })?;
        // They are gaps now; counted here, too, they would be missing twice.
        let listings = session.pending.listings.iter_mut();
        let of_report =
            listings.filter(|listing| session.streams.of(stream).is_ok_and(|id| listing.is_of(id, state_stream)));
        of_report.for_each(|listing| listing.unaccounted = 0);
        Ok(written)
    }
}

/// Does all of it or nothing, and leaves no transaction open.
fn all_or_nothing(connection: &Connection, work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    connection.execute_batch("SAVEPOINT coverage_keys")?;
    let done = work().and_then(|()| Ok(connection.execute_batch("RELEASE coverage_keys")?));
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

fn is_kept(connection: &Connection) -> Result<bool, Failure> {
    let sql = "SELECT 1 FROM sqlite_temp_schema WHERE name = 'coverage_keys'";
    Ok(connection.query_row(sql, [], |_| Ok(())).optional()?.is_some())
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
        Ok(connection.query_row(&sql, place, |row| row.get(0)).optional()?)
    };
    let several = [HYDRATED | GAP, HYDRATED | SKIPPED, GAP | SKIPPED].map(|two| format!("lists & {two} = {two}"));
    let sql = format!(
        "SELECT count(*) FILTER (WHERE lists & {REQUIRED} != 0), \
         count(*) FILTER (WHERE lists & {REQUIRED} != 0 AND lists & {OUTCOMES} = 0) \
         FROM temp.coverage_keys WHERE run = ?1 AND report = ?2"
    );
    let (required, without_outcome) =
        connection.query_row(&sql, place, |row| Ok((from_sql(row.get(0)?), from_sql(row.get(1)?))))?;
    Ok(CoverageTally {
        duplicate: one(format!("lists & {DOUBLED} != 0"))?,
        not_required: one(format!("lists & {REQUIRED} = 0"))?,
        overlap: one(several.join(" OR "))?,
        required,
        without_outcome,
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
    let count = |outcome: i64| format!("count(*) FILTER (WHERE lists & {OUTCOMES} = {outcome})");
    let sql = format!(
        "SELECT {}, {}, {} FROM temp.coverage_keys WHERE run = ?1 AND report = ?2 AND lists & {REQUIRED} != 0",
        count(HYDRATED),
        count(GAP),
        count(SKIPPED)
    );
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let (hydrated, gaps, skipped) = connection.query_row(&sql, place, read)?;
    Ok(PendingListing {
        required: tally.required,
        hydrated: from_sql(hydrated).saturating_sub(tally.in_quarantine),
        gaps: from_sql(gaps).saturating_sub(tally.gaps_not_durable),
        skipped: from_sql(skipped),
        unaccounted: tally.without_outcome.saturating_add(tally.gaps_not_durable),
        ..PendingListing::of_nothing(stream, parent)
    })
}

/// Calls with each key of a report that fits, in order, holding a batch of them at a time.
fn each_key(
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
        let mut statement = connection.prepare_cached(&sql)?;
        let keys = statement.query_map((run, report, &after), |row| row.get::<_, String>(0))?;
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        for key in &keys {
            call(key)?;
        }
        match keys.into_iter().next_back() {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

/// Whether there is an open gap for this key, of the report's stream and parent. A report of a stream
/// about itself has no parent that its gaps would have to name.
fn has_durable_gap<T: Track>(
    connection: &Connection,
    session: &Session<T>,
    (stream, state_stream): (&str, &str),
    key: &str,
) -> Result<bool, Failure> {
    let mut parents = vec![Some(state_stream.to_owned())];
    if stream == state_stream {
        parents.push(None);
    }
    for parent_stream in parents {
        let identity = GapIdentity {
            connection: session.start.connection.clone(),
            grant: session.start.grant.clone(),
            stream: stream.to_owned(),
            parent_stream,
            subject: format!("key:{key}"),
        };
        let row = GapRow::find(connection, &gap_rows::identity_hash(&identity))?;
        if row.is_some_and(|row| row.gap.is_open()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_quarantine(connection: &Connection, stream: i64) -> Result<bool, Failure> {
    crate::session::exists(connection, "SELECT 1 FROM streams WHERE id = ?1 AND quarantined > 0", [stream])
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
