//! What is known about one connection, as far as it decides about the next run.
//!
//! Typed evidence out of the store, never a sentence of a connector.

use crate::plan::Plan;
use gleaner_engine::{Cooldown, CooldownPolicy, WallTime};
use gleaner_protocol::TerminalReason;

/// How the last run of a connection went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// When it began.
    pub began: WallTime,
    /// When it ended.
    pub ended: WallTime,
    /// How.
    pub reason: TerminalReason,
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
    /// Its last run, of any kind.
    pub last: Option<LastRun>,
    /// How many of its last runs ended in the same failure, in a row.
    pub equal_failures: u32,
    /// Its rest, if the provider pushed back.
    pub cooldown: Option<Cooldown>,
    /// What that depends on.
    pub cooldown_policy: CooldownPolicy,
    /// The provider said itself when it may be asked again.
    pub told_until: Option<WallTime>,
    /// Gaps wait that have nothing to do with pressure, and may be tried now.
    pub other_gaps: bool,
    /// The last run stopped at its own budget, and something is left.
    pub remainder: bool,
    /// History is left that is caught up beside the steady runs.
    pub history_left: bool,
    /// When it was last caught up on.
    pub last_catch_up: Option<WallTime>,
    /// A question waits for the owner.
    pub question_open: bool,
    /// What made it fail has changed since: a new version of the connector, a new credential.
    pub renewed: bool,
    /// The owner asked for a run.
    pub asked: Option<WallTime>,
}
