//! Scenarios that nobody tuned for: drawn by a seeded generator within the catalogue's ranges.
//!
//! A law that only fits the named files shows here. Everything about the provider is random: kind,
//! limit, window, phase, burst, latency, noise, signal, headers, strikes, workers. What is fixed is
//! that a scenario is long enough for its limit to matter: at least 600 requests and ten windows.

use crate::rng::Rng;
use crate::scenario::{
    Expect, HeaderKind, Latency, Limit, LimitKind, Noise, Penalty, RetryAfterKind, Scenario, Signal,
};

const SALT_RANDOM: u64 = 77;

/// Scenario number `index` of the family `seed`.
#[must_use]
pub fn scenario(seed: u64, index: u64) -> Scenario {
    let mut rng = Rng::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index, SALT_RANDOM);
    let kind = rng.pick(&[
        LimitKind::TokenBucket,
        LimitKind::TokenBucket,
        LimitKind::TokenBucket,
        LimitKind::FixedWindow,
        LimitKind::FixedWindow,
        LimitKind::SlidingWindow,
        LimitKind::SlidingWindow,
        LimitKind::DelayQueue,
        LimitKind::Tarpit,
        LimitKind::Concurrency,
    ]);
    let latency = Latency {
        base_ms: rng.log_range(30.0, 600.0).round(),
        sigma: rng.range(0.1, 0.5),
        reject_ms: rng.log_range(5.0, 100.0).round(),
    };
    let workers = rng.pick(&[1, 2, 4, 8, 16]);
    let mut limits = vec![limit(&mut rng, kind)];
    let rate = sustained(&limits[0], &latency).min(workers as f64 * 1000.0 / latency.base_ms);
    let window_s = limits[0].window_s.unwrap_or(1.0);
    let horizon_s = (600.0 / rate).max(10.0 * window_s).max(3600.0).min(86_400.0).round();
    if rng.chance(0.15) {
        nest(&mut rng, &mut limits, rate);
    }
    if rng.chance(0.15) {
        step(&mut rng, &mut limits, horizon_s);
    }
    let signal = signal(&mut rng, kind);
    let silent = kind == LimitKind::Tarpit;
    let penalty = (!silent && rng.chance(0.2)).then(|| penalty(&mut rng));
    let noise = if rng.chance(0.25) {
        Noise { server_error: rng.range(0.0, 0.03), reset: rng.range(0.0, 0.02) }
    } else {
        Noise::default()
    };
    Scenario {
        name: format!("random-{seed}-{index}"),
        about: String::new(),
        horizon_s,
        workers,
        backlog: 0,
        ceiling_interval_ms: (1000.0 / rate / rng.log_range(2.5, 20.0)).clamp(2.0, 1000.0),
        latency,
        noise,
        limits,
        signal,
        penalty,
        expect: Expect::default(),
    }
}

fn limit(rng: &mut Rng, kind: LimitKind) -> Limit {
    let mut limit = Limit {
        kind,
        limit: None,
        window_s: None,
        phase_s: None,
        rate_per_s: None,
        burst: None,
        factor: None,
        count_rejected: rng.chance(0.25),
        from_s: 0.0,
        until_s: 0.0,
    };
    match kind {
        LimitKind::TokenBucket | LimitKind::DelayQueue => {
            limit.rate_per_s = Some(rng.log_range(0.05, 60.0));
            limit.burst = Some(rng.log_range(1.0, 100.0).round());
        }
        LimitKind::FixedWindow | LimitKind::SlidingWindow => {
            let window_s = window(rng);
            limit.window_s = Some(window_s);
            limit.limit = Some((window_s * rng.log_range(0.1, 30.0)).round().clamp(5.0, 20_000.0));
            limit.phase_s = (kind == LimitKind::FixedWindow).then(|| (rng.unit() * window_s).round());
        }
        LimitKind::Tarpit => {
            limit.rate_per_s = Some(rng.log_range(1.0, 30.0));
            limit.window_s = Some(rng.log_range(2.0, 20.0).round());
            limit.factor = Some(rng.log_range(5.0, 50.0));
        }
        LimitKind::Concurrency => limit.limit = Some(rng.log_range(1.0, 12.0).round()),
    }
    limit
}

/// Half of the windows have a usual length, half an odd one.
fn window(rng: &mut Rng) -> f64 {
    if rng.chance(0.5) {
        rng.pick(&[1.0, 10.0, 30.0, 60.0, 60.0, 300.0, 900.0, 3600.0])
    } else {
        rng.log_range(2.0, 1800.0).round()
    }
}

/// A second, longer or shorter limit around the first.
fn nest(rng: &mut Rng, limits: &mut Vec<Limit>, rate: f64) {
    let mut outer = limit(rng, rng.clone().pick(&[LimitKind::FixedWindow, LimitKind::SlidingWindow]));
    let window_s = rng.pick(&[60.0, 300.0, 900.0]);
    outer.window_s = Some(window_s);
    outer.limit = Some((rate * window_s * rng.range(0.6, 1.5)).round().max(3.0));
    if outer.kind == LimitKind::FixedWindow {
        outer.phase_s = Some((rng.unit() * window_s).round());
    }
    limits.push(outer);
}

/// The first limit changes once, by a factor of up to three.
fn step(rng: &mut Rng, limits: &mut Vec<Limit>, horizon_s: f64) {
    let at_s = (horizon_s * rng.range(0.3, 0.7)).round();
    let factor = rng.log_range(1.0 / 3.0, 3.0);
    let mut after = limits[0].clone();
    limits[0].until_s = at_s;
    after.from_s = at_s;
    after.limit = after.limit.map(|l| (l * factor).round().max(1.0));
    after.rate_per_s = after.rate_per_s.map(|r| r * factor);
    // Headers describe the first limit that is active, so the successor goes second.
    limits.insert(1, after);
}

fn signal(rng: &mut Rng, kind: LimitKind) -> Signal {
    use RetryAfterKind::{Date, None, Seconds, WrongLong, WrongShort, Zero};
    let retry_after = rng.pick(&[None, None, None, Seconds, Seconds, Seconds, Date, Zero, WrongShort, WrongLong]);
    let windowed = matches!(kind, LimitKind::FixedWindow | LimitKind::SlidingWindow | LimitKind::TokenBucket);
    let headers = if windowed && rng.chance(0.3) {
        rng.pick(&[HeaderKind::XRateLimit, HeaderKind::Ietf, HeaderKind::UsedLimit])
    } else {
        HeaderKind::None
    };
    Signal { status: rng.pick(&[429, 429, 429, 503, 403, 200]), retry_after, headers }
}

fn penalty(rng: &mut Rng) -> Penalty {
    Penalty {
        strikes: rng.log_range(5.0, 25.0).round() as u32,
        within_s: rng.pick(&[60.0, 300.0, 600.0, 600.0, 3600.0]),
        ban_s: rng.pick(&[300.0, 3600.0]),
        doubling: rng.chance(0.5),
        status: 403,
    }
}

fn sustained(limit: &Limit, latency: &Latency) -> f64 {
    crate::provider::LimitState::new(limit).sustained_rate(latency.base_ms / 1000.0)
}
