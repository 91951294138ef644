//! What is durable of one connection, read from the tables themselves, for the promises of the engine.

use gleaner_engine::testing::promises::Durable;
use gleaner_engine::{CommitSeq, GapId, Steady, Track};
use gleaner_protocol::{RecordKey, Semantics};
use rusqlite::{Connection, Params, Row};
use std::collections::BTreeSet;

/// What is durable of one connection. A store that cannot be read answers like an empty one: the
/// invariants then say that something is missing, which is true.
#[derive(Debug)]
pub(crate) struct Account<'c> {
    connection: &'c Connection,
    of: i64,
}

impl<'c> Account<'c> {
    pub(crate) fn of(connection: &'c Connection, name: &str) -> Self {
        let sql = "SELECT id FROM connections WHERE name = ?1";
        Self { connection, of: connection.query_row(sql, [name], |row| row.get(0)).unwrap() }
    }

    fn one<R>(&self, sql: &str, values: impl Params, read: impl FnOnce(&Row<'_>) -> rusqlite::Result<R>) -> Option<R> {
        self.connection.query_row(sql, values, read).ok()
    }

    fn many<R>(&self, sql: &str, values: impl Params, read: impl FnMut(&Row<'_>) -> rusqlite::Result<R>) -> Vec<R> {
        let all = || self.connection.prepare(sql)?.query_map(values, read)?.collect::<rusqlite::Result<_>>();
        all().unwrap_or_default()
    }
}

/// For the steady track.
impl Durable for Account<'_> {
    fn checkpoint(&self, stream: &str) -> Option<CommitSeq> {
        let sql = "SELECT c.seq FROM cursors c JOIN streams s ON s.id = c.stream
                   WHERE s.connection = ?1 AND s.name = ?2 AND c.track = ?3";
        self.one(sql, (self.of, stream, Steady::NAME), |row| Ok(CommitSeq::new(row.get::<_, i64>(0)?.cast_unsigned())))
    }

    fn whole_slices(&self, stream: &str) -> Vec<CommitSeq> {
        let sql = "SELECT c.seq FROM commits c JOIN streams s ON s.id = c.stream
                   WHERE s.connection = ?1 AND s.name = ?2 AND c.track = ?3 ORDER BY c.id";
        self.many(sql, (self.of, stream, Steady::NAME), |row| Ok(CommitSeq::new(row.get::<_, i64>(0)?.cast_unsigned())))
    }

    fn accounts_for(&self, stream: &str, key: &str) -> bool {
        let places = [
            "SELECT 1 FROM records r JOIN streams s ON s.id = r.stream
             WHERE s.connection = ?1 AND s.name = ?2 AND r.key = ?3",
            "SELECT 1 FROM gaps g JOIN streams s ON s.id = g.stream
             WHERE s.connection = ?1 AND s.name = ?2 AND g.record_key = ?3
             AND (g.state != 'recovered' OR g.confirmed_by IN ('record', 'empty'))",
            "SELECT 1 FROM quarantine q JOIN streams s ON s.id = q.stream
             WHERE s.connection = ?1 AND s.name = ?2 AND q.key = ?3",
        ];
        let is_there = |sql: &str, key: &str| self.one(sql, (self.of, stream, key), |_| Ok(())).is_some();
        RecordKey::forms_of(key).any(|key| places.iter().any(|sql| is_there(sql, &key)))
    }

    fn backlog_covers(&self, stream: &str, position: i64) -> bool {
        // A backlog gap says in its locator up to where it stands for the list. To SQLite any text is
        // larger than any number, and would cover everything.
        let sql = "SELECT 1 FROM gaps g JOIN streams s ON s.id = g.stream WHERE s.connection = ?1 AND s.name = ?2
                   AND g.state != 'recovered' AND json_extract(g.locator, '$.watermark') >= ?3
                   AND json_type(g.locator, '$.watermark') IN ('integer', 'real') LIMIT 1";
        self.one(sql, (self.of, stream, position), |_| Ok(())).is_some()
    }

    fn tombstones(&self) -> Vec<(String, String)> {
        let sql = "SELECT s.name, r.key FROM records r JOIN versions v ON v.seq = r.seq
                   JOIN streams s ON s.id = r.stream WHERE s.connection = ?1 AND v.deleted = 1";
        self.many(sql, [self.of], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn semantics(&self, stream: &str) -> Option<Semantics> {
        let sql = "SELECT semantics FROM streams WHERE connection = ?1 AND name = ?2";
        let code = self.one(sql, (self.of, stream), |row| row.get::<_, String>(0))?;
        Semantics::from_code(&code)
    }

    fn open_gaps(&self) -> BTreeSet<GapId> {
        let sql = "SELECT lower(hex(identity)) FROM gaps WHERE connection = ?1 AND state != 'recovered'";
        self.many(sql, [self.of], |row| Ok(GapId::new(row.get::<_, String>(0)?))).into_iter().collect()
    }
}
