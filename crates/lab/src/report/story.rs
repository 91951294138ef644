//! One sentence about a run.

use super::describe::{limit_changes, number, seconds};
use crate::scenario::Scenario;
use crate::score::{Figures, limit_at};

/// Describes a run's result, cost and end, for a reader who skips figures.
pub fn story(scenario: &Scenario, figures: &Figures) -> String {
    let counts = &figures.counts;
    let limit = number(limit_at(scenario, 0.0));
    let mut sentence = match figures.converge_s {
        Some(s) => format!("Reached nine tenths of {limit}/s after {}", seconds(s.round())),
        None => format!("Never reached nine tenths of {limit}/s"),
    };
    match figures.recover_s {
        Some(s) if s < 0.5 => sentence.push_str(", followed each change of the limit at once"),
        Some(s) => sentence.push_str(&format!(", settled at each change of the limit within {}", seconds(s.round()))),
        None if limit_changes(scenario) => sentence.push_str(", did not settle at every change of the limit"),
        None => {}
    }
    if scenario.backlog > 0 && counts.accepted >= scenario.backlog {
        sentence.push_str(&format!(", finished after {}", seconds(counts.completion_s.round())));
    } else {
        sentence.push_str(&format!(", reached {:.0} % of the best possible goodput", figures.goodput * 100.0));
    }
    match counts.rejected {
        0 => sentence.push_str(", and was never refused"),
        1 => sentence.push_str(", and was refused once"),
        n => sentence.push_str(&format!(", and was refused {n} times in {} requests", counts.sent)),
    }
    match counts.bans {
        0 => {}
        1 => sentence.push_str("; the account was suspended"),
        n => sentence.push_str(&format!("; the account was suspended {n} times")),
    }
    sentence.push('.');
    sentence
}
