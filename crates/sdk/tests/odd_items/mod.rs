//! Items that cannot be collected as they are: refused for the credential, named like our own gaps, not fitting their
//! schema. Each has one outcome that is said, and none of them ends more than it must.

use crate::rig::{DETAIL, Home, Said, Terms};
use gleaner_sdk::lane::{BACKLOG_KEY, Detail, ListAt, ListItem, ListPage, Source, Target};
use gleaner_sdk::protocol::RecoveryAction;
use gleaner_sdk::{FetchError, REST_OF_STREAM, Stop};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A list on one page, and what each detail gives.
struct List<D> {
    keys: Vec<&'static str>,
    detail: D,
    asked: AtomicUsize,
}

fn list<D: Fn(&str) -> Result<Value, u16> + Sync>(keys: &[&'static str], detail: D) -> List<D> {
    List { keys: keys.to_vec(), detail, asked: AtomicUsize::new(0) }
}

impl<D: Fn(&str) -> Result<Value, u16> + Sync> Source for List<D> {
    fn list(&self, _: &ListAt) -> Result<ListPage, FetchError> {
        let newest_first = self.keys.iter().zip((0..1000_u64).rev());
        let items = newest_first.map(|(key, at)| ListItem::new(*key, at)).collect();
        Ok(ListPage { items, ..ListPage::default() })
    }

    fn detail(&self, target: &Target) -> Result<Detail, FetchError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let body = (self.detail)(&target.key).map_err(FetchError::of_status)?;
        Ok(Detail::new().record(target.key.as_str(), &body))
    }
}

#[test]
fn three_refusals_for_the_credential_in_a_row_end_the_run_and_it_is_the_credential() {
    let mut home = Home::new();
    let refuses = list(&["a", "b", "c", "d", "e"], |_| Err(401));
    let ran = home.run(&refuses, &Terms::default());
    let Err(Stop::Failed(failure)) = &ran.ended else { panic!("{:?}", ran.ended) };
    assert!(!failure.retryable && failure.action == Some(RecoveryAction::RefreshCredentials), "{failure:?}");
    assert_eq!(refuses.asked.load(Ordering::Relaxed), 3, "the others were not asked for");
    assert_eq!(home.records(DETAIL).len(), 0);
}

#[test]
fn refusals_with_a_success_between_them_are_gaps_and_the_run_goes_on() {
    let mut home = Home::new();
    let some =
        list(
            &["a", "b", "c", "d", "e", "f"],
            |key| if key == "c" || key == "f" { Ok(json!({"v": 1})) } else { Err(401) },
        );
    let ran = home.run(&some, &Terms::default());
    assert!(ran.ended.is_ok(), "{:?}", ran.ended);
    assert_eq!((ran.details(), home.gaps_in("pending").len()), (vec!["c", "f"], 4));
}

#[test]
fn keys_that_are_empty_or_our_own_are_left_out_and_said() {
    let mut home = Home::new();
    let odd = list(&["a", "", BACKLOG_KEY, REST_OF_STREAM, "b"], |_| Ok(json!({"v": 1})));
    let ran = home.run(&odd, &Terms::default());
    assert!(ran.ended.is_ok(), "{:?}", ran.ended);
    assert_eq!(ran.details(), ["a", "b"]);
    assert_eq!(odd.asked.load(Ordering::Relaxed), 2);
    assert_eq!(ran.coverage("required_keys"), ["a", "b"]);
    assert_eq!(home.gaps().len(), 0, "a gap by one of these names would be taken for ours");
    let unusable = Said::Skip { reason: "unusable_key".to_owned() };
    assert_eq!(ran.said.iter().filter(|said| **said == unusable).count(), 3, "each of them is said");
}

#[test]
fn a_detail_that_does_not_fit_its_schema_is_a_gap_until_it_does() {
    let mut home = Home::new();
    let unfit = list(&["a", "b"], |key| Ok(json!({"v": if key == "a" { json!(1) } else { json!("one") }})));
    let ran = home.run(&unfit, &Terms::default());
    assert!(ran.ended.is_ok(), "{:?}", ran.ended);
    assert_eq!((ran.details(), home.gaps_in("pending")), (vec!["a"], vec!["b".to_owned()]));
    assert_eq!(ran.coverage("gap_keys"), ["b"]);
    let mended = list(&["a", "b"], |_| Ok(json!({"v": 1})));
    assert_eq!(home.run(&mended, &Terms::default()).recovered(), ["b"]);
    assert_eq!(home.gaps_in("pending"), [""; 0]);
}
