//! Copies of the store: made while it is written, looked at before they are believed, and put back
//! without anybody being told something twice. And the promises that `verify` asks a store about.

#![allow(clippy::disallowed_methods, reason = "tests know what time it is, and wait")]

use crate::world::{Home, MANIFEST, Sitting, delete, done, lease, now, record, slice_state};
use gleaner_store::{Holder, Reader, RestoreOutcome, Store, StoreError, restore};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn page(n: u64) -> String {
    let key = |at: u64| format!("k{}", n * 10 + at);
    let records = (0..10).map(|at| record("items", &key(at), r#"{"id":1}"#)).collect::<String>();
    records + &slice_state("items", &format!("{{\"page\":{n}}}"))
}

fn back_up(home: &Home, name: &str) -> PathBuf {
    let to = home.at(name);
    home.reader().backup(&to, None, |_, _, _| {}).expect("a backup");
    to
}

fn put_back(home: &Home, file: &Path) -> Result<RestoreOutcome, StoreError> {
    restore(file, &home.path(), &Holder::current().expect("a process"), now().wall, "stamp", |_, _, _| {})
}

fn unfinished(home: &Home) -> Vec<String> {
    let names = fs::read_dir(home.folder.path()).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.contains("unfinished")).collect()
}

#[test]
fn a_backup_of_a_store_that_is_written_is_whole_and_of_one_moment() {
    let home = Home::new();
    home.run(&(page(0) + &done(10)));
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (stop, store) = (Arc::clone(&stop), home.open());
        std::thread::spawn(move || {
            let mut sitting = Sitting::begin(store, "c", MANIFEST);
            let mut pages = 1;
            while !stop.load(Ordering::Relaxed) {
                sitting.feed(page(pages).as_bytes()).expect("the store works");
                pages += 1;
            }
            pages
        })
    };
    for round in 0..20 {
        assert_eq!(home.reader().verify(|_, _| {}).expect("readable"), [], "round {round}");
    }
    for round in 0..5 {
        let copy = Reader::open(&back_up(&home, &format!("backup-{round}"))).expect("a store");
        assert_eq!(copy.verify(|_, _| {}).expect("readable"), [], "round {round}");
        let records = copy.streams("c").expect("streams")[0].records;
        let cursor = copy.bookmarks::<gleaner_engine::Steady>("c").expect("cursors")[0].token().as_str().to_owned();
        assert_eq!(cursor, format!("{{\"page\":{}}}", records / 10 - 1), "cursor and records are of one moment");
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writer.join().expect("the writer") > 2, "nothing was written meanwhile");
}

#[test]
fn a_backup_is_its_owners_alone_has_no_log_and_replaces_nothing() {
    let home = Home::new();
    home.run(&(page(0) + &done(10)));
    let file = back_up(&home, "backup");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    drop(Reader::open(&file).expect("a store"));
    assert!(!home.at("backup-wal").exists() && !home.at("backup-shm").exists());
    let error = home.reader().backup(&file, None, |_, _, _| {}).expect_err("it is there");
    assert!(matches!(error, StoreError::FileExists(_)), "{error}");
    assert!(matches!(
        home.reader().backup(&home.at("no/where"), None, |_, _, _| {}),
        Err(StoreError::CannotOpen { .. })
    ));
    assert_eq!(unfinished(&home), [""; 0]);
}

#[test]
fn a_damaged_store_gives_no_backup() {
    let home = Home::new();
    home.run(&(page(0) + &done(10)));
    home.execute("UPDATE versions SET body = '{}' WHERE seq = 3");
    let error = home.reader().backup(&home.at("backup"), None, |_, _, _| {}).expect_err("damaged");
    assert!(error.to_string().contains("versions row 3"), "{error}");
    assert!(!home.at("backup").exists());
    assert_eq!(unfinished(&home), [""; 0]);
}

#[test]
fn an_older_backup_is_put_back_with_every_number_going_on() {
    let home = Home::new();
    home.run(&(page(0) + &done(10)));
    let file = back_up(&home, "backup");
    home.run(&(page(1) + &done(10)));
    let (epoch, next) = (home.open().epoch().expect("an epoch"), home.sql::<i64>(NEXT));
    let outcome = put_back(&home, &file).expect("restored");
    let kept = home.at("store.db.before-restore-stamp");
    assert_eq!(outcome, RestoreOutcome::Restored { kept: Some(kept.clone()), was_older: true, settings: None });
    assert_eq!(home.cursor("items").as_deref(), Some(r#"{"page":0}"#));
    home.assert_whole();
    let store = home.open();
    store.check_not_restored().expect("it was accepted");
    assert!(store.epoch().expect("an epoch") >= epoch, "an old holder could write");
    assert!(home.sql::<i64>(NEXT) >= next, "a reader of changes would be told the same numbers twice");
    assert_eq!(Reader::open(&kept).expect("a store").streams("c").expect("streams")[0].records, 20);
    assert_eq!(fs::metadata(&kept).expect("a file").permissions().mode() & 0o777, 0o600);
    drop(store);
    // What came after the backup comes again, and nothing is lost.
    home.run(&(page(1) + &page(2) + &done(20)));
    assert_eq!(home.reader().streams("c").expect("streams")[0].records, 30);
    home.assert_whole();
    assert_eq!(unfinished(&home), [""; 0]);
}

const NEXT: &str = "SELECT value FROM meta WHERE name = 'next_seq'";

#[test]
fn a_backup_of_this_moment_is_not_called_older_and_one_of_another_store_is_neither() {
    let home = Home::new();
    home.run(&(page(0) + &done(10)));
    let file = back_up(&home, "backup");
    assert!(matches!(put_back(&home, &file), Ok(RestoreOutcome::Restored { was_older: false, .. })));
    let other = Home::new();
    for n in 0..3 {
        other.run(&(page(n) + &done(10)));
    }
    fs::remove_file(home.at("store.db.before-restore-stamp")).expect("it was kept");
    assert!(matches!(put_back(&other, &file), Ok(RestoreOutcome::Restored { was_older: false, .. })));
    other.run(&(page(1) + &done(10)));
    other.assert_whole();
    // Nothing is kept over what was kept, not even within the same second.
    let before = fs::read(other.at("store.db.before-restore-stamp")).expect("it was kept");
    let second = other.at("store.db.before-restore-stamp-2");
    let again = put_back(&other, &file).expect("restored");
    assert!(matches!(again, RestoreOutcome::Restored { kept: Some(kept), .. } if kept == second));
    assert_eq!(fs::read(other.at("store.db.before-restore-stamp")).expect("it was kept"), before);
    assert!(second.exists());
    other.run(&(page(1) + &page(2) + &done(20)));
    assert_eq!(other.reader().streams("c").expect("streams")[0].records, 30);
}

#[test]
fn what_a_killed_copy_left_is_cleared_by_the_next_and_a_live_one_is_left_alone() {
    let home = Home::new();
    home.run(&(page(0) + &done(10)));
    let live = format!("backup.{}.unfinished", std::os::unix::process::parent_id());
    for name in ["backup.4194999.unfinished", "backup.4194999.unfinished-wal", "backup.x.unfinished", &live] {
        fs::write(home.at(name), "left").expect("written");
    }
    back_up(&home, "backup");
    let mut left = unfinished(&home);
    left.sort();
    let mut expected = [live, "backup.x.unfinished".to_owned()];
    expected.sort();
    assert_eq!(left, expected);
}

#[test]
fn settings_travel_in_the_backup_and_are_not_left_in_the_store() {
    let home = Home::new();
    home.run(&(page(0) + &done(10)));
    home.reader().backup(&home.at("backup"), Some("a = 1\n"), |_, _, _| {}).expect("a backup");
    let outcome = put_back(&home, &home.at("backup")).expect("restored");
    assert!(matches!(outcome, RestoreOutcome::Restored { settings: Some(text), .. } if text == "a = 1\n"));
    assert!(!home.dump().contains("a = 1"));
    home.assert_whole();
}

#[test]
fn nothing_is_put_back_while_somebody_is_at_work() {
    let home = Home::new();
    home.run(&(page(0) + &done(10)));
    let file = back_up(&home, "backup");
    let mut store = home.open();
    let leases = lease(&mut store, "c");
    let before = home.dump();
    let outcome = put_back(&home, &file).expect("asked");
    assert!(matches!(&outcome, RestoreOutcome::Held(by) if by.pid == std::process::id()), "{outcome:?}");
    assert_eq!(home.dump(), before, "nothing was changed");
    store.release(&leases).expect("given back");
    assert!(matches!(put_back(&home, &file), Ok(RestoreOutcome::Restored { .. })));
}

#[test]
fn a_backup_made_during_a_run_leaves_nobody_in_the_way() {
    let home = Home::new();
    let mut sitting = Sitting::begin(home.open(), "c", MANIFEST);
    sitting.feed(page(0).as_bytes()).expect("the store works");
    let file = back_up(&home, "backup");
    sitting.feed((page(1) + &done(20)).as_bytes()).expect("the store works");
    sitting.end().expect("the run ends");
    drop(sitting);
    put_back(&home, &file).expect("restored");
    // We are the process that held the lease in the backup, and we live.
    home.run(&(page(1) + &done(10)));
    assert_eq!(home.reader().streams("c").expect("streams")[0].records, 20);
    home.assert_whole();
}

#[test]
fn what_is_no_backup_of_ours_is_refused_and_the_store_stays() {
    let home = Home::new();
    home.run(&(page(0) + &done(10)));
    let good = fs::read(back_up(&home, "backup")).expect("a file");
    let before = home.dump();
    let refuse = |bytes: &[u8]| {
        fs::write(home.at("bad"), bytes).expect("written");
        put_back(&home, &home.at("bad")).expect_err("refused")
    };
    for bytes in [&b""[..], b"not a database at all, and long enough to be one by its size if that counted"] {
        assert!(matches!(refuse(bytes), StoreError::NotAStore(path) if path.ends_with("bad")));
    }
    let half = refuse(&good[..good.len() / 2]);
    assert!(matches!(&half, StoreError::DamagedBackup { path, .. } if path.ends_with("bad")), "{half:?}");
    let sql = |text: &str| {
        fs::write(home.at("bad"), &good).expect("written");
        rusqlite::Connection::open(home.at("bad")).expect("a database").execute_batch(text).expect(text);
        put_back(&home, &home.at("bad")).expect_err("refused")
    };
    assert!(matches!(sql("PRAGMA user_version = 99"), StoreError::NewerSchema { found: 99, .. }));
    assert!(matches!(sql("PRAGMA application_id = 7"), StoreError::NotAStore(_)));
    let changed = sql("UPDATE versions SET body = '{}' WHERE seq = 3");
    assert!(changed.to_string().contains("versions row 3"), "{changed}");
    assert!(matches!(put_back(&home, &home.at("absent")), Err(StoreError::CannotOpen { .. })));
    assert_eq!(home.dump(), before);
    assert_eq!(unfinished(&home), [""; 0]);
}

#[test]
fn a_store_that_cannot_be_opened_any_more_is_moved_aside() {
    let home = Home::new();
    home.run(&(page(0) + &done(10)));
    let file = back_up(&home, "backup");
    home.run(&(page(1) + &done(10)));
    fs::write(
        home.path(),
        "overwritten by something else, and longer than the header of a database file is long......",
    )
    .expect("written");
    let kept = home.at("store.db.before-restore-stamp");
    let outcome = put_back(&home, &file).expect("restored");
    assert_eq!(outcome, RestoreOutcome::Restored { kept: Some(kept.clone()), was_older: true, settings: None });
    assert!(fs::read_to_string(kept).expect("a text").starts_with("overwritten"));
    home.assert_whole();
    home.run(&(page(1) + &done(10)));
    fs::remove_file(home.path()).expect("gone");
    let outcome = put_back(&home, &file).expect("restored");
    assert_eq!(outcome, RestoreOutcome::Restored { kept: None, was_older: true, settings: None });
    home.open().check_not_restored().expect("accepted");
}

#[test]
fn a_copy_that_was_put_there_by_hand_is_noticed_until_it_is_accepted() {
    let home = Home::new();
    home.run(&(page(0) + &done(10)));
    let file = back_up(&home, "backup");
    home.run(&(page(1) + &done(10)));
    fs::copy(&file, home.path()).expect("copied");
    assert!(matches!(home.reader().check_not_restored(), Err(StoreError::OlderThanSeen { .. })));
    let mut store = home.open();
    let holder = Holder::current().expect("a process");
    let refused = store.acquire(&[gleaner_store::LeaseOn::Connection("c")], &holder, now().wall);
    assert!(matches!(refused, Err(StoreError::OlderThanSeen { .. })));
    store.accept_restored().expect("accepted");
    home.reader().check_not_restored().expect("accepted");
    drop(store);
    home.run(&(page(1) + &done(10)));
    home.assert_whole();
}

/// Breaks one thing in a store with two runs, and answers what is found.
fn broken_by(sql: &str) -> Vec<String> {
    let home = Home::new();
    home.run(&(page(0) + &page(1) + &delete("items", "k1") + &slice_state("items", r#"{"page":2}"#) + &done(21)));
    home.run(&(page(3) + &record("log", "l", "{}") + &slice_state("log", "{}") + &done(11)));
    home.assert_whole();
    home.execute(sql);
    let damage = home.reader().verify(|_, _| {}).expect("readable");
    damage.iter().map(ToString::to_string).collect()
}

#[test]
fn a_cursor_ahead_of_its_slice_is_named() {
    let found = broken_by("UPDATE cursors SET seq = seq + 1 WHERE stream = 1");
    assert!(found.iter().any(|what| what.starts_with("cursors row 1: A3: \"items\" is at")), "{found:?}");
    let found = broken_by("UPDATE commits SET slice = 9 WHERE id = 1");
    assert_eq!(found, ["commits row 1: A3: it is ahead of the last slice that was written"]);
    let found = broken_by("DELETE FROM commits WHERE stream = 2");
    assert!(found.iter().any(|what| what.starts_with("cursors row 2: A3: \"log\" is at")), "{found:?}");
}

#[test]
fn commits_and_epochs_that_go_back_are_named() {
    let found = broken_by("UPDATE commits SET seq = 1 WHERE id = 3");
    assert!(found.iter().any(|what| what.starts_with("commits row 3: A4:")), "{found:?}");
    let found = broken_by("UPDATE commits SET epoch = 7 WHERE id = 2");
    assert!(found.iter().any(|what| what.starts_with("commits row 2: L1:")), "{found:?}");
    let found = broken_by("UPDATE runs SET epoch = 1 WHERE id = 1; UPDATE runs SET epoch = 0 WHERE id = 2");
    assert!(found.iter().any(|what| what.starts_with("runs row 2: L2:")), "{found:?}");
    let found = broken_by("UPDATE meta SET value = 1 WHERE name = 'epoch'");
    assert!(found.iter().any(|what| what.starts_with("meta: L2:")), "{found:?}");
}

#[test]
fn ends_without_reason_and_tombstones_where_nothing_is_deleted_are_named() {
    let found = broken_by("UPDATE runs SET reason = NULL WHERE id = 2");
    assert_eq!(found, ["runs row 2: P3: it ended without a reason, or has a reason and no end"]);
    let found = broken_by("UPDATE streams SET semantics = 'append_only' WHERE id = 1");
    assert!(found.iter().any(|what| what.contains("A11: a tombstone in a stream that only grows")), "{found:?}");
}

#[test]
fn a_store_that_another_program_reads_can_be_put_back_under_it() {
    let home = Home::new();
    home.run(&(page(0) + &done(10)));
    let file = back_up(&home, "backup");
    home.run(&(page(1) + &done(10)));
    let reader = home.reader();
    assert_eq!(reader.streams("c").expect("streams")[0].records, 20);
    put_back(&home, &file).expect("restored");
    assert_eq!(reader.streams("c").expect("streams")[0].records, 10, "it sees what is there now");
    drop(Store::open(&home.path()).expect("a store"));
    home.assert_whole();
}

#[test]
fn triggers_and_views_that_are_not_ours_are_named() {
    let trigger = "CREATE TRIGGER t AFTER INSERT ON versions BEGIN DELETE FROM gaps; END";
    assert_eq!(broken_by(trigger), ["t: trigger: Gleaner did not make it"]);
    assert_eq!(broken_by("CREATE VIEW v AS SELECT 1"), ["v: view: Gleaner did not make it"]);
    let other = "DROP VIEW \"c.items\"; CREATE VIEW \"c.items\" AS SELECT key FROM records";
    assert_eq!(broken_by(other), ["c.items: view: it is missing, or not the one that Gleaner makes"]);
    assert_eq!(broken_by("DROP VIEW \"c.log\""), ["c.log: view: it is missing, or not the one that Gleaner makes"]);
    assert_eq!(
        broken_by("DROP INDEX events_of_run"),
        ["events_of_run: index: it is missing, or not the one that Gleaner makes"]
    );
}

#[test]
fn rows_without_a_hash_are_read_and_their_references_followed() {
    let cases = [
        ("UPDATE connections SET manifest = '{}'", "connections row 1: its manifest cannot be read"),
        ("UPDATE connections SET settings = '{'", "connections row 1: its settings cannot be read"),
        ("UPDATE connections SET state = 'gone'", "connections row 1: its state is none that there is"),
        ("UPDATE runs SET reason = 'tired' WHERE id = 2", "runs row 2: its reason is none that there is"),
        (
            "UPDATE runs SET withheld = '[' WHERE id = 1",
            "runs row 1: which checkpoints it committed or withheld cannot be read",
        ),
        ("UPDATE runs SET connection = 7 WHERE id = 1", "runs row 1: its connection is not in connections"),
        ("UPDATE runs SET collected = -1 WHERE id = 1", "runs row 1: a count is less than zero"),
        ("INSERT INTO events VALUES (5, 1, 0, 'progress', '{')", "events row 5: it is no message of a connector"),
        ("INSERT INTO events VALUES (5, 1, 0, 'rumor', '{}')", "events row 5: it is no message of a connector"),
        ("INSERT INTO events VALUES (5, 9, 0, 'progress', '{}')", "events row 5: its run is not in runs"),
        (
            "INSERT INTO listings VALUES (1, 'items', 1, 3, -1, 0, 0, 0, 0, 0, NULL)",
            "listings row 1: a count is less than zero",
        ),
        ("INSERT INTO staged VALUES (1, 9, '{}', 1)", "staged row 9: its stream is not in streams"),
        ("DELETE FROM meta WHERE name = 'store_id'", "meta: the store has no id"),
    ];
    for (sql, expected) in cases {
        let found = broken_by(sql);
        assert!(found.iter().any(|what| what == expected), "{sql}: {found:?}");
    }
}

#[test]
fn a_quarantined_record_that_cannot_be_read_is_named() {
    let insert = |body: &str| {
        format!(
            "INSERT INTO quarantine (id, stream, key, body, pointer, run, stored_at) VALUES (3, 1, 'k', '{body}', '', 1, 0);
             UPDATE streams SET quarantined = quarantined + 1 WHERE id = 1"
        )
    };
    assert_eq!(broken_by(&insert("{")), ["quarantine row 3: its key or its body cannot be read"]);
    assert_eq!(broken_by(&insert("{}")), [] as [String; 0], "one that can be read is no damage");
}
