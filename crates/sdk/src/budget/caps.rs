//! Caps that an owner may set for a connector, from its environment and from START.
//!
//! All are off unless set. Unset, empty, not a number, zero or less all mean "off", because a typing error must not
//! leave data uncollected. A cap only makes a run stop earlier. None raises a rate, a retry budget or a concurrency.

use gleaner_protocol::RunBudget;
use std::time::Duration;

/// Caps of one run. `None` is off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caps {
    /// `PDPP_<CONNECTOR>_MAX_DETAIL_FETCHES_PER_RUN`: maximum of detail fetches per run.
    pub(crate) max_detail_fetches: Option<u64>,
    /// `PDPP_<CONNECTOR>_MAX_RUN_WALL_CLOCK_MS`: maximum time of collecting, from the first check of the budget.
    pub(crate) max_wall_clock: Option<Duration>,
    /// `PDPP_<CONNECTOR>_MAX_TAIL_DEFERRAL_GAPS_PER_RUN`: maximum of single-record gaps that one run writes for items
    /// left by a cap; the rest becomes one backlog gap. Records that were requested and failed do not count.
    pub(crate) tail_chunk: Option<u64>,
    /// `PDPP_<CONNECTOR>_PACING_MIN_INTERVAL_MS`: the ceiling, the shortest time between two requests. Smaller is
    /// faster and risks the account; the default is the client's.
    pub(crate) min_interval: Option<Duration>,
    /// Requests of the run, retries included: the lower of `START.run_budget.max_requests` and
    /// `GLEANER_MAX_REQUESTS`.
    pub(crate) max_requests: Option<u64>,
    /// Time of the run from its START: the lower of `START.run_budget.max_duration_ms` and `GLEANER_MAX_DURATION_MS`.
    pub(crate) max_duration: Option<Duration>,
}

/// Default of `tail_chunk` when another cap is set. Written in a second, and few enough to recover in one later run.
pub(crate) const TAIL_CHUNK_WITH_A_CAP: u64 = 500;

impl Caps {
    /// Reads the caps of a connector.
    pub(crate) fn read(
        connector_key: &str,
        variable: &dyn Fn(&str) -> Option<String>,
        budget: Option<RunBudget>,
    ) -> Self {
        let own = |name: &str| number(variable(&variable_name(connector_key, name)));
        let [detail_fetches, wall_clock, tail_gaps, min_interval] = OWN_VARIABLES.map(own);
        let budget = budget.unwrap_or_default();
        let positive = |told: Option<u64>| told.filter(|&told| told > 0);
        let less = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        let max_requests = less(positive(budget.max_requests), number(variable("GLEANER_MAX_REQUESTS")));
        let max_duration = less(positive(budget.max_duration_ms), number(variable("GLEANER_MAX_DURATION_MS")));
        Self {
            max_detail_fetches: detail_fetches,
            max_wall_clock: wall_clock.map(Duration::from_millis),
            tail_chunk: tail_gaps,
            min_interval: min_interval.map(Duration::from_millis),
            max_requests,
            max_duration: max_duration.map(Duration::from_millis),
        }
    }

    /// Whether any cap could end a run early.
    pub(crate) const fn bounds_the_run(&self) -> bool {
        self.max_detail_fetches.is_some()
            || self.max_wall_clock.is_some()
            || self.max_requests.is_some()
            || self.max_duration.is_some()
    }

    /// Maximum of single-record gaps for the tail of one run; `None`: unlimited.
    pub(crate) fn effective_chunk(&self) -> Option<u64> {
        self.tail_chunk.or_else(|| self.bounds_the_run().then_some(TAIL_CHUNK_WITH_A_CAP))
    }
}

/// Suffixes of a connector's own variables.
const OWN_VARIABLES: [&str; 4] =
    ["MAX_DETAIL_FETCHES_PER_RUN", "MAX_RUN_WALL_CLOCK_MS", "MAX_TAIL_DEFERRAL_GAPS_PER_RUN", "PACING_MIN_INTERVAL_MS"];

/// The environment variables that an owner may set for a connector with this key.
pub fn variable_names(connector_key: &str) -> [String; 4] {
    OWN_VARIABLES.map(|name| variable_name(connector_key, name))
}

/// Name of a connector's own variable: its key in upper case, with `_` for invalid characters.
fn variable_name(connector_key: &str, name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("PDPP_{}_{name}", connector_key.chars().map(plain).collect::<String>())
}

/// A number above zero, or `None`.
fn number(text: Option<String>) -> Option<u64> {
    text?.trim().parse().ok().filter(|&number| number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)], budget: Option<RunBudget>) -> Caps {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Caps::read("my-notes.v2", &find, budget)
    }

    #[test]
    fn unset_empty_non_numeric_and_non_positive_mean_off() {
        assert_eq!(read(&[], None), Caps::default());
        for text in ["", " ", "many", "12 details", "1.5", "0", "-3", "0x10", "∞"] {
            let variables = [
                "PDPP_MY_NOTES_V2_MAX_DETAIL_FETCHES_PER_RUN",
                "PDPP_MY_NOTES_V2_MAX_RUN_WALL_CLOCK_MS",
                "PDPP_MY_NOTES_V2_MAX_TAIL_DEFERRAL_GAPS_PER_RUN",
                "PDPP_MY_NOTES_V2_PACING_MIN_INTERVAL_MS",
                "GLEANER_MAX_REQUESTS",
                "GLEANER_MAX_DURATION_MS",
            ]
            .map(|name| (name, text));
            let none = Some(RunBudget { max_requests: Some(0), max_duration_ms: Some(0) });
            let caps = read(&variables, none);
            assert_eq!(caps, Caps::default(), "{text:?}");
            assert!(!caps.bounds_the_run() && caps.effective_chunk().is_none());
        }
    }

    #[test]
    fn a_cap_is_read_under_the_connectors_own_name() {
        let caps = read(
            &[
                ("PDPP_MY_NOTES_V2_MAX_DETAIL_FETCHES_PER_RUN", " 40 "),
                ("PDPP_MY_NOTES_V2_PACING_MIN_INTERVAL_MS", "250"),
                ("PDPP_OTHER_MAX_RUN_WALL_CLOCK_MS", "1"),
            ],
            None,
        );
        assert_eq!((caps.max_detail_fetches, caps.max_wall_clock), (Some(40), None));
        assert_eq!(caps.min_interval, Some(Duration::from_millis(250)));
    }

    #[test]
    fn with_a_cap_and_no_chunk_the_chunk_is_500_and_the_pace_is_no_cap() {
        assert_eq!(read(&[("PDPP_MY_NOTES_V2_PACING_MIN_INTERVAL_MS", "250")], None).effective_chunk(), None);
        assert_eq!(read(&[("GLEANER_MAX_REQUESTS", "9")], None).effective_chunk(), Some(500));
        let chunk = ("PDPP_MY_NOTES_V2_MAX_TAIL_DEFERRAL_GAPS_PER_RUN", "7");
        assert_eq!(read(&[("GLEANER_MAX_REQUESTS", "9"), chunk], None).effective_chunk(), Some(7));
        assert_eq!(read(&[chunk], None).effective_chunk(), Some(7));
    }

    #[test]
    fn start_and_environment_feed_the_same_bound_and_the_smaller_holds() {
        let start = Some(RunBudget { max_requests: Some(30), max_duration_ms: Some(500) });
        let caps = read(&[("GLEANER_MAX_REQUESTS", "9"), ("GLEANER_MAX_DURATION_MS", "9000")], start);
        assert_eq!((caps.max_requests, caps.max_duration), (Some(9), Some(Duration::from_millis(500))));
    }
}
