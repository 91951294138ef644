//! What is known about one connection, as far as it decides about the next run.
//!
//! Typed evidence out of the store, never a sentence of a connector.

use crate::plan::Plan;
use gleaner_engine::{Cooldown, CooldownPolicy, RunPurpose, WallTime};
use gleaner_protocol::{PressureReason, RecoveryAction, TerminalReason};

/// How the last run of a connection went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// When it began.
    pub began: WallTime,
    /// When it ended.
    pub ended: WallTime,
    /// How.
    pub reason: TerminalReason,
    /// What it was for.
    pub purpose: RunPurpose,
}

/// From when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its beginning.
    pub began: WallTime,
    /// Its end.
    pub ended: WallTime,
}

/// A row of failures, all of the same kind, at whose end the connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// How many. Probes do not count.
    pub count: u32,
    /// The connector thinks that it passes by itself: a service that is down, a network that is not there.
    pub may_pass: bool,
    /// Since the first of them a probe has worked, so it is not that.
    pub provider_is_there: bool,
    /// What the connector said would help.
    pub action: Option<RecoveryAction>,
}

/// Why something cannot begin before a time that has nothing to do with the connection itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detained {
    /// Somebody else is at work on it, or on its account, until then at least.
    AtWork(WallTime),
    /// It could not be started, so often in a row.
    CouldNotStart {
        /// When to try again.
        until: WallTime,
        /// How often in a row.
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

/// What is known about a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Its name.
    pub connection: String,
    /// Whose service it collects from. Providers share the machine fairly.
    pub provider: String,
    /// Which account there. One run at a time per provider and account.
    pub account: String,
    /// Since when there is such a connection.
    pub added: WallTime,
    /// How it is run.
    pub plan: Plan,
    /// Its last run of the steady track, for whatever purpose.
    pub last: Option<LastRun>,
    /// Its last run for everything, whatever came of it.
    pub last_full: Option<Span>,
    /// The provider pushed that one back, so that something is left of it.
    pub pushed_back: Option<PressureReason>,
    /// When a run last succeeded.
    pub last_success: Option<WallTime>,
    /// The failures at whose end it is.
    pub failures: Failures,
    /// Whether its last run was cut short by the end of its process: if it got on before that, once; otherwise how many
    /// were cut short in a row without getting on.
    pub cut_short: u32,
    /// A service that was stopped had begun a run and hands it over.
    pub handed_over: bool,
    /// Its rest, if the provider pushed back.
    pub cooldown: Option<Cooldown>,
    /// What that depends on.
    pub cooldown_policy: CooldownPolicy,
    /// The provider said itself when it may be asked again.
    pub told_until: Option<WallTime>,
    /// Gaps wait that have nothing to do with pressure, and may be tried now.
    pub other_gaps: bool,
    /// A run stopped at its own budget, got on, and left something.
    pub remainder: bool,
    /// History is left that is caught up beside the steady runs.
    pub history_left: bool,
    /// When it was last caught up on.
    pub last_catch_up: Option<WallTime>,
    /// A question waits for the owner.
    pub question_open: bool,
    /// What made it fail has changed since: a new version of the connector, a new credential, a new permission.
    pub renewed: bool,
    /// The owner's permission is over.
    pub grant_is_over: bool,
    /// The owner asked for a run.
    pub asked: Option<WallTime>,
    /// It cannot begin before this, for a reason that is not its own.
    pub detained: Option<Detained>,
}
