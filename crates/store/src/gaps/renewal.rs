//! Gaps that were given up or put off, and may work now: with another version of the connector, or another credential.
//!
//! A record that every try failed on may be read by the next version; one that the account was not allowed to see may be
//! visible to another sign-in. So the run that comes with either gets them back, in the transaction that opens it. So does
//! any run with what an earlier version gave up as `quarantined`: eight errors that may pass are no reason to.

use crate::error::Failure;
use crate::gaps::gap_rows::{COLUMNS, GapRow, read_all};
use crate::run::session::RunAbout;
use crate::sql::{first, rows};
use gleaner_engine::Gap;
use gleaner_protocol::AbsenceReason;
use rusqlite::Connection;

/// Gives the gaps of a connection back that what is new may help.
pub(crate) fn reopen(connection: &Connection, of: i64, about: &RunAbout) -> Result<(), Failure> {
    reopen_all(connection, of, AbsenceReason::Quarantined)?;
    let sql = "SELECT connector_version, credential FROM runs WHERE connection = ?1 ORDER BY id DESC LIMIT 1";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?));
    let Some((version, credential)) = first(connection, sql, [of], row)? else {
        return Ok(());
    };
    // What nobody noted, because an older program ran it, has not changed.
    let differs = |before: &Option<String>, now: &Option<String>| before.is_some() && now.is_some() && before != now;
    let is_new_credential = differs(&credential, &about.credential);
    if is_new_credential || differs(&version, &about.connector_version) {
        let sql = "SELECT id FROM gaps WHERE connection = ?1 AND state = 'pending' AND not_before IS NOT NULL
                   AND ifnull(reason, '') NOT IN ('rate_limited', 'upstream_pressure')";
        retry_all(connection, sql, [of])?;
    }
    if is_new_credential {
        reopen_all(connection, of, AbsenceReason::AuthFailure)?;
    }
    Ok(())
}

/// The next run tries each gap whose number this finds. Answers how many.
pub(crate) fn retry_all(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<u64, Failure> {
    let ids = rows(connection, sql, values, |row| row.get::<_, i64>(0))?;
    for id in &ids {
        if let Some(mut row) = GapRow::by_id(connection, *id)? {
            row.change(connection, Gap::retry)?;
        }
    }
    Ok(ids.len() as u64)
}

/// One after the other: a single gap may be as large as a line.
fn reopen_all(connection: &Connection, of: i64, given_up: AbsenceReason) -> Result<(), Failure> {
    let sql = format!(
        "SELECT {COLUMNS} FROM gaps WHERE connection = ?1 AND state = 'terminal' AND terminal_reason = ?2 LIMIT 1"
    );
    while let Some(mut row) = read_all(connection, &sql, (of, given_up.code()))?.pop() {
        row.change(connection, Gap::retry)?;
    }
    Ok(())
}
