//! From the read model to what a schedule decides by: typed evidence in, [`Facts`] out.

use gleaner_engine::{CatchUp, CooldownPolicy, RunPurpose, Steady, Track, WallTime};
use gleaner_protocol::{Manifest, RecoveryAction, TerminalReason};
use gleaner_schedule::{Detained, Facts, Failures, HeldBack, LastRun, OwnerWish, Plan, Span};
use gleaner_store::{ConnectionState, Evidence, HeldBy, Reader, RunSummary, StoreError, Wanted, WantedBy};

/// Runs that are looked at: more than any threshold of rows, probes between them included.
const RUNS_MAX: usize = 60;

/// What was read before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) now: WallTime,
    pub(super) evidence: &'a Evidence,
    pub(super) manifest: Option<&'a Manifest>,
    pub(super) holder: Option<&'a HeldBy>,
    /// A keyed hash of the credential as it is now, where somebody has looked.
    pub(super) credential: Option<&'a str>,
}

/// What a schedule is decided by.
pub(super) fn facts(
    reader: &Reader,
    name: &str,
    known: &Known<'_>,
    plan: Plan,
    cooldown_policy: CooldownPolicy,
) -> Result<Facts, StoreError> {
    let Known { now, evidence, manifest, holder, .. } = *known;
    let runs = ended_runs(reader, name, holder.is_some())?;
    let wanted = reader.wanted(name)?;
    let waiting = reader.gaps_waiting(name)?;
    let steady = runs.iter().filter(|run| run.track == Steady::NAME).collect::<Vec<_>>();
    let full = steady.iter().find(|run| run.purpose == RunPurpose::Full);
    let interrupted = steady.iter().take_while(|run| run.reason == Some(TerminalReason::Interrupted));
    // What got on before its end was not ended by itself.
    let in_vain = interrupted.clone().take_while(|run| run.slices == 0).count();
    let cut_short = if interrupted.count() > 0 { in_vain.max(1) } else { 0 };
    let failures = if cut_short > 0 { Failures::default() } else { failures(evidence, &runs) };
    let caught_up = reader.last_run_of::<CatchUp>(name)?;
    let history_ended = caught_up.as_ref().map(|run| run.ended_at.unwrap_or(run.started_at));
    let pending = evidence.summary.totals.gaps_pending;
    let grant_is_over = evidence.grant_ends.is_some_and(|end| end <= now);
    let provider = manifest.map(provider_of).unwrap_or_default();
    let account = runs.iter().find_map(|run| run.credential.clone()).unwrap_or_else(|| format!("connection {name}"));
    Ok(Facts {
        connection: name.to_owned(),
        provider,
        account,
        added: evidence.summary.created_at,
        last: steady.first().map(|run| last_run(run)),
        last_full: full.map(|run| Span { began: run.started_at, ended: run.ended_at.unwrap_or(run.started_at) }),
        pushed_back: full.and_then(|run| run.pressure),
        last_success: evidence.last_success,
        failures,
        cut_short: u32::try_from(cut_short).unwrap_or(u32::MAX),
        handed_over: matches!(wanted, Some(Wanted { by: WantedBy::HandedOver, .. })),
        cooldown: evidence.cooldown.clone(),
        cooldown_policy,
        told_until: waiting.told_until,
        // Mostly there are none, and the counters know.
        other_gaps: pending > reader.pressure_backlog(name)?.total() && reader.has_gaps_beside_pressure(name, now)?,
        remainder: has_remainder(steady.first().copied(), waiting.at_budget),
        history_left: caught_up.is_some_and(|run| run.reason != Some(TerminalReason::Succeeded)),
        last_catch_up: history_ended,
        question_open: evidence.summary.question_open,
        renewed: is_renewed(&runs, known, grant_is_over),
        grant_is_over,
        asked: wanted.filter(|wanted| wanted.by == WantedBy::Owner).map(|wanted| wanted.at),
        detained: holder.map(|holder| Detained::AtWork(holder.until)),
        plan,
    })
}

/// Whose limit it shares.
fn provider_of(manifest: &Manifest) -> String {
    manifest.provider.clone().unwrap_or_else(|| manifest.connector_id.clone())
}

/// How a connection is run. What is removed, or has no manifest that can be read, is not.
#[must_use]
pub(crate) fn plan_of(manifest: Option<&Manifest>, wish: &OwnerWish, state: ConnectionState) -> Plan {
    let plan = Plan::combine(manifest.and_then(|manifest| manifest.refresh_policy.as_ref()), wish);
    let may_run = manifest.is_some() && matches!(state, ConnectionState::Active | ConnectionState::Paused);
    let held_back = if may_run { plan.held_back } else { plan.held_back.or(Some(HeldBack::ManualByManifest)) };
    Plan { held_back, ..plan }
}

/// How long it rests: by its interval, where it runs by itself.
#[must_use]
pub(crate) fn cooldown_policy(manifest: Option<&Manifest>, plan: &Plan, now: WallTime) -> CooldownPolicy {
    let interval = plan.held_back.is_none().then(|| plan.cadence.length(now, &plan.zone));
    CooldownPolicy::of(interval, manifest.and_then(|manifest| manifest.refresh_policy.as_ref()))
}

/// The last runs that are over, the newest first. One that has no end and no holder was cut short.
fn ended_runs(reader: &Reader, name: &str, is_at_work: bool) -> Result<Vec<RunSummary>, StoreError> {
    let mut runs = reader.runs(name, RUNS_MAX)?;
    for run in runs.iter_mut().filter(|run| run.ended_at.is_none() && !is_at_work) {
        (run.ended_at, run.reason) = (Some(run.started_at), Some(TerminalReason::Interrupted));
    }
    // What was refused because of what it was asked for never began.
    runs.retain(|run| run.ended_at.is_some() && run.reason != Some(TerminalReason::ScopeRejected));
    Ok(runs)
}

fn last_run(run: &RunSummary) -> LastRun {
    LastRun {
        began: run.started_at,
        ended: run.ended_at.unwrap_or(run.started_at),
        // A word that a newer program wrote.
        reason: run.reason.unwrap_or(TerminalReason::ConnectorFailed),
        purpose: run.purpose,
    }
}

fn failures(evidence: &Evidence, runs: &[RunSummary]) -> Failures {
    let count = evidence.equal_failures;
    let of_row = runs.iter().filter(|run| run.purpose != RunPurpose::Probe).take(count as usize);
    let Some(first) = of_row.clone().last() else { return Failures::default() };
    let newest = of_row.clone().next();
    let may_pass = newest.is_some_and(|run| run.error_retryable && run.reason == Some(TerminalReason::ConnectorFailed));
    let has_worked =
        |run: &RunSummary| matches!(run.reason, Some(TerminalReason::Succeeded | TerminalReason::BudgetReached));
    let since = runs.iter().take_while(|run| run.run_id != first.run_id);
    let provider_is_there = since.into_iter().any(|run| run.purpose == RunPurpose::Probe && has_worked(run));
    Failures { count, may_pass, provider_is_there, action: newest.and_then(|run| run.error_action) }
}

/// Whether a run stopped at its own budget and got on: what gets nowhere is not repeated every minute.
fn has_remainder(last: Option<&RunSummary>, at_budget: bool) -> bool {
    let Some(last) = last.filter(|run| run.purpose != RunPurpose::Probe) else { return false };
    let got_on = last.counts.new + last.counts.changed > 0 || last.counts.deleted > 0 || last.counts.recovered > 0;
    let stopped = at_budget || last.reason == Some(TerminalReason::BudgetReached);
    let planned = matches!(last.reason, Some(TerminalReason::Succeeded | TerminalReason::BudgetReached));
    stopped && planned && got_on
}

/// Whether what made it fail, or made it leave something out, is another one now.
fn is_renewed(runs: &[RunSummary], known: &Known<'_>, grant_is_over: bool) -> bool {
    let Known { evidence, manifest, credential, .. } = *known;
    let Some(last) = runs.iter().find(|run| run.purpose != RunPurpose::Probe) else { return false };
    let needs = |action| last.error_action == Some(action) || evidence.hints.contains(&action);
    let version = manifest.map(|manifest| manifest.version.as_str());
    let is_upgraded =
        last.connector_version.is_some() && version.is_some() && last.connector_version.as_deref() != version;
    let by_upgrade = evidence.equal_failures > 0 || needs(RecoveryAction::RetryOnConnectorUpgrade);
    let is_signed_in = credential.is_some() && credential != last.credential.as_deref();
    let by_sign_in = needs(RecoveryAction::RefreshCredentials)
        || matches!(last.reason, Some(TerminalReason::CredentialsMissing | TerminalReason::CredentialsRefused));
    let is_allowed = last.reason == Some(TerminalReason::GrantExpired) && !grant_is_over;
    is_upgraded && by_upgrade || is_signed_in && by_sign_in || is_allowed
}

/// Whether a new credential would make a difference: only then is it worth looking.
#[must_use]
pub(crate) fn waits_for_credential(evidence: &Evidence) -> bool {
    let last = evidence.last_run.as_ref();
    let by_reason = last.and_then(|run| run.reason);
    evidence.hints.contains(&RecoveryAction::RefreshCredentials)
        || last.is_some_and(|run| run.error_action == Some(RecoveryAction::RefreshCredentials))
        || matches!(by_reason, Some(TerminalReason::CredentialsMissing | TerminalReason::CredentialsRefused))
}
