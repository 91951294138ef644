//! Whether tables, indexes, views and triggers are those that we make, to the letter.
//!
//! Why triggers and views too: a trigger changes rows behind our back, and a view that shows something else than its
//! stream lies to everyone who reads the file with another program.

use super::{Damage, damage, damaged};
use crate::error::Failure;
use crate::open::MIGRATIONS;
use crate::run::session::schema_json;
use crate::views;
use rusqlite::Connection;
use std::collections::BTreeSet;

pub(super) fn check(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let fresh = Connection::open_in_memory()?;
    for step in MIGRATIONS {
        fresh.execute_batch(step)?;
    }
    let (mut ours, theirs) = (definitions(&fresh)?, definitions(connection)?);
    if tables(&ours) == tables(&theirs) {
        // Only tables that are ours can say which views there should be.
        let known = found.len();
        connections_that_are_gone(connection, found)?;
        ours.extend(views_of_streams(connection, &theirs, found)?);
        if found.len() > known {
            return Ok(());
        }
    }
    // One name is enough: a table that is there in another form is in both.
    if let Some(definition) = theirs.symmetric_difference(&ours).next() {
        let Definition { kind, name, .. } = definition;
        let is_extra = theirs.contains(definition) && !ours.iter().any(|known| known.name == *name);
        let what =
            if is_extra { "Gleaner did not make it" } else { "it is missing, or not the one that Gleaner makes" };
        found.push(damage(name, None, format!("{kind}: {what}")));
    }
    Ok(())
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Definition {
    kind: String,
    name: String,
    sql: Option<Vec<u8>>,
}

fn tables(all: &BTreeSet<Definition>) -> Vec<&Definition> {
    all.iter().filter(|definition| definition.kind == "table").collect()
}

fn definitions(connection: &Connection) -> Result<BTreeSet<Definition>, Failure> {
    let mut statement = connection.prepare("SELECT type, name, CAST(sql AS BLOB) FROM sqlite_schema")?;
    let read = |row: &rusqlite::Row<'_>| Ok(Definition { kind: row.get(0)?, name: row.get(1)?, sql: row.get(2)? });
    let rows = statement.query_map([], read)?.collect::<Result<_, _>>()?;
    Ok(rows)
}

/// Without the row of a connection its views would seem to be nobody's.
fn connections_that_are_gone(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let sql = "SELECT connection FROM streams EXCEPT SELECT id FROM connections";
    let what = "the row is gone, and streams of the connection are there";
    damaged(connection, sql, found, "connections", what)
}

/// A purge takes views away one after the other, so those of a connection that is being purged may be there or not.
fn views_of_streams(
    connection: &Connection,
    there: &BTreeSet<Definition>,
    found: &mut Vec<Damage>,
) -> Result<Vec<Definition>, Failure> {
    let sql = "SELECT s.view_name, s.id, s.schema, c.state = 'purging' FROM streams s
               JOIN connections c ON c.id = s.connection WHERE s.view_name IS NOT NULL";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut views = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, id) = (row.get::<_, String>(0)?, row.get(1)?);
        let Ok(schema) = schema_json(row.get(2)?) else {
            found.push(damage("streams", Some(id), "its schema cannot be read"));
            continue;
        };
        let sql = views::definition(&name, id, schema.as_ref()).into_bytes();
        let view = Definition { kind: "view".to_owned(), name, sql: Some(sql) };
        if !row.get::<_, bool>(3)? || there.contains(&view) {
            views.push(view);
        }
    }
    Ok(views)
}
