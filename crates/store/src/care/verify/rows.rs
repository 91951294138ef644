//! The rows that carry no hash: whether they can be read, and whether what they refer to is there.
//!
//! `connections`, `runs`, `quarantine`, `events`, `listings`, `interactions` and `staged` have no hash, so a changed
//! letter inside of a text that still reads well is not noticed here, nor is a row that is gone and to which no other one
//! refers. Everything that a program would trip over is.

use super::{BATCH, DAMAGE_MAX, Damage, PURGED, damage, damaged};
use crate::error::Failure;
use crate::read::ConnectionState;
use crate::store::meta_text;
use gleaner_protocol::{Manifest, ManifestOrigin, RawJson, TerminalReason};
use rusqlite::{Connection, Row};
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub(super) fn check(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    check_references(connection, found)?;
    check_numbers(connection, found)?;
    each(connection, found, "connections", "SELECT id, manifest, settings, state FROM connections", connection_fault)?;
    let runs = "SELECT id, reason, committed, withheld, failed_streams, shortfalls, skipped, warnings, collection_rate,
                provider_budget, scope, grant_scope, partial FROM runs";
    each(connection, found, "runs", runs, run_fault)?;
    check_owners_of_runs(connection, found)?;
    check_declared(connection, found)?;
    each(connection, found, "quarantine", "SELECT id, body, key FROM quarantine", quarantine_fault)?;
    each(connection, found, "events", "SELECT id, message, kind FROM events", event_fault)?;
    if meta_text(connection, "store_id")?.is_empty() {
        found.push(damage("meta", None, "the store has no id"));
    }
    Ok(())
}

/// Each row that refers to another one finds it. What is left of a connection that is being purged does not count.
fn check_references(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let of_stream = ["records", "quarantine", "cursors", "commits", "staged", "listings", "gaps"];
    let number_of = |table: &str| if ["quarantine", "commits", "gaps"].contains(&table) { "id" } else { "stream" };
    let streams = of_stream.map(|table| (table, number_of(table), "stream", "streams"));
    let versions = [("versions", "seq", "stream", "streams")];
    let runs = ["quarantine", "events", "interactions", "commits"].map(|table| (table, "id", "run", "runs"));
    let runs = runs.into_iter().chain(["listings", "cursors"].map(|table| (table, "stream", "run", "runs")));
    let connections = ["schedules", "wanted", "cooldowns", "notices"].map(|table| (table, "connection"));
    let connections = [("streams", "id"), ("runs", "id"), ("gaps", "id")]
        .into_iter()
        .chain(connections)
        .map(|(table, number)| (table, number, "connection", "connections"));
    for (table, number, column, other) in streams.into_iter().chain(versions).chain(runs).chain(connections) {
        // A purge takes the rows of a stream one table after the other.
        let purged = match column {
            "stream" => format!("AND {column} NOT IN {PURGED}"),
            "run" => "AND NOT EXISTS (SELECT 1 FROM connections WHERE state = 'purging')".to_owned(),
            _ => String::new(),
        };
        let sql = format!(
            "SELECT {number} FROM {table} WHERE {column} NOT IN (SELECT id FROM {other}) {purged} LIMIT {DAMAGE_MAX}"
        );
        let what = format!("its {column} is not in {other}");
        damaged(connection, &sql, found, table, &what)?;
    }
    Ok(())
}

/// Nothing was counted less than zero times.
fn check_numbers(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let counts =
        ["seen", "collected", "deleted", "rejected", "gaps", "recovered", "unaccounted", "unchanged", "slices"];
    let listed = ["required", "hydrated", "gaps", "skipped", "unaccounted"];
    for (table, number, counts) in [("runs", "id", &counts[..]), ("listings", "stream", &listed[..])] {
        let sql = format!("SELECT {number} FROM {table} WHERE min({}) < 0 LIMIT {DAMAGE_MAX}", counts.join(", "));
        damaged(connection, &sql, found, table, "a count is less than zero")?;
    }
    Ok(())
}

/// Looks at each row of a table whose number is its first column, holding one at a time.
fn each(
    connection: &Connection,
    found: &mut Vec<Damage>,
    table: &str,
    select: &str,
    fault: impl Fn(&Row<'_>) -> Result<Option<&'static str>, Failure>,
) -> Result<(), Failure> {
    let mut statement = connection.prepare(&format!("{select} WHERE id > ?1 ORDER BY id LIMIT {BATCH}"))?;
    let mut after = i64::MIN;
    loop {
        let mut rows = statement.query([after])?;
        let mut any = false;
        while let Some(row) = rows.next()? {
            (after, any) = (row.get(0)?, true);
            found.extend(fault(row)?.map(|what| damage(table, Some(after), what)));
        }
        if !any || found.len() >= DAMAGE_MAX {
            return Ok(());
        }
    }
}

fn is_json(text: Option<String>) -> bool {
    text.is_none_or(|text| RawJson::new(text).is_ok())
}

fn connection_fault(row: &Row<'_>) -> Result<Option<&'static str>, Failure> {
    let (manifest, settings, state) = (row.get::<_, String>(1)?, row.get(2)?, row.get::<_, String>(3)?);
    Ok(if Manifest::parse(manifest.as_bytes(), ManifestOrigin::Foreign).is_err() {
        Some("its manifest cannot be read")
    } else if !is_json(settings) {
        Some("its settings cannot be read")
    } else if ConnectionState::from_code(&state).is_none() {
        Some("its state is none that there is")
    } else {
        None
    })
}

fn run_fault(row: &Row<'_>) -> Result<Option<&'static str>, Failure> {
    let reason = row.get::<_, Option<String>>(1)?;
    if reason.is_some_and(|code| TerminalReason::from_code(&code).is_none()) {
        return Ok(Some("its reason is none that there is"));
    }
    let committed = is_form::<Vec<(String, u64)>>(row.get(2)?);
    let withheld = is_form::<Vec<(String, String)>>(row.get(3)?);
    if !committed || !withheld || !is_form::<Vec<String>>(row.get(4)?) {
        return Ok(Some("which checkpoints it committed or withheld cannot be read"));
    }
    if !is_form::<Vec<ShortfallForm>>(row.get(5)?) || !is_form::<SkipsForm>(row.get(6)?) {
        return Ok(Some("what it left open cannot be read"));
    }
    if !is_form::<Vec<WarningForm>>(row.get(7)?) {
        return Ok(Some("its warnings cannot be read"));
    }
    for at in 8..13 {
        if !is_json(row.get(at)?) {
            return Ok(Some("what it says about its pace or its scope cannot be read"));
        }
    }
    Ok(None)
}

/// Whether a text is absent or JSON of this form.
fn is_form<T: DeserializeOwned>(text: Option<String>) -> bool {
    text.is_none_or(|text| serde_json::from_str::<T>(&text).is_ok())
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only whether it can be read counts")]
struct ShortfallForm {
    state_stream: String,
    message: String,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only whether it can be read counts")]
struct SkipsForm {
    count: u64,
    first: Vec<SkipForm>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only whether it can be read counts")]
struct SkipForm {
    stream: Option<String>,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only whether it can be read counts")]
struct WarningForm {
    stream: String,
    message: String,
}

/// What a run stored or committed is of its own connection.
fn check_owners_of_runs(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    for table in ["versions", "commits", "listings"] {
        let sql = format!(
            "SELECT DISTINCT r.id FROM {table} t JOIN streams s ON s.id = t.stream JOIN runs r ON r.id = t.run
             WHERE r.connection != s.connection AND s.id NOT IN {PURGED} LIMIT {DAMAGE_MAX}"
        );
        let what = format!("it is of another connection than what it left in {table}");
        damaged(connection, &sql, found, "runs", &what)?;
    }
    Ok(())
}

/// The streams that count as declared are those of the manifest.
fn check_declared(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let mut statement = connection.prepare("SELECT id, manifest FROM connections WHERE state != 'purging'")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (of, manifest) = (row.get::<_, i64>(0)?, row.get::<_, String>(1)?);
        // One that cannot be read is named already.
        let Ok(manifest) = Manifest::parse(manifest.as_bytes(), ManifestOrigin::Foreign) else { continue };
        let sql = "SELECT id, name FROM streams WHERE connection = ?1 AND declared = 1";
        let mut streams = connection.prepare_cached(sql)?;
        let known = streams.query_map([of], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        let known = known.collect::<Result<Vec<_>, _>>()?;
        let strangers = known.iter().filter(|(_, name)| manifest.stream(name).is_none());
        found.extend(strangers.map(|(id, _)| damage("streams", Some(*id), "the manifest has no stream of this name")));
        let is_there = |name: &String| known.iter().any(|(_, known)| known == name);
        if let Some(gone) = manifest.streams.iter().find(|stream| !is_there(&stream.name)) {
            let what = format!("stream {:?} of its manifest is not in streams", gone.name);
            found.push(damage("connections", Some(of), what));
        }
    }
    Ok(())
}

fn quarantine_fault(row: &Row<'_>) -> Result<Option<&'static str>, Failure> {
    let key = row.get::<_, String>(2)?;
    Ok((!is_json(row.get(1)?) || key.is_empty()).then_some("its key or its body cannot be read"))
}

fn event_fault(row: &Row<'_>) -> Result<Option<&'static str>, Failure> {
    let kind = row.get::<_, String>(2)?;
    let known = ["progress", "skip", "assistance", "assistance_status"].contains(&kind.as_str());
    Ok((!known || !is_json(row.get(1)?)).then_some("it is no message of a connector"))
}
