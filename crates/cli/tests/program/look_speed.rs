//! `status` and `why` on a store with a million records and ten thousand gaps, and an export of it.
//!
//! What they cost in steps is tested in the store. Here it is what a user waits, with slack for a program that
//! was not optimised and a machine that does other things; `GLEANER_TEST_ALL` holds them to the promise.

use crate::collect::Shop;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Rows that look like those of a long-lived connection. Nobody verifies them, so they have no hashes.
const FILL: &str = "
    PRAGMA synchronous = OFF;
    BEGIN;
    WITH RECURSIVE n (n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM n WHERE n < 1000009)
    INSERT INTO versions SELECT n, 1, printf('k%07d', n), printf('{\"id\": %d, \"total\": 12.50, \"note\": \"some words\"}', n),
        0, '2031-01-01T00:00:00Z', 1926561906789, 1, NULL, 0 FROM n;
    INSERT OR IGNORE INTO records SELECT stream, key, seq FROM versions;
    WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000)
    INSERT INTO gaps (identity, connection, stream, grant_id, record_key, record_key_is_number, state, attempts, reason,
        run_cap, since, due, run, hash) SELECT CAST(printf('%016d', n) AS BLOB), 1, 1, 'all', printf('g%d', n), 0, 'pending', 1,
        iif(n % 2, 'not_found', 'temporary_unavailable'), 0, 1926561906789, 0, 1, 0 FROM n;
    UPDATE streams SET records = 1000001, versions = 1000001, gaps_pending = 10000, last_seq = 1000009 WHERE id = 1;
    UPDATE meta SET value = 1000010 WHERE name = 'next_seq';
    COMMIT;
    PRAGMA wal_checkpoint(TRUNCATE);";

/// The shortest of several: what the command needs, and not its neighbours.
fn fastest(shop: &Shop, arguments: &[&str]) -> Duration {
    let once = |_| {
        let began = Instant::now();
        assert_eq!(shop.gleaner(arguments).code, 0, "{arguments:?}");
        began.elapsed()
    };
    (0..7).map(once).min().unwrap()
}

#[test]
fn a_million_records_and_ten_thousand_gaps_are_looked_at_in_no_time() {
    let shop = Shop::new("a-million");
    assert_eq!(shop.run("record(1); slice(1); done(1); end()", &[]).code, 0);
    let store = shop.root.join("home/store.db");
    let filled = Command::new("sqlite3").arg(&store).arg(FILL).stdout(Stdio::null()).status().unwrap();
    assert!(filled.success());
    let slack = if std::env::var_os("GLEANER_TEST_ALL").is_some() { 1 } else { 5 };
    for (arguments, millis) in [(["status", "--json"], 50), (["why", "shop"], 100), (["coverage", "shop"], 100)] {
        let took = fastest(&shop, &arguments);
        assert!(took < Duration::from_millis(millis) * slack, "{arguments:?} took {took:?}");
    }
    let gaps = shop.gleaner(&["gaps", "shop", "--json"]).stdout;
    assert_eq!(gaps.lines().count(), 10_000);
    let mut export = shop.command(&["export", "shop"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (status, mut peak) = (format!("/proc/{}/status", export.id()), 0);
    while export.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.and_then(|kib| kib.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(export.wait().unwrap().success());
    assert!(peak > 0 && peak < 64 * 1024, "{peak} KiB for an export of a million records");
    an_interrupted_export_leaves_nothing(&shop);
    fs::remove_dir_all(shop.root.join("home")).unwrap();
}

/// Takes long enough only with a million records.
fn an_interrupted_export_leaves_nothing(shop: &Shop) {
    let folder = shop.root.join("exports");
    fs::create_dir_all(&folder).unwrap();
    let files = || fs::read_dir(&folder).unwrap().count();
    let mut export =
        shop.command(&["export", "shop", "--output", "exports/out"]).stderr(Stdio::null()).spawn().unwrap();
    while files() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-INT", &export.id().to_string()]).status().unwrap().success());
    assert_eq!(export.wait().unwrap().code(), Some(130));
    assert_eq!(files(), 0);
}
