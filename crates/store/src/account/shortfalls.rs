//! Accounts of scoped and catch-up runs that fell short, until a later run shows that nothing of them is missing.
//!
//! The next ordinary run replaces the account of the last one. It does not replace that of a run with another scope, so such
//! an account is settled one by one: an ordinary run lists the stream from its beginning and leaves nothing out, or the
//! store has something for each key by now. The same scope again makes a new account by itself.

use crate::account::awaited_keys::NO_REPORT;
use crate::account::coverage_keys::{EMPTY, HYDRATED, MISSING, REQUIRED, create_table, each_key, forget_report};
use crate::error::Failure;
use crate::read::{OTHER_ACCOUNTS_SHORT, SETTLED_BY};
use crate::run::session::RunTables;
use crate::sql::{execute, rows};
use gleaner_engine::{CoveragePair, RunOutcome, RunPurpose, Track};
use gleaner_protocol::TerminalReason;
use serde_json::Value;

impl<T: Track> RunTables<'_, T> {
    /// Settles what a run that succeeded shows to be complete.
    pub(crate) fn settle_shortfalls(&self, outcome: &RunOutcome) -> Result<(), Failure> {
        if outcome.reason != TerminalReason::Succeeded {
            return Ok(());
        }
        let sql = format!("SELECT id, shortfalls FROM runs WHERE id IN ({OTHER_ACCOUNTS_SHORT}) AND track != ?2");
        let of_others = (self.session.connection, self.session.track());
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
        for (run, shortfalls) in rows(self.connection, &sql, of_others, read)? {
            // A list that is damaged stays as it is; `verify` names it.
            let Ok(mut all) = serde_json::from_str::<Vec<Value>>(&shortfalls) else { continue };
            let mut has_changed = false;
            for short in all.iter_mut().filter(|short| short.get(SETTLED_BY).is_none()) {
                if self.is_settled(outcome, short)? {
                    short[SETTLED_BY] = self.session.run_id().as_str().into();
                    has_changed = true;
                }
            }
            if has_changed {
                let sql = "UPDATE runs SET shortfalls = ?2 WHERE id = ?1";
                execute(self.connection, sql, (run, Value::from(all).to_string()))?;
            }
        }
        Ok(())
    }

    fn is_settled(&self, outcome: &RunOutcome, short: &Value) -> Result<bool, Failure> {
        let session = self.session;
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
        Ok(are_all && self.has_all(&pair, &keys)?)
    }

    /// Whether the store has a record, a gap or a quarantined record for each of these keys. A record that only the list
    /// has is no evidence: no connector said that its detail is empty.
    fn has_all(&self, pair: &CoveragePair, keys: &[&str]) -> Result<bool, Failure> {
        create_table(self.connection)?;
        let place = (self.session.run, NO_REPORT);
        let sql = format!("INSERT OR IGNORE INTO temp.coverage_keys VALUES (?1, ?2, ?3, {})", REQUIRED | HYDRATED);
        for key in keys {
            execute(self.connection, &sql, (place.0, place.1, key))?;
        }
        self.keys_of(place, pair)?.mark_missing()?;
        let mut has_all = true;
        each_key(self.connection, place, &format!("lists & {} != 0", MISSING | EMPTY), |key| {
            has_all = has_all && self.has_durable_gap(pair, key)?;
            Ok(())
        })?;
        forget_report(self.connection, place)?;
        Ok(has_all)
    }
}
