//! The promises of the account that can be asked of a store alone, row by row so that the row is named.
//!
//! The predicates are the engine's own. Those that need more than the store knows (what a provider
//! listed, what was in scope, what a run did after it lost its lease) are asked by the tests, which know.

use super::{Damage, PURGED, damage, damaged};
use crate::error::{Failure, from_sql};
use crate::sql::rows;
use crate::store::meta_number;
use gleaner_engine::invariants::{
    Broken, a3_is_last_whole_slice, a4_goes_forward, l1_is_of_holder, l2_grows, l2_is_not_older,
};
use gleaner_engine::{CommitSeq, Epoch, Steady, Track};
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;

pub(super) fn check(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let sql = "SELECT id FROM connections WHERE state != 'purging' ORDER BY id";
    for id in rows(connection, sql, [], |row| row.get(0))? {
        check_checkpoints(connection, id, found)?;
        check_epochs(connection, id, found)?;
        check_commits(connection, id, found)?;
    }
    check_rows(connection, found)
}

fn report(table: &str, row: i64, held: Result<(), Broken>, found: &mut Vec<Damage>) {
    found.extend(held.err().map(|broken| damage(table, Some(row), broken.to_string())));
}

/// A3, a stream at a time.
fn check_checkpoints(connection: &Connection, of: i64, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let sql = "SELECT s.id, s.name, (SELECT c.seq FROM cursors c WHERE c.stream = s.id AND c.track = ?2),
               (SELECT max(m.seq) FROM commits m WHERE m.stream = s.id AND m.track = ?2)
               FROM streams s WHERE s.connection = ?1";
    let seq = |seq: Option<i64>| seq.map(|seq| CommitSeq::new(from_sql(seq)));
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?, seq(row.get(2)?), seq(row.get(3)?)));
    for (id, stream, checkpoint, last) in rows(connection, sql, (of, Steady::NAME), read)? {
        report("cursors", id, a3_is_last_whole_slice(&stream, checkpoint, last), found);
    }
    Ok(())
}

/// L2: the runs of a connection, in their order, and the store after the last of them.
fn check_epochs(connection: &Connection, of: i64, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let sql = "SELECT id, epoch FROM runs WHERE connection = ?1 ORDER BY id";
    let mut last = None;
    for (id, epoch) in rows(connection, sql, [of], |row| Ok((row.get(0)?, Epoch::new(from_sql(row.get(1)?)))))? {
        // Two runs under one lease are one acquisition.
        let before = last.replace(epoch).filter(|before| *before != epoch);
        report("runs", id, l2_grows(before, epoch), found);
    }
    let now = Epoch::new(meta_number(connection, "epoch")?);
    if let (Some(epoch), Err(broken)) = (last, l2_is_not_older(last, now)) {
        found.push(damage("meta", None, format!("{broken}: epoch {} is behind run epoch {}", now.get(), epoch.get())));
    }
    Ok(())
}

/// A4 and L1: the commits of a connection, in their order, each under the epoch of its run.
fn check_commits(connection: &Connection, of: i64, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let sql = "SELECT m.id, s.name || ' ' || m.track, m.seq, m.epoch, r.epoch FROM commits m
               JOIN streams s ON s.id = m.stream LEFT JOIN runs r ON r.id = m.run
               WHERE s.connection = ?1 ORDER BY m.id";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([of])?;
    let mut last = BTreeMap::<String, CommitSeq>::new();
    // Whoever acquired last is the holder: a commit of an earlier run would come too late.
    let mut holder = None;
    while let Some(row) = rows.next()? {
        let (id, stream) = (row.get::<_, i64>(0)?, row.get::<_, String>(1)?);
        let (seq, epoch) = (CommitSeq::new(from_sql(row.get(2)?)), Epoch::new(from_sql(row.get(3)?)));
        let of_run = row.get::<_, Option<i64>>(4)?.map(|epoch| Epoch::new(from_sql(epoch)));
        holder = holder.max(of_run);
        report("commits", id, l1_is_of_holder(&stream, epoch, holder), found);
        report("commits", id, a4_goes_forward(&stream, last.insert(stream.clone(), seq), seq), found);
    }
    Ok(())
}

/// What is true of each row by itself.
fn check_rows(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let checks = [
        (
            "commits",
            "SELECT m.id FROM commits m JOIN runs r ON r.id = m.run WHERE m.slice > r.slices
             AND m.stream NOT IN {PURGED} LIMIT 100",
            "A3: it is ahead of the last slice that was written",
        ),
        (
            "versions",
            "SELECT v.seq FROM versions v JOIN streams s ON s.id = v.stream
             WHERE v.deleted = 1 AND s.semantics = 'append_only' AND v.stream NOT IN {PURGED} LIMIT 100",
            "A11: a tombstone in a stream that only grows",
        ),
        (
            "runs",
            "SELECT id FROM runs WHERE (ended_at IS NULL) != (reason IS NULL) LIMIT 100",
            "P3: it ended without a reason, or has a reason and no end",
        ),
    ];
    for (table, sql, what) in checks {
        damaged(connection, &sql.replace("{PURGED}", PURGED), found, table, what)?;
    }
    Ok(())
}
