//! Validation rules of a scenario, each with its message.
//!
//! Separate from the format so that each can be read alone. It only checks: nothing is corrected or defaulted, an
//! invalid file is rejected.

use super::{Expect, HORIZON_MAX_S, Latency, Limit, LimitKind, Noise, Penalty, Scenario, ScenarioError, WORKERS_MAX};
use crate::report::kind_name;
use std::ops::RangeInclusive;

type Checked = Result<(), ScenarioError>;

/// Checks numbers, each with its message.
pub(super) struct Check<'a> {
    pub(super) file: &'a str,
}

impl Check<'_> {
    pub(super) fn scenario(&self, s: &Scenario) -> Checked {
        self.client(s)?;
        self.latency(&s.latency)?;
        self.noise(&s.noise)?;
        self.rule(s.limits.len() <= 16, "limit", s.limits.len(), "at most 16 limits")?;
        for (index, limit) in s.limits.iter().enumerate() {
            self.limit(index, limit)?;
        }
        let status_ok = [429, 503, 403, 200].contains(&s.signal.status);
        self.rule(status_ok, "signal.status", s.signal.status, "429, 503, 403 or 200")?;
        if let Some(penalty) = &s.penalty {
            self.penalty(penalty)?;
        }
        self.expect(&s.expect)
    }

    fn client(&self, s: &Scenario) -> Checked {
        let name_ok = !s.name.is_empty() && s.name.len() <= 80 && !s.name.chars().any(char::is_control);
        self.rule(name_ok, "name", &s.name, "1 to 80 printable characters")?;
        let horizon_ok = s.horizon_s > 0.0 && s.horizon_s <= HORIZON_MAX_S;
        self.rule(horizon_ok, "horizon_s", s.horizon_s, "more than 0, at most 864000 (ten days)")?;
        let workers_ok = (1..=WORKERS_MAX).contains(&s.workers);
        self.rule(workers_ok, "workers", s.workers, "a whole number from 1 to 1024")?;
        self.range("ceiling_interval_ms", s.ceiling_interval_ms, 0.1..=3_600_000.0, "from 0.1 to 3600000")
    }

    fn noise(&self, noise: &Noise) -> Checked {
        self.share("noise.server_error", noise.server_error)?;
        self.share("noise.reset", noise.reset)?;
        let sum = noise.server_error + noise.reset;
        self.rule(sum <= 1.0, "noise.server_error + noise.reset", sum, "at most 1 in all")
    }

    fn expect(&self, expect: &Expect) -> Checked {
        let known = |value: Option<f64>| value.unwrap_or(0.0);
        self.share("expect.goodput_min", known(expect.goodput_min))?;
        self.share("expect.violations_max", known(expect.violations_max))?;
        self.range("expect.latency_ratio_max", known(expect.latency_ratio_max), 0.0..=1e9, "0 or more")
    }

    fn latency(&self, latency: &Latency) -> Checked {
        self.range("latency.base_ms", latency.base_ms, 0.1..=600_000.0, "from 0.1 to 600000")?;
        self.range("latency.sigma", latency.sigma, 0.0..=3.0, "from 0 to 3")?;
        self.range("latency.reject_ms", latency.reject_ms, 0.0..=600_000.0, "from 0 to 600000")
    }

    fn share(&self, key: &str, value: f64) -> Checked {
        self.range(key, value, 0.0..=1.0, "a share from 0 to 1")
    }

    fn range(&self, key: &str, value: f64, range: RangeInclusive<f64>, allowed: &'static str) -> Checked {
        self.rule(range.contains(&value), key, value, allowed)
    }

    fn penalty(&self, penalty: &Penalty) -> Checked {
        self.rule(penalty.strikes > 0, "penalty.strikes", penalty.strikes, "at least 1")?;
        self.positive("penalty.within_s", penalty.within_s)?;
        self.positive("penalty.ban_s", penalty.ban_s)?;
        let status_ok = (400..600).contains(&penalty.status);
        self.rule(status_ok, "penalty.status", penalty.status, "a status from 400 to 599")
    }

    /// Each kind has its own keys: a missing key is an error, and so is an unused one.
    fn limit(&self, index: usize, limit: &Limit) -> Checked {
        let given = [
            ("limit", limit.limit),
            ("window_s", limit.window_s),
            ("rate_per_s", limit.rate_per_s),
            ("burst", limit.burst),
            ("factor", limit.factor),
            ("phase_s", limit.phase_s),
        ];
        let needed = limit.kind.needs();
        for (key, value) in given {
            let name = format!("limit[{index}].{key}");
            match value {
                Some(value) if needed.contains(&key) => self.number(key, &name, value)?,
                // The only optional key: without it windows begin at the start.
                Some(phase) if key == "phase_s" && limit.kind == LimitKind::FixedWindow => {
                    self.range(&name, phase, 0.0..=1e9, "from 0 to 1000000000")?;
                }
                Some(_) => return Err(self.misplaced(&name, limit.kind, "has no meaning for")),
                None if needed.contains(&key) => return Err(self.misplaced(&name, limit.kind, "is missing for")),
                None => {}
            }
        }
        self.period(index, limit)
    }

    fn number(&self, key: &str, name: &str, value: f64) -> Checked {
        if matches!(key, "limit" | "burst") {
            let whole = (1.0..=1e9).contains(&value) && value.fract() == 0.0;
            return self.rule(whole, name, value, "a whole number from 1 to 1000000000");
        }
        self.positive(name, value)
    }

    fn period(&self, index: usize, limit: &Limit) -> Checked {
        self.range(&format!("limit[{index}].from_s"), limit.from_s, 0.0..=1e9, "from 0 to 1000000000")?;
        let until_ok = limit.until_s == 0.0 || limit.until_s > limit.from_s;
        self.rule(until_ok, &format!("limit[{index}].until_s"), limit.until_s, "0 (to the end) or later than from_s")
    }

    fn misplaced(&self, name: &str, kind: LimitKind, problem: &str) -> ScenarioError {
        let (keys, kind) = (kind.needs().join(", "), kind_name(kind).replace(' ', "_"));
        let message = format!("{name} {problem} kind \"{kind}\", whose keys are {keys}");
        ScenarioError::Format { file: self.file.to_owned(), message }
    }

    fn positive(&self, key: &str, value: f64) -> Checked {
        self.rule(value > 0.0 && value.is_finite() && value <= 1e9, key, value, "more than 0, at most 1000000000")
    }

    #[expect(clippy::needless_pass_by_value, reason = "numbers and texts are given as they are")]
    fn rule(&self, holds: bool, key: &str, value: impl ToString, allowed: &'static str) -> Checked {
        if holds {
            return Ok(());
        }
        Err(ScenarioError::Value { file: self.file.to_owned(), key: key.to_owned(), value: value.to_string(), allowed })
    }
}

/// Rewrites the parser's message for people: it names line, key and allowed values, but uses Rust's type names.
pub(super) fn plain_words(message: &str) -> String {
    let types = [
        ("expected usize", "expected a whole number, 0 or more"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected u32", "expected a whole number, 0 or more"),
        ("expected u16", "expected a whole number from 0 to 65535"),
        ("expected f64", "expected a number"),
    ];
    types.iter().fold(message.trim_end().to_owned(), |text, (rust, words)| text.replace(rust, words))
}
