//! Seeds with which our law was suspended once, and must not be again.

use gleaner_lab::laws::LawName;
use gleaner_lab::scenario::Scenario;
use gleaner_lab::score;
use std::path::Path;

#[test]
fn a_refused_probe_among_many_refusals_does_not_cost_the_account() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/tight-strikes.toml");
    let scenario = Scenario::load(&file).expect("a scenario of ours").with_workers(1);
    for seed in [1150, 1202, 1314] {
        assert_eq!(score::measure(&scenario, LawName::Gleaner, seed).counts.bans, 0, "seed {seed}");
    }
}
