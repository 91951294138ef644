//! What is known about a connection, gathered for the engine's judgement of its health.
//!
//! Only typed facts: reasons, counters, states, dates, and the messages about pace and circuit. No
//! sentence of a connector is read. The judgement itself is the engine's.

use super::{ConnectionSummary, Missing, Reader, RunSummary};
use crate::error::StoreError;
use crate::lease::LeaseOn;
use crate::lease::holder::Holder;
use gleaner_engine::{
    Cooldown, CooldownPolicy, Finding, Health, HealthEvidence, OpenRun, RunPurpose, Steady, Track, WallTime, is_failure,
};
use gleaner_protocol::{
    Assistance, CollectionRate, ConnectorMessage, Manifest, ProviderBudget, RecoveryAction, TerminalReason, Waiting,
};
use std::time::Duration;

/// Runs that are looked at for a row of equal failures: more than any threshold.
const RUNS_MAX: usize = 20;
/// Requests for help, and answers to them.
const HELP: &str = "e.kind IN ('assistance', 'assistance_status')";
/// Progress that says something about a wait. What contains the word only in its sentence is among it.
const WAIT: &str = "e.kind = 'progress' AND instr(e.message, '\"waiting\":') > 0";
/// Requests for help, and answers to them, that are looked at: more than anybody would read.
const HELP_MAX: usize = 50;
/// Progress messages that are looked at for a wait. More than one, because a sentence may contain the word.
const WAITS_MAX: usize = 20;
/// Skips of the last run that are looked at for hints.
const EVENTS_MAX: usize = 200;

/// The facts about one connection.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Its counters and state.
    pub summary: ConnectionSummary,
    /// What is known of and not stored.
    pub missing: Missing,
    /// How many parts of streams were skipped and not brought since.
    pub skips_open: u64,
    /// How many accounts fell short, of the last run of each track.
    pub shortfalls: u64,
    /// The last run that ended. Not one that was refused because of what it was asked for: that never began.
    pub last_run: Option<RunSummary>,
    /// The last run that was to collect everything and ended.
    last_full_run: Option<RunSummary>,
    /// The run that has not ended: it goes on, or its process is gone.
    pub open_run: Option<RunSummary>,
    /// Whether a process is at work on the open run.
    is_running: bool,
    /// When the owner's permission ends.
    pub grant_ends: Option<WallTime>,
    /// How many of the last runs ended in the same failure, in a row.
    pub equal_failures: u32,
    /// When an ordinary run last succeeded.
    pub last_success: Option<WallTime>,
    /// Its rest, if it has one.
    pub cooldown: Option<Cooldown>,
    /// What the last run's skips ask for.
    pub hints: Vec<RecoveryAction>,
    /// The last report about the circuit by the newest run, also one that goes on.
    pub circuit: Option<ProviderBudget>,
    /// The last report about the pace, also of a run that goes on.
    pub rate: Option<CollectionRate>,
    /// What the run that goes on waits for, by its last word about that, and until when.
    waiting: Option<(Waiting, WallTime)>,
}

impl Evidence {
    /// What its run waits for, and until when; nothing when that is over or no run goes on. The caller knows whether
    /// the process of an open run is alive.
    #[must_use]
    pub fn waiting_at(&self, now: WallTime) -> Option<(&Waiting, WallTime)> {
        self.waiting.as_ref().filter(|(_, until)| *until > now).map(|(waiting, until)| (waiting, *until))
    }
}

impl Reader {
    /// Gathers the facts about a connection.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn evidence(&self, name: &str) -> Result<Evidence, StoreError> {
        let summary = self.connection(name)?;
        let mut runs = self.runs(name, RUNS_MAX)?;
        // A run begins with a closed circuit: what an earlier one had is over. A pace stays known.
        let circuit = runs.first().and_then(|run| run.provider_budget.as_ref());
        let circuit = circuit.and_then(|text| serde_json::from_str(text).ok());
        let rate = runs.iter().find_map(|run| run.collection_rate.as_ref());
        let rate = rate.and_then(|text| serde_json::from_str(text).ok());
        let open_run = runs.iter().find(|run| run.ended_at.is_none()).cloned();
        runs.retain(|run| run.ended_at.is_some() && run.reason != Some(TerminalReason::ScopeRejected));
        let last_run = runs.first().cloned();
        let last_full_run = runs.iter().find(|run| is_full(run)).cloned();
        // The date is for the end of a lease, which is not asked for here.
        let is_at_work = || {
            let ourselves = Holder::current().map_err(StoreError::Holder)?;
            self.held_by(LeaseOn::Connection(name), &ourselves, WallTime::default()).map(|held| held.is_some())
        };
        let is_running = open_run.is_some() && is_at_work()?;
        let waiting = open_run.as_ref().map(|run| self.waiting_of(&run.run_id)).transpose()?.flatten();
        let hints = last_run.as_ref().map(|run| self.hints(&run.run_id)).transpose()?.unwrap_or_default();
        let others =
            self.other_accounts_short(name)?.iter().map(|run| run.shortfalls_open(name).len() as u64).sum::<u64>();
        Ok(Evidence {
            equal_failures: equal_failures(&runs),
            last_success: self.last_success(name)?,
            cooldown: self.cooldown(name)?,
            hints,
            circuit,
            rate,
            waiting,
            missing: self.missing(name)?,
            skips_open: self.open_skips(name)?.len() as u64,
            shortfalls: self.last_account(name, Steady::NAME)?.map_or(0, |run| run.shortfall_count()) + others,
            grant_ends: grant_end(&self.settings(name)?),
            summary,
            last_run,
            last_full_run,
            open_run,
            is_running,
        })
    }

    /// Help that the newest run of a connection asked for, the oldest first: unless it was settled, took
    /// too long, or the run did without it. It blocks nothing.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn open_help(&self, name: &str, now: WallTime) -> Result<Vec<Assistance>, StoreError> {
        let newest = self.runs(name, 1)?.into_iter().next();
        let Some(run) = newest.filter(|run| run.reason != Some(TerminalReason::Succeeded)) else {
            return Ok(Vec::new());
        };
        let mut open = Vec::<Assistance>::new();
        for (at, message) in self.last_said(&run.run_id, HELP, HELP_MAX)?.into_iter().rev() {
            match ConnectorMessage::decode(message.as_bytes()) {
                Ok(ConnectorMessage::Assistance(help)) => {
                    let over = help.timeout_seconds.is_some_and(|seconds| at + Duration::from_secs(seconds) <= now);
                    let again = help.assistance_request_id.is_some();
                    open.retain(|known| !again || known.assistance_request_id != help.assistance_request_id);
                    open.extend((!over).then_some(help));
                }
                Ok(ConnectorMessage::AssistanceStatus(status)) => {
                    open.retain(|known| known.assistance_request_id.as_ref() != Some(&status.assistance_request_id));
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(open)
    }

    /// The last word of a run about what it waits for.
    fn waiting_of(&self, run_id: &str) -> Result<Option<(Waiting, WallTime)>, StoreError> {
        let said = self.last_said(run_id, WAIT, WAITS_MAX)?;
        let last = said.iter().find_map(|(_, message)| match ConnectorMessage::decode(message.as_bytes()) {
            Ok(ConnectorMessage::Progress(progress)) => progress.waiting.valid().cloned(),
            Ok(_) | Err(_) => None,
        });
        let waiting = last.flatten();
        Ok(waiting.and_then(|waiting| WallTime::parse(&waiting.until).map(|until| (waiting, until))))
    }

    fn hints(&self, run_id: &str) -> Result<Vec<RecoveryAction>, StoreError> {
        let events = self.last_said(run_id, "e.kind = 'skip'", EVENTS_MAX)?;
        let hint = |(_, message): &(WallTime, String)| match ConnectorMessage::decode(message.as_bytes()) {
            Ok(ConnectorMessage::SkipResult(skip)) => skip.recovery_hint.map(|hint| hint.action),
            Ok(_) | Err(_) => None,
        };
        let mut hints = events.iter().filter_map(hint).collect::<Vec<_>>();
        hints.sort_unstable();
        hints.dedup();
        Ok(hints)
    }
}

/// How many runs in a row ended in the failure of the newest one. Stops that are no failures end the row, probes are
/// not in it.
fn equal_failures(runs: &[RunSummary]) -> u32 {
    let runs = runs.iter().filter(|run| run.purpose != RunPurpose::Probe).collect::<Vec<_>>();
    let failure = |run: &&RunSummary| run.reason.filter(|reason| is_failure(*reason));
    let Some(last) = runs.first().and_then(failure) else { return 0 };
    let row = runs.iter().take_while(|run| failure(run) == Some(last)).count();
    u32::try_from(row).unwrap_or(u32::MAX)
}

/// Whether it was to collect everything.
fn is_full(run: &RunSummary) -> bool {
    run.track == Steady::NAME && run.purpose == RunPurpose::Full
}

/// The end of the owner's permission, out of the settings of a connection.
fn grant_end(settings: &str) -> Option<WallTime> {
    let settings = serde_json::from_str::<serde_json::Value>(settings).ok()?;
    settings["expires_at_ms"].as_u64().map(WallTime::from_unix_millis)
}

impl Evidence {
    /// Why nobody can say that nothing is missing, although nothing may be on record: no run has collected everything, or
    /// the last one that was to did not finish. It may hold text from outside.
    #[must_use]
    pub fn unfinished(&self) -> Option<String> {
        let interrupted = self.open_run.as_ref().is_some_and(|run| is_full(run) && !self.is_running);
        let cause = |run: &RunSummary| run.ended().map(|ended| ended.cause().trim_end_matches('.').to_owned());
        if self.last_success.is_none() {
            let last = self.last_run.as_ref();
            let stopped = |reason| Finding::NoFullRun(reason).sentence(|_| String::new());
            return Some(match last.and_then(|run| run.reason) {
                _ if self.open_run.is_some() && self.is_running => Finding::FirstRun.sentence(|_| String::new()),
                _ if self.open_run.is_some() => stopped(TerminalReason::Interrupted),
                Some(reason) if !is_failure(reason) => stopped(reason),
                _ => match last.and_then(cause) {
                    Some(cause) => format!("no run has finished yet: {cause}"),
                    None => "no run has finished yet".to_owned(),
                },
            });
        }
        if interrupted {
            return Some("the last run was interrupted".to_owned());
        }
        let last = self.last_full_run.as_ref().filter(|run| run.reason != Some(TerminalReason::Succeeded))?;
        Some(format!("the last run did not finish: {}", cause(last)?))
    }

    /// A finding in a sentence. Of a run that failed it is the cause, in the connector's own words: text from outside.
    #[must_use]
    pub fn sentence(&self, finding: &Finding, date: impl Fn(WallTime) -> String) -> String {
        let ended = self.last_run.as_ref().and_then(RunSummary::ended);
        match (finding, ended) {
            (Finding::LastRunFailed(reason), Some(ended)) if ended.reason == *reason => {
                format!("{}. {}", ended.cause().trim_end_matches('.'), ended.next())
            }
            _ => finding.sentence(date),
        }
    }

    /// How the connection is doing.
    #[must_use]
    pub fn health(&self, manifest: &Manifest, policy: CooldownPolicy, now: WallTime) -> Health {
        let totals = &self.summary.totals;
        let evidence = HealthEvidence {
            manifest,
            last_run: self.last_run.as_ref().and_then(|run| run.reason),
            open_run: self.open_run.as_ref().map(|_| match self.is_running {
                true => OpenRun::Running,
                false => OpenRun::Interrupted,
            }),
            grant_is_over: self.grant_ends.is_some_and(|end| end <= now),
            equal_failures: self.equal_failures,
            last_success: self.last_success,
            rest: Cooldown::answer(self.cooldown.as_ref(), now, policy),
            open_gaps: totals.gaps_pending + totals.gaps_in_progress,
            terminal_gaps: totals.gaps_terminal,
            ignored_gaps: totals.gaps_ignored,
            rejected_records: totals.quarantined,
            shortfalls: self.shortfalls.max(u64::from(self.missing.unaccounted > 0)),
            skips: self.skips_open,
            question_open: self.summary.question_open,
            hints: &self.hints,
            circuit: self.circuit.as_ref(),
            rate: self.rate.as_ref(),
        };
        Health::derive(&evidence, now)
    }
}
