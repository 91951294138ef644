//! What looking costs, in steps of SQLite's machine: the same on every machine, however busy it is.
//!
//! A store with many more records must not make the commands that look any dearer, and a page of gaps must
//! cost what it shows.

use super::super::{GapFilter, PAGE_ROWS_MAX, Reader};
use crate::store::Store;
use gleaner_engine::WallTime;
use gleaner_protocol::{Manifest, ManifestOrigin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MANIFEST: &str = r#"{"connector_id":"x","connector_key":"x","version":"1","streams":[
    {"name":"a","semantics":"mutable_state"},{"name":"b","semantics":"mutable_state"}]}"#;

/// So many steps are counted as one.
const STEPS: i32 = 100;

/// A store with so many records and gaps of connection `c`, and as many gaps of another one before them.
fn store(records: u64, gaps: u64) -> (tempfile::TempDir, Reader) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let manifest = Manifest::parse(MANIFEST.as_bytes(), ManifestOrigin::Foreign).unwrap();
    let mut store = Store::open(&path).unwrap();
    for name in ["c", "other"] {
        store.register(name, MANIFEST, &manifest, WallTime::default()).unwrap();
    }
    let numbers = |to: u64| format!("WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {to})");
    let sql = format!(
        "{} INSERT INTO versions SELECT n, 1 + n % 4, 'k' || n, '{{}}', 0, NULL, 0, 1, NULL, 0 FROM n;
         INSERT INTO records SELECT stream, key, seq FROM versions;
         UPDATE streams SET records = {records} / 4, last_seq = {records};
         {} INSERT INTO gaps (id, identity, connection, stream, grant_id, record_key, record_key_is_number, state,
         attempts, reason, run_cap, since, due, run, hash) SELECT n, CAST(n AS BLOB), iif(n > {gaps}, 1, 2), iif(n > {gaps}, 1, 3), 'all', 'k',
         0, iif(n % 10 = 0, 'recovered', 'pending'), 0, iif(n % 3 = 0, 'rate_limited', 'not_found'), 0, 0, 0, 1, 0
         FROM n;
         {} INSERT INTO runs (run_id, connection, track, epoch, lease, started_at, ended_at, reason)
         SELECT 'r' || n, 1, 'steady', 1, 'l', 0, 0, 'connector_failed' FROM n;",
        numbers(records),
        numbers(2 * gaps),
        numbers(500)
    );
    store.connection.execute_batch(&format!("BEGIN; {sql} COMMIT")).unwrap();
    drop(store);
    let reader = Reader::open(&path).unwrap();
    (folder, reader)
}

/// The steps that this takes.
fn cost<R>(reader: &mut Reader, look: impl FnOnce(&Reader) -> R) -> (u64, R) {
    let steps = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&steps);
    let count = move || {
        counted.fetch_add(STEPS as u64, Ordering::Relaxed);
        false
    };
    reader.connection.progress_handler(STEPS, Some(count)).unwrap();
    let found = look(reader);
    reader.connection.progress_handler(0, None::<fn() -> bool>).unwrap();
    (steps.load(Ordering::Relaxed), found)
}

#[test]
fn looking_costs_the_same_with_a_hundred_times_the_records() {
    let look = |reader: &Reader| {
        reader.connections().unwrap();
        reader.evidence("c").unwrap();
        reader.coverage("c").unwrap();
        reader.last_change_of("c", "a").unwrap();
        reader.changes_of("c", "a", reader.last_change_of("c", "a").unwrap() - 1, 9).unwrap();
    };
    let (_small, mut few) = store(400, 10);
    let (_large, mut many) = store(40_000, 10);
    let (few, many) = (cost(&mut few, look).0, cost(&mut many, look).0);
    assert!(many <= few + few / 10 && few < 50_000, "{few} and {many} steps");
}

#[test]
fn ten_thousand_gaps_are_paged_and_counted_in_steps_that_grow_with_them() {
    let (_folder, mut reader) = store(10, 10_000);
    let page = |reader: &mut Reader, after: i64| {
        cost(reader, |reader| reader.gaps("c", GapFilter::default(), after, 100).unwrap())
    };
    let (first, gaps) = page(&mut reader, 0);
    assert_eq!(gaps.len(), 100);
    let last = reader.gaps("c", GapFilter::default(), 15_000, PAGE_ROWS_MAX).unwrap()[0].id;
    let (late, gaps) = page(&mut reader, last);
    assert_eq!(gaps.len(), 100);
    // A page that sorts would take some steps for each of the nine thousand.
    assert!(first < 10_000 && late < 10_000, "{first} and {late} steps for a hundred gaps");
    let (counting, counts) = cost(&mut reader, |reader| reader.gap_counts("c").unwrap());
    assert_eq!(counts.iter().map(|count| count.count).sum::<u64>(), 9_000);
    assert!(counting < 40 * 10_000, "{counting} steps to count");
}
