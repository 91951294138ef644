//! What a run may cost: nothing is bounded unless its owner says so, and a bound is a planned stop that the next run
//! goes on from.

use super::{Notes, is_part_of_list, run};
use crate::notes_provider::Reply;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Every gap is a stop by our own budget: nothing failed, and nobody is blamed.
fn assert_own_budget(gaps: &[Value]) {
    for gap in gaps {
        assert_eq!((&gap["reason"], &gap["class"]), (&json!("retry_exhausted"), &json!("run_cap_deferred")), "{gap}");
        assert_eq!((&gap["origin"], &gap["http_status"]), (&json!("own_budget"), &Value::Null), "{gap}");
        assert_eq!((&gap["stream"], &gap["state"]), (&json!("notes"), &json!("pending")), "{gap}");
    }
}

/// Every note is stored, or a gap of its own, or as old as what a gap for a part of the list stands for. Answers how
/// many are in that part.
fn assert_accounted_for(notes: &Notes) -> usize {
    let (stored, gaps) = (notes.stored(), notes.gaps());
    let (parts, single) = gaps.iter().partition::<Vec<_>, _>(|gap| is_part_of_list(gap));
    let single = single.iter().map(|gap| gap["record_key"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(stored.intersection(&single).count(), 0, "one or the other");
    assert_eq!(parts.len(), 1, "one gap for the rest, and not one for each: {gaps:?}");
    // It begins after the last note that has an outcome: the names of notes sort like their times.
    let watermark = parts[0]["locator"]["ranges"][0]["from"]["key"].as_str().unwrap().to_owned();
    let rest = notes.provider.keys().into_iter().filter(|key| *key < watermark).collect::<BTreeSet<_>>();
    let accounted = stored.union(&single).cloned().collect::<BTreeSet<_>>();
    assert_eq!(accounted.intersection(&rest).count(), 0, "the rest is what has no outcome yet");
    assert_eq!(accounted.first(), Some(&watermark), "it begins right after what has one");
    let all = accounted.union(&rest).cloned().collect::<BTreeSet<_>>();
    assert_eq!(all, notes.provider.keys().into_iter().collect(), "and nothing lies between");
    rest.len()
}

#[test]
fn the_budget_runs_unbounded_when_no_envelope_is_configured() {
    let notes = Notes::new(150, 5);
    let mut command = notes.command(&[], 5);
    // Each of these means that there is no bound.
    command.env("PDPP_DEMO_MAX_DETAIL_FETCHES_PER_RUN", "").env("PDPP_DEMO_MAX_RUN_WALL_CLOCK_MS", "0");
    command.env("PDPP_DEMO_MAX_TAIL_DEFERRAL_GAPS_PER_RUN", "many");
    let (code, end) = run(&mut command);
    assert_eq!((code, &end["status"], &end["records_accepted"]), (0, &json!("succeeded"), &json!(150)), "{end}");
    notes.assert_complete();
    let sent = notes.provider.sent();
    assert!(sent.len() == 150 && sent.values().all(|times| *times == 1), "each note once: {sent:?}");
    let asked = notes.provider.asked();
    assert!(asked.iter().all(|asked| asked.status == 200), "and nothing was refused");
}

#[test]
fn an_exhausted_request_cap_leaves_a_resumable_gap_and_arms_no_cooldown() {
    let notes = Notes::new(100, 10);
    let (code, end) = notes.run(&["--max-requests", "30"], 10);
    assert_eq!((code, &end["status"]), (3, &json!("succeeded")), "a planned stop is no failure: {end}");
    assert_eq!(notes.provider.asked().len(), 30, "not one request more, and none is left over");
    assert_own_budget(&notes.gaps());
    let rest = assert_accounted_for(&notes);
    assert_eq!(notes.stored().len() + notes.gaps().len() - 1 + rest, 100);
    notes.assert_no_cooldown();
    assert_eq!(notes.status()["health"], "catching up");
    let missing = notes.why().into_iter().filter(|line| line["about"] == "missing").collect::<Vec<_>>();
    assert!(missing.len() == 1 && missing[0]["code"] == "own_budget", "{missing:?}");
    // The next run is not held back, and goes on where this one stopped.
    let (code, end) = notes.run(&[], 10);
    assert_eq!((code, &end["gaps_open"]), (0, &json!(0)), "{end}");
    notes.assert_complete();
    assert!(notes.provider.sent().values().all(|times| *times == 1), "nothing was fetched twice");
}

#[test]
fn an_expired_wall_clock_defers_the_rest_and_the_checkpoint_is_the_last_durable_page() {
    // Without a bound this takes ten seconds.
    let notes = Notes::new(200, 50);
    let began = Instant::now();
    let mut slow = None;
    notes.provider.rule(move |note, asked| {
        let late = asked.first().is_some_and(|first| first.at.elapsed() > Duration::from_millis(1200));
        // One request is still under way when the time is over.
        (late && note.is_some() && slow.replace(()).is_none())
            .then(|| Reply { after: Duration::from_millis(1500), ..Reply::default() })
    });
    let (code, end) = notes.run(&["--max-duration", "2s"], 50);
    assert_eq!((code, &end["status"]), (3, &json!("succeeded")), "{end}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let asked = notes.provider.asked();
    let (first, last) = (asked[0].at, asked[asked.len() - 1].at);
    assert!(last - first < Duration::from_secs(3), "nothing is sent after its time: {:?}", last - first);
    assert_own_budget(&notes.gaps());
    assert!(assert_accounted_for(&notes) > 50, "it was far from the end");
    let sent = notes.provider.sent();
    assert_eq!(notes.stored(), sent.keys().cloned().collect(), "what was under way was waited for and kept");
    assert_eq!(end["checkpoints_committed"], json!(["notes"]));
    // The checkpoint is where the durable pages end: the newest note, and everything down to the gap for the rest.
    let cursor = serde_json::from_str::<Value>(&notes.cursor("steady").unwrap()).unwrap();
    assert_eq!(cursor["high"], "2021-01-01T03:19:00Z", "{cursor}");
    assert_eq!(cursor.get("walk"), None, "nothing is half done: {cursor}");
    notes.assert_no_cooldown();
    notes.provider.heal();
    let (code, end) = notes.run(&[], 5);
    assert_eq!(code, 0, "{end}");
    notes.assert_complete();
    assert!(notes.provider.sent().values().all(|times| *times == 1), "nothing was fetched twice");
}

#[test]
fn an_exhausted_retry_budget_defers_and_does_not_spin() {
    let notes = Notes::new(40, 20);
    // Of the second eight, three fail whenever they are asked for; the others pay for retries.
    let failing = ["n0031", "n0030", "n0029"];
    notes.provider.rule(move |note, _| note.filter(|note| failing.contains(note)).map(|_| Reply::status(500)));
    let began = Instant::now();
    // A fifth of these may be retries, so that the budget for those is used up first.
    let (code, end) = notes.run(&["--max-requests", "24"], 20);
    assert_eq!((code, &end["status"]), (3, &json!("succeeded")), "{end}");
    assert!(began.elapsed() < Duration::from_secs(20), "it does not insist: {:?}", began.elapsed());
    let asked = notes.provider.asked();
    let failed = asked.iter().filter(|asked| asked.status == 500).count();
    // Three first tries, and 24 requests and 13 successes pay for six retries at most.
    assert!((4..=9).contains(&failed), "{failed} failures");
    assert!(asked.len() < 24, "it was not the cap: {} requests", asked.len());
    let gaps = notes.gaps();
    let single = gaps.iter().filter(|gap| !is_part_of_list(gap)).collect::<Vec<_>>();
    assert!(single.iter().all(|gap| gap["reason"] == "retry_exhausted"), "{single:?}");
    let of_budget = single.iter().filter(|gap| gap["class"] == "retry_budget").count();
    assert!(of_budget > failing.len(), "what was never asked for has the same reason: {single:?}");
    notes.assert_no_cooldown();
    notes.provider.heal();
    let (code, end) = notes.run(&[], 20);
    assert_eq!(code, 0, "{end}");
    notes.assert_complete();
}
