//! The ground gives way: a full disk, a device that fails to sync, files that are locked, read-only,
//! foreign, newer, cut or changed at rest. Each time there is a clear error, everything that was
//! acknowledged is there afterwards, and nothing is there by half.
//!
//! Failures are made by the kernel or by `strace`, never by a switch in the code under test. A test
//! that needs root says so when it is not root, and does nothing else.

#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests wait, and say what they leave out")]

use crate::world::{
    Driven, Home, MANIFEST, Sitting, coverage, delete, done, drive, full_size, gap, ingest_arguments, now, record,
    slice_state, state,
};
use gleaner_engine::Steady;
use gleaner_store::{GapFilter, Holder, LeaseOn, Reader, Store, StoreError};
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const DRIVER: &str = env!("CARGO_BIN_EXE_store-driver");
const SLICE: u64 = 500;
const RECORDS: u64 = 12 * SLICE;

/// Twelve slices of half a megabyte each: the log is moved into the file in between.
fn write_slices(pipe: &mut dyn Write) -> std::io::Result<()> {
    let body = format!("{{\"p\":\"{}\"}}", "p".repeat(1000));
    for n in 1..=RECORDS {
        pipe.write_all(record("log", &n.to_string(), &body).as_bytes())?;
        if n % SLICE == 0 {
            pipe.write_all(slice_state("log", &format!("{{\"next\":{n}}}")).as_bytes())?;
        }
    }
    pipe.write_all(done(RECORDS).as_bytes())
}

/// The driver behind another program.
fn under(program: &str, options: &[&str], home: &Home) -> Command {
    let mut command = Command::new(program);
    command.args(options).arg(DRIVER).args(ingest_arguments(home));
    command
}

fn traced(home: &Home, inject: &str) -> (Driven, String) {
    let log = home.at("strace.log");
    let output = log.to_str().expect("a path");
    let mut options = vec!["-y", "-o", output, "-e", "trace=fsync,fdatasync"];
    if !inject.is_empty() {
        options.extend(["-e", inject]);
    }
    let driven = drive(under("strace", &options, home), write_slices);
    (driven, fs::read_to_string(&log).expect("a log"))
}

/// Everything that was acknowledged is there, and whole slices only, each with its cursor.
fn assert_no_half(home: &Home, driven: &Driven) {
    drop(home.open());
    let reader = home.reader();
    assert_eq!(reader.verify(|_, _| {}).expect("readable"), []);
    let Some(connection) = reader.connections().expect("readable").pop() else {
        assert_eq!(driven.saved(), 0);
        return;
    };
    let records = connection.totals.records;
    assert!(records >= driven.saved(), "{records} of {}", driven.saved());
    assert_eq!(records % SLICE, 0, "a slice is there by half");
    let cursor = home.cursor("log").unwrap_or_else(|| "{\"next\":0}".to_owned());
    assert_eq!(cursor, format!("{{\"next\":{records}}}"));
}

/// What failed is repaired: the next run ends well, and everything is there.
fn assert_next_run_ends_well(home: &Home) {
    let driven = drive(under("env", &[], home), write_slices);
    assert!(driven.success, "{}", driven.stderr);
    assert_eq!(home.reader().connections().expect("readable")[0].totals.records, RECORDS);
    home.assert_whole();
}

/// The store's own files, and not the folder: SQLite does not tell when syncing that fails.
fn store_syncs(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("sync(") && line.contains("store.db")).collect()
}

/// The numbers of the syncs that are tried: all, or one of each kind.
fn syncs_to_fail(log: &str) -> Vec<usize> {
    let is_of_log = |line: &str| line.contains("store.db-wal");
    let all = log.lines().filter(|line| line.contains("sync(")).collect::<Vec<_>>();
    // Before there is a log, nothing was saved, and SQLite undoes the first page by itself.
    let first = all.iter().position(|line| is_of_log(line)).expect("a log is made");
    let of_store = |&at: &usize| all[at].contains("store.db");
    let candidates = (first..all.len()).filter(of_store).collect::<Vec<_>>();
    let moved = candidates.iter().filter(|&&at| all[at].contains("store.db>")).copied().collect::<Vec<_>>();
    let (opened, later) = (moved[0], moved[1]);
    let few = [first, opened - 1, opened, opened + 3, later - 3, later - 1, later, all.len() - 1];
    let chosen = |at: &usize| full_size() || few.contains(at);
    // From 1, as strace counts.
    candidates.into_iter().filter(chosen).map(|at| at + 1).collect()
}

#[test]
fn a_sync_that_fails_once_stops_the_process_and_is_never_tried_again() {
    let (whole, log) = traced(&Home::new(), "");
    assert!(whole.success, "{}", whole.stderr);
    let at_close = store_syncs(&log).len() - 2;
    for number in syncs_to_fail(&log) {
        let home = Home::new();
        let (driven, log) = traced(&home, &format!("inject=fsync,fdatasync:error=EIO:when={number}"));
        let syncs = store_syncs(&log);
        let failed = syncs.iter().position(|line| line.contains("INJECTED")).expect("one failed");
        assert_eq!(failed + 1, syncs.len(), "sync {number} was tried again: {:?}", &syncs[failed..]);
        // The log is whole when the file is closed: what fails then has lost nothing.
        if failed < at_close {
            assert!(!driven.success, "sync {number}");
            assert!(
                driven.stderr.contains("failed (") && driven.stderr.contains("Check the disk"),
                "{}",
                driven.stderr
            );
        }
        assert_no_half(&home, &driven);
        assert_next_run_ends_well(&home);
    }
}

#[test]
fn a_device_that_fails_for_ever_is_asked_once() {
    let home = Home::new();
    let (driven, log) = traced(&home, "inject=fsync,fdatasync:error=EIO:when=20+");
    assert!(driven.stderr.contains("stopped to protect the data"), "{}", driven.stderr);
    assert!(driven.saved() > 0);
    assert_eq!(log.matches("INJECTED").count(), 1, "{log}");
    assert_no_half(&home, &driven);
}

#[test]
fn a_store_that_could_not_be_made_to_keep_a_log_is_not_used_without_one() {
    // The change to a log is answered before it is written; the answer must not be believed.
    for number in [1, 3, 4] {
        let home = Home::new();
        let (driven, _) = traced(&home, &format!("inject=fsync,fdatasync:error=EIO:when={number}"));
        assert!(!driven.success && driven.stdout.is_empty(), "sync {number}: {}", driven.stdout);
        assert!(driven.stderr.contains("stopped to protect the data"), "{}", driven.stderr);
        assert!(Store::open(&home.path()).is_ok());
    }
}

#[test]
fn a_disk_that_becomes_full_loses_only_the_slice_that_did_not_fit() {
    let steps: &[u32] = if full_size() { &[20, 90, 300, 700, 1200, 1700, 2300] } else { &[90, 700, 1700] };
    for step in steps {
        let home = Home::new();
        let inject = format!("inject=pwrite64:error=ENOSPC:when={step}+");
        let driven = drive(under("strace", &["-o", "/dev/null", "-e", &inject], &home), write_slices);
        assert!(!driven.success);
        assert!(driven.stderr.contains("is full: the last slice was not saved"), "{step}: {}", driven.stderr);
        assert_no_half(&home, &driven);
        assert_next_run_ends_well(&home);
    }
}

fn is_root() -> bool {
    let root = fs::metadata("/proc/self").expect("a process").uid() == 0;
    if !root {
        eprintln!("left out: needs root");
    }
    root
}

fn run_tool(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).stderr(Stdio::piped()).output().expect("it starts");
    assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Mounted until dropped.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).status().expect("umount");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

#[test]
fn a_small_disk_fills_up_and_after_making_room_the_run_goes_on() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let _small = Mounted(home.folder.path().to_owned());
    run_tool("mount", &["-t", "tmpfs", "-o", "size=5m", "tmpfs", text(home.folder.path())]);
    let driven = drive(under("env", &[], &home), write_slices);
    assert!(driven.stderr.contains("is full: the last slice was not saved"), "{}", driven.stderr);
    assert!(driven.saved() > 0, "some fitted");
    run_tool("mount", &["-o", "remount,size=100m", text(home.folder.path())]);
    assert_no_half(&home, &driven);
    assert_next_run_ends_well(&home);
}

#[test]
fn keys_of_an_account_that_find_no_room_are_a_full_disk_and_nothing_is_half() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let temporary = Mounted(home.at("temporary"));
    fs::create_dir(&temporary.0).expect("a folder");
    run_tool("mount", &["-t", "tmpfs", "-o", "size=1m", "tmpfs", text(&temporary.0)]);
    let mut command = under("env", &[], &home);
    command.env("SQLITE_TMPDIR", &temporary.0);
    let driven = drive(command, |pipe| {
        pipe.write_all((record("items", "k", "{}") + &slice_state("items", "{\"page\":1}")).as_bytes())?;
        pipe.write_all(br#"{"type":"DETAIL_COVERAGE","stream":"details","state_stream":"items","required_keys":["0""#)?;
        (0..400_000).try_for_each(|n| write!(pipe, ",\"{n:020}\""))?;
        pipe.write_all(b"],\"hydrated_keys\":[],\"reference_only\":true}\n")?;
        pipe.write_all(done(1).as_bytes())
    });
    assert!(!driven.success);
    assert!(driven.stderr.contains("is full"), "{}", driven.stderr);
    assert_eq!((driven.saved(), home.cursor("items").as_deref()), (1, Some("{\"page\":1}")));
    home.assert_whole();
}

#[test]
fn a_write_that_ends_early_is_a_failure_and_leaves_no_half() {
    // The kernel writes up to this size and no further: the write across it is a short one.
    for bytes in ["700001", "3300001"] {
        let home = Home::new();
        let limit = format!("--fsize={bytes}");
        let driven = drive(under("env", &["--ignore-signal=XFSZ", "prlimit", &limit], &home), write_slices);
        assert!(driven.stderr.contains("stopped to protect the data"), "{bytes}: {}", driven.stderr);
        assert_no_half(&home, &driven);
        assert_next_run_ends_well(&home);
    }
}

#[test]
fn a_process_that_may_open_no_more_files_says_so_or_does_its_work() {
    for files in [4, 6, 7, 8] {
        let home = Home::new();
        let driven = drive(under("prlimit", &[&format!("--nofile={files}")], &home), write_slices);
        if driven.success {
            assert_eq!(driven.saved(), RECORDS);
        } else {
            let said = ["cannot be opened", "Too many open files"].iter().any(|word| driven.stderr.contains(word));
            assert!(said, "{files}: {}", driven.stderr);
        }
        assert_next_run_ends_well(&home);
    }
}

/// Names and bytes of all files beside the store.
fn folder_bytes(home: &Home) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(home.folder.path()).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files = entries.filter(|path| path.is_file()).collect::<Vec<_>>();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

fn refused_unchanged(home: &Home) -> StoreError {
    let before = folder_bytes(home);
    let error = Store::open(&home.path()).expect_err("it is refused");
    assert!(Reader::open(&home.path()).is_err(), "a reader does not take it either");
    assert!(before == folder_bytes(home), "a file was changed");
    error
}

#[test]
fn a_store_of_a_newer_version_is_refused_with_both_versions_and_not_touched() {
    let home = Home::new();
    drop(home.open());
    home.execute("PRAGMA journal_mode=DELETE; PRAGMA user_version=99");
    let error = refused_unchanged(&home);
    assert!(matches!(error, StoreError::NewerSchema { found: 99, known: 7, .. }), "{error}");
    assert!(error.to_string().contains("99"), "{error}");
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_not_touched() {
    let home = Home::new();
    home.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    assert!(matches!(refused_unchanged(&home), StoreError::NotAStore(_)));
    for bytes in [&b"xy"[..], b"not a database at all\n", &[0x55; 5000]] {
        fs::write(home.path(), bytes).expect("a file");
        let error = refused_unchanged(&home);
        assert!(matches!(error, StoreError::NotAStore(_)), "{error}");
    }
}

#[test]
fn a_link_in_place_of_the_file_is_refused() {
    let (home, other) = (Home::new(), Home::new());
    drop(other.open());
    symlink(other.path(), home.path()).expect("a link");
    let error = refused_unchanged(&home);
    assert!(matches!(error, StoreError::CannotOpen { .. }), "{error}");
    assert!(error.to_string().contains("symbolic link"), "{error}");
    // The folder may be reached through one.
    symlink(other.folder.path(), home.at("linked")).expect("a link");
    assert!(Store::open(&home.at("linked/store.db")).is_ok());
}

#[test]
fn files_are_the_owners_alone_whatever_the_process_allows() {
    let home = Home::new();
    let [verb, store, manifest] = ingest_arguments(&home);
    let mut command = Command::new("sh");
    command.args(["-c", "umask 0; exec \"$0\" \"$@\"", DRIVER]).args([verb, store, manifest]);
    let mut seen = Vec::new();
    let driven = drive(command, |pipe| {
        pipe.write_all(slice_state("log", "{}").as_bytes())?;
        pipe.flush()?;
        // While it works there are a log and its index.
        let end = Instant::now() + Duration::from_secs(10);
        while !(home.at("store.db-wal").exists() && home.at("store.db.seen").exists()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        for name in ["store.db", "store.db-wal", "store.db-shm", "store.db.seen"] {
            seen.push((name, fs::metadata(home.at(name))?.permissions().mode() & 0o777));
        }
        pipe.write_all(done(0).as_bytes())
    });
    assert!(driven.success, "{}", driven.stderr);
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|(_, mode)| *mode == 0o600), "{seen:?}");
}

#[test]
fn a_store_that_may_not_be_written_is_named_and_stays_as_it_is() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    assert!(drive(under("env", &[], &home), write_slices).success);
    let before = dump_of(&home);
    let mount = Mounted(home.folder.path().to_owned());
    run_tool("mount", &["--bind", text(home.folder.path()), text(home.folder.path())]);
    run_tool("mount", &["-o", "remount,ro,bind", text(home.folder.path())]);
    let mut command = Command::new(DRIVER);
    command.arg("ingest").args([home.path(), home.at("manifest.json")]);
    let driven = drive(command, write_slices);
    assert!(!driven.success);
    let said = ["cannot be opened", "cannot be written"].iter().any(|word| driven.stderr.contains(word));
    assert!(said && driven.stderr.contains("store.db"), "{}", driven.stderr);
    drop(mount);
    run_tool("chattr", &["+i", text(&home.path())]);
    let driven = drive(under("env", &[], &home), write_slices);
    run_tool("chattr", &["-i", text(&home.path())]);
    assert!(driven.stderr.contains("cannot be written: check the permissions"), "{}", driven.stderr);
    assert_eq!(before, dump_of(&home));
}

#[test]
fn a_folder_of_somebody_else_is_refused_with_what_to_check() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    drop(home.open());
    ingest_arguments(&home);
    for (folder, file) in [(0o755, 0o444), (0o755, 0o600), (0o700, 0o644)] {
        fs::set_permissions(home.path(), fs::Permissions::from_mode(file)).expect("permissions");
        fs::set_permissions(home.folder.path(), fs::Permissions::from_mode(folder)).expect("permissions");
        let driven = drive(under("setpriv", &["--reuid=65534", "--clear-groups"], &home), write_slices);
        assert!(!driven.success);
        let said = ["cannot be opened", "cannot be written", "Permission denied"];
        assert!(said.iter().any(|word| driven.stderr.contains(word)), "{folder:o} {file:o}: {}", driven.stderr);
    }
}

#[test]
fn a_store_that_somebody_locks_is_waited_for_and_the_process_named() {
    let home = Home::new();
    let store = home.open();
    let mut other = Command::new("sqlite3").arg(home.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let other = other.as_mut().expect("sqlite3 starts");
    let mut stdin = other.stdin.take().expect("a pipe");
    stdin.write_all(b"BEGIN IMMEDIATE;\n.print locked\n").expect("written");
    let mut answer = [0; 7];
    std::io::Read::read_exact(other.stdout.as_mut().expect("a pipe"), &mut answer).expect("an answer");
    let began = Instant::now();
    let mut waiting = store;
    let error = waiting.acquire(&[LeaseOn::Serve], &Holder::current().expect("a process"), now().wall);
    let error = error.expect_err("it is locked");
    assert!(matches!(error, StoreError::Busy { holder: Some(pid), .. } if pid == other.id()), "{error:?}");
    assert!(error.to_string().contains(&format!("locked by process {}, waited 10 s", other.id())), "{error}");
    let waited = began.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(20)).contains(&waited), "{waited:?}");
    crate::world::kill(other);
    assert!(waiting.acquire(&[LeaseOn::Serve], &Holder::current().expect("a process"), now().wall).is_ok());
}

/// A store with something in every table.
fn full_store() -> Home {
    let home = Home::new();
    for round in 0..3 {
        let mut lines = String::new();
        for n in 0..60 {
            lines.push_str(&record("items", &format!("k{n}"), &format!("{{\"id\":{n},\"v\":{}}}", n % 2 * round)));
        }
        for n in 0..30 {
            lines.push_str(&gap("details", &format!("d{n}")));
        }
        lines.push_str(&delete("items", &format!("k{round}")));
        lines.push_str(&slice_state("log", &format!("{{\"page\":{round}}}")));
        lines.push_str(&state("items", &format!("{{\"round\":{round}}}")));
        lines.push_str(&coverage(&["a"], &["a"], &[]));
        home.run(&(lines + &done(61)));
    }
    home.assert_whole();
    home
}

/// All records with their history, all gaps, all cursors.
fn contents(reader: &Reader) -> Result<String, StoreError> {
    let mut text = String::new();
    for stream in reader.streams("c")? {
        for record in reader.records("c", &stream.name, None, 1000)? {
            for version in reader.history("c", &stream.name, &record.key, None, 1000)? {
                let (seq, at) = (version.seq, version.stored_at);
                let parts = (version.key, version.body, version.deleted, version.emitted_at);
                writeln!(text, "{seq} {at:?} {parts:?}").expect("a text");
            }
        }
    }
    let every = GapFilter { closed_too: true, ..GapFilter::default() };
    for gap in reader.gaps("c", every, 0, 1000)? {
        writeln!(text, "{gap:?}").expect("a text");
    }
    for cursor in reader.bookmarks::<Steady>("c")? {
        writeln!(text, "{} {} {:?}", cursor.stream(), cursor.token().as_str(), cursor.seq()).expect("a text");
    }
    Ok(text)
}

fn dump_of(home: &Home) -> String {
    contents(&home.reader()).expect("readable")
}

/// Whether a changed file is noticed: it cannot be opened or read, or `verify` finds something.
fn is_noticed(path: &Path) -> bool {
    let Ok(reader) = Reader::open(path) else { return true };
    reader.verify(|_, _| {}).map_or(true, |damage| !damage.is_empty())
}

#[test]
fn a_byte_that_changed_at_rest_is_found_or_changed_nothing_that_is_stored() {
    let home = full_store();
    let (whole, before) = (fs::read(home.path()).expect("a file"), dump_of(&home));
    let copy = home.at("copy.db");
    let mut random = fastrand::Rng::with_seed(12);
    let (mut found, tries) = (0, if full_size() { 3000 } else { 150 });
    let mut missed = Vec::new();
    for _ in 0..tries {
        let (at, change) = (random.usize(..whole.len()), random.u8(1..));
        let mut bytes = whole.clone();
        bytes[at] ^= change;
        fs::write(&copy, &bytes).expect("a file");
        if is_noticed(&copy) {
            found += 1;
            continue;
        }
        let after = Reader::open(&copy).and_then(|reader| contents(&reader));
        if after.as_ref().ok() != Some(&before) {
            missed.push((at, whole[at], bytes[at]));
        }
    }
    eprintln!("a12: {found} of {tries} changes found, {} missed", missed.len());
    assert!(missed.is_empty(), "byte, before, after: {missed:?}");
    assert!(found > 0);
}

#[test]
fn a_file_that_was_cut_is_never_taken_for_whole() {
    let home = full_store();
    let whole = fs::read(home.path()).expect("a file");
    let copy = home.at("copy.db");
    for part in 1..40 {
        let length = whole.len() * part / 40;
        fs::write(&copy, &whole[..length]).expect("a file");
        assert!(is_noticed(&copy), "cut to {length} of {}", whole.len());
    }
}

#[test]
fn a_log_that_was_deleted_leaves_an_older_store_that_is_whole_and_says_that_it_is_older() {
    let home = Home::new();
    drop(home.open());
    let mut sitting = Sitting::begin(home.open(), "c", MANIFEST);
    sitting.feed((record("items", "k", "{}") + &slice_state("items", "{}")).as_bytes()).expect("works");
    // What is on disk without the log, while the process has not moved it yet.
    let lost = Home::new();
    for name in ["store.db", "store.db.seen"] {
        fs::copy(home.at(name), lost.at(name)).expect("a copy");
    }
    sitting.feed(done(1).as_bytes()).expect("works");
    sitting.end().expect("works");
    lost.assert_whole();
    let mut store = lost.open();
    let holder = Holder::current().expect("a process");
    let error = store.acquire(&[LeaseOn::Connection("c")], &holder, now().wall).expect_err("something is missing");
    assert!(matches!(error, StoreError::OlderThanSeen { .. }), "{error}");
}
