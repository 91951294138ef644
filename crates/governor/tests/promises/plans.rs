//! Random plans: what a driver, an owner and a provider may do, within what is plausible and beyond.

use crate::harness::{Limit, Plan, Provider, Tell};
use gleaner_governor::{BreakerConfig, Config};
use proptest::prelude::*;
use std::time::Duration;

pub(crate) fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::None),
        (0.1..60.0, 1.0..50.0).prop_map(|(per_s, burst)| Limit::Bucket { per_s, burst }),
        (1_u32..200, 1_u64..120).prop_map(|(limit, seconds)| Limit::Window { limit, seconds }),
        (1_u16..8).prop_map(Limit::InFlight),
    ]
}

fn tell() -> impl Strategy<Value = Tell> {
    prop_oneof![
        4 => Just(Tell::Nothing),
        2 => (0_u64..400_000).prop_map(|millis| Tell::RetryAfter(Duration::from_millis(millis))),
        2 => any::<bool>().prop_map(|with_reset| Tell::Quota { with_reset }),
        1 => Just(Tell::Nonsense),
    ]
}

/// Steady: never a silent slow-down.
pub(crate) fn steady_latency() -> impl Strategy<Value = (u64, u64)> {
    (0_u64..2000).prop_map(|shortest| (shortest, shortest + shortest / 2))
}

fn any_latency() -> impl Strategy<Value = (u64, u64)> {
    prop_oneof![steady_latency(), (0_u64..500, 0_u64..20_000).prop_map(|(shortest, more)| (shortest, shortest + more))]
}

fn provider() -> impl Strategy<Value = Provider> {
    let noise = prop_oneof![Just(0), 0_u64..30, Just(100)];
    (limit(), tell(), noise, any_latency()).prop_map(|(limit, tell, noise, latency_ms)| Provider {
        limit,
        tell,
        noise,
        latency_ms,
    })
}

/// Every pace an owner may choose, the discovery sometimes faster than the ceiling.
pub(crate) fn config() -> impl Strategy<Value = Config> {
    (1_u64..5000, 1_u64..3000, 1_u16..=8, prop_oneof![Just(300), 1_u64..100_000]).prop_map(
        |(discovery, ceiling, max_concurrency, horizon)| Config {
            discovery_interval: Duration::from_millis(discovery),
            ceiling_interval: Duration::from_millis(ceiling),
            max_concurrency,
            horizon: Duration::from_secs(horizon),
            ..Config::default()
        },
    )
}

/// The circuit never opens, so that nothing but the pace is under test.
pub(crate) fn without_circuit(config: Config) -> Config {
    let breaker = BreakerConfig { consecutive_failures: 0, throughput_min: u16::MAX, ..config.breaker };
    Config { breaker, ..config }
}

prop_compose! {
    /// Anything at all.
    pub(crate) fn plan()(
        config in config(),
        has_circuit: bool,
        provider in provider(),
        workers in 1_u16..=10,
        late_us in prop_oneof![Just(0), 0_u64..3000, 0_u64..2_000_000],
        nosy in prop_oneof![Just(0), 0_u64..80],
        cancels in prop_oneof![3 => Just(0), 1 => 0_u64..40],
        idle in proptest::collection::vec((0_u64..3000, 1_u64..4000), 0..4),
        seconds in 10_u64..5000,
        sends_max in 1_usize..600,
        seed: u64,
    ) -> Plan {
        let config = if has_circuit { config } else { without_circuit(config) };
        Plan { config, provider, workers, late_us, nosy, cancels, idle, seconds, sends_max, seed }
    }
}

prop_compose! {
    /// A driver that does exactly as it is told, at a provider with a steady latency.
    pub(crate) fn obedient()(
        config in config(),
        limit in limit(),
        latency_ms in steady_latency(),
        sends_max in 1_usize..800,
        seed: u64,
    ) -> Plan {
        let provider = Provider { limit, latency_ms, ..Provider::OPEN };
        Plan { sends_max, seed, seconds: 100_000, ..Plan::new(without_circuit(config), provider) }
    }
}
