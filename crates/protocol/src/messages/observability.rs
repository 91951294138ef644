//! A connector's reports about rate and circuit: numbers and fixed words only.
//!
//! Why typed: progress lines are shown to operators and kept in traces, and these types have no field for an account,
//! a URL or a body. Anything else is dropped, so it cannot leak; the drop is visible as [`Evidence::Malformed`], so
//! it cannot pass for good news.

use crate::words::vocabulary::{wire_reasons, wire_words};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A report of a connector about itself, or its absence.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Evidence<T> {
    /// Nothing was reported; for a rate this means that there is none, never that it is zero.
    #[default]
    Absent,
    /// A valid report.
    Valid(T),
    /// An implausible report, which was dropped.
    Malformed,
}

impl<T> Evidence<T> {
    /// The report, if valid.
    pub const fn valid(&self) -> Option<&T> {
        match self {
            Self::Valid(value) => Some(value),
            Self::Absent | Self::Malformed => None,
        }
    }
}

/// A report of a connector about itself.
pub(crate) trait Report: Serialize + DeserializeOwned {
    /// Whether numbers and words are plausible.
    fn is_plausible(&self) -> bool;

    /// Meaning of `null`: nothing is reported.
    const NULL: Evidence<Self> = Evidence::Absent;
}

pub(crate) fn read_evidence<T: Report>(text: &str) -> Evidence<T> {
    match serde_json::from_str::<Option<T>>(text) {
        Ok(None) => T::NULL,
        Ok(Some(report)) if report.is_plausible() => Evidence::Valid(report),
        Ok(Some(_)) | Err(_) => Evidence::Malformed,
    }
}

/// The current rate of a connector's governor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectionRate {
    object: CollectionRateTag,
    /// Time between two requests.
    pub current_interval_ms: f64,
    /// The same as requests per minute.
    pub effective_rate_per_min: f64,
    /// The ceiling: the shortest interval that the owner allows.
    pub ceiling_interval_ms: f64,
    /// The same as requests per minute.
    pub ceiling_rate_per_min: f64,
    /// The last backoff, and why.
    pub last_backoff: Option<Backoff>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum CollectionRateTag {
    #[serde(rename = "collection_rate")]
    CollectionRate,
}

/// One backoff.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backoff {
    /// The interval after it.
    pub at_interval_ms: f64,
    /// Why.
    pub reason: BackoffReason,
}

wire_reasons! {
    /// Reason of a backoff.
    pub enum BackoffReason {
        /// A refusal without a Retry-After.
        Throttle = "throttle", "the service refused requests";
        /// A refusal with a Retry-After.
        RetryAfter = "retry_after", "the service asked for a pause";
        /// Late answers.
        Latency = "latency", "the service answered late";
        /// A quota that is used up.
        Quota = "quota", "the service's quota was used up";
        /// The account looks banned.
        Ban = "ban", "the service seemed to block the account";
        /// The provider failed.
        ServerError = "server_error", "the service failed";
    }
}

impl CollectionRate {
    /// The report for these intervals; rates are derived. `None` for an interval that is not a positive number:
    /// without pacing nothing is reported, never a zero.
    #[must_use]
    pub fn new(current_interval_ms: f64, ceiling_interval_ms: f64, last_backoff: Option<Backoff>) -> Option<Self> {
        let rate = Self {
            object: CollectionRateTag::CollectionRate,
            current_interval_ms,
            effective_rate_per_min: MS_PER_MIN / current_interval_ms,
            ceiling_interval_ms,
            ceiling_rate_per_min: MS_PER_MIN / ceiling_interval_ms,
            last_backoff,
        };
        rate.is_plausible().then_some(rate)
    }
}

impl Report for CollectionRate {
    /// Does not check the ceiling: a report that shows a violation is useful.
    fn is_plausible(&self) -> bool {
        let numbers = [
            self.current_interval_ms,
            self.effective_rate_per_min,
            self.ceiling_interval_ms,
            self.ceiling_rate_per_min,
        ];
        numbers.into_iter().chain(self.last_backoff.map(|backoff| backoff.at_interval_ms)).all(is_positive)
    }
}

const MS_PER_MIN: f64 = 60_000.0;

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

/// A transition of the circuit between a connector and its provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderBudget {
    object: ProviderBudgetTag,
    /// The transition.
    pub circuit: CircuitChange,
    /// Time since the run's first request.
    pub elapsed_ms: f64,
    /// Requests of the run so far.
    pub request_count: u64,
    /// Retries left, if limited and reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_tokens_remaining: Option<RetryTokens>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ProviderBudgetTag {
    #[serde(rename = "provider_budget_circuit_transition")]
    CircuitTransition,
}

/// A transition: states, reason and trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitChange {
    /// The state before.
    pub previous_state: CircuitState,
    /// The state after.
    pub state: CircuitState,
    /// Why.
    pub reason: CircuitReason,
    /// The step during which it happened.
    pub trigger: CircuitTrigger,
}

wire_words! {
    /// State of a circuit.
    pub enum CircuitState {
        /// Everything passes.
        Closed = "closed";
        /// Only probes pass.
        HalfOpen = "half_open";
        /// Nothing passes.
        Open = "open";
    }
}

wire_reasons! {
    /// Reason of a transition.
    pub enum CircuitReason {
        /// The provider failed.
        ProviderFailure = "provider_failure", "most requests had failed";
        /// The provider throttled.
        ProviderThrottle = "provider_throttle", "most requests were refused";
        /// The open time is over.
        ResetTimeout = "reset_timeout", "a probe tests whether the service is back";
        /// Probes succeeded.
        Success = "success", "requests succeed again";
    }
}

wire_words! {
    /// The step during which a circuit changed.
    pub enum CircuitTrigger {
        /// A request asked for admission.
        BeforeRequest = "before_request";
        /// A failure was reported.
        ProviderFailure = "provider_failure";
        /// A throttle was reported.
        ProviderThrottle = "provider_throttle";
        /// A success was reported.
        Success = "success";
    }
}

/// Retries left.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RetryTokens {
    /// This many; fractions count.
    Left(f64),
    /// No limit is set.
    Unbounded(UnboundedTag),
}

/// The word for "no limit".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnboundedTag {
    /// No limit.
    #[serde(rename = "unbounded")]
    Unbounded,
}

impl ProviderBudget {
    /// One transition. `None` for an invalid number.
    #[must_use]
    pub fn new(
        circuit: CircuitChange,
        elapsed_ms: f64,
        request_count: u64,
        retry_tokens_remaining: Option<RetryTokens>,
    ) -> Option<Self> {
        let object = ProviderBudgetTag::CircuitTransition;
        let budget = Self { object, circuit, elapsed_ms, request_count, retry_tokens_remaining };
        budget.is_plausible().then_some(budget)
    }
}

impl Report for ProviderBudget {
    fn is_plausible(&self) -> bool {
        let tokens = match self.retry_tokens_remaining {
            Some(RetryTokens::Left(tokens)) => tokens,
            Some(RetryTokens::Unbounded(_)) | None => 0.0,
        };
        [self.elapsed_ms, tokens].into_iter().all(|number| number.is_finite() && number >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: &str = r#"{"object":"collection_rate","current_interval_ms":500,"effective_rate_per_min":120,
        "ceiling_interval_ms":20,"ceiling_rate_per_min":3000,"last_backoff":{"at_interval_ms":750,"reason":"latency"}}"#;

    #[test]
    fn rate_state_is_emitted_as_redacted_progress() {
        let backoff = Backoff { at_interval_ms: 750.0, reason: BackoffReason::Latency };
        let rate = CollectionRate::new(500.0, 20.0, Some(backoff)).unwrap();
        assert_eq!(read_evidence::<CollectionRate>(RATE), Evidence::Valid(rate.clone()));
        // An account smuggled in does not come out.
        let with_account = RATE.replacen('{', r#"{"account":"me@example.test","#, 1);
        let read = read_evidence::<CollectionRate>(&with_account);
        let written = serde_json::to_string(read.valid().unwrap()).unwrap();
        assert_eq!(written, serde_json::to_string(&rate).unwrap());
        assert!(!written.contains("example.test"));
    }

    #[test]
    fn absent_controller_reads_as_honest_unknown() {
        assert_eq!(CollectionRate::new(0.0, 20.0, None), None);
        assert_eq!(CollectionRate::new(f64::NAN, 20.0, None), None);
        assert_eq!(read_evidence::<CollectionRate>(&RATE.replace(":500", ":0")), Evidence::Malformed);
        assert_eq!(Evidence::<CollectionRate>::default().valid(), None);
    }

    #[test]
    fn a_rate_that_cannot_be_right_is_dropped() {
        for (from, to) in [
            ("\"latency\"", "\"mood\""),
            ("\"collection_rate\"", "\"rate\""),
            (":3000", ":-1"),
            (":3000", ":\"3000\""),
            (":750", ":1e999"),
        ] {
            assert_eq!(read_evidence::<CollectionRate>(&RATE.replace(from, to)), Evidence::Malformed, "{to}");
        }
    }

    #[test]
    fn a_circuit_change_is_read_and_written_alike() {
        let text = r#"{"object":"provider_budget_circuit_transition","circuit":{"previous_state":"closed","state":"open","reason":"provider_failure","trigger":"provider_failure"},"elapsed_ms":12.0,"request_count":9,"retry_tokens_remaining":"unbounded"}"#;
        let read = read_evidence::<ProviderBudget>(text);
        assert_eq!(serde_json::to_string(read.valid().unwrap()).unwrap(), text);
        let bounded = text.replace("\"unbounded\"", "2.5");
        let tokens = read_evidence::<ProviderBudget>(&bounded).valid().and_then(|budget| budget.retry_tokens_remaining);
        assert_eq!(tokens, Some(RetryTokens::Left(2.5)));
        for (from, to) in [("\"open\"", "\"ajar\""), (":9", ":-9"), (":12.0", ":-1"), ("\"unbounded\"", "\"lots\"")] {
            assert_eq!(read_evidence::<ProviderBudget>(&text.replace(from, to)), Evidence::Malformed, "{to}");
        }
    }
}
