//! Every number of the law can be set to both ends of its range, and most of them change a run.

use gleaner_lab::laws::{LawName, build};
use gleaner_lab::scenario::Scenario;
use gleaner_lab::trace::Trace;
use gleaner_lab::{Number, Tuning, builtin, sim};

/// Providers that between them show most of the law: a window, late answers, a limit that moves.
const SCENARIOS: [&str; 3] = ["odd-window-bare", "tarpit", "limit-rises"];

fn counts(scenario: &Scenario, tuning: &'static Tuning) -> String {
    let mut law = build(LawName::Gleaner, scenario, tuning);
    format!("{:?}", sim::run(scenario, law.as_mut(), 1, &mut Trace::new(scenario.horizon_s)))
}

#[test]
fn every_number_can_go_to_both_ends_and_most_change_a_run() {
    let scenarios: Vec<Scenario> = SCENARIOS
        .iter()
        .map(|name| Scenario { horizon_s: 1200.0, ..builtin::find(name).expect("built in").unwrap() })
        .collect();
    let shipped: Vec<String> = scenarios.iter().map(|scenario| counts(scenario, Tuning::SHIPPED)).collect();
    let changes_a_run = |number: &&Number| {
        let at = |end: f64| -> &'static Tuning {
            let mut tuning = *Tuning::SHIPPED;
            assert_eq!(number.set(&mut tuning, &end.to_string()), Ok(()), "{}", number.name);
            Box::leak(Box::new(tuning))
        };
        let ends = [at(number.min), at(number.max)];
        scenarios
            .iter()
            .zip(&shipped)
            .any(|(scenario, before)| ends.map(|tuning| counts(scenario, tuning)).iter().any(|after| after != before))
    };
    let changing = Number::all().iter().filter(changes_a_run).count();
    // The others belong to headers, warm starts, careful keys and many keys, which these providers do not have.
    assert!(changing >= 80, "only {changing} of {} change a run", Number::all().len());
}
