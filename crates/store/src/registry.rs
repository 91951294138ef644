//! Connections and their streams: what is collected, and a view per stream for whoever has `sqlite3`.
//!
//! A manifest may change between two runs. A changed schema makes new views and keeps every record; a
//! stream that is no longer declared keeps its records and its view. What identifies a record must
//! not change under stored records: the same thing would be stored twice under two keys, so that is
//! refused with what to do. Nothing here reads a manifest's file.

use crate::error::{Failure, StoreError, date_to_sql, from_sql};
use crate::lease::Lease;
use crate::run::quarantine::do_not_resume;
use crate::sql::{execute, rows};
use crate::store::Store;
use crate::views;
use gleaner_engine::WallTime;
use gleaner_protocol::{Manifest, StreamManifest};
use rusqlite::{Connection, OptionalExtension};

/// The longest name of a connection: it is part of file names.
const NAME_BYTES_MAX: usize = 200;

impl Store {
    /// Adds a connection, or takes a new manifest of one that is there.
    ///
    /// # Errors
    ///
    /// When the name cannot be one, or a stream with records is identified by other fields now.
    pub fn register(
        &mut self,
        name: &str,
        manifest_text: &str,
        manifest: &Manifest,
        now: WallTime,
    ) -> Result<(), StoreError> {
        self.add(name, manifest_text, manifest, None, now)
    }

    /// The same together with how it is started: nobody who looks in between finds the one without the other.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn add(
        &mut self,
        name: &str,
        manifest_text: &str,
        manifest: &Manifest,
        settings: Option<&str>,
        now: WallTime,
    ) -> Result<(), StoreError> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
            return Err(StoreError::BadName(name.to_owned()));
        }
        self.write(&[], |transaction| {
            let id = match find(transaction, name) {
                Err(Failure::Ours(StoreError::UnknownConnection(_))) => {
                    let sql =
                        "INSERT INTO connections (name, connector_id, manifest, created_at) VALUES (?1, ?2, ?3, ?4)";
                    transaction.execute(sql, (name, &manifest.connector_id, manifest_text, date_to_sql(now)))?;
                    transaction.last_insert_rowid()
                }
                Err(other) => return Err(other),
                Ok(id) => {
                    if is_another_account(transaction, id, &manifest.connector_id, settings)? {
                        let sql = "SELECT id FROM streams WHERE connection = ?1";
                        let streams = rows(transaction, sql, [id], |row| row.get::<_, i64>(0))?;
                        streams.into_iter().try_for_each(|stream| do_not_resume(transaction, stream, None))?;
                    }
                    // What was removed is there again; what is paused stays so.
                    let sql = "UPDATE connections SET manifest = ?2, connector_id = ?3,
                               state = iif(state = 'removed', 'active', state) WHERE id = ?1";
                    transaction.execute(sql, (id, manifest_text, &manifest.connector_id))?;
                    id
                }
            };
            transaction.execute("UPDATE streams SET declared = 0 WHERE connection = ?1", [id])?;
            for stream in &manifest.streams {
                register_stream(transaction, id, name, stream)?;
            }
            if let Some(settings) = settings {
                transaction.execute("UPDATE connections SET settings = ?2 WHERE id = ?1", (id, settings))?;
            }
            Ok(())
        })
    }

    /// Keeps how a connection is started and what it is told, as JSON. Never a secret.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn set_settings(&mut self, name: &str, settings: &str) -> Result<(), StoreError> {
        self.write(&[], |transaction| {
            let id = find(transaction, name)?;
            execute(transaction, "UPDATE connections SET settings = ?2 WHERE id = ?1", (id, settings))
        })
    }

    /// Whether runs of this connection are held back.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn set_paused(&mut self, name: &str, paused: bool) -> Result<(), StoreError> {
        self.write(&[], |transaction| {
            let id = find(transaction, name)?;
            let state = if paused { "paused" } else { "active" };
            let sql = "UPDATE connections SET state = ?2 WHERE id = ?1 AND state != 'removed'";
            execute(transaction, sql, (id, state))
        })
    }

    /// The owner is done with a connection: it runs no more, and what it collected stays. Whoever holds
    /// its lease may say so, so that no run goes on.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or the lease is lost.
    pub fn set_removed(&mut self, name: &str, leases: &[Lease]) -> Result<(), StoreError> {
        Lease::has_connection(leases, name)?;
        self.write(leases, |transaction| {
            let id = find(transaction, name)?;
            execute(transaction, "UPDATE connections SET state = 'removed' WHERE id = ?1", [id])
        })
    }
}

/// Whether what a connection collects from may be another account now: another connector, or other values of its settings.
/// Then its cursors are past records that nobody has asked for.
fn is_another_account(
    connection: &Connection,
    id: i64,
    connector_id: &str,
    settings: Option<&str>,
) -> Result<bool, Failure> {
    let sql = "SELECT connector_id, settings FROM connections WHERE id = ?1";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?));
    let (connector_before, settings_before) = connection.query_row(sql, [id], read)?;
    let values = |settings: Option<&str>| {
        let settings = settings.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
        settings.and_then(|settings| settings.get("set").cloned()).filter(|values| *values != serde_json::json!({}))
    };
    let is_set_anew = settings.is_some() && values(settings) != values(settings_before.as_deref());
    Ok(connector_before != connector_id || is_set_anew)
}

/// The connection with this name, unless it is being forgotten.
pub(crate) fn find(connection: &Connection, name: &str) -> Result<i64, Failure> {
    let sql = "SELECT id, state FROM connections WHERE name = ?1";
    let found = connection.query_row(sql, [name], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).optional()?;
    match found {
        Some((_, state)) if state == "purging" => Err(StoreError::Purging(name.to_owned()).into()),
        Some((id, _)) => Ok(id),
        None => Err(StoreError::UnknownConnection(name.to_owned()).into()),
    }
}

fn register_stream(connection: &Connection, of: i64, name: &str, stream: &StreamManifest) -> Result<(), Failure> {
    // A list of names can always be written.
    let primary_key = serde_json::to_string(&stream.primary_key).unwrap_or_default();
    let schema = stream.schema.as_ref().map(|schema| schema.as_str().to_owned());
    let sql = "SELECT id, primary_key, records + tombstones FROM streams WHERE connection = ?1 AND name = ?2";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?));
    let known = connection.query_row(sql, (of, &stream.name), row).optional()?;
    if let Some((_, old, records)) = &known
        && *old != primary_key
        && *records > 0
    {
        return Err(StoreError::PrimaryKeyChanged {
            connection: name.to_owned(),
            stream: stream.name.clone(),
            old: old.clone(),
            new: primary_key,
            records: from_sql(*records),
        }
        .into());
    }
    let id = match known {
        Some((id, ..)) => id,
        None => {
            let sql = "INSERT INTO streams (connection, name, semantics, primary_key) VALUES (?1, ?2, '', '')";
            connection.execute(sql, (of, &stream.name))?;
            connection.last_insert_rowid()
        }
    };
    let sql = "UPDATE streams SET semantics = ?2, primary_key = ?3, schema = ?4, declared = 1 WHERE id = ?1";
    connection.execute(sql, (id, stream.semantics.code(), primary_key, &schema))?;
    views::rebuild(connection, id, name, stream)
}
