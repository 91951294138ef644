//! Whether the file is whole, and whether the promises hold in it.
//!
//! SQLite's own check finds broken pages; a hash per version, gap and cursor finds one that changed inside of a
//! page that looks fine; the other rows are read and their references followed; the counters are counted again;
//! and the invariants of the engine run over what is stored. It names table and row, and repairs nothing.

mod promises;
mod rows;
mod schema;

use crate::care::row_hash::is_what_was_hashed;
use crate::error::{Failure, StoreError, from_sql};
use crate::gaps::gap_rows::{CONFIRMED, HASHED, NOTE};
use crate::read::Reader;
use crate::sql::rows;
use rusqlite::Connection;

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{table}{}: {what}", row.map_or_else(String::new, |row| format!(" row {row}")))]
pub struct Damage {
    /// The table.
    pub table: String,
    /// The row, by its number.
    pub row: Option<i64>,
    /// What is wrong.
    pub what: String,
}

/// After so many faults one knows enough.
const DAMAGE_MAX: usize = 100;
/// Versions that are hashed between two reports of progress.
const BATCH: i64 = 1000;

impl Reader {
    /// Looks at everything. Says after each thousand of versions how many of how many it has seen.
    ///
    /// # Errors
    ///
    /// When the file is so broken that it cannot be read at all.
    pub fn verify(&self, mut progress: impl FnMut(u64, u64)) -> Result<Vec<Damage>, StoreError> {
        // Of one moment: a run that goes on changes rows, cursors and counters between two questions.
        let begun = self.connection.unchecked_transaction();
        let _moment = begun.map_err(|error| StoreError::of(error, self.path()))?;
        let mut found = self.ask(|connection| {
            let mut found = check_pages(connection)?;
            schema::check(connection, &mut found)?;
            // With broken pages or tables, every other answer is in doubt.
            if found.is_empty() {
                check_hashes(connection, &mut found, &mut progress)?;
                check_gaps(connection, &mut found)?;
                check_references(connection, &mut found)?;
                rows::check(connection, &mut found)?;
                check_counters(connection, &mut found)?;
                check_commits(connection, &mut found)?;
            }
            Ok(found)
        })?;
        if !found.iter().any(|damage| damage.row.is_none()) {
            self.ask(|connection| promises::check(connection, &mut found))?;
        }
        found.truncate(DAMAGE_MAX);
        Ok(found)
    }
}

fn damage(table: &str, row: Option<i64>, what: impl Into<String>) -> Damage {
    Damage { table: table.to_owned(), row, what: what.into() }
}

/// Each row that the statement finds, by its number, is damaged like this.
fn damaged(
    connection: &Connection,
    sql: &str,
    found: &mut Vec<Damage>,
    table: &str,
    what: &str,
) -> Result<(), Failure> {
    let numbers = rows(connection, sql, [], |row| row.get::<_, i64>(0))?;
    found.extend(numbers.into_iter().map(|row| damage(table, Some(row), what)));
    Ok(())
}

fn check_pages(connection: &Connection) -> Result<Vec<Damage>, Failure> {
    let lines = rows(connection, "PRAGMA integrity_check", [], |row| row.get::<_, String>(0))?;
    Ok(lines.into_iter().filter(|line| line != "ok").map(|line| damage("file", None, line)).collect())
}

fn check_hashes(
    connection: &Connection,
    found: &mut Vec<Damage>,
    progress: &mut impl FnMut(u64, u64),
) -> Result<(), Failure> {
    let total = connection.query_row("SELECT count(*) FROM versions", [], |row| row.get::<_, i64>(0))?;
    let sql = "SELECT seq, stream, key, body, deleted, emitted_at, stored_at, run, previous, hash
               FROM versions WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    let mut statement = connection.prepare(sql)?;
    let (mut after, mut seen) = (0, 0);
    loop {
        let mut rows = statement.query((after, BATCH))?;
        let mut batch = 0;
        while let Some(row) = rows.next()? {
            after = row.get(0)?;
            batch += 1;
            if !is_what_was_hashed(row, 9)? {
                found.push(damage("versions", Some(after), DIFFERS));
            }
        }
        seen += batch;
        progress(seen, from_sql(total));
        if batch == 0 || found.len() >= DAMAGE_MAX {
            return Ok(());
        }
    }
}

const DIFFERS: &str = "it is not what was stored: its hash differs";

fn check_gaps(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let kinds = [
        (HASHED.to_owned(), "state != 'ignored' AND confirmed_by IS NULL"),
        (format!("{HASHED}, {NOTE}"), "state = 'ignored'"),
        (format!("{HASHED}, {CONFIRMED}"), "state != 'ignored' AND confirmed_by IS NOT NULL"),
    ];
    for (columns, which) in kinds {
        let hashed = columns.split(", ").count();
        let sql = format!("SELECT {columns}, hash, id FROM gaps WHERE {which}");
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if !is_what_was_hashed(row, hashed)? {
                found.push(damage("gaps", Some(row.get(hashed + 1)?), DIFFERS));
            }
        }
    }
    Ok(())
}

/// Streams whose connection is being forgotten, maybe by a process that was killed meanwhile: what is
/// left of them is no damage.
const PURGED: &str = "(SELECT p.id FROM streams p JOIN connections c ON c.id = p.connection WHERE c.state = 'purging')";

fn check_references(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let checks = [
        (
            "records",
            "SELECT r.seq FROM records r LEFT JOIN versions v ON v.seq = r.seq
             WHERE (v.seq IS NULL OR v.key != r.key OR v.stream != r.stream) AND r.stream NOT IN {PURGED} LIMIT 100",
            "it points at a version that is not its own",
        ),
        (
            "versions",
            "SELECT v.seq FROM versions v LEFT JOIN versions o ON o.seq = v.previous
             WHERE v.previous IS NOT NULL AND (o.seq IS NULL OR o.key != v.key OR o.stream != v.stream)
             AND v.stream NOT IN {PURGED} LIMIT 100",
            "the version before it is missing",
        ),
        (
            "versions",
            "SELECT seq FROM versions WHERE seq >= (SELECT value FROM meta WHERE name = 'next_seq') LIMIT 100",
            "its number was not given out yet",
        ),
        (
            "streams",
            "SELECT id FROM streams WHERE (semantics NOT IN ('append_only', 'mutable_state') OR (view_name IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'view' AND name = view_name)))
             AND id NOT IN {PURGED} LIMIT 100",
            "its view is missing, or whether it changes is not known",
        ),
        (
            "gaps",
            "SELECT id FROM gaps WHERE (state = 'ignored') != (ignored_note IS NOT NULL AND ignored_at IS NOT NULL)
             OR (ignored_note IS NULL) != (ignored_at IS NULL) LIMIT 100",
            "it is ignored without a note, or has a note and is not ignored",
        ),
        (
            "gaps",
            "SELECT id FROM gaps WHERE confirmed_by IS NOT NULL AND state != 'recovered' LIMIT 100",
            "it is open, and something is said to have closed it",
        ),
        (
            "unreadable_times",
            "SELECT t.seq FROM unreadable_times t WHERE t.stream NOT IN {PURGED} AND NOT EXISTS (SELECT 1 FROM versions v
             JOIN records r ON r.stream = v.stream AND r.key = v.key AND r.seq = v.seq
             WHERE v.seq = t.seq AND v.stream = t.stream) LIMIT 100",
            "it names a version that is not a present one",
        ),
        (
            "records",
            "SELECT previous FROM versions WHERE previous IN (SELECT seq FROM records) LIMIT 100",
            "it points at a version that is not its last",
        ),
    ];
    for (table, sql, what) in checks {
        damaged(connection, &sql.replace("{PURGED}", PURGED), found, table, what)?;
    }
    Ok(())
}

fn check_counters(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let of_records =
        "(SELECT count(*) FROM records r JOIN versions v ON v.seq = r.seq WHERE r.stream = s.id AND v.deleted";
    let gaps = |state: &str| format!("(SELECT count(*) FROM gaps g WHERE g.stream = s.id AND g.state = '{state}')");
    let counted = [
        ("records", format!("{of_records} = 0)")),
        ("tombstones", format!("{of_records} = 1)")),
        ("quarantined", "(SELECT count(*) FROM quarantine q WHERE q.stream = s.id)".to_owned()),
        ("gaps_pending", gaps("pending")),
        ("gaps_in_progress", gaps("in_progress")),
        ("gaps_recovered", gaps("recovered")),
        ("gaps_terminal", gaps("terminal")),
        ("gaps_ignored", gaps("ignored")),
        ("gaps_empty", "(SELECT count(*) FROM gaps g WHERE g.stream = s.id AND g.confirmed_by = 'empty')".to_owned()),
    ];
    for (counter, real) in counted {
        let sql = format!("SELECT s.id, s.{counter}, {real} FROM streams s WHERE s.{counter} != {real}");
        compare(connection, &sql, counter, found)?;
    }
    // Versions have no index by stream: one pass for all of them instead of one for each.
    let sql = "SELECT s.id, s.versions, ifnull(v.real, 0) FROM streams s LEFT JOIN
               (SELECT stream, count(*) AS real FROM versions GROUP BY stream) v ON v.stream = s.id
               WHERE s.versions != ifnull(v.real, 0)";
    compare(connection, sql, "versions", found)
}

/// Each row is a stream, what its counter says, and what there is.
fn compare(connection: &Connection, sql: &str, counter: &str, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let mut statement = connection.prepare(&format!("{sql} AND s.id NOT IN {PURGED}"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, says, real) = (row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?);
        found.push(damage("streams", Some(id), format!("{counter} says {says}, there are {real}")));
    }
    Ok(())
}

/// Commits go forward, under epochs that do not go back, and the cursor is the last of them.
fn check_commits(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let sql = "SELECT id FROM (SELECT id, seq, epoch, lag(seq) OVER w AS seq_before, lag(epoch) OVER w AS epoch_before
               FROM commits WINDOW w AS (PARTITION BY stream, track ORDER BY id))
               WHERE seq <= seq_before OR epoch < epoch_before LIMIT 100";
    damaged(connection, sql, found, "commits", "it goes back behind an earlier commit")?;
    check_cursors(connection, found)
}

fn check_cursors(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let sql = format!(
        "SELECT m.stream FROM commits m WHERE m.stream NOT IN {PURGED} AND NOT EXISTS
         (SELECT 1 FROM cursors c WHERE c.stream = m.stream AND c.track = m.track AND c.seq >= m.seq) LIMIT 100"
    );
    damaged(connection, &sql, found, "cursors", "it is not the last commit of its stream")?;
    // The last commit of a cursor vouches for it.
    let sql = "SELECT c.stream, c.track, c.token, c.seq, c.epoch, c.run, c.committed_at, m.hash
               FROM cursors c JOIN commits m ON m.stream = c.stream AND m.track = c.track
               WHERE m.id = (SELECT max(id) FROM commits o WHERE o.stream = c.stream AND o.track = c.track)";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if !is_what_was_hashed(row, 7)? {
            found.push(damage("cursors", Some(row.get(0)?), DIFFERS));
        }
    }
    Ok(())
}
