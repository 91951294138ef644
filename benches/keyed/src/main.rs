//! What a keyed governor costs per request, next to `check_key` of the crate `governor`.
//!
//! `keyed_cost count SIDE ROUNDS` only works, for callgrind to count (`scripts/bench-keyed`).
//! `keyed_cost [ROUNDS]` measures thread CPU time, the sides by turns, and takes the median of their ratios: what
//! a neighbour on the machine does to the wall clock is no property of ours. Then it measures for how long a shard is
//! locked while keys are forgotten. Exit 1 when a bound is broken.

mod forgetting;
mod sides;

use nix::time::{ClockId, clock_gettime};
use std::process::ExitCode;
use std::time::Duration;

/// What is compared with, and what may cost how much of it.
const REFERENCE: &str = "check_key";
const BOUNDS: [(&str, Option<f64>); 5] = [
    ("check_key_u32", None),
    ("kept", Some(1.0)),
    ("kept_holding", None),
    ("by_key_lookup", Some(1.5)),
    ("by_key", None),
];
/// Turns of each side.
const TURNS: usize = 31;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["count", side, rounds] => count(side, rounds),
        [] => measure(2000),
        [rounds] => rounds.parse().map_or_else(|_| usage(), measure),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: keyed_cost [ROUNDS] | keyed_cost count SIDE ROUNDS");
    ExitCode::from(2)
}

fn count(side: &str, rounds: &str) -> ExitCode {
    let (Some(mut side), Ok(rounds)) = (sides::side(side), rounds.parse::<u32>()) else { return usage() };
    (0..rounds).for_each(|_| side.round());
    ExitCode::SUCCESS
}

/// CPU time of this thread.
pub(crate) fn cpu() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock that every Linux has"))
}

fn measure(rounds: u32) -> ExitCode {
    let named = |name: &'static str| (name, sides::side(name).expect("a side of that name"), Vec::new());
    let mut sides: Vec<(&str, _, Vec<f64>)> =
        std::iter::once(REFERENCE).chain(BOUNDS.map(|(name, _)| name)).map(named).collect();
    for _ in 0..TURNS {
        for (_, side, nanos) in &mut sides {
            let start = cpu();
            (0..rounds).for_each(|_| side.round());
            let spent = cpu() - start;
            nanos.push(spent.as_nanos() as f64 / f64::from(rounds) / sides::keys() as f64);
        }
    }
    println!("{:<16} {:>10} {:>7}", "thread CPU time", "ns/request", "ratio");
    let reference = sides[0].2.clone();
    let mut good = true;
    for (name, _, nanos) in &sides {
        let ratio = median(nanos.iter().zip(&reference).map(|(own, other)| own / other).collect());
        println!("{name:<16} {:>10.1} {ratio:>7.3}", median(nanos.clone()));
        let bound = BOUNDS.iter().find(|(bounded, _)| bounded == name).and_then(|(_, bound)| *bound);
        if let Some(bound) = bound.filter(|&bound| ratio > bound) {
            println!("FAIL: {name} takes more than {bound:.1} times the CPU time of {REFERENCE}");
            good = false;
        }
    }
    println!();
    good &= forgetting::measure();
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
