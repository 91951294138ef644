//! How long a shard is locked while keys of a million are forgotten.
//!
//! A million keys come a millisecond apart and are used once. An hour later each second forgets a thousand of them,
//! some sixty per shard, which are two steps. Measured is the thread CPU time of each step, which is that of its lock.

use crate::cpu;
use gleaner_governor::keyed::{Domain, Feedback, Registry, RegistryConfig};
use gleaner_governor::{Admission, Time};
use std::time::Duration;

const KEYS: u32 = 1_000_000;
/// A lock is held no longer.
const LONGEST: Duration = Duration::from_micros(100);

/// Prints a line; false when a step takes too long.
pub fn measure() -> bool {
    let registry: Registry = Registry::new(RegistryConfig::default(), 42).expect("a good config");
    let start = Time::from_nanos(1_000_000_000_000);
    let mut now = start;
    for number in 0..KEYS {
        let domain = Domain::parse(&format!("host-{number}.example")).expect("a host");
        let handle = registry.handle(&domain, now).expect("room");
        let Admission::Send(permit) = registry.acquire(&handle, now, now) else { panic!("not due") };
        registry.feedback(&handle, permit, &Feedback::status(200, None), now);
        now = now + Duration::from_millis(1);
        if number % 10_000 == 0 {
            registry.tend(now);
        }
    }
    registry.tend(now + Duration::from_secs(40));
    let (mut steps, shards) = (Vec::new(), registry.config().shards);
    for second in 1..=1000 {
        let now = start + Duration::from_secs(3600 + second);
        for shard in 0..shards {
            let mut more = true;
            while more {
                let before = cpu();
                let forgotten = registry.forget_step(shard, now);
                steps.push(cpu() - before);
                more = forgotten.more;
            }
        }
    }
    steps.sort_unstable();
    let forgotten = KEYS as usize - registry.len();
    let at = |share: usize| steps[(steps.len() - 1) * share / 1000].as_secs_f64() * 1e6;
    println!(
        "forgetting {forgotten} keys in {} steps: median {:.1} µs, 99.9 % within {:.1} µs, longest {:.1} µs",
        steps.len(),
        at(500),
        at(999),
        at(1000)
    );
    // The rest are interrupts of a machine with other guests: they are the thread's time, too.
    let is_good = at(999) <= LONGEST.as_secs_f64() * 1e6;
    if !is_good {
        println!("FAIL: more than one step of a thousand takes longer than {} µs", LONGEST.as_micros());
    }
    is_good
}
