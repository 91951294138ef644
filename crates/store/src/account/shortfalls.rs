//! Accounts of scoped and catch-up runs that fell short, until a later run shows that nothing of them is missing.
//!
//! The next ordinary run replaces the account of the last one. It does not replace that of a run with another scope, so such
//! an account is settled one by one: an ordinary run lists the stream from its beginning and leaves nothing out, or the
//! store has something for each key by now. The same scope again makes a new account by itself.

use crate::account::awaited_keys::NO_REPORT;
use crate::account::coverage_keys::{
    EMPTY, HYDRATED, MISSING, REQUIRED, create_table, each_key, forget_report, has_durable_gap,
};
use crate::account::hydrated_keys::Where;
use crate::error::Failure;
use crate::read::{OTHER_ACCOUNTS_SHORT, SETTLED_BY};
use crate::run::session::Session;
use gleaner_engine::{CoveragePair, RunOutcome, RunPurpose, Track};
use gleaner_protocol::TerminalReason;
use rusqlite::Connection;
use serde_json::Value;

/// Settles what a run that succeeded shows to be complete.
pub(crate) fn settle<T: Track>(
    connection: &Connection,
    session: &Session<T>,
    outcome: &RunOutcome,
) -> Result<(), Failure> {
    if outcome.reason != TerminalReason::Succeeded {
        return Ok(());
    }
    let sql = format!("SELECT id, shortfalls FROM runs WHERE id IN ({OTHER_ACCOUNTS_SHORT}) AND track != ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map((session.connection, session.track()), |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (run, shortfalls) in rows.collect::<Result<Vec<(i64, String)>, _>>()? {
        // A list that is damaged stays as it is; `verify` names it.
        let Ok(mut all) = serde_json::from_str::<Vec<Value>>(&shortfalls) else { continue };
        let mut has_changed = false;
        for short in all.iter_mut().filter(|short| short.get(SETTLED_BY).is_none()) {
            if is_settled(connection, session, outcome, short)? {
                short[SETTLED_BY] = session.run_id().as_str().into();
                has_changed = true;
            }
        }
        if has_changed {
            let sql = "UPDATE runs SET shortfalls = ?2 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute((run, Value::from(all).to_string()))?;
        }
    }
    Ok(())
}

fn is_settled<T: Track>(
    connection: &Connection,
    session: &Session<T>,
    outcome: &RunOutcome,
    short: &Value,
) -> Result<bool, Failure> {
    let text = |name: &str| short[name].as_str().unwrap_or_default().to_owned();
    let pair = CoveragePair { stream: text("stream"), state_stream: text("state_stream"), any_parent: true };
    if session.streams.of(&pair.stream).is_err() {
        return Ok(false);
    }
    let is_short =
        outcome.shortfalls.iter().any(|own| own.stream == pair.stream && own.state_stream == pair.state_stream);
    let is_full = session.is_ordinary() && session.start.about.purpose != RunPurpose::RecoveryOnly;
    if is_full && !is_short && session.has_report(&pair) && session.went_on_after(&pair.stream) == 0 {
        return Ok(true);
    }
    let keys = short["keys"].as_array().map_or(&[][..], Vec::as_slice);
    let keys = keys.iter().filter_map(Value::as_str).collect::<Vec<_>>();
    // Where more are meant than were kept, nobody knows which.
    let are_all = short["unaccounted"].as_u64() == Some(keys.len() as u64) && !keys.is_empty();
    Ok(are_all && has_all(connection, session, &pair, &keys)?)
}

/// Whether the store has a record, a gap or a quarantined record for each of these keys. A record that only the list has is
/// no evidence: no connector said that its detail is empty.
fn has_all<T: Track>(
    connection: &Connection,
    session: &Session<T>,
    pair: &CoveragePair,
    keys: &[&str],
) -> Result<bool, Failure> {
    create_table(connection)?;
    let place = (session.run, NO_REPORT);
    let sql = format!("INSERT OR IGNORE INTO temp.coverage_keys VALUES (?1, ?2, ?3, {})", REQUIRED | HYDRATED);
    for key in keys {
        connection.prepare_cached(&sql)?.execute((place.0, place.1, key))?;
    }
    Where::of(connection, session, place, pair)?.mark_missing()?;
    let mut has_all = true;
    each_key(connection, place, &format!("lists & {} != 0", MISSING | EMPTY), |key| {
        has_all = has_all && has_durable_gap(connection, session, pair, key)?;
        Ok(())
    })?;
    forget_report(connection, place)?;
    Ok(has_all)
}
