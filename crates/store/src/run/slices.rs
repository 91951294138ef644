//! Writing a slice: records, quarantine, gaps and cursors, in one transaction and one sync.
//!
//! Each record is one row at the end of `versions` and one in the index of present records. A record
//! that is the same as the stored one makes no row, so a slice can be written twice and nothing is
//! there twice. Counters move with the rows they count. A receipt is made after the sync and nowhere
//! else.

use crate::account::owed::Asked;
use crate::care::row_hash::{optional_text, row_hash, text};
use crate::error::{Failure, StoreError, date_to_sql, from_sql, to_sql};
use crate::gaps::held_gaps::Brought;
use crate::run::quarantine;
use crate::run::session::{RunTables, Session};
use crate::sql::{execute, first, rows};
use crate::store::{Store, meta_number, set_meta_number};
use gleaner_engine::{
    CommitPlan, Counts, Cursor, GapChange, GapsConfirmed, Receipt, Slice, SliceId, SliceRecord, SliceStep, Track,
    WallTime,
};
use gleaner_protocol::Op;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Row};
use std::collections::BTreeMap;

impl Store {
    /// Writes a slice and syncs. After this returns, it is durable.
    ///
    /// # Errors
    ///
    /// Then nothing of it is there, or all of it if the device failed right after the sync. No later
    /// slice of the run may be written.
    pub fn write_slice<T: Track>(
        &mut self,
        session: &mut Session<T>,
        slice: Slice<T>,
        now: WallTime,
    ) -> Result<Receipt<T>, StoreError> {
        let leases = session.leases.clone();
        let (written, came) = self.write(&leases, |transaction| {
            let (held, tables) = (session.held.borrow(), session.tables(transaction));
            let mut brought = Brought::new(transaction, session.run, held.as_ref());
            for (record, _) in slice.rejected() {
                brought.reject(session.streams.of(record.stream)?, record.key);
            }
            let mut writer = SliceWriter::new(tables, now)?;
            for step in slice.steps() {
                match step {
                    SliceStep::Record(record) => {
                        let stream = writer.record(record)?;
                        session.owed.record(transaction, session.run, stream, &record)?;
                        brought.record(stream, &record)?;
                    }
                    SliceStep::Gap(change) => tables.change_gap(change, &mut brought, now)?,
                }
            }
            let mut written = writer.finish()?;
            for (record, misfit) in slice.rejected() {
                tables.quarantine(record, misfit, now)?;
                session.owed.record(transaction, session.run, session.streams.of(record.stream)?, &record)?;
                written.rejected += 1;
            }
            let gaps = slice.gap_changes().iter().filter(|change| matches!(change, GapChange::Open(_))).count();
            let (confirmed, came) = brought.finish();
            (written.gaps, written.recovered, written.confirmed) = (gaps as u64, confirmed.closed(), confirmed);
            count(transaction, session.run, &slice, written)?;
            tables.stage(slice.staged())?;
            tables.commit_cursors(slice.committed(), Some(slice.id()), now)?;
            session.pending.write(transaction, session.run)?;
            Ok((written, came))
        })?;
        session.pending.written();
        slice.committed().iter().for_each(|cursor| session.note_passed(cursor.stream()));
        if let Some(held) = session.held.get_mut() {
            held.written(came);
        }
        Ok(slice.into_receipt(session.epoch, written))
    }

    /// Commits cursors whose slices are durable, and syncs.
    ///
    /// # Errors
    ///
    /// Then no cursor of the plan is committed.
    pub fn commit<T: Track>(
        &mut self,
        session: &Session<T>,
        plan: &CommitPlan<T>,
        now: WallTime,
    ) -> Result<(), StoreError> {
        self.write(&session.leases, |transaction| session.tables(transaction).commit_cursors(plan.cursors(), None, now))
    }
}

/// What a slice does to the counters of one stream.
#[derive(Clone, Copy, Default)]
struct Delta {
    records: i64,
    tombstones: i64,
    versions: i64,
    last_seq: u64,
}

pub(crate) struct SliceWriter<'c, T: Track> {
    tables: RunTables<'c, T>,
    /// The run that brought the records.
    run: i64,
    insert_record: CachedStatement<'c>,
    insert_version: CachedStatement<'c>,
    now: i64,
    first_seq: u64,
    next_seq: u64,
    written: Counts,
    repeated: u64,
    deltas: BTreeMap<i64, Delta>,
    /// The stream of the record before: mostly the same one.
    last_stream: Option<(&'c str, i64)>,
    /// Streams that have records in quarantine, which a good record takes out again.
    in_quarantine: Vec<i64>,
}

impl<'c, T: Track> SliceWriter<'c, T> {
    pub(crate) fn new(tables: RunTables<'c, T>, now: WallTime) -> Result<Self, Failure> {
        let RunTables { connection, session } = tables;
        let next_seq = meta_number(connection, "next_seq")?;
        let sql = "SELECT id FROM streams WHERE connection = ?1 AND quarantined > 0";
        let in_quarantine = rows(connection, sql, [session.connection], |row| row.get(0))?;
        Ok(Self {
            tables,
            run: session.run,
            insert_record: connection.prepare_cached(
                "INSERT INTO records (stream, key, seq) VALUES (?1, ?2, ?3) ON CONFLICT (stream, key) DO NOTHING",
            )?,
            insert_version: connection.prepare_cached(
                "INSERT INTO versions (seq, stream, key, body, deleted, emitted_at, stored_at, run, previous, hash)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?,
            now: date_to_sql(now),
            first_seq: next_seq,
            next_seq,
            written: Counts::default(),
            repeated: 0,
            deltas: BTreeMap::new(),
            last_stream: None,
            in_quarantine,
        })
    }

    pub(crate) const fn tables(&self) -> RunTables<'c, T> {
        self.tables
    }

    /// Writes it, and answers whose it is.
    fn record(&mut self, record: SliceRecord<'_>) -> Result<i64, Failure> {
        let stream = self.stream(record.stream)?;
        if self.tables.holds_back(stream, &record)? {
            self.written.unchanged += 1;
            return Ok(stream);
        }
        self.store(stream, record)?;
        Ok(stream)
    }

    /// Writes a record that was in quarantine. An earlier run brought it.
    pub(crate) fn release(&mut self, record: SliceRecord<'_>, run: i64) -> Result<(), Failure> {
        let stream = self.tables.session.streams.of(record.stream)?;
        self.run = run;
        self.store(stream, record)
    }

    fn store(&mut self, stream: i64, record: SliceRecord<'_>) -> Result<(), Failure> {
        let is_new = self.insert_record.execute((stream, record.key, to_sql(self.next_seq)))? == 1;
        let previous = if is_new { None } else { Some(self.present(stream, record.key)?) };
        // Also when it is what was stored before the one that did not fit.
        if self.in_quarantine.contains(&stream) {
            quarantine::leave(self.tables.connection, stream, record.key)?;
        }
        self.written.times_unreadable += u64::from(record.without_time);
        if let Some(present) = previous.as_ref().filter(|present| present.is_same(&record)) {
            self.written.unchanged += 1;
            return self.mark_time(stream, &record, present.seq);
        }
        let deleted = record.op == Op::Delete;
        let was_there = previous.as_ref().is_some_and(|present| !present.deleted);
        let counter = match (deleted, was_there) {
            (true, _) => &mut self.written.deleted,
            (false, true) => &mut self.written.changed,
            (false, false) => &mut self.written.new,
        };
        *counter += 1;
        let delta = self.deltas.entry(stream).or_default();
        match &previous {
            None if deleted => delta.tombstones += 1,
            None => delta.records += 1,
            Some(present) if present.deleted && !deleted => {
                (delta.records, delta.tombstones) = (delta.records + 1, delta.tombstones - 1);
            }
            Some(present) if !present.deleted && deleted => {
                (delta.records, delta.tombstones) = (delta.records - 1, delta.tombstones + 1);
            }
            Some(_) => {}
        }
        (delta.versions, delta.last_seq) = (delta.versions + 1, self.next_seq);
        if let Some(present) = &previous {
            self.repeated += u64::from(present.seq >= self.first_seq);
            let sql = "UPDATE records SET seq = ?3 WHERE stream = ?1 AND key = ?2";
            execute(self.tables.connection, sql, (stream, record.key, to_sql(self.next_seq)))?;
            let sql = "DELETE FROM unreadable_times WHERE stream = ?1 AND seq = ?2";
            execute(self.tables.connection, sql, (stream, to_sql(present.seq)))?;
        }
        self.mark_time(stream, &record, self.next_seq)?;
        self.insert(stream, record, previous.map(|present| present.seq))?;
        self.next_seq += 1;
        Ok(())
    }

    /// Notes that the time of this version could not be read.
    fn mark_time(&self, stream: i64, record: &SliceRecord<'_>, seq: u64) -> Result<(), Failure> {
        if record.without_time {
            let sql = "INSERT OR IGNORE INTO unreadable_times (stream, seq) VALUES (?1, ?2)";
            execute(self.tables.connection, sql, (stream, to_sql(seq)))?;
        }
        Ok(())
    }

    fn insert(&mut self, stream: i64, record: SliceRecord<'_>, previous: Option<u64>) -> Result<(), Failure> {
        let deleted = record.op == Op::Delete;
        let (seq, previous) = (to_sql(self.next_seq), previous.map(to_sql));
        let SliceRecord { key, body, emitted_at, .. } = record;
        let number = ValueRef::Integer;
        let names = [number(seq), number(stream), text(key)];
        let content = [optional_text(body), number(deleted.into()), optional_text(emitted_at)];
        let origin = [number(self.now), number(self.run), previous.map_or(ValueRef::Null, number)];
        let hash = row_hash([names, content, origin].into_iter().flatten());
        let values = (seq, stream, key, body, deleted, emitted_at, self.now, self.run, previous, hash);
        self.insert_version.execute(values)?;
        Ok(())
    }

    fn stream(&mut self, name: &str) -> Result<i64, Failure> {
        match self.last_stream {
            Some((last, id)) if last == name => Ok(id),
            _ => {
                let (name, id) = self.tables.session.streams.entry(name)?;
                self.last_stream = Some((name, id));
                Ok(id)
            }
        }
    }

    /// The stored version of a record that is there.
    fn present(&self, stream: i64, key: &str) -> Result<Present, Failure> {
        let sql = "SELECT v.seq, v.deleted, v.body FROM records r JOIN versions v ON v.seq = r.seq
                   WHERE r.stream = ?1 AND r.key = ?2";
        let read = |row: &Row<'_>| Ok(Present { seq: from_sql(row.get(0)?), deleted: row.get(1)?, body: row.get(2)? });
        Ok(self.tables.connection.prepare_cached(sql)?.query_row((stream, key), read)?)
    }

    /// Counters and the place in the change feed. Answers what became of the records.
    pub(crate) fn finish(self) -> Result<Counts, Failure> {
        set_meta_number(self.tables.connection, "next_seq", self.next_seq)?;
        let sql = "UPDATE streams SET records = records + ?2, tombstones = tombstones + ?3, versions = versions + ?4,
                   last_seq = ?5, last_stored_at = ?6 WHERE id = ?1";
        for (stream, delta) in &self.deltas {
            let values = (stream, delta.records, delta.tombstones, delta.versions, to_sql(delta.last_seq), self.now);
            execute(self.tables.connection, sql, values)?;
        }
        if self.repeated > 0 {
            let sql = "UPDATE runs SET repeated = repeated + ?2 WHERE id = ?1";
            execute(self.tables.connection, sql, (self.tables.session.run, to_sql(self.repeated)))?;
        }
        Ok(self.written)
    }
}

/// Counts a slice in the row of its run, in the transaction that writes the slice: so the figures of a run are those of
/// its durable slices, also if it is killed.
fn count<T: Track>(connection: &Connection, run: i64, slice: &Slice<T>, written: Counts) -> Result<(), Failure> {
    let sql = "UPDATE runs SET slices = ?2, seen = seen + ?3, new_records = ifnull(new_records, 0) + ?4,
               changed_records = ifnull(changed_records, 0) + ?5, unchanged = unchanged + ?6,
               collected = collected + ?4 + ?5 + ?6, deleted = deleted + ?7, rejected = rejected + ?8,
               gaps = gaps + ?9, recovered = recovered + ?10, times_unreadable = times_unreadable + ?11 WHERE id = ?1";
    let Counts { new, changed, unchanged, deleted, rejected, times_unreadable, gaps, recovered, confirmed, .. } =
        written;
    let (slices, seen) = (slice.id().get(), slice.records().len() as u64 + rejected);
    let counts =
        [slices, seen, new, changed, unchanged, deleted, rejected, gaps, recovered, times_unreadable].map(to_sql);
    execute(connection, sql, rusqlite::params_from_iter([run].into_iter().chain(counts)))?;
    if confirmed == GapsConfirmed::default() { Ok(()) } else { count_confirmed(connection, run, confirmed) }
}

fn count_confirmed(connection: &Connection, run: i64, confirmed: GapsConfirmed) -> Result<(), Failure> {
    let GapsConfirmed { by_record, empty, unconfirmed, lists, list_records, list_gaps } = confirmed;
    let sql = "UPDATE runs SET recovered_by_record = recovered_by_record + ?2, recovered_empty = recovered_empty + ?3,
               recovered_unconfirmed = recovered_unconfirmed + ?4, recovered_lists = recovered_lists + ?5,
               list_records = list_records + ?6, list_gaps = list_gaps + ?7 WHERE id = ?1";
    let [by_record, empty, unconfirmed, lists, records, gaps] =
        [by_record, empty, unconfirmed, lists, list_records, list_gaps].map(to_sql);
    execute(connection, sql, (run, by_record, empty, unconfirmed, lists, records, gaps))
}

struct Present {
    seq: u64,
    deleted: bool,
    body: Option<String>,
}

impl Present {
    /// The time of writing is not content: a record that is read again has a new one.
    fn is_same(&self, record: &SliceRecord<'_>) -> bool {
        self.deleted == (record.op == Op::Delete) && self.body.as_deref() == record.body
    }
}

impl<T: Track> RunTables<'_, T> {
    fn stage(&self, cursors: &[Cursor<T>]) -> Result<(), Failure> {
        let sql = "INSERT OR REPLACE INTO staged VALUES (?1, ?2, ?3, ?4)";
        for cursor in cursors {
            let stream = self.session.streams.of(cursor.stream())?;
            let values = (self.session.run, stream, cursor.token().as_str(), to_sql(cursor.seq().get()));
            execute(self.connection, sql, values)?;
        }
        Ok(())
    }

    fn commit_cursors(&self, cursors: &[Cursor<T>], slice: Option<SliceId>, now: WallTime) -> Result<(), Failure> {
        let Self { connection, session } = *self;
        for cursor in cursors {
            let (stream, seq) = (session.streams.of(cursor.stream())?, to_sql(cursor.seq().get()));
            let (epoch, now) = (to_sql(session.epoch.get()), date_to_sql(now));
            // Opaque cursors cannot be compared; the numbers of commits can, and they only grow.
            let sql =
                "INSERT INTO cursors (stream, track, token, seq, epoch, run, committed_at, basis, is_assumed, proven,
                       is_complete) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (stream, track)
                       DO UPDATE SET token = excluded.token, seq = excluded.seq, epoch = excluded.epoch,
                       run = excluded.run, committed_at = excluded.committed_at, basis = excluded.basis,
                       is_assumed = excluded.is_assumed, proven = excluded.proven,
                       is_complete = excluded.is_complete WHERE excluded.seq > seq";
            let (track, (basis, is_assumed)) = (session.track(), session.basis(cursor.stream()));
            let (token, proven) = (cursor.token().as_str(), session.proven(cursor.stream()));
            let is_complete = self.is_complete(cursor.stream(), Asked::Meanwhile)?;
            let values = (stream, track, token, seq, epoch, session.run, now, basis, is_assumed, proven, is_complete);
            if connection.prepare_cached(sql)?.execute(values)? == 0 {
                let sql = "SELECT seq FROM cursors WHERE stream = ?1 AND track = ?2";
                let from = first(connection, sql, (stream, track), |row| row.get::<_, i64>(0))?;
                let (stream, from) = (cursor.stream().to_owned(), from.map_or(0, from_sql));
                return Err(StoreError::CommitGoesBack { stream, from, to: cursor.seq().get() }.into());
            }
            let sql = "INSERT INTO commits (stream, track, seq, epoch, run, slice, committed_at, hash)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
            let numbers = [seq, epoch, session.run, now].map(ValueRef::Integer);
            let names = [ValueRef::Integer(stream), text(track), text(token)];
            let hash = row_hash(names.into_iter().chain(numbers));
            let slice = slice.map(|slice| to_sql(slice.get()));
            execute(connection, sql, (stream, track, seq, epoch, session.run, slice, now, hash))?;
        }
        Ok(())
    }
}
