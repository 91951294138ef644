//! One view per stream, so that a record is a row for whoever opens the file with another program.
//!
//! The columns are the key, the properties that the stream's schema names at the top, and the whole
//! body as `data`. Numbers that SQLite cannot hold are rounded in their column and exact in `data`.
//! Names come from manifests, which are other people's: they are quoted and never pasted as they are.

use crate::error::Failure;
use crate::sql::execute;
use gleaner_protocol::{RawJson, StreamManifest};
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeSet;

/// The most columns of a view: SQLite joins at most 2,000, and nobody reads that many.
const COLUMNS_MAX: usize = 500;
/// Columns that every view has.
const OWN_COLUMNS: [&str; 5] = ["key", "data", "emitted_at", "stored_at", "seq"];

/// Makes the view of a stream anew.
pub(crate) fn rebuild(
    connection: &Connection,
    stream_id: i64,
    of: &str,
    stream: &StreamManifest,
) -> Result<(), Failure> {
    drop_view(connection, stream_id)?;
    let name = free_name(connection, &format!("{of}.{}", stream.name))?;
    let sql = definition(&name, stream_id, stream.schema.as_ref());
    connection.execute_batch(&sql)?;
    execute(connection, "UPDATE streams SET view_name = ?2 WHERE id = ?1", (stream_id, name))
}

/// The text that makes the view of a stream.
pub(crate) fn definition(name: &str, stream_id: i64, schema: Option<&RawJson<'static>>) -> String {
    let columns = properties(schema)
        .into_iter()
        .map(|property| format!(", {} AS {}", value_of(&property), quote_name(&property)));
    format!(
        "CREATE VIEW {} AS SELECT r.key AS key{}, v.body AS data, v.emitted_at AS emitted_at, \
         datetime(v.stored_at / 1000, 'unixepoch') AS stored_at, v.seq AS seq \
         FROM records r JOIN versions v ON v.seq = r.seq WHERE r.stream = {stream_id} AND v.deleted = 0",
        quote_name(name),
        columns.collect::<String>()
    )
}

/// One property of the body. Programs of some age do not understand escapes in a path, so a name that
/// would need them is looked for among all names.
fn value_of(property: &str) -> String {
    if property.contains(['"', '\\']) {
        return format!("(SELECT value FROM json_each(v.body) WHERE key = {})", quote_text(property));
    }
    format!("v.body ->> {}", quote_text(&format!("$.\"{property}\"")))
}

/// Takes the view of a stream away.
pub(crate) fn drop_view(connection: &Connection, stream_id: i64) -> Result<(), Failure> {
    let sql = "SELECT view_name FROM streams WHERE id = ?1 AND view_name IS NOT NULL";
    let name = connection.query_row(sql, [stream_id], |row| row.get::<_, String>(0)).optional()?;
    if let Some(name) = name {
        connection.execute_batch(&format!("DROP VIEW IF EXISTS {}", quote_name(&name)))?;
    }
    Ok(())
}

/// SQLite does not tell `Mail` from `mail`, and our own tables have names, too.
fn free_name(connection: &Connection, wanted: &str) -> Result<String, Failure> {
    // Names with this beginning belong to SQLite.
    let reserved = wanted.to_ascii_lowercase().starts_with("sqlite_");
    let wanted = if reserved { format!("_{wanted}") } else { wanted.to_owned() };
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE)";
    let mut name = wanted.clone();
    let mut number = 1;
    while connection.prepare_cached(sql)?.query_row([&name], |row| row.get::<_, bool>(0))? {
        number += 1;
        name = format!("{wanted} {number}");
    }
    Ok(name)
}

/// The properties that a schema names at the top, in its order.
pub(crate) fn top_properties(schema: Option<&RawJson<'static>>) -> Vec<String> {
    let members = schema.and_then(RawJson::members).unwrap_or_default();
    let named = members.iter().find(|(name, _)| name == "properties").and_then(|(_, value)| value.members());
    named.unwrap_or_default().into_iter().map(|(name, _)| name.into_owned()).collect()
}

/// Those of them that can be columns of a view.
fn properties(schema: Option<&RawJson<'static>>) -> Vec<String> {
    // SQLite does not tell column names apart by case either.
    let mut taken = OWN_COLUMNS.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    let usable = |name: &String| !name.is_empty() && !name.contains('\0');
    top_properties(schema)
        .into_iter()
        .filter(usable)
        .filter(|name| taken.insert(name.to_ascii_lowercase()))
        .take(COLUMNS_MAX)
        .collect()
}

fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
