//! Health in codes for programs and in words for people, the same on the terminal and in the console.
//!
//! How a date is written is the caller's business: a terminal and a page do it differently.

use super::{Finding, Grade};
use crate::time::WallTime;
use gleaner_protocol::TerminalReason;

impl Grade {
    /// What a person is told.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::CatchingUp => "catching up",
            Self::NeedsOwner => "needs you",
            one_word => one_word.code(),
        }
    }
}

impl Finding {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NeverRan => "never_ran",
            Self::FirstRun => "first_run",
            Self::NoFullRun(_) => "no_full_run",
            Self::GapsOpen(_) => "gaps_open",
            Self::CircuitNotClosed(_) => "circuit_not_closed",
            Self::Resting { .. } => "resting",
            Self::GapsGivenUp(_) => "gaps_given_up",
            Self::GapsIgnored(_) => "gaps_ignored",
            Self::RecordsRejected(_) => "records_rejected",
            Self::CoverageShort(_) => "coverage_short",
            Self::Skipped(_) => "skipped",
            Self::Stale { .. } => "stale",
            Self::RequiresTheImpossible(_) => "requires_the_impossible",
            Self::LastRunFailed(_) => "last_run_failed",
            Self::BackingOff { .. } => "backing_off",
            Self::Blocked { .. } => "blocked",
            Self::RestedTooOften { .. } => "rested_too_often",
            Self::PermissionOver => "permission_over",
            Self::QuestionOpen => "question_open",
            Self::OwnerAction(_) => "owner_action",
        }
    }

    /// What a person is told.
    #[must_use]
    pub fn sentence(&self, date: impl Fn(WallTime) -> String) -> String {
        match self {
            Self::NeverRan => "it has not run yet".to_owned(),
            Self::FirstRun => "no run has finished yet; one is running".to_owned(),
            Self::NoFullRun(TerminalReason::Succeeded) => {
                "no run has collected everything yet: the runs so far asked for less".to_owned()
            }
            Self::NoFullRun(reason) => format!("no run has finished yet: {}", stopped(*reason)),
            Self::GapsOpen(gaps) => counted(*gaps, "gap waits for the next runs", "gaps wait for the next runs"),
            Self::CircuitNotClosed(state) => format!("its circuit is {}", state.code()),
            Self::Resting { until, why } => format!("in a cooldown until {}: {}", date(*until), why.wording().what),
            Self::GapsGivenUp(gaps) => counted(*gaps, "gap was given up", "gaps were given up"),
            Self::GapsIgnored(gaps) => counted(*gaps, "gap is ignored, as you said", "gaps are ignored, as you said"),
            Self::RecordsRejected(records) => {
                counted(*records, "record does not fit its schema", "records do not fit their schema")
            }
            Self::CoverageShort(streams) => {
                counted(*streams, "checkpoint has an incomplete account", "checkpoints have an incomplete account")
            }
            Self::Skipped(parts) => counted(*parts, "part of a stream was skipped", "parts of streams were skipped"),
            Self::Stale { since } => format!("no success since {}", date(*since)),
            Self::RequiresTheImpossible(streams) => {
                format!("it requires {} that it cannot collect", counted(*streams, "stream", "streams"))
            }
            Self::LastRunFailed(reason) => format!("{} {}", reason.wording().what, reason.wording().next),
            Self::BackingOff { failures } => format!("failed the same way {failures} times in a row"),
            Self::Blocked { failures } => {
                format!("failed the same way {failures} times in a row; automatic runs are off")
            }
            Self::RestedTooOften { cycles, why } => {
                format!("rested {} in a row: {}", counted(u64::from(*cycles), "time", "times"), why.wording().what)
            }
            Self::PermissionOver => "the permission to collect it is over".to_owned(),
            Self::QuestionOpen => "a question waits for you".to_owned(),
            Self::OwnerAction(action) => format!("the connector asks for: {}", action.code().replace('_', " ")),
        }
    }
}

/// How the last run stopped, without a fault of the connection.
const fn stopped(reason: TerminalReason) -> &'static str {
    match reason {
        TerminalReason::Cancelled => "the last one was cancelled",
        TerminalReason::BudgetReached => "the time for the last one was over",
        TerminalReason::SourceCooldown => "the provider rate-limited the last one",
        TerminalReason::GrantExpired => "the permission to collect ended",
        TerminalReason::ScopeRejected => "the last one was not started",
        _ => "the last one was interrupted",
    }
}

/// `1 gap`, `2 gaps`.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_protocol::PressureReason;

    #[test]
    fn one_thing_is_not_said_as_many() {
        let why = PressureReason::RateLimited;
        let all = |count: u32| {
            let many = u64::from(count);
            [
                Finding::GapsOpen(many),
                Finding::GapsGivenUp(many),
                Finding::GapsIgnored(many),
                Finding::RecordsRejected(many),
                Finding::CoverageShort(many),
                Finding::Skipped(many),
                Finding::RequiresTheImpossible(many),
                Finding::RestedTooOften { cycles: count, why },
            ]
            .map(|finding| finding.sentence(|_| String::new()))
        };
        let things = ["gap", "gap", "gap", "record", "checkpoint", "part", "stream", "time"];
        for ((one, two), thing) in all(1).iter().zip(&all(2)).zip(things) {
            assert!(one.contains(&format!("1 {thing} ")), "{one}");
            assert!(two.contains(&format!("2 {thing}s ")), "{two}");
        }
    }
}
