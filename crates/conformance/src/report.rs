//! What was found: a verdict per check, and news while it goes on.
//!
//! A verdict never holds what a connector wrote, but for the names of streams and keys: lines may be
//! anybody's mail.

use crate::checks::{self, CHECKS, Check};
use gleaner_runtime::Redactor;
use serde::Serialize;
use std::collections::BTreeMap;

/// What became of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It holds, as far as could be seen.
    Passed,
    /// It should be looked at. It breaks nothing.
    Warned {
        /// What was seen.
        what: String,
        /// In which line of the output, counted from 1.
        line: Option<u64>,
        /// What to do about it.
        hint: String,
    },
    /// It does not hold.
    Failed {
        /// What was seen, and in which run.
        what: String,
        /// In which line of the output, counted from 1.
        line: Option<u64>,
        /// What to do about it.
        hint: String,
    },
    /// It could not be seen.
    Skipped {
        /// Why not.
        why: String,
    },
}

impl Verdict {
    /// How much it says: more replaces less.
    const fn weight(&self) -> u8 {
        match self {
            Self::Skipped { .. } => 0,
            Self::Passed => 1,
            Self::Warned { .. } => 2,
            Self::Failed { .. } => 3,
        }
    }
}

/// One check and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// The name of the check.
    pub id: &'static str,
    /// What it demands.
    pub title: &'static str,
    /// What became of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// One result per check, in the order of [`CHECKS`].
    pub checks: Vec<CheckResult>,
    /// With this number the same points of kill are chosen again.
    pub seed: u64,
    /// How often the connector was started.
    pub starts: u32,
}

impl Report {
    /// The checks that do not hold.
    pub fn failed(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|result| matches!(result.verdict, Verdict::Failed { .. }))
    }

    /// Whether nothing failed. Warnings and what was skipped do not count.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failed().next().is_none()
    }

    /// Whether a run from the beginning succeeded. Without it little was checked, and a report without
    /// failures says little.
    #[must_use]
    pub fn is_conclusive(&self) -> bool {
        self.result("full_run").is_some_and(|result| result.verdict == Verdict::Passed)
    }

    /// The result of one check.
    #[must_use]
    pub fn result(&self, id: &str) -> Option<&CheckResult> {
        self.checks.iter().find(|result| result.id == id)
    }
}

/// News while the checks go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The connector is started for this.
    Start(&'static str),
    /// A check is decided. They all come at the end, in order.
    Decided(CheckResult),
}

/// What was seen, and in which line.
pub(crate) type Fault = (String, Option<u64>);

/// Verdicts while they are being found. A check may be judged by several runs: the worst counts.
pub(crate) struct Board<'p> {
    verdicts: BTreeMap<&'static str, Verdict>,
    progress: &'p mut dyn FnMut(&Finding),
    /// Why what was never looked at was not.
    pub(crate) not_reached: String,
    /// Takes credentials out of what is said: a connector's own words are part of it.
    pub(crate) redactor: Redactor,
}

impl<'p> Board<'p> {
    pub(crate) fn new(progress: &'p mut dyn FnMut(&Finding)) -> Self {
        Self {
            verdicts: BTreeMap::new(),
            progress,
            not_reached: "nothing of the kind was seen".to_owned(),
            redactor: Redactor::default(),
        }
    }

    pub(crate) fn tell(&mut self, finding: &Finding) {
        (self.progress)(finding);
    }

    pub(crate) fn pass(&mut self, id: &'static str) {
        self.put(id, Verdict::Passed);
    }

    pub(crate) fn skip(&mut self, id: &'static str, why: impl Into<String>) {
        self.put(id, Verdict::Skipped { why: self.redactor.mask(&why.into()) });
    }

    pub(crate) fn warn(&mut self, id: &'static str, what: impl Into<String>, line: Option<u64>) {
        self.put(id, Verdict::Warned { what: self.redactor.mask(&what.into()), line, hint: hint(id) });
    }

    pub(crate) fn fail(&mut self, id: &'static str, what: impl Into<String>, line: Option<u64>) {
        self.put(id, Verdict::Failed { what: self.redactor.mask(&what.into()), line, hint: hint(id) });
    }

    /// Whether a check is known not to hold.
    pub(crate) fn has_failed(&self, id: &str) -> bool {
        matches!(self.verdicts.get(id), Some(Verdict::Failed { .. }))
    }

    /// A fault, or none: then it holds.
    pub(crate) fn judge(&mut self, id: &'static str, fault: Option<Fault>) {
        match fault {
            Some((what, line)) => self.fail(id, what, line),
            None => self.pass(id),
        }
    }

    fn put(&mut self, id: &'static str, verdict: Verdict) {
        debug_assert!(checks::find(id).is_some(), "{id} is no check");
        let known = self.verdicts.get(id).map(Verdict::weight);
        if known.is_none_or(|weight| weight < verdict.weight()) {
            self.verdicts.insert(id, verdict);
        }
    }

    pub(crate) fn into_report(mut self, seed: u64, starts: u32) -> Report {
        let mut checks = Vec::new();
        let why = self.redactor.mask(&self.not_reached);
        for Check { id, title, .. } in CHECKS {
            let not_reached = || Verdict::Skipped { why: why.clone() };
            let verdict = self.verdicts.remove(id).unwrap_or_else(not_reached);
            let result = CheckResult { id, title, verdict };
            (self.progress)(&Finding::Decided(result.clone()));
            checks.push(result);
        }
        Report { checks, seed, starts }
    }
}

fn hint(id: &str) -> String {
    checks::find(id).map(|check| check.hint.to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_counts_and_among_equals_the_first() {
        let mut ignore = |_: &Finding| {};
        let mut board = Board::new(&mut ignore);
        board.fail("utf8", "first", Some(1));
        board.pass("utf8");
        board.fail("utf8", "second", None);
        board.skip("fields", "no");
        board.pass("fields");
        let report = board.into_report(7, 1);
        assert_eq!(report.checks.len(), CHECKS.len());
        assert!(matches!(&report.result("utf8").unwrap().verdict, Verdict::Failed { what, .. } if what == "first"));
        assert_eq!(report.result("fields").unwrap().verdict, Verdict::Passed);
        assert!(!report.is_clean());
        let text = serde_json::to_string(report.result("utf8").unwrap()).unwrap();
        assert!(text.starts_with(r#"{"id":"utf8","title":"#) && text.contains(r#""verdict":"failed""#), "{text}");
    }
}
