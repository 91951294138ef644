//! Two who want the same: never two holders at once, a dead one is replaced at once, a live one is
//! named, and whoever lost its lease changes nothing more.
//!
//! Holders are real processes or stores of their own. These tests never wait for a lease to run out:
//! that is a matter of arithmetic, and the unit tests have it.

#![allow(clippy::disallowed_methods, reason = "tests know what time it is, and wait")]

use crate::world::{
    Home, MANIFEST, Sitting, done, full_size, ingest_arguments, kill, lease, now, parse, record, slice_state,
};
use gleaner_engine::Steady;
use gleaner_protocol::TerminalReason;
use gleaner_store::{Acquired, HeldBy, Holder, LEASE_TTL, Lease, LeaseOn, Store, StoreError};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

const C: LeaseOn<'_> = LeaseOn::Connection("c");

fn acquire(store: &mut Store, on: &[LeaseOn<'_>]) -> Result<Acquired, StoreError> {
    store.acquire(on, &Holder::current().expect("a process"), now().wall)
}

fn taken(acquired: Acquired) -> (Vec<Lease>, bool) {
    match acquired {
        Acquired::Yes { leases, took_over } => (leases, took_over),
        Acquired::Held(by) => panic!("held by {by:?}"),
    }
}

fn held(acquired: Acquired) -> HeldBy {
    match acquired {
        Acquired::Held(by) => by,
        Acquired::Yes { .. } => panic!("two holders"),
    }
}

/// A driver in the middle of a run, with one slice saved.
fn running_driver(home: &Home) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_store-driver"));
    command.args(ingest_arguments(home)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the driver starts");
    let lines = record("items", "k", "{}") + &slice_state("items", r#"{"page":1}"#);
    child.stdin.as_mut().expect("a pipe").write_all(lines.as_bytes()).expect("written");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "saved 1\n");
    child
}

#[test]
fn a_live_holder_is_named_and_a_dead_one_is_replaced_at_once() {
    let home = Home::new();
    let began = now().wall;
    let mut child = running_driver(&home);
    let mut store = home.open();
    let by = held(acquire(&mut store, &[C]).expect("works"));
    assert_eq!((by.pid, by.lease.as_str()), (child.id(), "connection c"));
    assert!(began <= by.since && by.since <= now().wall, "{by:?}");
    assert!(now().wall < by.until && by.until <= now().wall + LEASE_TTL, "{by:?}");
    let asking = Holder::current().expect("a process");
    assert_eq!(store.held_by(C, &asking, now().wall).expect("works").map(|by| by.pid), Some(child.id()));
    kill(&mut child);
    let (leases, took_over) = taken(acquire(&mut store, &[C]).expect("works"));
    assert!(took_over);
    let start = crate::world::start("c", "next", &parse(MANIFEST));
    let session = store.begin_run::<Steady>(start, leases, now().wall).expect("begun");
    assert_eq!(session.interrupted_before(), 1);
    assert_eq!(session.bookmarks()[0].token().as_str(), r#"{"page":1}"#, "what it saved is where we go on");
}

#[test]
fn a_run_that_was_killed_counts_what_its_durable_slices_hold() {
    let home = Home::new();
    let mut child = running_driver(&home);
    let pipe = child.stdin.as_mut().expect("a pipe");
    pipe.write_all(record("items", "not in a slice", "{}").as_bytes()).expect("written");
    let counted = |reason: Option<TerminalReason>| {
        let run = home.reader().runs("c", 1).expect("readable").remove(0);
        assert_eq!(run.reason, reason);
        (run.counts.seen, run.counts.new, run.counts.collected())
    };
    assert_eq!(counted(None), (1, 1, 1), "also while it goes on");
    kill(&mut child);
    let mut store = home.open();
    let (leases, _) = taken(acquire(&mut store, &[C]).expect("works"));
    let start = crate::world::start("c", "next", &parse(MANIFEST));
    store.begin_run::<Steady>(start, leases, now().wall).expect("begun");
    let run = home.reader().runs("c", 2).expect("readable").remove(1);
    assert_eq!((run.reason, run.counts.new), (Some(TerminalReason::Interrupted), 1));
}

#[test]
fn of_two_that_start_at_once_one_gets_it() {
    let home = Home::new();
    let rounds = if full_size() { 1000 } else { 100 };
    drop(home.open());
    let (holders, barrier) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(2)));
    let racer = |mut store: Store| {
        let (holders, barrier) = (Arc::clone(&holders), Arc::clone(&barrier));
        std::thread::spawn(move || {
            let (mut won, mut epochs) = (0, Vec::new());
            for _ in 0..rounds {
                barrier.wait();
                let got = acquire(&mut store, &[C]).expect("works");
                if let Acquired::Yes { leases, .. } = &got {
                    assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two holders at once");
                    won += 1;
                    epochs.push(leases[0].epoch());
                }
                // Both have their answer before the winner lets go.
                barrier.wait();
                if let Acquired::Yes { leases, .. } = got {
                    holders.fetch_sub(1, Ordering::SeqCst);
                    store.release(&leases).expect("works");
                }
            }
            (won, epochs)
        })
    };
    let both = [home.open(), home.open()].map(racer).map(|thread| thread.join().expect("a thread"));
    assert_eq!(both.iter().map(|(won, _)| won).sum::<usize>(), rounds, "each round had one winner");
    let mut epochs = both.into_iter().flat_map(|(_, epochs)| epochs).collect::<Vec<_>>();
    epochs.sort();
    epochs.dedup();
    assert_eq!(epochs.len(), rounds, "no epoch was given out twice");
}

#[test]
fn epochs_grow_and_outlive_the_process() {
    let home = Home::new();
    let mut last = 0;
    for _ in 0..5 {
        let mut store = home.open();
        for _ in 0..3 {
            let (leases, _) = taken(acquire(&mut store, &[C]).expect("works"));
            assert!(leases[0].epoch().get() > last);
            last = leases[0].epoch().get();
            assert_eq!(store.epoch().expect("works").get(), last);
            store.release(&leases).expect("works");
        }
    }
}

/// Makes the lease of `c` look as if its holder had died, so that another may take it.
fn take_over(home: &Home) -> Store {
    home.execute("UPDATE leases SET process_started = process_started + 1");
    let mut store = home.open();
    assert!(taken(acquire(&mut store, &[C]).expect("works")).1);
    store
}

#[test]
fn who_lost_the_lease_changes_nothing() {
    let home = Home::new();
    let mut old = Sitting::begin(home.open(), "c", MANIFEST);
    old.feed((record("items", "k", "{}") + &slice_state("items", r#"{"page":1}"#)).as_bytes()).expect("works");
    let _new = take_over(&home);
    let before = home.dump();
    let late = record("items", "late", "{}") + &slice_state("items", r#"{"page":2}"#);
    let error = old.feed(late.as_bytes()).expect_err("superseded");
    assert!(matches!(error, StoreError::Superseded { .. }), "{error}");
    assert!(error.to_string().contains("writes nothing more"));
    let session = old.session.take().expect("a session");
    assert!(matches!(old.store.heartbeat(session.leases()), Err(StoreError::Superseded { .. })));
    assert!(matches!(old.store.purge("c", session.leases()), Err(StoreError::Superseded { .. })));
    let page = old.store.lease_gaps_page(&session, &[], 1000, now().wall);
    assert!(matches!(page, Err(StoreError::Superseded { .. })));
    old.store.release(session.leases()).expect("giving back what is another's is no error");
    old.run.handle_superseded(now());
    assert_eq!(before, home.dump(), "a row was changed");
}

#[test]
fn a_sign_of_life_keeps_a_lease() {
    let home = Home::new();
    let mut store = home.open();
    let leases = lease(&mut store, "c");
    home.execute("UPDATE leases SET expires_boot_ms = heartbeat_boot_ms");
    assert_eq!(store.held_by(C, &Holder::current().expect("a process"), now().wall).expect("works"), None);
    store.heartbeat(&leases).expect("still ours");
    assert!(matches!(acquire(&mut home.open(), &[C]), Ok(Acquired::Held(_))));
}

#[test]
fn connection_and_credential_are_taken_together_or_not_at_all() {
    let home = Home::new();
    let account = LeaseOn::Credential { provider: "mail", hash: "abc" };
    let (mut first, mut second) = (home.open(), home.open());
    let (leases, _) = taken(acquire(&mut first, &[C, account]).expect("works"));
    assert_eq!(leases.len(), 2);
    assert_eq!(leases[0].epoch(), leases[1].epoch());
    let before = home.dump();
    let by = held(acquire(&mut second, &[LeaseOn::Connection("d"), account]).expect("works"));
    assert_eq!(by.lease, "credential mail abc");
    assert_eq!(before, home.dump(), "something was taken");
    first.release(&leases).expect("works");
    assert_eq!(taken(acquire(&mut second, &[LeaseOn::Connection("d"), account]).expect("works")).0.len(), 2);
}

fn copy(from: &Home, to: &Home, names: &[&str]) {
    for name in names {
        fs::copy(from.at(name), to.at(name)).expect("a copy");
    }
}

#[test]
fn a_store_restored_from_an_older_copy_is_noticed_until_the_owner_accepts_it() {
    let (home, backup) = (Home::new(), Home::new());
    home.run(&(record("items", "a", "{}") + &slice_state("items", r#"{"page":1}"#) + &done(1)));
    copy(&home, &backup, &["store.db"]);
    home.run(&(record("items", "b", "{}") + &slice_state("items", r#"{"page":2}"#) + &done(1)));
    let seen = home.open().epoch().expect("works");
    copy(&backup, &home, &["store.db"]);
    let mut store = home.open();
    let before = home.dump();
    let error = acquire(&mut store, &[C]).expect_err("it is older");
    assert!(matches!(error, StoreError::OlderThanSeen { found, seen: s } if found < s && s == seen.get()), "{error}");
    assert!(error.to_string().contains("gleaner restore --accept"), "{error}");
    assert_eq!(before, home.dump(), "nothing was taken");
    store.accept_restored().expect("works");
    let (leases, _) = taken(acquire(&mut store, &[C]).expect("accepted"));
    assert!(leases[0].epoch() > seen, "later than everything that was ever held");
    home.assert_whole();
}

#[test]
fn a_new_store_in_place_of_an_old_one_is_no_alarm() {
    let home = Home::new();
    for _ in 0..3 {
        home.run(&done(0));
    }
    fs::remove_file(home.path()).expect("removed");
    assert!(acquire(&mut home.open(), &[C]).is_ok());
}

#[test]
fn a_sign_given_while_another_waits_for_the_lock_is_no_sign_of_a_restart() {
    let home = Home::new();
    let mut holder = home.open();
    taken(acquire(&mut holder, &[C]).expect("works"));
    let mut second = home.open();
    let other = rusqlite::Connection::open(home.path()).expect("a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let waiting = std::thread::spawn(move || acquire(&mut second, &[C]));
    std::thread::sleep(std::time::Duration::from_millis(300));
    // The holder's sign, given after the other began to wait.
    other.execute_batch("UPDATE leases SET heartbeat_boot_ms = heartbeat_boot_ms + 250; COMMIT").expect("written");
    let by = held(waiting.join().expect("a thread").expect("works"));
    assert_eq!(by.pid, std::process::id());
}

#[test]
fn who_is_told_no_holds_nothing() {
    let home = Home::new();
    let mut store = home.open();
    // The note beside the store cannot be written.
    fs::create_dir(home.at("store.db.seen")).expect("a folder");
    let error = acquire(&mut store, &[C]).expect_err("it cannot be noted");
    assert!(error.to_string().contains("store.db.seen"), "{error}");
    fs::remove_dir(home.at("store.db.seen")).expect("removed");
    taken(acquire(&mut store, &[C]).expect("works"));
}

#[test]
fn processes_that_make_one_store_at_once_all_find_a_store() {
    for _ in 0..if full_size() { 100 } else { 10 } {
        let home = Home::new();
        let start = |_| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_store-driver"));
            command.arg("collect").arg(home.path()).args(["--ids", "2", "--slice", "1"]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the driver starts")
        };
        let children = (0..8).map(start).collect::<Vec<_>>();
        for child in children {
            let ended = child.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&ended.stderr);
            assert!(ended.status.success() || said.starts_with("error: held by "), "{said}");
        }
        home.assert_whole();
        // Whoever wrote the note last, it has the highest epoch.
        let note = fs::read_to_string(home.at("store.db.seen")).expect("a note");
        let epoch = home.open().epoch().expect("readable").get();
        assert!(note.trim_end().ends_with(&format!(" {epoch}")), "{note} of {epoch}");
    }
}

#[test]
fn nothing_is_begun_or_forgotten_without_the_lease_on_the_connection_itself() {
    let home = Home::new();
    let mut running = Sitting::begin(home.open(), "c", MANIFEST);
    let mut other = home.open();
    let (elsewhere, _) = taken(acquire(&mut other, &[LeaseOn::Connection("d")]).expect("works"));
    for leases in [Vec::new(), elsewhere] {
        let start = crate::world::start("c", "next", &parse(MANIFEST));
        let error = other.begin_run::<Steady>(start, leases.clone(), now().wall).expect_err("not its lease");
        assert!(matches!(error, StoreError::NotLeased(_)), "{error}");
        assert!(matches!(other.purge("c", &leases), Err(StoreError::NotLeased(_))));
    }
    running.feed((record("items", "k", "{}") + &done(1)).as_bytes()).expect("it goes on");
    running.end().expect("it goes on");
    assert!(home.body("items", "k").is_some());
}
