//! The promises of the account that can be asked of a store alone, row by row so that the row is named.
//!
//! The predicates are the engine's own. Those that need more than the store knows (what a provider
//! listed, what was in scope, what a run did after it lost its lease) are asked by the tests, which know.

use super::{Damage, PURGED, damage, damaged};
use crate::error::{Failure, StoreError, from_sql};
use crate::read::Reader;
use crate::sql::rows;
use gleaner_engine::invariants::{
    Broken, Fact, a3_checkpoint_is_the_last_whole_slice, a4_commits_go_forward, l1_one_holder, l2_epochs_grow,
};
use gleaner_engine::{CommitSeq, Epoch};
use rusqlite::Connection;
use std::collections::BTreeMap;

pub(super) fn check(reader: &Reader, found: &mut Vec<Damage>) -> Result<(), StoreError> {
    let names = reader.ask(names_of_connections)?;
    for (id, name) in &names {
        check_checkpoints(reader, *id, name, found)?;
        reader.ask(|connection| {
            check_epochs(connection, *id, found)?;
            check_commits(connection, *id, found)
        })?;
    }
    reader.ask(|connection| check_rows(connection, found))
}

fn names_of_connections(connection: &Connection) -> Result<Vec<(i64, String)>, Failure> {
    rows(connection, "SELECT id, name FROM connections WHERE state != 'purging' ORDER BY id", [], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

fn report(table: &str, row: i64, held: Result<(), Broken>, found: &mut Vec<Damage>) {
    found.extend(held.err().map(|broken| damage(table, Some(row), broken.to_string())));
}

/// A3, a stream at a time.
fn check_checkpoints(reader: &Reader, of: i64, name: &str, found: &mut Vec<Damage>) -> Result<(), StoreError> {
    let account = reader.account(name)?;
    let streams = reader.ask(|connection| {
        let mut statement = connection.prepare("SELECT id, name FROM streams WHERE connection = ?1")?;
        let rows = statement.query_map([of], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        Ok(rows.collect::<Result<Vec<_>, _>>()?)
    })?;
    for (id, stream) in &streams {
        report("cursors", *id, a3_checkpoint_is_the_last_whole_slice(&account, &[stream]), found);
    }
    Ok(())
}

/// L2: the runs of a connection, in their order, and the store after the last of them.
fn check_epochs(connection: &Connection, of: i64, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let mut statement = connection.prepare("SELECT id, epoch FROM runs WHERE connection = ?1 ORDER BY id")?;
    let mut rows = statement.query([of])?;
    let mut last = None;
    while let Some(row) = rows.next()? {
        let (id, epoch) = (row.get(0)?, Epoch::new(from_sql(row.get(1)?)));
        // Two runs under one lease are one acquisition.
        let before = last.replace(epoch).filter(|before| *before != epoch);
        let facts = before.into_iter().chain([epoch]).map(|epoch| Fact::Acquired { epoch }).collect::<Vec<_>>();
        report("runs", id, l2_epochs_grow(&facts), found);
    }
    let now = Epoch::new(crate::store::meta_number(connection, "epoch")?);
    if let Some(epoch) = last
        && let Err(broken) = l2_epochs_grow(&[Fact::Acquired { epoch }, Fact::Observed { epoch: now }])
    {
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
    let mut last = BTreeMap::<String, Fact>::new();
    // Whoever acquired last is the holder: a commit of an earlier run would come too late.
    let mut holder = None;
    while let Some(row) = rows.next()? {
        let (id, stream) = (row.get::<_, i64>(0)?, row.get::<_, String>(1)?);
        let (seq, epoch) = (CommitSeq::new(from_sql(row.get(2)?)), Epoch::new(from_sql(row.get(3)?)));
        let of_run = row.get::<_, Option<i64>>(4)?.map(|epoch| Epoch::new(from_sql(epoch)));
        holder = holder.max(of_run);
        let fact = Fact::Committed { stream: stream.clone(), seq, epoch };
        let acquired = holder.map(|epoch| Fact::Acquired { epoch });
        report("commits", id, l1_one_holder(&acquired.into_iter().chain([fact.clone()]).collect::<Vec<_>>()), found);
        let before = last.insert(stream, fact.clone());
        report("commits", id, a4_commits_go_forward(&before.into_iter().chain([fact]).collect::<Vec<_>>()), found);
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
