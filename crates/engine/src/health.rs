//! How a connection is doing, derived from typed evidence.
//!
//! Why no messages go in: a sentence by a connector's author is no evidence, and a console that reads
//! sentences is wrong in the next version. What goes in are reasons, counts, states and times; what
//! comes out are [`Finding`]s, each with its data, and the worst of them is the grade. Nothing found
//! means healthy, except where no run has collected everything yet: that is not known. Never counts a planned stop
//! by our own budget as a fault.

mod words;

use crate::cooldown::Rest;
use crate::time::WallTime;
use gleaner_protocol::{
    CircuitState, CollectionRate, Manifest, PressureReason, ProviderBudget, RecoveryAction, RefreshPolicy,
    TerminalReason, coded_enum,
};
use std::time::Duration;

/// What is known about a connection.
#[derive(Debug)]
pub struct HealthEvidence<'a> {
    /// Its connector.
    pub manifest: &'a Manifest,
    /// How the last run ended, if there was one.
    pub last_run: Option<TerminalReason>,
    /// The run that has no end on record.
    pub open_run: Option<OpenRun>,
    /// Whether the owner's permission is over.
    pub grant_is_over: bool,
    /// How many of the last runs ended in the same failure, in a row.
    pub equal_failures: u32,
    /// When an ordinary run last succeeded.
    pub last_success: Option<WallTime>,
    /// Whether it rests.
    pub rest: Rest,
    /// Gaps that wait, of any cause.
    pub open_gaps: u64,
    /// Gaps that were given up.
    pub terminal_gaps: u64,
    /// Gaps that the owner does without.
    pub ignored_gaps: u64,
    /// Records in quarantine.
    pub rejected_records: u64,
    /// Checkpoints that the last run withheld because their account fell short.
    pub shortfalls: u64,
    /// What the last run left out so that it is incomplete.
    pub skips: u64,
    /// Whether a question waits for the owner.
    pub question_open: bool,
    /// What the last run's skips ask for.
    pub hints: &'a [RecoveryAction],
    /// The last report about the circuit.
    pub circuit: Option<&'a ProviderBudget>,
    /// The last report about the pace. Absent means that there is no pacing, never that it is zero.
    pub rate: Option<&'a CollectionRate>,
}

/// A run that has begun and has no end on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenRun {
    /// A process is at work on it.
    Running,
    /// Its process is gone.
    Interrupted,
}

/// How a connection is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// The worst of the findings.
    pub grade: Grade,
    /// Everything worth saying, the worst first.
    pub findings: Vec<Finding>,
    /// The present share of the fastest allowed pace, if it is paced.
    pub pace: Option<f64>,
}

coded_enum! {
    /// From best to worst.
    pub enum Grade {
        /// Nothing that anybody has to do something about.
        Healthy = "healthy";
        /// No run has collected everything yet.
        Unknown = "unknown";
        /// It goes on by itself, with something still to come.
        CatchingUp = "catching_up";
        /// It rests by itself.
        Resting = "resting";
        /// Something is missing that does not come by itself.
        Degraded = "incomplete";
        /// The last run failed.
        Failing = "failing";
        /// Only the owner can help.
        NeedsOwner = "needs_you";
    }
}

/// One thing worth saying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// There was no run yet.
    NeverRan,
    /// No run has succeeded yet, and one is running.
    FirstRun,
    /// No ordinary run has succeeded yet. The last run ended like this, without a fault of the connection; where it
    /// succeeded, it asked for less than everything.
    NoFullRun(TerminalReason),
    /// Gaps wait for the next runs.
    GapsOpen(u64),
    /// The circuit is not closed.
    CircuitNotClosed(CircuitState),
    /// It rests because of the provider.
    Resting {
        /// Until then.
        until: WallTime,
        /// Because of this.
        why: PressureReason,
    },
    /// Gaps were given up.
    GapsGivenUp(u64),
    /// The owner does without these. It is no fault, and it is said all the same: they are missing.
    GapsIgnored(u64),
    /// Records are in quarantine.
    RecordsRejected(u64),
    /// Checkpoints wait for an account.
    CoverageShort(u64),
    /// The last run left something out.
    Skipped(u64),
    /// No success for longer than the policy allows.
    Stale {
        /// Since then.
        since: WallTime,
    },
    /// The manifest requires so many streams that it says cannot be collected.
    RequiresTheImpossible(u64),
    /// The last run did not succeed.
    LastRunFailed(TerminalReason),
    /// The same failure again and again: runs are further apart now.
    BackingOff {
        /// How often in a row.
        failures: u32,
    },
    /// The same failure so often that nothing runs by itself any more.
    Blocked {
        /// How often in a row.
        failures: u32,
    },
    /// It rested so often in a row that the owner should look.
    RestedTooOften {
        /// How often.
        cycles: u32,
        /// What the provider said last.
        why: PressureReason,
    },
    /// The owner's permission is over.
    PermissionOver,
    /// A question waits.
    QuestionOpen,
    /// The connector asks for something that only the owner can do.
    OwnerAction(RecoveryAction),
}

/// From so many equal failures on, runs are further apart. From the contract.
pub const BACK_OFF_FROM: u32 = 3;
/// From so many on, nothing runs by itself. From the contract.
pub const BLOCKED_FROM: u32 = 7;

impl Health {
    /// The health that follows from the evidence.
    #[must_use]
    pub fn derive(evidence: &HealthEvidence<'_>, now: WallTime) -> Self {
        let mut findings = Vec::new();
        findings.extend(of_runs(evidence, now));
        findings.extend(of_what_is_missing(evidence));
        findings.extend(of_provider(evidence));
        findings.extend(of_owner(evidence));
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.grade()));
        let grade = findings.first().map_or(Grade::Healthy, |finding| finding.grade());
        let pace = evidence.rate.map(|rate| rate.ceiling_interval_ms / rate.current_interval_ms);
        Self { grade, findings, pace: pace.filter(|pace| pace.is_finite()) }
    }
}

impl Finding {
    /// How bad it is.
    #[must_use]
    pub const fn grade(&self) -> Grade {
        match self {
            Self::GapsIgnored(_) => Grade::Healthy,
            Self::NeverRan | Self::NoFullRun(_) => Grade::Unknown,
            Self::FirstRun | Self::GapsOpen(_) | Self::CircuitNotClosed(_) => Grade::CatchingUp,
            Self::Resting { .. } => Grade::Resting,
            Self::GapsGivenUp(_)
            | Self::RecordsRejected(_)
            | Self::CoverageShort(_)
            | Self::Skipped(_)
            | Self::Stale { .. }
            | Self::RequiresTheImpossible(_) => Grade::Degraded,
            // Trying again helps nobody: somebody has to sign in, answer or allow it.
            Self::LastRunFailed(
                TerminalReason::CredentialsMissing
                | TerminalReason::CredentialsRefused
                | TerminalReason::InteractionExpired,
            ) => Grade::NeedsOwner,
            Self::LastRunFailed(_) | Self::BackingOff { .. } => Grade::Failing,
            Self::Blocked { .. }
            | Self::RestedTooOften { .. }
            | Self::PermissionOver
            | Self::QuestionOpen
            | Self::OwnerAction(_) => Grade::NeedsOwner,
        }
    }
}

/// Whether a run that ended like this failed. A pause because of the provider is said as such; stopping, by request or by
/// a crash of ours, is no fault of the connection, and the next run goes on. A permission that is over is looked at as it
/// is now. A run that was refused because of what it was asked for never began.
#[must_use]
pub const fn is_failure(reason: TerminalReason) -> bool {
    !matches!(
        reason,
        TerminalReason::Succeeded
            | TerminalReason::SourceCooldown
            | TerminalReason::Cancelled
            | TerminalReason::Interrupted
            | TerminalReason::Superseded
            | TerminalReason::BudgetReached
            | TerminalReason::GrantExpired
            | TerminalReason::ScopeRejected
    )
}

fn of_runs(evidence: &HealthEvidence<'_>, now: WallTime) -> Vec<Finding> {
    let mut findings = Vec::new();
    let has_failed = evidence.last_run.filter(|reason| is_failure(*reason));
    findings.extend(has_failed.map(Finding::LastRunFailed));
    if evidence.last_success.is_none() {
        match (evidence.open_run, evidence.last_run) {
            (Some(OpenRun::Running), _) => findings.push(Finding::FirstRun),
            (Some(OpenRun::Interrupted), _) => findings.push(Finding::NoFullRun(TerminalReason::Interrupted)),
            (None, None) => findings.push(Finding::NeverRan),
            (None, Some(reason)) if has_failed.is_none() => findings.push(Finding::NoFullRun(reason)),
            (None, Some(_)) => {}
        }
    }
    match evidence.equal_failures {
        failures @ BLOCKED_FROM.. => findings.push(Finding::Blocked { failures }),
        failures @ BACK_OFF_FROM.. => findings.push(Finding::BackingOff { failures }),
        _ => {}
    }
    let policy = evidence.manifest.refresh_policy.as_ref();
    let staleness = policy.and_then(|policy: &RefreshPolicy| policy.maximum_staleness_seconds);
    if let (Some(max), Some(since)) = (staleness, evidence.last_success)
        && now.since(since) > Duration::from_secs(max)
    {
        findings.push(Finding::Stale { since });
    }
    findings
}

fn of_what_is_missing(evidence: &HealthEvidence<'_>) -> Vec<Finding> {
    let streams = &evidence.manifest.streams;
    let impossible = streams.iter().filter(|stream| stream.requires_what_it_cannot_collect()).count() as u64;
    let counted = [
        (evidence.open_gaps, Finding::GapsOpen(evidence.open_gaps)),
        (evidence.terminal_gaps, Finding::GapsGivenUp(evidence.terminal_gaps)),
        (evidence.rejected_records, Finding::RecordsRejected(evidence.rejected_records)),
        (evidence.shortfalls, Finding::CoverageShort(evidence.shortfalls)),
        (evidence.skips, Finding::Skipped(evidence.skips)),
        (impossible, Finding::RequiresTheImpossible(impossible)),
        (evidence.ignored_gaps, Finding::GapsIgnored(evidence.ignored_gaps)),
    ];
    counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, finding)| finding).collect()
}

fn of_provider(evidence: &HealthEvidence<'_>) -> Vec<Finding> {
    let rest = match evidence.rest {
        Rest::No => None,
        Rest::Until { until, why, .. } => Some(Finding::Resting { until, why }),
        Rest::NeedsAttention { why, cycles } => Some(Finding::RestedTooOften { cycles, why }),
    };
    let state = evidence.circuit.map(|budget| budget.circuit.state);
    let circuit = state.filter(|state| *state != CircuitState::Closed).map(Finding::CircuitNotClosed);
    rest.into_iter().chain(circuit).collect()
}

fn of_owner(evidence: &HealthEvidence<'_>) -> Vec<Finding> {
    let needs_owner = |action: &&RecoveryAction| {
        matches!(action, RecoveryAction::RefreshCredentials | RecoveryAction::ManualActionRequired)
    };
    let mut actions = evidence.hints.iter().filter(needs_owner).copied().collect::<Vec<_>>();
    actions.sort_unstable();
    actions.dedup();
    let question = evidence.question_open.then_some(Finding::QuestionOpen);
    let permission = evidence.grant_is_over.then_some(Finding::PermissionOver);
    permission.into_iter().chain(question).chain(actions.into_iter().map(Finding::OwnerAction)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::manifest;
    use gleaner_protocol::ManifestOrigin;

    fn at(seconds: u64) -> WallTime {
        WallTime::from_unix_millis(seconds * 1000)
    }

    fn good(manifest: &Manifest) -> HealthEvidence<'_> {
        HealthEvidence {
            manifest,
            last_run: Some(TerminalReason::Succeeded),
            open_run: None,
            grant_is_over: false,
            equal_failures: 0,
            last_success: Some(at(0)),
            rest: Rest::No,
            open_gaps: 0,
            terminal_gaps: 0,
            ignored_gaps: 0,
            rejected_records: 0,
            shortfalls: 0,
            skips: 0,
            question_open: false,
            hints: &[],
            circuit: None,
            rate: None,
        }
    }

    fn check(change: impl FnOnce(&mut HealthEvidence<'_>), grade: Grade) {
        let manifest = manifest();
        let mut evidence = good(&manifest);
        change(&mut evidence);
        let health = Health::derive(&evidence, at(10));
        assert_eq!(health.grade, grade, "{health:?}");
    }

    #[test]
    fn each_kind_of_evidence_has_its_grade() {
        check(|_| {}, Grade::Healthy);
        check(|evidence| evidence.open_gaps = 1, Grade::CatchingUp);
        let rest = Rest::Until { until: at(20), why: PressureReason::RateLimited, cycles: 1 };
        check(|evidence| evidence.rest = rest, Grade::Resting);
        check(|evidence| evidence.terminal_gaps = 1, Grade::Degraded);
        check(|evidence| evidence.ignored_gaps = 1, Grade::Healthy);
        check(|evidence| evidence.rejected_records = 1, Grade::Degraded);
        check(|evidence| evidence.shortfalls = 1, Grade::Degraded);
        check(|evidence| evidence.last_run = Some(TerminalReason::ProtocolViolation), Grade::Failing);
        check(|evidence| evidence.last_run = Some(TerminalReason::CredentialsRefused), Grade::NeedsOwner);
        check(|evidence| evidence.last_run = Some(TerminalReason::CredentialsMissing), Grade::NeedsOwner);
        check(|evidence| evidence.last_run = Some(TerminalReason::BudgetReached), Grade::Healthy);
        // It may have been renewed since.
        check(|evidence| evidence.last_run = Some(TerminalReason::GrantExpired), Grade::Healthy);
        check(|evidence| evidence.grant_is_over = true, Grade::NeedsOwner);
        check(|evidence| evidence.question_open = true, Grade::NeedsOwner);
        check(|evidence| evidence.hints = &[RecoveryAction::RefreshCredentials], Grade::NeedsOwner);
        check(|evidence| evidence.hints = &[RecoveryAction::RetryByRuntime], Grade::Healthy);
        let attention = Rest::NeedsAttention { why: PressureReason::RateLimited, cycles: 13 };
        check(|evidence| evidence.rest = attention, Grade::NeedsOwner);
    }

    #[test]
    fn a_connection_none_of_whose_ordinary_runs_has_succeeded_is_not_healthy() {
        let yet = |last_run, open_run, grade, finding| {
            let manifest = manifest();
            let evidence = HealthEvidence { last_run, open_run, last_success: None, ..good(&manifest) };
            let health = Health::derive(&evidence, at(10));
            assert_eq!((health.grade, health.findings), (grade, vec![finding]));
        };
        yet(None, None, Grade::Unknown, Finding::NeverRan);
        yet(None, Some(OpenRun::Running), Grade::CatchingUp, Finding::FirstRun);
        let interrupted = Finding::NoFullRun(TerminalReason::Interrupted);
        yet(None, Some(OpenRun::Interrupted), Grade::Unknown, interrupted);
        // The last of these is a run that asked for less than everything.
        for reason in [
            TerminalReason::Cancelled,
            TerminalReason::Interrupted,
            TerminalReason::Superseded,
            TerminalReason::BudgetReached,
            TerminalReason::SourceCooldown,
            TerminalReason::Succeeded,
        ] {
            yet(Some(reason), None, Grade::Unknown, Finding::NoFullRun(reason));
        }
        let failed = TerminalReason::ConnectorCrashed;
        yet(Some(failed), None, Grade::Failing, Finding::LastRunFailed(failed));
    }

    #[test]
    fn three_equal_failures_back_off_and_seven_block() {
        check(|evidence| evidence.equal_failures = 2, Grade::Healthy);
        check(|evidence| evidence.equal_failures = 3, Grade::Failing);
        check(|evidence| evidence.equal_failures = 6, Grade::Failing);
        check(|evidence| evidence.equal_failures = 7, Grade::NeedsOwner);
    }

    #[test]
    fn the_worst_finding_is_first_and_none_is_left_out() {
        let manifest = manifest();
        let evidence = HealthEvidence { open_gaps: 3, question_open: true, shortfalls: 1, ..good(&manifest) };
        let evidence = HealthEvidence { ignored_gaps: 2, ..evidence };
        let health = Health::derive(&evidence, at(10));
        let expected =
            [Finding::QuestionOpen, Finding::CoverageShort(1), Finding::GapsOpen(3), Finding::GapsIgnored(2)];
        assert_eq!(health.findings, expected);
    }

    #[test]
    fn an_open_circuit_is_no_failure_and_an_absent_pace_is_not_zero() {
        use gleaner_protocol::{CircuitChange, CircuitReason, CircuitTrigger};
        let change = |state| CircuitChange {
            previous_state: CircuitState::Closed,
            state,
            reason: CircuitReason::ProviderFailure,
            trigger: CircuitTrigger::ProviderFailure,
        };
        let open = ProviderBudget::new(change(CircuitState::Open), 1.0, 1, None).unwrap();
        let closed = ProviderBudget::new(change(CircuitState::Closed), 1.0, 1, None).unwrap();
        let manifest = manifest();
        let with = |circuit| HealthEvidence { circuit: Some(circuit), ..good(&manifest) };
        assert_eq!(Health::derive(&with(&open), at(10)).grade, Grade::CatchingUp);
        assert_eq!(Health::derive(&with(&closed), at(10)).grade, Grade::Healthy);
        assert_eq!(Health::derive(&good(&manifest), at(10)).pace, None);
        let rate = CollectionRate::new(400.0, 100.0, None).unwrap();
        let paced = HealthEvidence { rate: Some(&rate), ..good(&manifest) };
        assert_eq!(Health::derive(&paced, at(10)).pace, Some(0.25));
    }

    #[test]
    fn a_stream_that_is_required_and_cannot_be_collected_degrades_and_an_optional_one_does_not() {
        let text = r#"{"connector_id":"c","connector_key":"c","version":"1",
            "capabilities":{"refresh_policy":{"recommended_mode":"manual","rationale":"r","maximum_staleness_seconds":60}},
            "streams":[{"name":"a","semantics":"append_only","coverage_policy":"unsupported","required":REQUIRED}]}"#;
        let grade = |required: &str, now: u64| {
            let text = text.replace("REQUIRED", required);
            let manifest = Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).unwrap();
            Health::derive(&good(&manifest), at(now)).grade
        };
        assert_eq!(grade("true", 10), Grade::Degraded);
        assert_eq!(grade("false", 60), Grade::Healthy);
        assert_eq!(grade("false", 61), Grade::Degraded, "stale");
    }
}
