//! Forgetting: after a purge no byte of a connection is in any file of the store, the others are as
//! they were, and a purge that was cut short goes on.
//!
//! The files are searched as raw bytes. These tests never trust a query to say that something is gone.

#![allow(clippy::disallowed_methods, reason = "tests know what time it is, and wait")]

use crate::world::{Home, MANIFEST, Sitting, delete, done, lease, now, parse, progress, record, slice_state};
use gleaner_engine::Steady;
use gleaner_store::{ConnectionState, Holder, LeaseOn, Store, StoreError};
use std::fs;

/// In everything that can come from outside.
const CANARY: &str = "CANARYx7f3";

fn canary_manifest() -> String {
    MANIFEST.replace("\"connector_id\":\"faulty\"", &format!("\"connector_id\":\"{CANARY}-connector\""))
}

fn canary_lines() -> String {
    let mut lines = progress(&format!("{CANARY} progress"));
    for n in 0..300 {
        let (key, body) = (format!("{CANARY}-{n}"), format!("{{\"x\":\"{}\"}}", CANARY.repeat(1 + n % 7 * 40)));
        lines.push_str(&record("items", &key, &body));
        lines.push_str(&crate::world::gap("details", &key));
    }
    // History, and pages that are rearranged.
    for n in (0..300).step_by(3) {
        lines.push_str(&record("items", &format!("{CANARY}-{n}"), &format!("{{\"y\":\"{CANARY}\"}}")));
        lines.push_str(&delete("items", &format!("{CANARY}-{}", n + 1)));
    }
    lines.push_str(&format!(
        "{{\"type\":\"SKIP_RESULT\",\"stream\":\"items\",\"reason\":\"{CANARY}\",\"message\":\"{CANARY} skip\"}}\n"
    ));
    lines + &slice_state("items", &format!("{{\"at\":\"{CANARY}\"}}")) + &done(500)
}

/// How often the canary is in any file of the folder.
fn canaries(home: &Home) -> usize {
    let files = fs::read_dir(home.folder.path()).expect("a folder").map(|entry| entry.expect("an entry").path());
    let count = |bytes: Vec<u8>| bytes.windows(CANARY.len()).filter(|window| *window == CANARY.as_bytes()).count();
    files.map(|path| count(fs::read(path).expect("a file"))).sum()
}

/// A store with a connection that is to be forgotten and one that is not.
fn two_connections() -> Home {
    let home = Home::new();
    let other = record("items", "stays", r#"{"v":1}"#) + &slice_state("items", r#"{"page":1}"#) + &done(1);
    home.run(&other);
    let outcome = home.run_of(&format!("{CANARY}-name"), &canary_manifest(), canary_lines().as_bytes());
    assert_eq!(outcome.violation, None);
    home.run(&other.replace("\"v\":1", "\"v\":2"));
    home
}

fn purge(store: &mut Store) -> Result<u64, StoreError> {
    let name = format!("{CANARY}-name");
    let leases = lease(store, &name);
    store.purge(&name, &leases)
}

fn assert_other_untouched(home: &Home) {
    assert_eq!(home.body("items", "stays").as_deref(), Some(r#"{"v":2}"#));
    assert_eq!(home.reader().history("c", "items", "stays", None, 9).expect("readable").len(), 2);
    assert_eq!(home.cursor("items").as_deref(), Some(r#"{"page":1}"#));
    assert_eq!(home.reader().runs("c", 9).expect("readable").len(), 2);
    let names = home.reader().connections().expect("readable").into_iter().map(|connection| connection.name);
    assert_eq!(names.collect::<Vec<_>>(), ["c"]);
    home.assert_whole();
}

#[test]
fn after_a_purge_no_byte_of_the_connection_is_left_in_any_file() {
    let home = two_connections();
    assert!(canaries(&home) > 1000, "they were there");
    let mut store = home.open();
    assert!(purge(&mut store).expect("works") > 900);
    assert_eq!(canaries(&home), 0, "while the store is open");
    drop(store);
    assert_eq!(canaries(&home), 0, "and after it is closed");
    assert_other_untouched(&home);
}

#[test]
fn a_purge_that_was_cut_short_goes_on_and_nothing_runs_meanwhile() {
    let home = two_connections();
    let name = format!("{CANARY}-name");
    // As a process leaves it that was killed after its first batches.
    home.execute("UPDATE connections SET state = 'purging' WHERE name LIKE 'CANARY%'");
    home.execute("PRAGMA secure_delete = ON; DELETE FROM versions WHERE seq IN (SELECT seq FROM versions WHERE key LIKE 'CANARY%' LIMIT 120)");
    // What is left is no damage.
    home.assert_whole();
    let mut store = home.open();
    let states = home.reader().connections().expect("readable").into_iter().map(|connection| connection.state);
    assert!(states.collect::<Vec<_>>().contains(&ConnectionState::Purging));
    let leases = lease(&mut store, &name);
    let parsed = parse(MANIFEST);
    let refused = store.register(&name, MANIFEST, &parsed, now().wall).expect_err("it is being purged");
    assert!(matches!(refused, StoreError::Purging(_)), "{refused}");
    let start = crate::world::start(&name, "r", &parsed);
    let refused = store.begin_run::<Steady>(start, leases.clone(), now().wall).expect_err("it is being purged");
    assert!(matches!(refused, StoreError::Purging(_)), "{refused}");
    store.release(&leases).expect("works");
    purge(&mut store).expect("it goes on");
    drop(store);
    assert_eq!(canaries(&home), 0);
    assert_other_untouched(&home);
}

#[test]
fn a_purge_whose_lease_is_lost_stops_and_can_be_repeated() {
    let home = two_connections();
    let name = format!("{CANARY}-name");
    let mut first = home.open();
    let stale = lease(&mut first, &name);
    home.execute("UPDATE leases SET process_started = process_started + 1");
    let mut second = home.open();
    let leases = lease(&mut second, &name);
    let before = home.dump();
    assert!(matches!(first.purge(&name, &stale), Err(StoreError::Superseded { .. })));
    assert_eq!(before, home.dump());
    second.purge(&name, &leases).expect("works");
    drop((first, second));
    assert_eq!(canaries(&home), 0);
    assert_other_untouched(&home);
}

#[test]
fn a_purge_that_a_reader_holds_up_is_told_and_can_be_repeated() {
    let home = two_connections();
    let reading = rusqlite::Connection::open(home.path()).expect("a database");
    let mut store = home.open();
    reading.execute_batch("BEGIN; SELECT count(*) FROM records").expect("a snapshot");
    let error = purge(&mut store).expect_err("older pages are still read");
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    reading.execute_batch("COMMIT").expect("done");
    let name = format!("{CANARY}-name");
    let leases = held(&home, &mut store, &name);
    store.release(&leases).expect("works");
    purge(&mut store).expect("now it goes through");
    drop((store, reading));
    assert_eq!(canaries(&home), 0);
    assert_other_untouched(&home);
}

/// Takes over the lease that the purge before has not given back.
fn held(home: &Home, store: &mut Store, name: &str) -> Vec<gleaner_store::Lease> {
    home.execute("UPDATE leases SET process_started = process_started + 1");
    lease(store, name)
}

#[test]
fn what_is_not_there_cannot_be_purged() {
    let home = Home::new();
    let mut store = home.open();
    let leases = lease(&mut store, "nobody");
    assert!(matches!(store.purge("nobody", &leases), Err(StoreError::UnknownConnection(_))));
    let holder = Holder::current().expect("a process");
    assert!(store.held_by(LeaseOn::Connection("nobody"), &holder, now().wall).expect("works").is_some());
    drop(Sitting::begin(home.open(), "somebody", MANIFEST));
}
