//! Description of a provider in words, and readable numbers.

use crate::scenario::{HeaderKind, Limit, LimitKind, RetryAfterKind, Scenario};
use crate::score::changes;

/// The readable name of a limit's kind.
pub const fn kind_name(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::TokenBucket => "token bucket",
        LimitKind::FixedWindow => "fixed window",
        LimitKind::SlidingWindow => "sliding window",
        LimitKind::Concurrency => "concurrency",
        LimitKind::DelayQueue => "delay queue",
        LimitKind::Tarpit => "tarpit",
    }
}

/// Limits, signal and penalty of a provider, in one line.
pub fn provider(scenario: &Scenario) -> String {
    let mut parts: Vec<String> = scenario.limits.iter().map(limit).collect();
    if parts.is_empty() {
        return "no limit".to_owned();
    }
    let silent = scenario.limits.iter().all(|limit| limit.kind == LimitKind::Tarpit);
    if !silent {
        parts.push(format!("{}{}", scenario.signal.status, retry_after(scenario.signal.retry_after)));
    }
    match scenario.signal.headers {
        HeaderKind::None => {}
        HeaderKind::XRateLimit => parts.push("x-ratelimit headers".to_owned()),
        HeaderKind::Ietf => parts.push("RateLimit headers".to_owned()),
        HeaderKind::UsedLimit => parts.push("used/limit header".to_owned()),
    }
    if let Some(penalty) = &scenario.penalty {
        parts.push(format!("{} strikes in {}", penalty.strikes, seconds(penalty.within_s)));
    }
    let noise = scenario.noise.server_error + scenario.noise.reset;
    if noise > 0.0 {
        parts.push(format!("{} % noise", number(noise * 100.0)));
    }
    parts.join("; ")
}

fn limit(limit: &Limit) -> String {
    let of = |value: Option<f64>| number(value.unwrap_or(0.0));
    let name = kind_name(limit.kind);
    let mut text = match limit.kind {
        LimitKind::TokenBucket | LimitKind::DelayQueue => {
            format!("{name} {}/s, burst {}", of(limit.rate_per_s), of(limit.burst))
        }
        LimitKind::FixedWindow | LimitKind::SlidingWindow => {
            format!("{name} {} per {}", of(limit.limit), seconds(limit.window_s.unwrap_or(0.0)))
        }
        LimitKind::Concurrency => format!("{name} {}", of(limit.limit)),
        LimitKind::Tarpit => format!("{name} {}/s, ×{}", of(limit.rate_per_s), of(limit.factor)),
    };
    if limit.count_rejected {
        text.push_str(", refusals count");
    }
    match (limit.from_s > 0.0, limit.until_s > 0.0) {
        (false, false) => {}
        (true, false) => text.push_str(&format!(" from {}", seconds(limit.from_s))),
        (false, true) => text.push_str(&format!(" until {}", seconds(limit.until_s))),
        (true, true) => text.push_str(&format!(" from {} until {}", seconds(limit.from_s), seconds(limit.until_s))),
    }
    text
}

const fn retry_after(kind: RetryAfterKind) -> &'static str {
    match kind {
        RetryAfterKind::None => " bare",
        RetryAfterKind::Seconds => " + Retry-After",
        RetryAfterKind::Date => " + Retry-After as a date",
        RetryAfterKind::Zero => " + Retry-After: 0",
        RetryAfterKind::WrongShort => " + Retry-After a third of the true wait",
        RetryAfterKind::WrongLong => " + Retry-After three times the true wait",
    }
}

/// Whether the possible rate changes during a run.
pub fn limit_changes(scenario: &Scenario) -> bool {
    changes(scenario).len() > 1
}

/// Three significant digits, without trailing zeros; whole numbers stay whole.
pub fn number(value: f64) -> String {
    if value.abs() >= 100.0 || value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    let digits = if value.abs() >= 10.0 { 1 } else { 2 + usize::from(value.abs() < 1.0) };
    format!("{value:.digits$}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A duration in the unit in which it is a small number.
pub fn seconds(value: f64) -> String {
    match value {
        v if v >= 7200.0 && v % 3600.0 == 0.0 => format!("{} h", number(v / 3600.0)),
        v if v >= 120.0 && v % 60.0 == 0.0 => format!("{} min", number(v / 60.0)),
        v if v > 0.0 && v < 1.0 => format!("{} ms", number(v * 1000.0)),
        v => format!("{} s", number(v)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_no_trailing_zeros() {
        let printed: Vec<String> = [0.0, 10.0, 1.5, 1.666_7, 0.05, 36_020.0, 12.34, 123.4].map(number).into();
        assert_eq!(printed, ["0", "10", "1.5", "1.67", "0.05", "36020", "12.3", "123"]);
    }

    #[test]
    fn times_use_the_unit_that_makes_them_short() {
        let printed: Vec<String> = [0.25, 60.0, 90.0, 900.0, 3600.0, 7200.0].map(seconds).into();
        assert_eq!(printed, ["250 ms", "60 s", "90 s", "15 min", "60 min", "2 h"]);
    }

    #[test]
    fn a_provider_is_told_in_one_line() {
        let text = "name = \"x\"\n[[limit]]\nkind = \"token_bucket\"\nrate_per_s = 10\nburst = 20\nuntil_s = 900\n\
                    [signal]\nretry_after = \"seconds\"";
        let scenario = Scenario::parse("x", text).unwrap();
        assert_eq!(provider(&scenario), "token bucket 10/s, burst 20 until 15 min; 429 + Retry-After");
    }
}
