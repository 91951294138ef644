//! Facts about one connection that decide about its next run.
//!
//! Typed data from the store, never text of a connector.

use crate::plan::Plan;
use gleaner_engine::{Cooldown, CooldownPolicy, RunPurpose, WallTime};
use gleaner_protocol::{PressureReason, RecoveryAction, TerminalReason};

/// The last run of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// Start.
    pub began: WallTime,
    /// End.
    pub ended: WallTime,
    /// Result.
    pub reason: TerminalReason,
    /// Purpose.
    pub purpose: RunPurpose,
}

/// A period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its beginning.
    pub began: WallTime,
    /// Its end.
    pub ended: WallTime,
}

/// Consecutive failures of the same kind, up to the last run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Their number. Probes do not count.
    pub count: u32,
    /// The connector says that it may pass: a service is down, the network is missing.
    pub may_pass: bool,
    /// A probe has succeeded since the first failure, so the provider is up.
    pub provider_is_there: bool,
    /// The connector's recommended action.
    pub action: Option<RecoveryAction>,
}

/// Why a run cannot start before a time, for a reason outside the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detained {
    /// Another run uses the connection or its account, until this time at least.
    AtWork(WallTime),
    /// Starting it failed.
    CouldNotStart {
        /// Time of the next attempt.
        until: WallTime,
        /// Consecutive failed starts.
        times: u32,
    },
}

impl Detained {
    /// Until when.
    #[must_use]
    pub const fn until(self) -> WallTime {
        match self {
            Self::AtWork(until) | Self::CouldNotStart { until, .. } => until,
        }
    }
}

/// Facts about a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Its name.
    pub connection: String,
    /// The provider. Providers share the machine fairly.
    pub provider: String,
    /// The account at the provider. One run at a time per provider and account.
    pub account: String,
    /// When the connection was added.
    pub added: WallTime,
    /// Its schedule.
    pub plan: Plan,
    /// Its last run of the steady track, of any purpose.
    pub last: Option<LastRun>,
    /// Its last full run, whatever its result.
    pub last_full: Option<Span>,
    /// The provider rate-limited that run, so that a part remains.
    pub pushed_back: Option<PressureReason>,
    /// Time of the last successful run.
    pub last_success: Option<WallTime>,
    /// The current consecutive failures.
    pub failures: Failures,
    /// Interrupted runs: 1 if the last run was interrupted after progress; otherwise the number of consecutive
    /// interrupted runs without progress.
    pub cut_short: u32,
    /// A stopped service had started a run and hands it over.
    pub handed_over: bool,
    /// Its cooldown, if the provider rate-limited it.
    pub cooldown: Option<Cooldown>,
    /// The policy of that cooldown.
    pub cooldown_policy: CooldownPolicy,
    /// The provider's Retry-After.
    pub told_until: Option<WallTime>,
    /// There are gaps unrelated to pressure that may be retried now.
    pub other_gaps: bool,
    /// A run stopped at its own budget after progress, and left a remainder.
    pub remainder: bool,
    /// History remains for the catch-up track.
    pub history_left: bool,
    /// Time of the last catch-up run.
    pub last_catch_up: Option<WallTime>,
    /// A question waits for the owner.
    pub question_open: bool,
    /// The cause of its failure has changed since: a new connector version, credential or permission.
    pub renewed: bool,
    /// The owner's permission has expired.
    pub grant_is_over: bool,
    /// The owner requested a run.
    pub asked: Option<WallTime>,
    /// It cannot start before this, for a reason outside the connection.
    pub detained: Option<Detained>,
}
