//! The tail chunk (issue 18, point 8): it counts records that a cap left, and nothing else.
//!
//! A record that was requested and failed always has a gap of its own, however many there are. Only what a cap of the
//! owner left is folded into the backlog gap, and only then does a gap say that the run stopped within its own budget.

use crate::provider::Provider;
use crate::rig::{Home, Terms};
use crate::{assert_finished, history, key, rows};
use gleaner_protocol::DeferReason;
use gleaner_sdk::lane::{BACKLOG_KEY, Detail, ListAt, ListPage, Source, Target};
use gleaner_sdk::{FetchError, FetchErrorKind};
use proptest::prelude::*;

const CAP_CLASS: &str = "run_cap_deferred";

/// The provider's answer to the request for one detail.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Found,
    Fails(u16),
    /// All attempts of this one request were used up.
    AttemptsUsedUp,
}

impl Answer {
    /// The class of the gap that this answer leaves.
    const fn class(self) -> Option<&'static str> {
        match self {
            Self::Found => None,
            Self::Fails(404) => Some("not_found"),
            Self::Fails(410) => Some("gone"),
            Self::Fails(429) => Some("rate_limited"),
            Self::Fails(_) => Some("temporary"),
            Self::AttemptsUsedUp => Some("attempts"),
        }
    }
}

/// A provider whose details answer as told, in the order of their keys.
struct Told {
    provider: Provider,
    answers: Vec<Answer>,
}

impl Source for Told {
    fn list(&self, at: &ListAt) -> Result<ListPage, FetchError> {
        self.provider.list(at)
    }

    fn detail(&self, target: &Target) -> Result<Detail, FetchError> {
        let number = target.key.trim_start_matches('k').parse::<usize>().unwrap();
        match self.answers[number] {
            Answer::Found => self.provider.detail(target),
            Answer::Fails(status) => Err(FetchError::of_status(status)),
            Answer::AttemptsUsedUp => {
                Err(FetchError::new(FetchErrorKind::Deferred(DeferReason::Attempts), "four attempts failed"))
            }
        }
    }
}

fn answer() -> impl Strategy<Value = Answer> {
    let failure = prop_oneof![Just(404_u16), Just(410), Just(429), Just(500), Just(503)];
    prop_oneof![3 => Just(Answer::Found), 3 => failure.prop_map(Answer::Fails), 1 => Just(Answer::AttemptsUsedUp)]
}

/// Messages that one run must send: the class of each gap of a single record, in the order of the list, and whether a
/// backlog
/// gap stands for the rest.
fn model(answers: &[Answer], cap: Option<u64>, chunk: u64) -> (Vec<(String, &'static str)>, bool) {
    let requested = answers.len().min(cap.map_or(usize::MAX, |cap| usize::try_from(cap).unwrap()));
    let (asked, left) = answers.split_at(requested);
    let failed = asked.iter().enumerate().filter_map(|(n, answer)| Some((key(n as u64), answer.class()?)));
    let chunk = left.len().min(usize::try_from(chunk).unwrap());
    let deferred = (requested..requested + chunk).map(|n| (key(n as u64), CAP_CLASS));
    (failed.chain(deferred).collect(), left.len() > chunk)
}

fn check(answers: &[Answer], terms: &Terms) -> Result<(), TestCaseError> {
    let mut home = Home::new();
    let told = Told { provider: history(answers.len() as u64), answers: answers.to_vec() };
    let ran = home.run(&told, terms);
    let (expected, folds) = model(answers, terms.details, terms.chunk.unwrap_or(500));
    let said = ran.new_rows().map(|gap| (gap.key.clone(), gap.class.as_str())).collect::<Vec<_>>();
    prop_assert_eq!(said, expected);
    prop_assert_eq!(ran.backlogs().len(), usize::from(folds), "a backlog gap only for what the cap left");
    let left = ran.ended.as_ref().map(|collected| collected.left);
    prop_assert!(left.is_ok(), "{:?}", ran.ended);
    prop_assert!(ran.outcome.as_ref().unwrap().withheld.is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_chunk_counts_what_the_cap_left_whatever_else_fails(
        answers in proptest::collection::vec(answer(), 0..60),
        cap in proptest::option::of(1_u64..70),
        chunk in proptest::option::of(1_u64..12),
        batch in 1_usize..30,
        concurrency in 1_usize..5,
    ) {
        let terms =
            Terms { details: cap, chunk, batch: Some(batch), concurrency: Some(concurrency), ..Terms::default() };
        check(&answers, &terms)?;
    }
}

#[test]
fn failures_without_a_cap_do_not_end_a_run_however_small_the_chunk() {
    let (mut home, provider) = (Home::new(), history(30));
    let told = Told { provider, answers: vec![Answer::Fails(404); 30] };
    let ran = home.run(&told, &Terms { chunk: Some(5), ..Terms::default() });
    assert_finished(&ran);
    assert_eq!(rows(&ran).len(), 30, "each was requested, and each has a gap with its own reason");
    assert!(ran.backlogs().is_empty() && ran.gaps().all(|gap| gap.reason == "not_found"), "{ran:?}");
}

#[test]
fn an_open_circuit_is_no_cap_and_its_tail_is_not_folded() {
    let (mut home, provider) = (Home::new(), history(30));
    provider.open_circuit_for_details(true);
    let ran = home.run(&provider, &Terms { chunk: Some(5), ..Terms::default() });
    assert_finished(&ran);
    assert_eq!((rows(&ran).len(), ran.backlogs().len()), (30, 0));
    assert!(ran.gaps().all(|gap| gap.class == "circuit_open" && gap.key != BACKLOG_KEY), "{ran:?}");
}
