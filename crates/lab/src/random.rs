//! Random scenarios, drawn by a seeded generator within the catalogue's ranges.
//!
//! They expose a law that only fits the named files. Everything about the provider is random: kind, limit, window,
//! phase, burst, latency, noise, signal, headers, strikes, workers. Only the length is bounded, so that the limit
//! matters: at least 600 requests and ten windows of the first limit, within a day. Not drawn, because the format
//! cannot express them: drifting latency, several clients on one account, costs per request.

use crate::rng::Rng;
use crate::scenario::{
    Expect, HeaderKind, Latency, Limit, LimitKind, Noise, Penalty, RetryAfterKind, Scenario, Signal,
};

const SALT_RANDOM: u64 = 77;
/// Rarer traits of the catalogue, drawn from a separate stream: adding one changes only the scenarios that get it.
const SALT_RARE: u64 = 78;

/// Kinds, by frequency in the catalogue.
const KINDS: [LimitKind; 10] = [
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
];

/// Scenario number `index` of the family `seed`.
pub fn scenario(seed: u64, index: u64) -> Scenario {
    let stream = |salt| Rng::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index, salt);
    let (mut rng, mut rare) = (stream(SALT_RANDOM), stream(SALT_RARE));
    let kind = rng.pick(&KINDS);
    let latency = latency(&mut rng);
    let workers = rng.pick(&[1, 2, 4, 8, 16]);
    let mut first = limit(&mut rng, kind);
    make_rare(&mut rare, &mut first);
    let rate = sustained(&first, &latency).min(workers as f64 * 1000.0 / latency.base_ms);
    let (limits, horizon_s) = around(&mut rng, &mut rare, first, rate);
    let signal = signal(&mut rng, kind);
    let silent = kind == LimitKind::Tarpit;
    let penalty = (!silent && rng.chance(0.2)).then(|| penalty(&mut rng, &mut rare));
    let noise = if rng.chance(0.25) { noise(&mut rng) } else { Noise::default() };
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

fn latency(rng: &mut Rng) -> Latency {
    Latency {
        base_ms: rng.log_range(30.0, 600.0).round(),
        // At 0.42 the p95 of an unhindered answer is twice the median, and no law could get below a latency ratio of
        // 2.
        sigma: rng.range(0.1, 0.4),
        reject_ms: rng.log_range(5.0, 100.0).round(),
    }
}

fn noise(rng: &mut Rng) -> Noise {
    Noise { server_error: rng.range(0.0, 0.03), reset: rng.range(0.0, 0.02) }
}

/// The limit alone, or with others around or after it, and a horizon in which it matters.
fn around(rng: &mut Rng, rare: &mut Rng, first: Limit, rate: f64) -> (Vec<Limit>, f64) {
    let window_s = first.window_s.unwrap_or(1.0);
    let horizon_s = (600.0 / rate).max(10.0 * window_s).clamp(3600.0, 86_400.0).round();
    let mut limits = vec![first];
    if rng.chance(0.15) {
        nest(rng, &mut limits, rate);
    }
    if rng.chance(0.15) {
        step(rng, &mut limits, horizon_s);
        if rare.chance(0.4) {
            steps(rare, &mut limits, horizon_s);
        }
    }
    (limits, horizon_s)
}

fn limit(rng: &mut Rng, kind: LimitKind) -> Limit {
    let mut limit = Limit { kind, count_rejected: rng.chance(0.25), ..Limit::default() };
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

/// Buckets that take minutes to drain (they look like a higher limit), and limits of a hundred per second.
fn make_rare(rare: &mut Rng, limit: &mut Limit) {
    if limit.kind != LimitKind::TokenBucket {
        return;
    }
    if rare.chance(0.05) {
        limit.rate_per_s = Some(100.0);
    }
    if rare.chance(0.1) {
        let rate = limit.rate_per_s.unwrap_or(1.0);
        limit.burst = Some((rate * rare.log_range(30.0, 300.0)).round().clamp(20.0, 5_000.0));
    }
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

/// The first limit changes, by a factor of up to three.
fn step(rng: &mut Rng, limits: &mut Vec<Limit>, horizon_s: f64) {
    let at_s = (horizon_s * rng.range(0.3, 0.7)).round();
    let factor = rng.log_range(1.0 / 3.0, 3.0);
    let after = changed(&limits[0], at_s, factor);
    limits[0].until_s = at_s;
    // Headers describe the first active limit, so the successor goes second.
    limits.insert(1, after);
}

/// The limit after the first change changes two to four times more, each time by a factor of up to three up or down,
/// within a tenth and ten times its original.
fn steps(rare: &mut Rng, limits: &mut Vec<Limit>, horizon_s: f64) {
    let start_s = limits[1].from_s;
    let count = rare.pick(&[2, 3, 4]);
    let mut factor = 1.0_f64;
    let template = limits[1].clone();
    for index in 0..count {
        let at_s = (start_s + (horizon_s - start_s) * f64::from(index + 1) / f64::from(count + 1)).round();
        factor = (factor * rare.log_range(1.0 / 3.0, 3.0)).clamp(0.1, 10.0);
        limits[index as usize + 1].until_s = at_s;
        limits.insert(index as usize + 2, changed(&template, at_s, factor));
    }
}

/// The same limit from a moment on, with another rate.
fn changed(limit: &Limit, from_s: f64, factor: f64) -> Limit {
    Limit {
        from_s,
        limit: limit.limit.map(|l| (l * factor).round().max(1.0)),
        rate_per_s: limit.rate_per_s.map(|r| r * factor),
        ..limit.clone()
    }
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

fn penalty(rng: &mut Rng, rare: &mut Rng) -> Penalty {
    Penalty {
        strikes: rng.log_range(5.0, 25.0).round() as u32,
        within_s: rng.pick(&[60.0, 300.0, 600.0, 600.0, 3600.0]),
        ban_s: rng.pick(&[300.0, 3600.0]),
        doubling: rng.chance(0.5),
        // 418 and 429 are the other two statuses that providers use for it.
        status: if rare.chance(0.25) { rare.pick(&[418, 429]) } else { 403 },
    }
}

fn sustained(limit: &Limit, latency: &Latency) -> f64 {
    crate::provider::LimitState::new(limit).sustained_rate(latency.base_ms / 1000.0)
}
