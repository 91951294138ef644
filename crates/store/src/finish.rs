//! The end of a run, in one transaction: its row, its gaps, its rest, its leases.
//!
//! A run that lost its lease writes nothing here: whoever took over has already written its end. The
//! cooldown is armed from the outcome's typed pressure and from nothing else.

use crate::coverage_keys;
use crate::error::{Failure, StoreError, date_from_sql, date_to_sql, from_sql, to_sql};
use crate::gap_rows;
use crate::lease::give_back;
use crate::session::Session;
use crate::store::Store;
use gleaner_engine::{Cooldown, RunId, RunOutcome, Track, WallTime, WithheldBecause};
use gleaner_protocol::{PressureReason, TerminalReason};
use rusqlite::{Connection, OptionalExtension};

/// Commits of a stream that are kept for the proof that they go forward.
const COMMITS_KEPT: i64 = 10_000;

impl Store {
    /// Ends a run, gives its gaps and leases back, and syncs.
    ///
    /// # Errors
    ///
    /// When the store cannot be written. The next run of the connection then finds it interrupted.
    pub fn finish_run<T: Track>(
        &mut self,
        session: Session<T>,
        outcome: &RunOutcome,
        now: WallTime,
    ) -> Result<(), StoreError> {
        // Temporary, and nobody's but ours.
        self.read(|connection| coverage_keys::forget(connection, session.run))?;
        if outcome.reason == TerminalReason::Superseded {
            return Ok(());
        }
        self.write(&session.leases, |transaction| {
            session.pending.write(transaction, session.run)?;
            gap_rows::release_all(transaction, session.connection, session.start.limits)?;
            end_run(transaction, session.run, outcome, now)?;
            if let Some(reason) = outcome.pressure {
                arm(transaction, &session, reason, now)?;
            }
            transaction.execute("DELETE FROM staged WHERE run = ?1", [session.run])?;
            thin_out_commits(transaction, session.connection)?;
            give_back(transaction, &session.leases)
        })?;
        // Nothing can be written under it any more.
        drop(session);
        Ok(())
    }
}

fn end_run(connection: &Connection, run: i64, outcome: &RunOutcome, now: WallTime) -> Result<(), Failure> {
    let counts = &outcome.counts;
    let sql = "UPDATE runs SET ended_at = ?2, reason = ?3, violation = ?4, pressure = ?5, seen = ?6, collected = ?7,
               deleted = ?8, rejected = ?9, gaps = ?10, recovered = ?11, unaccounted = ?12, commit_is_unknown = ?13
               WHERE id = ?1";
    connection.prepare_cached(sql)?.execute((
        run,
        date_to_sql(now),
        outcome.reason.code(),
        outcome.violation.as_ref().map(ToString::to_string),
        outcome.pressure.map(PressureReason::code),
        to_sql(counts.seen),
        to_sql(counts.collected),
        to_sql(counts.deleted),
        to_sql(counts.rejected),
        to_sql(counts.gaps),
        to_sql(counts.recovered),
        to_sql(counts.unaccounted),
        outcome.commit_is_unknown,
    ))?;
    let committed = outcome.committed.iter().map(|(stream, seq)| (stream, seq.get())).collect::<Vec<_>>();
    let withheld = outcome.withheld.iter().map(|held| (&held.stream, why(held.why))).collect::<Vec<_>>();
    let sql = "UPDATE runs SET committed = ?2, withheld = ?3, failed_streams = ?4 WHERE id = ?1";
    let values = (run, json(&committed), json(&withheld), json(&outcome.failed_streams));
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Lists of names and numbers can always be written.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

const fn why(why: WithheldBecause) -> &'static str {
    match why {
        WithheldBecause::CoverageShortfall => "coverage_shortfall",
        WithheldBecause::StreamFailed => "stream_failed",
        WithheldBecause::RunFailed => "run_failed",
        WithheldBecause::RunCancelled => "run_cancelled",
    }
}

fn arm<T: Track>(
    connection: &Connection,
    session: &Session<T>,
    reason: PressureReason,
    now: WallTime,
) -> Result<(), Failure> {
    let before = read_cooldown(connection, session.connection)?;
    let rest = Cooldown::arm(before.as_ref(), reason, &session.start.run_id, now, session.start.cooldown);
    let sql = "INSERT OR REPLACE INTO cooldowns VALUES (?1, ?2, ?3, ?4, ?5)";
    let values = (
        session.connection,
        rest.reason.code(),
        i64::from(rest.escalation),
        date_to_sql(rest.until),
        rest.armed_by.as_str(),
    );
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// The rest of a connection, if it has one.
pub(crate) fn read_cooldown(connection: &Connection, of: i64) -> Result<Option<Cooldown>, Failure> {
    let sql = "SELECT reason, escalation, until, armed_by FROM cooldowns WHERE connection = ?1";
    let cooldown = connection.prepare_cached(sql)?.query_row([of], |row| {
        let reason = PressureReason::from_code(&row.get::<_, String>(0)?).unwrap_or(PressureReason::UpstreamPressure);
        Ok(Cooldown {
            reason,
            escalation: u32::try_from(from_sql(row.get(1)?)).unwrap_or(u32::MAX),
            until: date_from_sql(row.get(2)?),
            armed_by: RunId::new(row.get::<_, String>(3)?),
        })
    });
    Ok(cooldown.optional()?)
}

fn thin_out_commits(connection: &Connection, of: i64) -> Result<(), Failure> {
    // The last one of a stream stays: it vouches for the cursor.
    let sql = "DELETE FROM commits WHERE stream IN (SELECT id FROM streams WHERE connection = ?1) AND id <=
               (SELECT id FROM commits ORDER BY id DESC LIMIT 1 OFFSET ?2)
               AND id NOT IN (SELECT max(id) FROM commits GROUP BY stream, track)";
    connection.prepare_cached(sql)?.execute((of, COMMITS_KEPT))?;
    Ok(())
}
