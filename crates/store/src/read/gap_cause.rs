//! Why records are missing, in words: whose doing it is, and what a person is told.

use super::gaps::{GapCount, GapSummary};
use gleaner_protocol::{AbsenceReason, ErrorClass, GapReason, Wording};

const NEXT_OF_IGNORED: &str = "You do without it: nobody tries it until you take that back.";
const NEXT_OF_GIVEN_UP: &str = "It is not retried automatically; you can ask for another try.";
/// What is said of it when its connector gave no reason that is known here.
const UNKNOWN_AND_IGNORED: (&str, &str) =
    ("The record could not be loaded.", "The connector gave no reason that this version knows.");

/// What is known about the cause of one gap, or of many of a kind.
#[derive(Clone, Copy, Debug)]
pub struct GapCause<'a> {
    /// Why they are missing, as a code of the protocol.
    pub reason: Option<&'a str>,
    /// Why they were given up.
    pub terminal_reason: Option<&'a str>,
    /// Whether they are a planned stop at a cap that the owner set.
    pub run_cap: bool,
    /// Whether the owner does without them.
    pub ignored: bool,
}

impl<'a> GapCause<'a> {
    /// Of one.
    #[must_use]
    pub fn of(gap: &'a GapSummary) -> Self {
        let GapSummary { reason, terminal_reason, run_cap, state, .. } = gap;
        Self::new(reason.as_deref(), terminal_reason.as_deref(), *run_cap, state)
    }

    /// Of many.
    #[must_use]
    pub fn of_count(count: &'a GapCount) -> Self {
        let GapCount { reason, terminal_reason, run_cap, state, .. } = count;
        Self::new(reason.as_deref(), terminal_reason.as_deref(), *run_cap, state)
    }

    fn new(reason: Option<&'a str>, terminal_reason: Option<&'a str>, run_cap: bool, state: &str) -> Self {
        Self { reason, terminal_reason, run_cap, ignored: state == "ignored" }
    }

    /// The most telling code; text from outside where no vocabulary of ours has it.
    #[must_use]
    pub fn code(self) -> &'a str {
        if self.run_cap {
            return ErrorClass::RunCapDeferred.code();
        }
        self.terminal_reason.or(self.reason).unwrap_or("no_reason_given")
    }

    /// What a person is told. A planned stop has words of its own, and what the owner does without comes by nobody's doing.
    #[must_use]
    pub fn wording(self) -> Option<Wording> {
        let wording = self.wording_of_reason();
        if !self.ignored {
            let is_given_up = self.terminal_reason.is_some();
            return wording.map(|wording| match is_given_up {
                true => Wording { next: NEXT_OF_GIVEN_UP, ..wording },
                false => wording,
            });
        }
        let (what, why) = wording.map_or(UNKNOWN_AND_IGNORED, |wording| (wording.what, wording.why));
        Some(Wording { what, why, next: NEXT_OF_IGNORED })
    }

    fn wording_of_reason(self) -> Option<Wording> {
        if self.run_cap {
            return Some(ErrorClass::RunCapDeferred.wording());
        }
        let terminal = self.terminal_reason.and_then(AbsenceReason::from_code).map(AbsenceReason::wording);
        terminal.or_else(|| self.reason.and_then(GapReason::from_code).map(GapReason::wording))
    }

    /// Whose doing it is: `source` for the service's, `own_budget` for a cap that the owner set, `given_up`, `ignored` for
    /// what the owner does without whoever is to blame, or `other`.
    #[must_use]
    pub fn origin(self) -> &'static str {
        let pressure = self.reason.and_then(GapReason::from_code).and_then(GapReason::pressure);
        if self.ignored {
            return "ignored";
        }
        match (self.terminal_reason, self.run_cap, pressure) {
            (Some(_), ..) => "given_up",
            (None, true, _) => "own_budget",
            (None, false, Some(_)) => "source",
            (None, false, None) => "other",
        }
    }
}
