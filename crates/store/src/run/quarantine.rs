//! Records that do not fit the schema of their stream: kept apart with the reason, and judged again when something changes.
//!
//! A run whose manifest is not the one that a record was judged by holds the stored body against the new schema; a body
//! that fits becomes an ordinary record. A new version of the connector may send another body, but the cursor is past the
//! record, so the streams of the records that still do not fit are listed again, once per version.

use crate::care::repair::NOTHING;
use crate::error::{Failure, StoreError, date_to_sql};
use crate::gaps::renewal;
use crate::run::session::{RunTables, Session, raw_json};
use crate::run::slices::SliceWriter;
use crate::sql::{execute, exists, first, rows};
use crate::store::Store;
use gleaner_engine::{Misfit, SliceRecord, Track, Validate, WallTime};
use gleaner_protocol::Op;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// Records that are judged again in one transaction.
const BATCH_RECORDS: usize = 500;
/// Bytes of bodies after which a transaction ends early.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// How much of the hash of a manifest is noted.
const DIGEST_CHARS: usize = 32;

impl Store {
    /// Judges the records in quarantine again that were judged by another manifest, and answers how many fit now. Another
    /// version of the connector is asked again for those that do not, and for what the earlier one skipped. Belongs between
    /// the opening of a run and its first message, because it may change where the run goes on from.
    ///
    /// # Errors
    ///
    /// When the lease is lost or the store cannot be written. Records that were judged before that stay so.
    pub fn retry_quarantine<T: Track>(
        &mut self,
        session: &mut Session<T>,
        validator: &dyn Validate,
        now: WallTime,
    ) -> Result<u64, StoreError> {
        let of = session.connection;
        let any = "SELECT 1 FROM streams s WHERE connection = ?1
                   AND (quarantined > 0 OR EXISTS (SELECT 1 FROM skips k WHERE k.stream = s.id))";
        if !self.read(|connection| exists(connection, any, [of]))? {
            return Ok(0);
        }
        let leases = session.leases.clone();
        let (mut released, mut after) = (BTreeMap::<String, u64>::new(), 0);
        loop {
            let batch = self.write(&leases, |transaction| {
                let mut writer = SliceWriter::new(session.tables(transaction), now)?;
                let batch = judge_batch(&mut writer, validator, after)?;
                writer.finish()?;
                Ok(batch)
            })?;
            for (stream, count) in batch.released {
                *released.entry(stream).or_default() += count;
            }
            match batch.last {
                Some(last) => after = last,
                None => break,
            }
        }
        let streams = self.write(&leases, |transaction| {
            for stream in released.keys() {
                retry_gaps(transaction, session.streams.of(stream)?)?;
            }
            session.tables(transaction).list_again()
        })?;
        session.do_not_resume(&streams);
        Ok(released.into_values().sum())
    }
}

#[derive(Default)]
struct Batch {
    /// How many records of each stream.
    released: BTreeMap<String, u64>,
    /// The last row that was looked at; absent when none was left.
    last: Option<i64>,
}

struct Row {
    id: i64,
    stream: String,
    key: String,
    body: String,
    emitted_at: Option<String>,
    run: i64,
}

fn judge_batch<T: Track>(
    writer: &mut SliceWriter<'_, T>,
    validator: &dyn Validate,
    mut after: i64,
) -> Result<Batch, Failure> {
    let tables @ RunTables { connection, session } = writer.tables();
    let (mut batch, mut bytes) = (Batch::default(), 0);
    for _ in 0..BATCH_RECORDS {
        let Some(row) = tables.next_row(after)? else { break };
        (after, batch.last) = (row.id, Some(row.id));
        bytes += row.body.len();
        match validator.check(&row.stream, &raw_json(row.body.clone())?) {
            Ok(()) => {
                let record = SliceRecord {
                    stream: &row.stream,
                    key: &row.key,
                    op: Op::Upsert,
                    body: Some(&row.body),
                    emitted_at: row.emitted_at.as_deref(),
                    without_time: false,
                };
                writer.release(record, row.run)?;
                *batch.released.entry(row.stream).or_default() += 1;
            }
            Err(Misfit { pointer, reason }) => {
                let sql = "UPDATE quarantine SET pointer = ?2, reason = ?3, judged_by = ?4,
                           connector_version = ifnull(connector_version, ?5) WHERE id = ?1";
                let version = &session.start.about.connector_version;
                execute(connection, sql, (row.id, pointer, reason, &session.manifest, version))?;
            }
        }
        if bytes >= BATCH_BYTES {
            break;
        }
    }
    Ok(batch)
}

/// Gaps of a stream from which records left quarantine are served at once: a try may have failed because its record did not
/// fit, and the record is here now. The connector's next RECOVERED closes them.
fn retry_gaps(connection: &Connection, stream: i64) -> Result<u64, Failure> {
    let sql = "SELECT id FROM gaps WHERE stream = ?1 AND state = 'pending' AND not_before IS NOT NULL
               AND ifnull(reason, '') NOT IN ('rate_limited', 'upstream_pressure')";
    renewal::retry_all(connection, sql, [stream])
}

impl<T: Track> RunTables<'_, T> {
    /// The next record that was judged by another manifest. A stream that the manifest no longer has cannot be judged.
    fn next_row(&self, after: i64) -> Result<Option<Row>, Failure> {
        let sql = "SELECT q.id, s.name, q.key, q.body, q.emitted_at, q.run FROM quarantine q
                   JOIN streams s ON s.id = q.stream WHERE q.id > ?2 AND s.connection = ?1 AND s.declared = 1
                   AND q.body IS NOT NULL AND q.judged_by IS NOT ?3 ORDER BY q.id LIMIT 1";
        let read = |row: &rusqlite::Row<'_>| {
            let (stream, key, body) = (row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(Row { id: row.get(0)?, stream, key, body, emitted_at: row.get(4)?, run: row.get(5)? })
        };
        first(self.connection, sql, (self.session.connection, after, &self.session.manifest), read)
    }

    /// Sees to it that another version of the connector sends again what does not fit and what was skipped: no run goes on
    /// from the cursors by which these records are found. Answers the streams of those cursors.
    fn list_again(&self) -> Result<BTreeSet<String>, Failure> {
        let Self { connection, session } = *self;
        // A run that asks for less would list less again, and nobody would list the rest.
        let version = session.start.about.connector_version.as_ref().filter(|_| session.is_ordinary());
        let Some(version) = version else { return Ok(BTreeSet::new()) };
        let mut streams = BTreeSet::new();
        for table in ["quarantine", "skips"] {
            let of_others = format!(
                "{table} WHERE connector_version != ?2 AND stream IN (SELECT id FROM streams WHERE connection = ?1)"
            );
            let sql = format!("SELECT name FROM streams WHERE id IN (SELECT stream FROM {of_others})");
            let values = (session.connection, version);
            let names = rows(connection, &sql, values, |row| row.get::<_, String>(0))?;
            streams.extend(names.iter().flat_map(|name| session.lists_of(name)));
            let sql = format!("UPDATE {}", of_others.replacen("WHERE", "SET connector_version = ?2 WHERE", 1));
            execute(connection, &sql, values)?;
        }
        for stream in &streams {
            do_not_resume(connection, session.streams.of(stream)?, None)?;
        }
        Ok(streams)
    }

    /// Puts a record there. The same fault again replaces the older one: what counts is what the provider has now.
    pub(crate) fn quarantine(
        &self,
        record: SliceRecord<'_>,
        Misfit { pointer, reason }: &Misfit,
        now: WallTime,
    ) -> Result<(), Failure> {
        let Self { connection, session } = *self;
        let stream = session.streams.of(record.stream)?;
        if self.forgives(stream, &record)? {
            return Ok(());
        }
        leave(connection, stream, record.key)?;
        let sql = "INSERT INTO quarantine
                   (stream, key, body, emitted_at, pointer, reason, run, stored_at, judged_by, connector_version)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let (run, manifest, version) = (session.run, &session.manifest, &session.start.about.connector_version);
        let (key, body, emitted_at) = (record.key, record.body, record.emitted_at);
        let values = (stream, key, body, emitted_at, pointer, reason, run, date_to_sql(now), manifest, version);
        execute(connection, sql, values)?;
        execute(connection, "UPDATE streams SET quarantined = quarantined + 1 WHERE id = ?1", [stream])
    }
}

/// No run goes on from the cursors of this stream, on this track or on any.
pub(crate) fn do_not_resume(connection: &Connection, stream: i64, track: Option<&str>) -> Result<(), Failure> {
    let sql = "UPDATE cursors SET basis = ?2 WHERE stream = ?1 AND (?3 IS NULL OR track = ?3)";
    execute(connection, sql, (stream, NOTHING, track))
}

/// Takes a record out.
pub(crate) fn leave(connection: &Connection, stream: i64, key: &str) -> Result<(), Failure> {
    let sql = "DELETE FROM quarantine WHERE stream = ?1 AND key = ?2";
    let left = connection.prepare_cached(sql)?.execute((stream, key))?;
    if left > 0 {
        let sql = "UPDATE streams SET quarantined = quarantined - ?2 WHERE id = ?1";
        execute(connection, sql, (stream, i64::try_from(left).unwrap_or(0)))?;
    }
    Ok(())
}

/// A digest of the manifest that a connection has.
pub(crate) fn manifest_digest(connection: &Connection, of: i64) -> Result<String, Failure> {
    let sql = "SELECT manifest FROM connections WHERE id = ?1";
    let manifest = connection.prepare_cached(sql)?.query_row([of], |row| row.get::<_, String>(0))?;
    Ok(blake3::hash(manifest.as_bytes()).to_hex()[..DIGEST_CHARS].to_owned())
}
