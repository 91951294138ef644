//! The simulated provider: limits as real services enforce them, and their answers.
//!
//! A request is decided at the moment it is sent. All active limits must pass it; a refusal uses up quota only with
//! `count_rejected`. The provider does not know the law.

use crate::scenario::{HeaderKind, Limit, LimitKind, RetryAfterKind, Scenario};
use std::collections::VecDeque;

/// Seconds since 1970 at the simulation's start, 2026-01-01 00:00 UTC: a round number, so that windows aligned to the
/// clock are aligned to the simulation.
pub const EPOCH_S: f64 = 1_767_225_600.0;

/// One limit with its state. Times are seconds since the start of the simulation.
#[derive(Clone, Debug)]
pub struct LimitState {
    spec: Limit,
    until_s: f64,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Bucket { rate: f64, burst: f64, tokens: f64, at: f64 },
    Fixed { limit: f64, window: f64, phase: f64, index: f64, count: f64 },
    Sliding { limit: usize, window: f64, log: VecDeque<f64> },
    Concurrency { limit: usize, busy_until: Vec<f64> },
    Queue { rate: f64, burst: f64, excess: f64, at: f64, fresh: bool },
    Tarpit { limit: usize, window: f64, factor: f64, log: VecDeque<f64> },
}

/// Rounding in window arithmetic: a nanosecond is shorter than anything modeled.
pub(crate) const EPSILON_S: f64 = 1e-9;

impl LimitState {
    /// A limit at the start of its active period: nothing used.
    pub fn new(spec: &Limit) -> Self {
        let number = |value: Option<f64>| value.unwrap_or(1.0);
        let (rate, burst) = (number(spec.rate_per_s), number(spec.burst));
        let (limit, window) = (number(spec.limit), number(spec.window_s));
        let state = match spec.kind {
            LimitKind::TokenBucket => State::Bucket { rate, burst, tokens: burst, at: spec.from_s },
            LimitKind::FixedWindow => {
                State::Fixed { limit, window, phase: spec.phase_s.unwrap_or(0.0), index: f64::MIN, count: 0.0 }
            }
            LimitKind::SlidingWindow => State::Sliding { limit: limit as usize, window, log: VecDeque::new() },
            LimitKind::Concurrency => State::Concurrency { limit: limit as usize, busy_until: Vec::new() },
            LimitKind::DelayQueue => State::Queue { rate, burst, excess: 0.0, at: spec.from_s, fresh: true },
            LimitKind::Tarpit => {
                // 2.3/s over 10 s are 23, also where the product is slightly below.
                let limit = (rate * window + EPSILON_S).floor().max(1.0) as usize;
                State::Tarpit { limit, window, factor: number(spec.factor), log: VecDeque::new() }
            }
        };
        let until_s = if spec.until_s == 0.0 { f64::INFINITY } else { spec.until_s };
        Self { spec: spec.clone(), until_s, state }
    }

    /// Whether the limit is enforced at `now`.
    pub fn is_active(&self, now: f64) -> bool {
        self.spec.from_s <= now && now < self.until_s
    }

    /// When the limit becomes active, and when it stops being so.
    pub fn period(&self) -> (f64, f64) {
        (self.spec.from_s, self.until_s)
    }

    /// The average rate that the limit allows; for a concurrency limit it depends on the latency.
    pub fn sustained_rate(&self, latency_s: f64) -> f64 {
        match &self.state {
            State::Bucket { rate, .. } | State::Queue { rate, .. } => *rate,
            State::Fixed { limit, window, .. } => limit / window,
            State::Sliding { limit, window, .. } | State::Tarpit { limit, window, .. } => *limit as f64 / window,
            State::Concurrency { limit, .. } => *limit as f64 / latency_s,
        }
    }

    /// Moves the state to `now`: refills tokens, turns windows, drops old entries.
    fn advance(&mut self, now: f64) {
        match &mut self.state {
            State::Bucket { rate, burst, tokens, at } => {
                *tokens = (*tokens + (now - *at).max(0.0) * *rate).min(*burst);
                *at = now.max(*at);
            }
            State::Fixed { window, phase, index, count, .. } => {
                let current = ((now + *phase + EPSILON_S) / *window).floor();
                if current > *index {
                    *index = current;
                    *count = 0.0;
                }
            }
            State::Sliding { window, log, .. } | State::Tarpit { window, log, .. } => {
                while log.front().is_some_and(|&sent| sent + *window <= now + EPSILON_S) {
                    log.pop_front();
                }
            }
            State::Concurrency { busy_until, .. } => busy_until.retain(|&until| until > now + EPSILON_S),
            State::Queue { rate, excess, at, .. } => {
                // May go down to -1: the request that follows is then not delayed.
                *excess = (*excess - (now - *at).max(0.0) * *rate).max(-1.0);
                *at = now.max(*at);
            }
        }
    }

    /// Time from `now` until one more request would pass; 0 when it passes now.
    pub fn wait(&mut self, now: f64) -> f64 {
        self.advance(now);
        match &self.state {
            State::Bucket { rate, tokens, .. } => ((1.0 - EPSILON_S - tokens) / rate).max(0.0),
            State::Fixed { limit, count, .. } if count < limit => 0.0,
            State::Fixed { window, phase, index, .. } => (index + 1.0) * window - phase - now,
            State::Sliding { limit, log, .. } if log.len() < *limit => 0.0,
            State::Sliding { limit, window, log } => log[log.len() - limit] + window - now,
            State::Concurrency { limit, busy_until } => {
                let mut ends = busy_until.clone();
                ends.sort_by(f64::total_cmp);
                if ends.len() < *limit { 0.0 } else { ends[ends.len() - limit] - now }
            }
            State::Queue { rate, burst, excess, fresh, .. } => {
                let over = excess + 1.0 - burst;
                if *fresh || over <= EPSILON_S { 0.0 } else { over / rate }
            }
            State::Tarpit { .. } => 0.0,
        }
    }

    /// Time from `now` until one more request would pass *unhindered*: neither refused nor slowed down. For the
    /// oracle.
    pub fn wait_unhindered(&mut self, now: f64) -> f64 {
        let wait = self.wait(now);
        match &self.state {
            State::Queue { rate, excess, fresh, .. } if !*fresh => ((excess + 1.0 - EPSILON_S) / rate).max(0.0),
            State::Tarpit { limit, window, log, .. } if log.len() >= *limit => log[log.len() - limit] + window - now,
            _ => wait,
        }
    }

    /// Uses up one request.
    pub fn consume(&mut self, now: f64) {
        match &mut self.state {
            State::Bucket { tokens, .. } => *tokens = (*tokens - 1.0).max(0.0),
            State::Fixed { count, .. } => *count += 1.0,
            State::Sliding { log, .. } | State::Tarpit { log, .. } => log.push_back(now),
            State::Concurrency { .. } => {}
            State::Queue { excess, fresh, .. } => {
                *excess = if *fresh { 0.0 } else { (*excess + 1.0).max(0.0) };
                *fresh = false;
            }
        }
    }

    /// Added to and multiplied with the latency of an accepted request, in this order.
    fn slowdown(&self) -> (f64, f64) {
        match &self.state {
            State::Queue { rate, excess, .. } => (excess / rate, 1.0),
            State::Tarpit { limit, factor, log, .. } if log.len() > *limit => (0.0, *factor),
            _ => (0.0, 1.0),
        }
    }

    fn occupy(&mut self, until: f64) {
        if let State::Concurrency { busy_until, .. } = &mut self.state {
            busy_until.push(until);
        }
    }

    /// Values for quota headers: limit, remaining, seconds to reset, window length.
    fn quota(&mut self, now: f64) -> Quota {
        self.advance(now);
        match &self.state {
            State::Bucket { rate, burst, tokens, .. } => Quota {
                limit: *burst,
                remaining: (tokens + EPSILON_S).floor(),
                reset_s: (burst - tokens) / rate,
                window_s: burst / rate,
            },
            State::Fixed { limit, window, phase, index, count } => Quota {
                limit: *limit,
                remaining: (limit - count).max(0.0),
                reset_s: (index + 1.0) * window - phase - now,
                window_s: *window,
            },
            State::Sliding { limit, window, log } | State::Tarpit { limit, window, log, .. } => Quota {
                limit: *limit as f64,
                remaining: limit.saturating_sub(log.len()) as f64,
                reset_s: log.front().map_or(0.0, |oldest| oldest + window - now),
                window_s: *window,
            },
            State::Concurrency { limit, busy_until } => Quota {
                limit: *limit as f64,
                remaining: limit.saturating_sub(busy_until.len()) as f64,
                reset_s: busy_until.iter().copied().fold(f64::INFINITY, f64::min).min(now + 1.0) - now,
                window_s: 1.0,
            },
            State::Queue { rate, burst, excess, .. } => Quota {
                limit: *burst,
                remaining: (burst - excess.max(0.0)).floor(),
                reset_s: excess.max(0.0) / rate,
                window_s: burst / rate,
            },
        }
    }
}

struct Quota {
    limit: f64,
    remaining: f64,
    reset_s: f64,
    window_s: f64,
}

/// Decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Accepted.
    Accepted,
    /// Refused because of a limit.
    Rejected,
    /// Refused because the account is suspended.
    Banned,
}

/// Quota and throttle headers of one answer.
pub type Headers = Vec<(&'static str, String)>;

/// The provider of one scenario.
#[derive(Clone, Debug)]
pub struct Provider {
    limits: Vec<LimitState>,
    retry_after: RetryAfterKind,
    headers: HeaderKind,
    strikes: VecDeque<f64>,
    penalty: Option<crate::scenario::Penalty>,
    banned_until: f64,
    next_ban_s: f64,
    /// Suspensions so far.
    pub bans: u64,
}

/// A decided request, and the change of its latency.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The decision.
    pub decision: Decision,
    /// The true wait, when refused by a limit.
    pub wait_s: f64,
    /// Added to the base latency.
    pub delay_s: f64,
    /// Multiplied with the base latency.
    pub factor: f64,
}

impl Provider {
    /// The scenario's provider, before its first request.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            limits: scenario.limits.iter().map(LimitState::new).collect(),
            retry_after: scenario.signal.retry_after,
            headers: scenario.signal.headers,
            strikes: VecDeque::new(),
            next_ban_s: scenario.penalty.as_ref().map_or(0.0, |p| p.ban_s),
            penalty: scenario.penalty.clone(),
            banned_until: f64::MIN,
            bans: 0,
        }
    }

    /// Decides a request that is sent at `now`.
    pub fn decide(&mut self, now: f64) -> Decided {
        if now < self.banned_until {
            return Decided { decision: Decision::Banned, wait_s: 0.0, delay_s: 0.0, factor: 1.0 };
        }
        let active = || |limit: &&mut LimitState| limit.is_active(now);
        if self.wait(now) > EPSILON_S {
            self.limits.iter_mut().filter(active()).filter(|l| l.spec.count_rejected).for_each(|l| l.consume(now));
            self.strike(now);
            // If the refusal itself used up quota, the true wait is longer than before.
            return Decided { decision: Decision::Rejected, wait_s: self.wait(now), delay_s: 0.0, factor: 1.0 };
        }
        let (mut delay_s, mut factor) = (0.0_f64, 1.0_f64);
        for limit in self.limits.iter_mut().filter(active()) {
            limit.consume(now);
            let (delay, times) = limit.slowdown();
            delay_s = delay_s.max(delay);
            factor *= times;
        }
        Decided { decision: Decision::Accepted, wait_s: 0.0, delay_s, factor }
    }

    /// Time from `now` until one more request would pass all active limits.
    fn wait(&mut self, now: f64) -> f64 {
        self.limits.iter_mut().filter(|l| l.is_active(now)).map(|l| l.wait(now)).fold(0.0, f64::max)
    }

    /// Marks an accepted request as in progress until `until`.
    pub fn occupy(&mut self, now: f64, until: f64) {
        self.limits.iter_mut().filter(|l| l.is_active(now)).for_each(|l| l.occupy(until));
    }

    fn strike(&mut self, now: f64) {
        let Some(penalty) = &self.penalty else { return };
        self.strikes.push_back(now);
        while self.strikes.front().is_some_and(|&at| at + penalty.within_s <= now) {
            self.strikes.pop_front();
        }
        if self.strikes.len() >= penalty.strikes as usize {
            self.strikes.clear();
            self.bans += 1;
            self.banned_until = now + self.next_ban_s;
            if penalty.doubling {
                self.next_ban_s *= 2.0;
            }
        }
    }

    /// The headers of the answer to a request decided at `now` and answered at `arrival`. Quota headers are on every
    /// answer; a suspended account gets no Retry-After.
    pub fn headers(&mut self, decided: &Decided, now: f64, arrival: f64) -> Headers {
        let mut headers = Headers::new();
        if decided.decision == Decision::Rejected {
            self.push_retry_after(&mut headers, decided.wait_s, now, arrival);
        }
        self.push_quota(&mut headers, now);
        headers
    }

    fn push_retry_after(&self, headers: &mut Headers, wait_s: f64, now: f64, arrival: f64) {
        // Whole seconds, rounded up, as servers send them.
        let seconds = |s: f64| s.ceil().max(1.0);
        let value = match self.retry_after {
            RetryAfterKind::None => return,
            RetryAfterKind::Zero => "0".to_owned(),
            RetryAfterKind::Seconds => seconds(wait_s).to_string(),
            RetryAfterKind::WrongShort => seconds(wait_s / 3.0).to_string(),
            RetryAfterKind::WrongLong => seconds(wait_s * 3.0).to_string(),
            RetryAfterKind::Date => {
                headers.push(("date", http_date(EPOCH_S + arrival)));
                http_date((EPOCH_S + now + wait_s).ceil())
            }
        };
        headers.push(("retry-after", value));
    }

    fn push_quota(&mut self, headers: &mut Headers, now: f64) {
        if self.headers == HeaderKind::None {
            return;
        }
        let mut quotas = self.limits.iter_mut().filter(|l| l.is_active(now)).map(|l| l.quota(now));
        if self.headers == HeaderKind::UsedLimit {
            let all: Vec<String> =
                quotas.map(|q| format!("{}/{}", (q.limit - q.remaining).max(0.0), q.limit)).collect();
            if !all.is_empty() {
                headers.push(("x-rate-limit", all.join(",")));
            }
            return;
        }
        let Some(first) = quotas.next() else { return };
        if self.headers == HeaderKind::XRateLimit {
            headers.push(("x-ratelimit-limit", first.limit.to_string()));
            headers.push(("x-ratelimit-remaining", first.remaining.to_string()));
            headers.push(("x-ratelimit-reset", (EPOCH_S + now + first.reset_s).ceil().to_string()));
        } else {
            headers.push(("ratelimit", format!("\"default\";r={};t={}", first.remaining, first.reset_s.ceil())));
            headers.push(("ratelimit-policy", format!("\"default\";q={};w={}", first.limit, first.window_s.ceil())));
        }
    }
}

fn http_date(epoch_s: f64) -> String {
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs_f64(epoch_s.floor());
    httpdate::fmt_http_date(at)
}
