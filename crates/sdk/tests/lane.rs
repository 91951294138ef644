//! The scenarios of the detail lane, each under its name: coverage, caps, the bounded tail, recovery.
//!
//! Every run goes through the real emitter, engine and store.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod odd_items;
mod provider;
mod rig;
mod tail_chunk;

use gleaner_engine::{CatchUp, RunScope};
use gleaner_protocol::{Scope, StreamScope};
use gleaner_sdk::Stop;
use gleaner_sdk::lane::BACKLOG_KEY;
use provider::{Mood, Provider};
use rig::{DETAIL, Home, LIST, Ran, Said, Terms};

/// So many items, the newest first, with keys in that order.
fn history(count: u64) -> Provider {
    let items = (0..count).map(|n| (count - n, format!("k{n:04}"))).collect::<Vec<_>>();
    Provider::of(&items.iter().map(|(at, key)| (*at, key.as_str())).collect::<Vec<_>>())
}

fn key(number: u64) -> String {
    format!("k{number:04}")
}

fn keys(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(key).collect()
}

fn rows(ran: &Ran) -> Vec<&str> {
    ran.new_rows().map(|gap| gap.key.as_str()).collect()
}

fn assert_finished(ran: &Ran) {
    let outcome = ran.outcome.as_ref().unwrap();
    assert!(ran.ended.is_ok() && outcome.violation.is_none() && outcome.withheld.is_empty(), "{ran:?}");
    assert_eq!(outcome.counts.unaccounted, 0);
}

#[test]
fn list_detail_run_emits_detail_coverage_after_the_detail_lane() {
    let (mut home, provider) = (Home::new(), history(7));
    let ran = home.run(&provider, &Terms::default());
    assert_finished(&ran);
    assert_eq!(ran.coverage("required_keys"), keys(0..7), "what was scanned");
    let is_detail = |said: &Said| matches!(said, Said::Record { .. } | Said::Gap(_));
    let report = ran.said.iter().position(|said| matches!(said, Said::Coverage(_))).unwrap();
    assert!(ran.said.iter().rposition(is_detail).unwrap() < report, "nothing of the lane comes after it");
}

#[test]
fn fully_hydrated_run_emits_detail_coverage_with_no_gap_keys() {
    let (mut home, provider) = (Home::new(), history(7));
    let ran = home.run(&provider, &Terms::default());
    assert_eq!(ran.coverage("hydrated_keys"), ran.coverage("required_keys"));
    assert!(ran.coverage("gap_keys").is_empty() && ran.gaps().next().is_none());
}

#[test]
fn partially_hydrated_run_carries_gap_keys_matching_emitted_detail_gaps() {
    let (mut home, provider) = (Home::new(), history(7));
    provider.curse(&key(2));
    let ran = home.run(&provider, &Terms { details: Some(5), chunk: Some(1), ..Terms::default() });
    assert_finished(&ran);
    let mut said = ran.gaps().map(|gap| gap.key.clone()).collect::<Vec<_>>();
    said.sort_unstable();
    // The backlog is no record, so it is required of nobody.
    assert_eq!(ran.coverage("gap_keys"), [key(2), key(5)]);
    assert_eq!(
        said,
        [BACKLOG_KEY.to_owned(), key(2), key(5)],
        "the one that failed, one that the cap left, and the backlog for the rest"
    );
    assert_eq!(ran.coverage("hydrated_keys"), [key(0), key(1), key(3), key(4)]);
}

#[test]
fn no_cap_configured_leaves_a_run_unbounded_and_unchanged() {
    let (mut home, provider) = (Home::new(), history(700));
    let ran = home.run(&provider, &Terms::default());
    assert_finished(&ran);
    assert_eq!((ran.details().len(), ran.gaps().count()), (700, 0));
}

#[test]
fn a_configured_size_cap_defers_the_remaining_tail_as_a_resumable_gap() {
    let (mut home, provider) = (Home::new(), history(7));
    let ran = home.run(&provider, &Terms { details: Some(3), ..Terms::default() });
    assert_finished(&ran);
    assert_eq!(provider.requests().1, 3, "no further detail was asked for");
    assert_eq!(rows(&ran), keys(3..7), "the current and every remaining one");
    assert_eq!(ran.coverage("gap_keys"), keys(3..7));
    assert!(home.cursor().unwrap().contains(&format!("{:020}", 7)), "the cursor of the hydrated part is committed");
    let next = home.run(&provider, &Terms::default());
    assert_eq!(next.recovered(), keys(3..7));
    assert_eq!(home.records(DETAIL).len(), 7);
}

#[test]
fn a_configured_wall_clock_cap_is_bounded_by_at_most_one_in_flight_fetch() {
    let (mut home, provider) = (Home::new(), history(50));
    // A second passes between two looks at the clock.
    let terms = Terms { wall_clock_ms: Some(6000), tick_ms: 1000, ..Terms::default() };
    let ran = home.run(&provider, &terms);
    assert_finished(&ran);
    let fetched = ran.details().len();
    assert!((1..9).contains(&fetched), "{fetched}: each fetch that was begun was ended, and none begun after");
    assert_eq!(provider.requests().1, fetched as u64);
    assert_eq!(fetched + rows(&ran).len(), 9, "the page that was listed, but for its last, which may have ties");
    assert_eq!(ran.backlogs().len(), 1, "no list is asked for when the time is over: the backlog is the rest");
    while !home.gaps_in("pending").is_empty() {
        home.run(&provider, &terms);
    }
    assert_eq!(home.records(DETAIL).len(), 50);
}

#[test]
fn one_shared_budget_bounds_the_recovery_pass_and_the_forward_pass_together() {
    let (mut home, provider) = (Home::new(), history(8));
    home.run(&provider, &Terms { details: Some(2), ..Terms::default() });
    provider.put(100, "new");
    provider.requests();
    let ran = home.run(&provider, &Terms { details: Some(4), ..Terms::default() });
    assert_finished(&ran);
    assert_eq!(provider.requests().1, 4);
    assert_eq!(ran.recovered(), keys(2..6), "recovery first");
    assert_eq!(rows(&ran), ["new"], "the forward pass gets no second budget");
}

#[test]
fn a_run_cap_deferral_does_not_arm_the_source_pressure_cooldown() {
    let (mut home, provider) = (Home::new(), history(30));
    let ran = home.run(&provider, &Terms { details: Some(3), chunk: Some(4), ..Terms::default() });
    assert_eq!((ran.new_rows().count(), ran.backlogs().len()), (4, 1));
    assert_eq!(ran.outcome.as_ref().unwrap().pressure, None);
    assert_eq!(home.reader().cooldown("c").unwrap(), None);
    assert_eq!(home.reader().pressure_backlog("c").unwrap().total(), 0, "nor is it counted as pressure");
    provider.set_mood(Mood { refusals: 1000, ..Mood::default() });
    // Negative control: pressure does.
    while home.run(&provider, &Terms::default()).outcome.unwrap().pressure.is_none() {}
    assert!(home.reader().cooldown("c").unwrap().is_some());
}

#[test]
fn a_run_cap_deferral_is_distinguishable_from_a_source_pressure_deferral() {
    let (mut home, provider) = (Home::new(), history(6));
    let capped = home.run(&provider, &Terms { details: Some(3), ..Terms::default() });
    for gap in capped.gaps() {
        assert_eq!(
            (gap.reason.as_str(), gap.class.as_str(), gap.status),
            ("retry_exhausted", "run_cap_deferred", None)
        );
    }
    provider.throttle(true);
    let throttled = home.run(&provider, &Terms::default());
    for gap in throttled.gaps() {
        assert_eq!((gap.reason.as_str(), gap.class.as_str(), gap.status), ("rate_limited", "rate_limited", Some(429)));
    }
    assert!(capped.gaps().count() == 3 && throttled.gaps().count() == 3);
}

#[test]
fn a_cap_trip_over_a_large_remaining_tail_writes_a_bounded_number_of_gap_rows() {
    let (mut home, provider) = (Home::new(), history(1000));
    let ran = home.run(&provider, &Terms { details: Some(10), chunk: Some(25), ..Terms::default() });
    assert_finished(&ran);
    assert_eq!(rows(&ran), keys(10..35));
    let backlogs = ran.backlogs();
    assert_eq!((backlogs.len(), backlogs[0]["kind"].as_str()), (1, Some("backlog")));
    let from = &backlogs[0]["ranges"][0]["from"];
    assert_eq!(from["key"], key(34), "the last one that is accounted for, and no offset");
    assert_eq!(from["at"], format!("{:020}", 1000 - 34));
    assert_eq!(backlogs[0]["remaining"], 965);
    let lists = provider.requests().0;
    assert!(lists <= 11, "{lists} lists: nothing is listed beyond what is written");
}

#[test]
fn with_a_cap_and_no_chunk_the_chunk_is_500() {
    let (mut home, provider) = (Home::new(), history(600));
    let ran = home.run(&provider, &Terms { details: Some(10), ..Terms::default() });
    assert_eq!((ran.new_rows().count(), ran.backlogs().len()), (500, 1));
}

#[test]
fn default_off_leaves_the_tail_deferral_unchanged() {
    let (mut home, provider) = (Home::new(), history(700));
    // Nothing is bounded; the provider is down.
    provider.open_circuit_for_details(true);
    let ran = home.run(&provider, &Terms::default());
    assert_finished(&ran);
    assert_eq!(rows(&ran), keys(0..700), "one gap per record");
    assert!(ran.backlogs().is_empty());
    assert_eq!(home.reader().cooldown("c").unwrap(), None, "an open circuit is not pressure");
}

#[test]
fn a_later_run_expands_the_backlog_gap_before_forward_work_and_converges() {
    let (mut home, provider) = (Home::new(), history(60));
    // All at one time: nothing may be stranded at the watermark.
    for n in 20..50 {
        provider.put(30, &key(n));
    }
    let terms = Terms { details: Some(5), chunk: Some(4), ..Terms::default() };
    assert_finished(&home.run(&provider, &terms));
    provider.put(100, "new");
    let ran = home.run(&provider, &terms);
    assert_finished(&ran);
    let place = |wanted: &dyn Fn(&Said) -> bool| ran.said.iter().position(wanted).unwrap();
    let of_backlog = place(&|said| matches!(said, Said::Gap(gap) if gap.key == key(9) || gap.key == key(10)));
    let rewritten = place(&|said| matches!(said, Said::Gap(gap) if gap.key == BACKLOG_KEY));
    let forward = ran.backlogs().last().unwrap()["ranges"][0]["from"]["at"].clone();
    assert!(of_backlog < rewritten, "the next chunk, then the rest");
    assert_eq!(forward, format!("{:020}", 100), "the forward pass came last, and added its own");
    let mut runs = 2;
    while !home.gaps_in("pending").is_empty() {
        assert_finished(&home.run(&provider, &terms));
        runs += 1;
        assert!(runs < 40, "it does not converge");
    }
    assert_eq!(home.records(DETAIL).len(), 61);
    assert_eq!(home.gaps_in("recovered").iter().filter(|key| *key == BACKLOG_KEY).count(), 1);
}

#[test]
fn a_bounded_tail_deferral_is_not_source_pressure() {
    let (mut home, provider) = (Home::new(), history(30));
    let ran = home.run(&provider, &Terms { details: Some(3), chunk: Some(4), ..Terms::default() });
    assert_eq!(ran.gaps().count(), 5);
    assert!(ran.gaps().all(|gap| gap.reason == "retry_exhausted" && gap.class == "run_cap_deferred"));
    assert_eq!(home.reader().cooldown("c").unwrap(), None);
    assert_eq!(home.reader().pressure_backlog("c").unwrap().total(), 0);
    // Negative control: what the provider refuses is counted.
    provider.throttle(true);
    home.run(&provider, &Terms::default());
    assert_eq!(home.reader().pressure_backlog("c").unwrap().total(), 27);
}

#[test]
fn recovery_that_meets_pressure_goes_on_to_the_forward_walk_within_the_budget() {
    let (mut home, provider) = (Home::new(), history(6));
    home.run(&provider, &Terms { details: Some(3), ..Terms::default() });
    provider.put(100, "new");
    provider.throttle_next(3);
    let ran = home.run(&provider, &Terms::default());
    assert_finished(&ran);
    assert_eq!(ran.gaps().map(|gap| gap.reason.as_str()).collect::<Vec<_>>(), ["rate_limited"; 3]);
    assert_eq!(ran.details(), ["new"], "the forward walk was not given up");
    assert_eq!(home.gaps_in("pending"), keys(3..6), "what was not recovered stays");
}

#[test]
fn an_open_circuit_is_waited_for_and_then_collection_goes_on() {
    let (mut home, provider) = (Home::new(), history(6));
    provider.open_circuit(2);
    let ran = home.run(&provider, &Terms::default());
    assert_finished(&ran);
    assert_eq!((ran.details().len(), ran.gaps().count()), (6, 0));
    assert_eq!(ran.pauses.as_secs(), 120, "twice as long as a circuit is open");
}

#[test]
fn a_circuit_that_several_found_open_is_waited_for_once() {
    let (mut home, provider) = (Home::new(), history(8));
    home.run(&provider, &Terms { details: Some(4), ..Terms::default() });
    provider.open_circuit_once_for(keys(4..8));
    let ran = home.run(&provider, &Terms { concurrency: Some(4), ..Terms::default() });
    assert_finished(&ran);
    assert_eq!(ran.recovered(), keys(4..8));
    assert_eq!(ran.pauses.as_secs(), 60, "not once for each");
}

#[test]
fn a_circuit_that_stays_open_is_waited_for_a_bounded_number_of_times() {
    let (mut home, provider) = (Home::new(), history(6));
    provider.open_circuit_for_details(true);
    let ran = home.run(&provider, &Terms::default());
    assert_finished(&ran);
    assert_eq!((rows(&ran), ran.pauses.as_secs()), (keys(0..6).iter().map(String::as_str).collect(), 180));
    assert!(ran.gaps().all(|gap| gap.reason == "retry_exhausted" && gap.class == "circuit_open"));
    provider.open_circuit_for_details(false);
    assert_eq!(home.run(&provider, &Terms::default()).recovered(), keys(0..6));
}

#[test]
fn more_than_one_internal_detail_gap_page_is_recovered_in_one_logical_run() {
    let (mut home, provider) = (Home::new(), history(400));
    home.run(&provider, &Terms { details: Some(1), ..Terms::default() });
    assert_eq!(home.gaps_in("pending").len(), 399);
    let ran = home.run(&provider, &Terms::default());
    assert_finished(&ran);
    assert_eq!(ran.recovered().len(), 399);
    let pages = ran.said.iter().filter(|said| **said == Said::PageRequest).count();
    assert!(pages >= 2, "{pages}: it asked until a page was empty");
    assert!(home.gaps_in("pending").is_empty());
}

#[test]
fn a_cap_that_is_taken_away_lets_one_run_empty_the_backlog_and_a_kill_repeats_one_batch() {
    let (mut home, provider) = (Home::new(), history(1000));
    home.run(&provider, &Terms { details: Some(1), chunk: Some(1), ..Terms::default() });
    let batch = Some(50);
    let killed = home.run(&provider, &Terms { batch, kill_at: Some(1500), runtime_dies: true, ..Terms::default() });
    assert!(killed.killed);
    provider.requests();
    let ran = home.run(&provider, &Terms { batch, ..Terms::default() });
    assert_finished(&ran);
    let (again, stored) = (provider.requests().1, home.records(DETAIL).len());
    assert_eq!(stored, 1000);
    let before = killed.details().len() as u64;
    assert!(before > 600 && again <= 1000 - before + 60, "{before} before the kill, {again} after it");
    assert!(ran.recovered().contains(&BACKLOG_KEY), "settled in the run that emptied it");
    assert!(home.gaps_in("pending").is_empty());
}

#[test]
fn a_walk_that_was_killed_goes_on_before_anything_new() {
    let (mut home, provider) = (Home::new(), history(100));
    let killed = home.run(&provider, &Terms { batch: Some(10), kill_at: Some(60), ..Terms::default() });
    assert!(killed.killed && home.cursor().unwrap().contains("walk"));
    provider.put(500, "new");
    let ran = home.run(&provider, &Terms { batch: Some(10), ..Terms::default() });
    assert_finished(&ran);
    let details = ran.details();
    assert_eq!(
        (details.len(), details.last()),
        (82, Some(&"new")),
        "19 were durable: two batches, and a last of a page that waits for its ties"
    );
    assert!(!home.cursor().unwrap().contains("walk"));
    assert_eq!(home.records(DETAIL).len(), 101);
}

/// No report came, but the store has a detail or a gap for all that the cursor covers.
#[test]
fn a_first_run_that_was_killed_at_any_message_repeats_one_batch_by_the_rules_of_every_store() {
    let all = Scope::new([LIST, DETAIL].map(StreamScope::all_of).to_vec()).unwrap();
    let terms = Terms { batch: Some(10), asks: Some(RunScope::ordinary(all)), ..Terms::default() };
    for kill_at in 60..70 {
        let (mut home, provider) = (Home::new(), history(100));
        let killed = home.run(&provider, &Terms { kill_at: Some(kill_at), ..terms.clone() });
        provider.requests();
        let ran = home.run(&provider, &terms);
        assert_finished(&ran);
        let (before, again) = (killed.details().len() as u64, provider.requests().1);
        assert!(before > 25 && again <= 100 - before + 11, "{before} before the kill, {again} after it");
        assert_eq!(home.records(DETAIL).len(), 100);
    }
}

#[test]
fn an_item_that_is_gone_is_a_tombstone_or_a_gap_as_its_author_decides() {
    for tombstones in [false, true] {
        let (mut home, provider) = (Home::new(), history(3));
        provider.answer_with_tombstones(tombstones);
        home.run(&provider, &Terms { details: Some(2), ..Terms::default() });
        provider.delete(&key(2));
        if tombstones {
            assert_eq!(home.run(&provider, &Terms::default()).recovered(), [key(2)]);
            assert_eq!(home.records(LIST)[&key(2)], None);
        } else {
            for _ in 0..5 {
                home.run(&provider, &Terms::default());
            }
            assert_eq!(home.gaps_in("terminal"), [key(2)], "kept on record as not found");
        }
    }
}

#[test]
fn details_that_are_fetched_at_the_same_time_are_sent_in_the_order_of_the_list() {
    let (mut home, provider) = (Home::new(), history(100));
    provider.curse(&key(40));
    let ran = home.run(&provider, &Terms { concurrency: Some(8), ..Terms::default() });
    assert_finished(&ran);
    let expected = keys(0..100).into_iter().filter(|other| *other != key(40)).collect::<Vec<_>>();
    assert_eq!(ran.details(), expected);
    assert_eq!(rows(&ran), [key(40)]);
}

#[test]
fn a_gap_that_fails_while_the_budget_ends_beside_it_was_tried_and_is_said_to_be() {
    let (mut home, provider) = (Home::new(), history(2));
    provider.curse(&key(0));
    provider.curse(&key(1));
    home.run(&provider, &Terms::default());
    let terms = Terms { details: Some(1), concurrency: Some(2), ..Terms::default() };
    let ran = home.run(&provider, &terms);
    let again = ran.gaps().filter(|gap| gap.was_served).map(|gap| gap.key.as_str()).collect::<Vec<_>>();
    assert_eq!(again, [key(0)], "one was asked for, and there is no other answer");
    for _ in 0..20 {
        home.run(&provider, &terms);
    }
    assert_eq!(home.gaps_in("terminal"), keys(0..2), "each is given up in its turn");
}

#[test]
fn what_the_owner_did_not_ask_for_is_neither_fetched_nor_missing() {
    let (mut home, provider) = (Home::new(), history(5));
    let ran = home.run(&provider, &Terms { resources: vec![key(1), key(3)], ..Terms::default() });
    assert_finished(&ran);
    assert_eq!(provider.requests().2, [key(1), key(3)]);
    assert_eq!(ran.coverage("optional_skip_keys"), [key(0), key(2), key(4)]);
}

#[test]
fn a_run_that_only_recovers_does_not_walk_forward() {
    let (mut home, provider) = (Home::new(), history(5));
    home.run(&provider, &Terms { details: Some(3), ..Terms::default() });
    provider.put(100, "new");
    let ran = home.run(&provider, &Terms { recovery_only: true, ..Terms::default() });
    assert_finished(&ran);
    assert_eq!(ran.details(), keys(3..5));
}

#[test]
fn a_list_that_is_not_newest_first_fails_the_run_and_says_so() {
    let (mut home, provider) = (Home::new(), history(5));
    provider.list_backwards();
    let ran = home.run(&provider, &Terms::default());
    let Err(Stop::Failed(failure)) = &ran.ended else { panic!("{:?}", ran.ended) };
    assert!(failure.message.contains("newest first") && !failure.retryable, "{failure:?}");
    assert_eq!(home.cursor(), None);
}

#[test]
fn a_key_that_is_a_gap_and_listed_again_has_one_outcome() {
    let (mut home, provider) = (Home::new(), history(3));
    provider.curse(&key(1));
    home.run(&provider, &Terms::default());
    // It changes, so it is served as a gap and listed again in the same run.
    provider.put(50, &key(1));
    let ran = home.run(&provider, &Terms::default());
    assert_finished(&ran);
    assert_eq!((ran.coverage("required_keys"), ran.coverage("gap_keys")), (vec![key(1)], vec![key(1)]));
    provider.bless();
    provider.put(60, &key(1));
    let ran = home.run(&provider, &Terms { details: Some(1), ..Terms::default() });
    assert_finished(&ran);
    assert_eq!(ran.recovered(), [key(1)]);
    assert_eq!(ran.coverage("gap_keys"), [key(1)], "recovered, then put off for the budget: it is a gap again");
    assert_eq!(home.gaps_in("pending"), [key(1)]);
}

#[test]
fn an_empty_list_is_no_cursor_and_a_complete_account() {
    let (mut home, provider) = (Home::new(), history(0));
    let ran = home.run(&provider, &Terms { details: Some(1), ..Terms::default() });
    assert_finished(&ran);
    assert!(home.cursor().is_none() && ran.coverage("required_keys").is_empty());
}

#[test]
fn a_backlog_gap_that_nobody_could_show_us_is_not_written_over() {
    let (mut home, provider) = (Home::new(), history(300));
    let terms = Terms { details: Some(1), chunk: Some(200), ..Terms::default() };
    assert_eq!(home.run(&provider, &terms).backlogs().len(), 1);
    let backlog = |home: &Home| {
        let gap = home.gaps().into_iter().find(|gap| gap.record_key.as_deref() == Some(BACKLOG_KEY)).unwrap();
        (gap.state, gap.locator.unwrap())
    };
    let before = backlog(&home);
    for n in 0..20 {
        provider.put(1000 + n, &format!("new{n}"));
    }
    // The first page of gaps has no room for the backlog gap, and there is no second one.
    let ran = home.run(&provider, &Terms { no_answers: true, chunk: Some(3), ..terms });
    assert_finished(&ran);
    assert!(rows(&ran).len() == 3 && ran.backlogs().is_empty(), "{:?}", rows(&ran));
    assert_eq!(backlog(&home), before);
    assert!(home.cursor().unwrap().contains("walk"), "the cursor names the rest instead");
    let ran = home.run(&provider, &Terms::default());
    assert_finished(&ran);
    assert_eq!((home.records(DETAIL).len(), home.gaps_in("pending").len()), (320, 0));
}

#[test]
fn a_backlog_gap_on_a_later_page_is_known_before_it_is_added_to() {
    let (mut home, provider) = (Home::new(), history(300));
    let terms = Terms { details: Some(1), chunk: Some(200), ..Terms::default() };
    home.run(&provider, &terms);
    for n in 0..20 {
        provider.put(1000 + n, &format!("new{n}"));
    }
    let ran = home.run(&provider, &Terms { chunk: Some(3), ..terms });
    assert_finished(&ran);
    let backlog = ran.backlogs().pop().unwrap();
    assert_eq!(backlog["ranges"].as_array().unwrap().len(), 2, "what is new, and what was there: {backlog}");
    assert_finished(&home.run(&provider, &Terms::default()));
    assert_eq!((home.records(DETAIL).len(), home.gaps_in("pending").len()), (320, 0));
}

#[test]
fn two_lists_of_the_same_details_leave_each_other_their_gaps() {
    let (mut home, provider) = (Home::new(), history(40));
    let terms = Terms { details: Some(7), chunk: Some(3), second_list: true, ..Terms::default() };
    for _ in 0..30 {
        assert_finished(&home.run(&provider, &terms));
    }
    assert!(home.gaps_in("pending").is_empty(), "{:?}", home.gaps_in("pending"));
    assert_eq!(home.records(DETAIL).len(), 40);
    let backlogs = home.gaps_in("recovered").into_iter().filter(|key| key == BACKLOG_KEY);
    assert_eq!(backlogs.count(), 2, "each had one");
}

#[test]
fn a_catch_up_run_does_not_advance_the_steady_state_incremental_cursor() {
    let (mut home, provider) = (Home::new(), history(60));
    let steady = Terms { since: Some(50), ..Terms::default() };
    assert_finished(&home.run(&provider, &steady));
    assert_eq!(home.records(DETAIL).len(), 11, "50 to 60");
    let catch_up = Terms { until: Some(50), details: Some(9), chunk: Some(2), ..Terms::default() };
    for run in 0..20 {
        let before = home.cursor();
        assert_finished(&home.run_on_track::<CatchUp>(&provider, &catch_up));
        assert_eq!(home.cursor(), before, "byte for byte");
        if run == 2 {
            // A steady run that has to put something off writes the same backlog gap.
            provider.put(100, "new");
            provider.put(101, "newer");
            assert_finished(&home.run(&provider, &Terms { chunk: Some(1), details: Some(1), ..steady.clone() }));
        }
        assert_finished(&home.run(&provider, &Terms { details: Some(1), ..steady.clone() }));
    }
    assert_eq!((home.records(DETAIL).len(), home.gaps_in("pending").len()), (62, 0));
    assert!(home.cursor_of::<CatchUp>().is_some_and(|cursor| cursor.contains(&format!("{:020}", 49))));
}
