//! The end of a run, in one transaction: its row, its gaps, its rest, its leases.
//!
//! A run that lost its lease writes nothing here: whoever took over has already written its end. The
//! cooldown is armed from the outcome's typed pressure and from nothing else.

use crate::account::coverage_keys;
use crate::account::reach::forget_old_tracks;
use crate::error::{Failure, StoreError, date_from_sql, date_to_sql, from_sql, to_sql};
use crate::gaps::gap_rows;
use crate::lease::give_back;
use crate::registry;
use crate::run::quarantine::do_not_resume;
use crate::run::session::{RunTables, Session};
use crate::sql::{execute, first};
use crate::store::Store;
use gleaner_engine::{
    Cooldown, CooldownPolicy, Counts, Exit, REST_MAX, Rest, RunId, RunOutcome, RunPurpose, Shortfall, Skipped, Track,
    WallTime, Warning,
};
use gleaner_protocol::{PressureReason, TerminalReason};
use rusqlite::{Connection, params_from_iter};
use serde_json::json;

/// How often the end of a run waits for a lock that others hold. More than once, because with it go the
/// pressure that must arm the rest and the gaps that were handed out; not for ever, because somebody waits.
const TRIES: u32 = 3;
/// Commits that are kept for the proof that they go forward, besides the last of each stream.
const COMMITS_KEPT: i64 = 10_000;

impl Store {
    /// Ends a run, gives its gaps and leases back, and syncs. Answers what falls short besides the shortfalls of the
    /// outcome.
    ///
    /// # Errors
    ///
    /// When the store cannot be written. The next run of the connection then finds it interrupted.
    pub fn finish_run<T: Track>(
        &mut self,
        session: Session<T>,
        outcome: &RunOutcome,
        now: WallTime,
    ) -> Result<Vec<Shortfall>, StoreError> {
        let mut ended = Ok(Vec::new());
        if outcome.reason != TerminalReason::Superseded {
            for _ in 0..TRIES {
                ended = self.write(&session.leases, |transaction| session.tables(transaction).write_end(outcome, now));
                if !matches!(ended, Err(StoreError::Busy { .. })) {
                    break;
                }
            }
        }
        // Temporary, and nobody's but ours.
        self.read(|connection| {
            session.tables(connection).forget_held()?;
            coverage_keys::forget(connection, session.run)?;
            session.owed.forget(connection, session.run)
        })?;
        // Nothing can be written under it any more.
        drop(session);
        ended
    }

    /// Whether a connection rests: what a schedule asks before it begins a run. A rest that a calendar
    /// which was set back made longer than any rest is, is cut for good; cut for the answer alone, it
    /// would be put off each time somebody asks, until the calendar has caught up.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or the store cannot be read or written.
    pub fn rest(&mut self, name: &str, policy: CooldownPolicy, now: WallTime) -> Result<Rest, StoreError> {
        let ask = |connection: &Connection| {
            let of = registry::find(connection, name)?;
            Ok((of, read_cooldown(connection, of)?))
        };
        let (of, mut cooldown) = self.read(ask)?;
        let latest = now + REST_MAX;
        if let Some(rest) = cooldown.as_mut().filter(|rest| rest.until > latest) {
            rest.until = latest;
            self.write(&[], |transaction| {
                let sql = "UPDATE cooldowns SET until = min(until, ?2) WHERE connection = ?1";
                execute(transaction, sql, (of, date_to_sql(latest)))
            })?;
        }
        Ok(Cooldown::answer(cooldown.as_ref(), now, policy))
    }
}

impl<T: Track> RunTables<'_, T> {
    fn write_end(&self, outcome: &RunOutcome, now: WallTime) -> Result<Vec<Shortfall>, Failure> {
        let Self { connection, session } = *self;
        session.pending.write(connection, session.run)?;
        if outcome.reason == TerminalReason::Succeeded {
            self.close_early()?;
        }
        gap_rows::release_all(connection, session.connection, session.start.limits, now)?;
        if outcome.reason == TerminalReason::Succeeded {
            self.settle_rest_of_run(outcome)?;
        }
        self.settle_awaited_keys(outcome, now)?;
        self.keep_empty_details(now)?;
        let unproven = self.vouch_for_cursors(outcome)?;
        self.keep_skips(outcome, now)?;
        self.settle_shortfalls(outcome)?;
        for stream in &outcome.list_again {
            do_not_resume(connection, session.streams.of(stream)?, Some(session.track()))?;
        }
        end_run(connection, session.run, outcome, now)?;
        end_incomplete(connection, session.run, outcome, &unproven)?;
        match outcome.pressure {
            Some(reason) => self.arm(reason, now)?,
            None if is_let_through(outcome.reason) => self.lift(now)?,
            None => {}
        }
        connection.execute("DELETE FROM staged WHERE run = ?1", [session.run])?;
        thin_out_commits(connection, session.connection)?;
        forget_old_tracks(connection, session.connection)?;
        give_back(connection, &session.leases)?;
        Ok(unproven)
    }

    fn arm(&self, reason: PressureReason, now: WallTime) -> Result<(), Failure> {
        let (of, start) = (self.session.connection, &self.session.start);
        let rest = match read_cooldown(self.connection, of)? {
            // It rests already, and looking whether it still has to is no reason to rest longer.
            Some(before) if start.about.purpose == RunPurpose::Probe => Cooldown { reason, ..before },
            before => Cooldown::arm(before.as_ref(), reason, &start.run_id, now, start.cooldown),
        };
        // A provider that says when it may be asked again is not asked before.
        let told = gap_rows::told_until(self.connection, of)?.unwrap_or(rest.until);
        write_cooldown(self.connection, of, &Cooldown { until: rest.until.max(told), ..rest })
    }

    /// The provider let a run through: it rests no longer. Gaps that were recovered meanwhile prove nothing.
    fn lift(&self, now: WallTime) -> Result<(), Failure> {
        let (of, start) = (self.session.connection, &self.session.start);
        let rest = read_cooldown(self.connection, of)?;
        match rest.filter(|_| start.about.purpose != RunPurpose::RecoveryOnly) {
            Some(rest) => write_cooldown(self.connection, of, &rest.lifted(now, start.cooldown)),
            None => Ok(()),
        }
    }
}

fn end_run(connection: &Connection, run: i64, outcome: &RunOutcome, now: WallTime) -> Result<(), Failure> {
    let sql = "UPDATE runs SET ended_at = ?2, reason = ?3, violation = ?4, pressure = ?5, commit_is_unknown = ?6
               WHERE id = ?1";
    let (violation, pressure) = (outcome.violation.as_ref(), outcome.pressure.map(PressureReason::code));
    let violation = violation.map(ToString::to_string);
    let values = (run, date_to_sql(now), outcome.reason.code(), violation, pressure, outcome.commit_is_unknown);
    execute(connection, sql, values)?;
    // The slices have counted themselves. A device that failed right after a sync left one that the outcome does not
    // know: so the larger figure is the durable one.
    let sql = "UPDATE runs SET seen = max(seen, ?2), new_records = max(ifnull(new_records, 0), ?3),
               changed_records = max(ifnull(changed_records, 0), ?4), unchanged = max(unchanged, ?5),
               collected = max(collected, ?3 + ?4 + ?5), deleted = max(deleted, ?6), rejected = max(rejected, ?7),
               gaps = max(gaps, ?8), recovered = max(recovered, ?9), unaccounted = max(unaccounted, ?10),
               times_unreadable = max(times_unreadable, ?11) WHERE id = ?1";
    let Counts { seen, new, changed, unchanged, deleted, rejected, gaps, recovered, unaccounted, .. } = outcome.counts;
    let times_unreadable = outcome.counts.times_unreadable;
    let counts =
        [seen, new, changed, unchanged, deleted, rejected, gaps, recovered, unaccounted, times_unreadable].map(to_sql);
    execute(connection, sql, params_from_iter([run].into_iter().chain(counts)))?;
    let committed = outcome.committed.iter().map(|(stream, seq)| (stream, seq.get())).collect::<Vec<_>>();
    let withheld = outcome.withheld.iter().map(|held| (&held.stream, held.why.code())).collect::<Vec<_>>();
    let sql = "UPDATE runs SET committed = ?2, withheld = ?3, failed_streams = ?4, error_code = ?5, error_message = ?6,
               error_retryable = ?7, error_action = ?8, exit_code = ?9, exit_signal = ?10, stderr_tail = ?11 WHERE id = ?1";
    let error = outcome.error.as_ref();
    let (code, message) = (error.and_then(|error| error.code.as_ref()), error.map(|error| &error.message));
    let (retryable, hint) = (error.map(|error| error.retryable), error.and_then(|error| error.recovery_hint));
    let action = hint.map(|hint| hint.action.code());
    let failed = as_json(&outcome.failed_streams);
    let (exit, signal) = match outcome.exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let (committed, withheld, stderr) = (as_json(&committed), as_json(&withheld), &outcome.stderr);
    let values = (run, committed, withheld, failed, code, message, retryable, action, exit, signal, stderr);
    execute(connection, sql, values)
}

fn end_incomplete(
    connection: &Connection,
    run: i64,
    outcome: &RunOutcome,
    unproven: &[Shortfall],
) -> Result<(), Failure> {
    let shortfall = |short: &Shortfall| {
        json!({
            "stream": short.stream, "state_stream": short.state_stream, "unaccounted": short.unaccounted,
            "unconfirmed": short.unconfirmed, "keys": short.keys, "message": short.sentence(),
        })
    };
    let skip = |skip: &Skipped| json!({"stream": skip.stream, "reason": skip.reason, "message": skip.message});
    let warning = |warning: &Warning| {
        json!({
            "code": warning.code.code(), "stream": warning.stream, "count": warning.count,
            "message": warning.sentence(),
        })
    };
    let list =
        |values: Vec<serde_json::Value>| (!values.is_empty()).then(|| serde_json::Value::from(values).to_string());
    let shortfalls = list(outcome.shortfalls.iter().chain(unproven).map(shortfall).collect());
    let warnings = list(outcome.warnings.iter().map(warning).collect());
    let first = outcome.skips.first.iter().map(skip).collect::<Vec<_>>();
    let skipped = (outcome.skips.count > 0).then(|| json!({"count": outcome.skips.count, "first": first}).to_string());
    let sql = "UPDATE runs SET shortfalls = ?2, skipped = ?3, warnings = ?4 WHERE id = ?1";
    execute(connection, sql, (run, shortfalls, skipped, warnings))
}

/// Lists of names and numbers can always be written.
fn as_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Whether a run got what it asked the provider for.
const fn is_let_through(reason: TerminalReason) -> bool {
    matches!(reason, TerminalReason::Succeeded | TerminalReason::BudgetReached)
}

fn write_cooldown(connection: &Connection, of: i64, rest: &Cooldown) -> Result<(), Failure> {
    let sql = "INSERT OR REPLACE INTO cooldowns VALUES (?1, ?2, ?3, ?4, ?5)";
    let values = (of, rest.reason.code(), i64::from(rest.escalation), date_to_sql(rest.until), rest.armed_by.as_str());
    execute(connection, sql, values)
}

/// The rest of a connection, if it has one.
pub(crate) fn read_cooldown(connection: &Connection, of: i64) -> Result<Option<Cooldown>, Failure> {
    let sql = "SELECT reason, escalation, until, armed_by FROM cooldowns WHERE connection = ?1";
    first(connection, sql, [of], |row| {
        let reason = PressureReason::from_code(&row.get::<_, String>(0)?).unwrap_or(PressureReason::UpstreamPressure);
        Ok(Cooldown {
            reason,
            escalation: u32::try_from(from_sql(row.get(1)?)).unwrap_or(u32::MAX),
            until: date_from_sql(row.get(2)?),
            armed_by: RunId::new(row.get::<_, String>(3)?),
        })
    })
}

fn thin_out_commits(connection: &Connection, of: i64) -> Result<(), Failure> {
    // A stream at rest beside a busy one keeps its last commit: its cursor is proven by it.
    let sql = "DELETE FROM commits WHERE stream IN (SELECT id FROM streams WHERE connection = ?1) AND id <=
               (SELECT id FROM commits ORDER BY id DESC LIMIT 1 OFFSET ?2) AND EXISTS (SELECT 1 FROM commits later
               WHERE later.stream = commits.stream AND later.track = commits.track AND later.seq > commits.seq)";
    execute(connection, sql, (of, COMMITS_KEPT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_engine::EVIDENCE_WINDOW;
    use gleaner_protocol::{Manifest, ManifestOrigin};
    use std::time::Duration;

    /// A store with a connection `c` that has two streams.
    fn store(folder: &tempfile::TempDir) -> Store {
        let text = r#"{"connector_id":"x","connector_key":"x","version":"1","streams":[
            {"name":"busy","semantics":"append_only"},{"name":"quiet","semantics":"append_only"}]}"#;
        let manifest = Manifest::parse(text.as_bytes(), ManifestOrigin::FirstParty).unwrap();
        let mut store = Store::open(&folder.path().join("store.db")).unwrap();
        store.register("c", text, &manifest, WallTime::default()).unwrap();
        store
    }

    #[test]
    fn a_rest_ends_although_the_calendar_was_set_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = store(&folder);
        let policy = CooldownPolicy::of(None, None);
        let (early, late) = (WallTime::from_unix_millis(1_000), WallTime::from_unix_millis(1_000_000_000_000));
        let sql = "INSERT INTO cooldowns VALUES (1, 'rate_limited', 0, ?1, 'r')";
        store.connection.execute(sql, [date_to_sql(late)]).unwrap();
        let Rest::Until { until, .. } = store.rest("c", policy, early).unwrap() else { panic!("it is lost") };
        assert_eq!(until, early + REST_MAX);
        let later = early + Duration::from_secs(60);
        assert!(matches!(store.rest("c", policy, later), Ok(Rest::Until { until: again, .. }) if again == until));
        assert_eq!(store.rest("c", policy, until).unwrap(), Rest::No);
        assert_eq!(store.rest("c", policy, until + EVIDENCE_WINDOW).unwrap(), Rest::No);
    }

    #[test]
    fn a_quiet_stream_keeps_its_last_commit_beside_a_busy_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let insert = |stream: i64, commits: i64| {
            let sql = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?2)
                       INSERT INTO commits (stream, track, seq, epoch, run, committed_at, hash)
                       SELECT ?1, 'steady', n, 1, 1, 0, 0 FROM n";
            store.connection.execute(sql, (stream, commits)).unwrap();
        };
        insert(2, 3);
        insert(1, COMMITS_KEPT + 5);
        thin_out_commits(&store.connection, 1).unwrap();
        let sql = "SELECT count(*), max(seq) FROM commits WHERE stream = ?1";
        let left = |stream: i64| {
            store.connection.query_row(sql, [stream], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).unwrap()
        };
        assert_eq!(left(2), (1, 3));
        assert_eq!(left(1), (COMMITS_KEPT, COMMITS_KEPT + 5));
    }
}
