//! Counts the instructions of one request on the success path; `scripts/bench` checks the bound.

use gleaner_benches::{Direct, Keyed, Warmed, direct, keyed};
use gungraun::{Callgrind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main};
use std::hint::black_box;

#[library_benchmark(setup = Warmed::new)]
fn admit_and_outcome(mut warmed: Box<Warmed>) -> Box<Warmed> {
    warmed.exchange();
    warmed
}

#[library_benchmark(setup = Warmed::new)]
fn admit_and_outcome_1000(mut warmed: Box<Warmed>) -> Box<Warmed> {
    for _ in 0..1000 {
        warmed.exchange();
    }
    warmed
}

#[library_benchmark(setup = direct)]
fn governor_check(limiter: Box<Direct>) -> Box<Direct> {
    let _ = black_box(limiter.check());
    limiter
}

#[library_benchmark(setup = keyed)]
fn governor_check_key(limiter: Box<Keyed>) -> Box<Keyed> {
    let _ = black_box(limiter.check_key(black_box(&42)));
    limiter
}

library_benchmark_group!(
    name = success_path,
    benchmarks = [admit_and_outcome, admit_and_outcome_1000, governor_check, governor_check_key]
);

main!(
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"])),
    library_benchmark_groups = success_path
);
