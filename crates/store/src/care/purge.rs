//! Forgetting a connection for good.
//!
//! First it is marked, so that no run begins and a crash in between leaves something that can be gone
//! on with. Then its rows go, some thousand at a time, so that neither the log nor memory grows with
//! what is forgotten. Secure deletion writes zeros over each row; last the log is emptied, because it
//! holds older pages. What remains are the store's own counters, which name nobody.

use crate::error::{Failure, StoreError};
use crate::lease::{Lease, LeaseOn};
use crate::sql::{execute, rows};
use crate::store::Store;
use crate::views;
use rusqlite::{Connection, OptionalExtension};

/// Rows per transaction.
const BATCH: i64 = 5000;

/// What is deleted, by what it belongs to. The connection itself goes last.
const BY_STREAM: [&str; 10] = [
    "records",
    "unreadable_times",
    "quarantine",
    "gaps",
    "cursors",
    "commits",
    "listings",
    "parents",
    "skips",
    "awaited_keys",
];
const BY_RUN: [&str; 3] = ["events", "interactions", "staged"];

impl Store {
    /// Forgets a connection: records, history, gaps, quarantine, cursors, runs, traces and questions.
    /// The caller holds its lease, so that no run goes on. A purge that was cut short goes on.
    ///
    /// # Errors
    ///
    /// When there is no such connection, the lease is lost or the store cannot be written.
    pub fn purge(&mut self, name: &str, leases: &[Lease]) -> Result<u64, StoreError> {
        Lease::has_connection(leases, name)?;
        let of = self.write(leases, |transaction| {
            let sql = "UPDATE connections SET state = 'purging' WHERE name = ?1 RETURNING id";
            let id = transaction.query_row(sql, [name], |row| row.get::<_, i64>(0)).optional()?;
            let id = id.ok_or_else(|| StoreError::UnknownConnection(name.to_owned()))?;
            for stream in ids(transaction, "SELECT id FROM streams WHERE connection = ?1", id)? {
                views::drop_view(transaction, stream)?;
            }
            Ok(id)
        })?;
        let mut deleted = self.delete_versions(leases, of)?;
        for stream in self.read(|connection| ids(connection, "SELECT id FROM streams WHERE connection = ?1", of))? {
            for table in BY_STREAM {
                deleted += self.delete_all(leases, table, "stream", stream)?;
            }
        }
        for run in self.read(|connection| ids(connection, "SELECT id FROM runs WHERE connection = ?1", of))? {
            for table in BY_RUN {
                deleted += self.delete_all(leases, table, "run", run)?;
            }
        }
        self.write(leases, |transaction| {
            for table in ["runs", "cooldowns", "schedules", "wanted", "notices", "streams"] {
                transaction.execute(&format!("DELETE FROM {table} WHERE connection = ?1"), [of])?;
            }
            execute(transaction, "UPDATE connections SET manifest = '', connector_id = '' WHERE id = ?1", [of])
        })?;
        // Before the connection goes: as long as it is there, a purge that was told to wait can be repeated.
        self.empty_log()?;
        self.write(leases, |transaction| {
            transaction.execute("DELETE FROM connections WHERE id = ?1", [of])?;
            // Its lease has its name. Whoever still thinks to hold it finds none, and stops.
            execute(transaction, "DELETE FROM leases WHERE name = ?1", [LeaseOn::Connection(name).name()])
        })?;
        self.empty_log()?;
        Ok(deleted)
    }

    fn delete_all(&mut self, leases: &[Lease], table: &str, column: &str, id: i64) -> Result<u64, StoreError> {
        // Tables without a row number are named by their key. All names are ours.
        let key = match table {
            "records" => "(stream, key)",
            "unreadable_times" => "(stream, seq)",
            "cursors" | "skips" => "(stream, track)",
            "listings" | "parents" => "(stream, parent)",
            "awaited_keys" => "(stream, parent, key)",
            "staged" => "(run, stream)",
            _ => "id",
        };
        let columns = key.trim_matches(['(', ')']);
        let sql = format!(
            "DELETE FROM {table} WHERE {key} IN (SELECT {columns} FROM {table} WHERE {column} = ?1 LIMIT {BATCH})"
        );
        let mut deleted = 0;
        loop {
            let rows = self.write(leases, |transaction| Ok(transaction.prepare_cached(&sql)?.execute([id])?))?;
            deleted += rows as u64;
            if rows == 0 {
                return Ok(deleted);
            }
        }
    }

    /// Versions have no index by stream; they are gone through in their order.
    fn delete_versions(&mut self, leases: &[Lease], of: i64) -> Result<u64, StoreError> {
        let last = "SELECT ifnull(max(seq), 0) FROM versions";
        let last = self.read(|connection| Ok(connection.query_row(last, [], |row| row.get::<_, i64>(0))?))?;
        let sql = "DELETE FROM versions WHERE seq > ?2 AND seq <= ?3
                   AND stream IN (SELECT id FROM streams WHERE connection = ?1)";
        let (mut from, mut deleted) = (0, 0);
        while from < last {
            let values = (of, from, from + BATCH);
            deleted += self.write(leases, |transaction| Ok(transaction.prepare_cached(sql)?.execute(values)?))? as u64;
            from += BATCH;
        }
        Ok(deleted)
    }

    /// Moves the log into the file and cuts it to nothing.
    fn empty_log(&mut self) -> Result<(), StoreError> {
        let emptied = self.read(|connection| {
            let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))?;
            if busy == 0 {
                return Ok(());
            }
            // A reader holds older pages. It is told, and the purge can be repeated.
            Err(Failure::busy())
        });
        self.heed(emptied)
    }
}

fn ids(connection: &Connection, sql: &str, of: i64) -> Result<Vec<i64>, Failure> {
    rows(connection, sql, [of], |row| row.get(0))
}
