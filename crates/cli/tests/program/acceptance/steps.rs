//! How far a run has come: never further than what is durable, and on its own track.

use super::Notes;
use crate::notes_provider::NotesProvider;
use crate::place::signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

/// A kill repeats the slice that was under way, the one on its way to the store, and the notes being fetched.
const REPEATED_MAX: usize = 20 + 20 + 8;

/// Waits until so many requests were made altogether.
fn wait_for_requests(provider: &NotesProvider, count: usize) {
    let began = Instant::now();
    while provider.asked().len() < count {
        assert!(began.elapsed() < Duration::from_secs(30), "{} of {count} requests", provider.asked().len());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Everything that the checkpoint is past of is in the store. Answers how many that are.
fn assert_behind_what_is_stored(notes: &Notes) -> usize {
    let Some(cursor) = notes.cursor("steady") else { return 0 };
    let cursor = serde_json::from_str::<Value>(&cursor).unwrap();
    // From the newest down to here; the names of notes sort like their times. Before the first page there is none.
    let Some(low) = cursor["walk"]["low"]["key"].as_str() else { return 0 };
    let covered = notes.provider.keys().into_iter().filter(|key| key.as_str() >= low).collect::<BTreeSet<_>>();
    let stored = notes.stored();
    let lost = covered.difference(&stored).collect::<Vec<_>>();
    assert!(lost.is_empty(), "the checkpoint has passed what is not stored: {lost:?}");
    covered.len()
}

#[test]
fn the_checkpoint_never_passes_the_last_durable_page() {
    let notes = Notes::new(240, 10);
    let (mut covered, mut repeated) = (0, 0);
    // In the first page, at its end, in the middle of one, and so on: each time after another number of requests.
    for (turn, requests) in [12, 24, 37, 43, 58, 33].into_iter().enumerate() {
        let before = notes.provider.asked().len();
        let mut command = notes.command(&[], 10);
        command.process_group(0);
        let mut running = crate::place::Running::of(command);
        wait_for_requests(&notes.provider, before + requests);
        // The program alone, or with everything that it has started.
        let group = running.child.id().to_string();
        signal(&if turn % 2 == 0 { group } else { format!("-{group}") }, "KILL");
        running.child.wait().unwrap();
        let now = assert_behind_what_is_stored(&notes);
        assert!(now >= covered, "it goes on where it was: {now} after {covered}");
        covered = now;
        let sent = notes.provider.sent().values().sum::<usize>();
        let again = sent - notes.provider.sent().len();
        assert!(again - repeated <= REPEATED_MAX, "{} notes were fetched again", again - repeated);
        repeated = again;
    }
    assert!((60..240).contains(&covered), "killed on its way, and not before or after it: {covered}");
    let (code, end) = notes.run(&[], 10);
    assert_eq!(code, 0, "{end}");
    notes.assert_complete();
    println!("{covered} of 240 were covered after six kills, {repeated} were fetched twice");
}

#[test]
fn a_catch_up_run_does_not_move_the_steady_cursor() {
    let notes = Notes::new(60, 10);
    let (code, end) = notes.run(&[], 10);
    assert_eq!((code, &end["records_accepted"]), (0, &json!(60)), "{end}");
    let steady = notes.cursor("steady").unwrap();
    assert!(steady.contains("2021-01-01T00:59:00Z") && notes.cursor("catch_up").is_none(), "{steady}");
    notes.knows_pace(&["--catch-up"], 10);
    // In two parts, so that one of them ends in the middle. The gaps of single notes wait for an ordinary run.
    for (options, code) in [(vec!["--catch-up", "--max-requests", "25"], 3), (vec!["--catch-up"], 3)] {
        let (ended, end) = notes.run(&options, 10);
        assert_eq!(ended, code, "{end}");
        assert_eq!(notes.cursor("steady").as_ref(), Some(&steady), "byte for byte");
    }
    assert!(notes.cursor("catch_up").is_some_and(|cursor| cursor != steady), "it has a bookmark of its own");
    assert_eq!(notes.run(&[], 10).0, 0);
    notes.assert_complete();
    // What is new comes after what the steady run had, and nothing else is fetched.
    notes.provider.write_another();
    let before = notes.provider.asked().len();
    let (code, end) = notes.run(&[], 10);
    assert_eq!((code, &end["records_accepted"]), (0, &json!(1)), "{end}");
    let fetched = notes.provider.asked().split_off(before).into_iter().filter_map(|asked| asked.note);
    assert_eq!(fetched.collect::<Vec<_>>(), ["n0060"]);
    notes.assert_complete();
}
