//! Why records are missing, in words: whose doing it is, and what a person is told.

use gleaner_protocol::{AbsenceReason, ErrorClass, GapReason, Wording};
use gleaner_store::{GapCount, GapSummary};

/// What is known about the cause of one gap, or of many of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause<'a> {
    pub(crate) reason: Option<&'a str>,
    pub(crate) terminal_reason: Option<&'a str>,
    pub(crate) run_cap: bool,
}

impl<'a> Cause<'a> {
    pub(crate) fn of(gap: &'a GapSummary) -> Self {
        let GapSummary { reason, terminal_reason, run_cap, .. } = gap;
        Self { reason: reason.as_deref(), terminal_reason: terminal_reason.as_deref(), run_cap: *run_cap }
    }

    pub(crate) fn of_count(count: &'a GapCount) -> Self {
        let GapCount { reason, terminal_reason, run_cap, .. } = count;
        Self { reason: reason.as_deref(), terminal_reason: terminal_reason.as_deref(), run_cap: *run_cap }
    }

    /// The most telling code; text from outside where no vocabulary of ours has it.
    pub(crate) fn code(self) -> &'a str {
        if self.run_cap {
            return ErrorClass::RunCapDeferred.code();
        }
        self.terminal_reason.or(self.reason).unwrap_or("no_reason_given")
    }

    /// What a person is told. A planned stop has words of its own.
    pub(crate) fn wording(self) -> Option<Wording> {
        if self.run_cap {
            return Some(ErrorClass::RunCapDeferred.wording());
        }
        let terminal = self.terminal_reason.and_then(AbsenceReason::from_code).map(AbsenceReason::wording);
        terminal.or_else(|| self.reason.and_then(GapReason::from_code).map(GapReason::wording))
    }

    /// Whose doing it is: `source` for the service's, `own_budget` for a cap that the owner set, `given_up`, or
    /// `other`.
    pub(crate) fn origin(self) -> &'static str {
        let pressure = self.reason.and_then(GapReason::from_code).and_then(GapReason::pressure);
        match (self.terminal_reason, self.run_cap, pressure) {
            (Some(_), ..) => "given_up",
            (None, true, _) => "own_budget",
            (None, false, Some(_)) => "source",
            (None, false, None) => "other",
        }
    }
}
