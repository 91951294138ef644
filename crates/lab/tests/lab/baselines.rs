//! The baselines on three providers, against figures from earlier, independent simulations.
//!
//! Burst and latency of those simulations were not written down, so their order is held, and their
//! digits only roughly. With 16 workers all of it holds; how often workers that hammer a shut window
//! are refused depends on how many there are (see `other_crews`).

use gleaner_lab::laws::LawName::{self, Aimd, AwsAdaptive, Backoff, Polars, VectorArc};
use gleaner_lab::scenario::Scenario;
use gleaner_lab::score::{Figures, measure};

fn figures(text: &str, workers: usize, laws: &[LawName]) -> Vec<Figures> {
    let scenario = Scenario::parse("table.toml", text).unwrap().with_workers(workers);
    laws.iter().map(|&law| measure(&scenario, law, 1)).collect()
}

/// Each law is refused more often than the next.
#[track_caller]
fn check_order(text: &str, workers: usize, laws: &[LawName]) {
    let figures = figures(text, workers, laws);
    for pair in figures.windows(2) {
        let [first, second] = pair else { unreachable!("windows of two") };
        assert!(
            first.violation_ratio > second.violation_ratio,
            "{} {:.4} is not above {} {:.4}",
            first.law.as_str(),
            first.violation_ratio,
            second.law.as_str(),
            second.violation_ratio
        );
    }
}

#[test]
fn violations_keep_their_order() {
    check_order(BUCKET, 16, &[Backoff, VectorArc, AwsAdaptive, Polars, Aimd]);
    check_order(WINDOW, 16, &[VectorArc, Backoff, AwsAdaptive, Polars, Aimd]);
}

#[test]
fn other_crews() {
    for workers in [8, 32] {
        check_order(BUCKET, workers, &[Backoff, VectorArc, AwsAdaptive, Polars, Aimd]);
        check_order(WINDOW, workers, &[VectorArc, AwsAdaptive, Polars, Aimd]);
        check_order(WINDOW, workers, &[Backoff, Polars, Aimd]);
    }
}

#[test]
fn figures_are_near_the_earlier_ones() {
    // Law, goodput and violations on the bucket, then on the window.
    let rows = [
        (Backoff, 1.00, 0.35..0.55, 1.00, 0.30..0.70),
        (AwsAdaptive, 1.00, 0.03..0.045, 1.00, 0.24..0.30),
        (VectorArc, 1.00, 0.15..0.35, 1.00, 0.40..0.90),
        (Aimd, 0.88, 0.001..0.003, 0.99, 0.005..0.015),
        (Polars, 0.99, 0.015..0.03, 0.99, 0.08..0.17),
    ];
    for (law, bucket_goodput, bucket, window_goodput, window) in rows {
        for (text, goodput, violations) in [(BUCKET, bucket_goodput, bucket), (WINDOW, window_goodput, window)] {
            let figures = &figures(text, 16, &[law])[0];
            let name = law.as_str();
            assert!((figures.goodput - goodput).abs() < 0.03, "{name}: goodput {:.3}", figures.goodput);
            assert!(violations.contains(&figures.violation_ratio), "{name}: {:.4}", figures.violation_ratio);
        }
    }
}

#[test]
fn exponential_backoff_is_refused_more_than_three_times_in_ten() {
    for workers in [8, 16, 32] {
        let figures = &figures(BUCKET, workers, &[Backoff])[0];
        assert!(figures.violation_ratio > 0.3, "{workers} workers: {:.3}", figures.violation_ratio);
    }
}

#[test]
fn strikes_suspend_every_baseline() {
    let figures = figures(STRIKES, 8, &[Aimd, Polars, AwsAdaptive, Backoff, VectorArc]);
    assert!(figures.iter().all(|f| f.counts.bans > 0));
    // The gentlest lasts longest; those that hammer do not see the second minute.
    let goodput: Vec<f64> = figures.iter().map(|f| f.goodput).collect();
    assert!((0.05..0.4).contains(&goodput[0]), "{goodput:?}");
    assert!(goodput[1..].iter().all(|&g| g < 0.05), "{goodput:?}");
}

#[test]
fn autothrottle_never_reads_a_refusal() {
    // Latency alone sets its pace, so a window of 100 per minute refuses most of what it sends.
    let scrapy = &figures(WINDOW, 8, &[LawName::ScrapyAutothrottle])[0];
    assert!(scrapy.violation_ratio > 0.6, "{:.3}", scrapy.violation_ratio);
}

#[test]
fn names_are_read_back() {
    for law in LawName::ALL {
        assert_eq!(LawName::parse(law.as_str()), Some(law));
    }
    assert_eq!(LawName::parse("Gleaner"), None);
}

const BUCKET: &str = r#"
name = "bucket 10/s, bare 429"
[[limit]]
kind = "token_bucket"
rate_per_s = 10
burst = 20
"#;

const WINDOW: &str = r#"
name = "100 per 60 s + Retry-After"
[[limit]]
kind = "fixed_window"
limit = 100
window_s = 60
[signal]
retry_after = "seconds"
"#;

const STRIKES: &str = r#"
name = "ban after 15 strikes"
[[limit]]
kind = "token_bucket"
rate_per_s = 10
burst = 20
[penalty]
strikes = 15
within_s = 3600
ban_s = 3600
doubling = true
"#;
