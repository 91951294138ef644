//! What the commands that look are answered: how complete a stream is, pages that fit into memory, one moment
//! for a whole export, and questions in SQL that read and do nothing else.

#![allow(clippy::disallowed_methods, reason = "tests know what time it is, and wait")]

use crate::world::{Home, MANIFEST, Sitting, Terms, coverage, delete, done, gap, lease, record, slice_state, state};
use gleaner_engine::{Misfit, Validate};
use gleaner_protocol::{CoveragePolicy, RawJson};
use gleaner_store::{
    Cell, GapFilter, PAGE_ROWS_MAX, QueryError, QuerySink, Reader, Share, StoreError, StreamCoverage, WhyUnknown,
};

fn of(home: &Home, stream: &str) -> StreamCoverage {
    let all = home.reader().coverage("c").expect("readable");
    all.into_iter().find(|coverage| coverage.summary.name == stream).expect("a stream")
}

fn share(home: &Home, stream: &str) -> Share {
    of(home, stream).share(CoveragePolicy::Collect)
}

#[test]
fn a_share_needs_a_listing_and_is_never_whole_while_something_is_missing() {
    let home = Home::new();
    home.run(&((0..3).map(|n| record("details", &n.to_string(), "{}")).collect::<String>() + &done(3)));
    assert_eq!(share(&home, "details"), Share::Unknown(WhyUnknown::NoListing));
    assert_eq!(of(&home, "details").listed(), None);
    let listed = gap("details", "9") + &coverage(&["0", "1", "2", "9"], &["0", "1", "2"], &["9"]);
    home.run(&(listed + &state("items", "{}") + &done(0)));
    let details = of(&home, "details");
    assert_eq!((details.listed(), details.missing()), (Some(4), 1));
    assert_eq!(share(&home, "details"), Share::Known(7500));
    // A thousand of a thousand and one would round to 100 %.
    let many = (0..99_999).map(|n| record("details", &n.to_string(), "{}")).collect::<String>();
    home.run(&(many + &done(99_999)));
    assert_eq!(share(&home, "details"), Share::Known(9999));
    let id = home.reader().gaps("c", GapFilter::default(), 0, 9).expect("readable")[0].gap_id.clone();
    let mut sitting = Sitting::begin(home.open(), "c", MANIFEST);
    let ask = "{\"type\":\"DETAIL_GAPS_PAGE_REQUEST\",\"request_id\":\"p\",\"streams\":[\"details\"],\"reference_only\":true}\n";
    let recovered = format!(
        "{{\"type\":\"DETAIL_GAP_RECOVERED\",\"stream\":\"details\",\"gap_id\":\"{id}\",\"reference_only\":true}}\n"
    );
    let lines = ask.to_owned() + &record("details", "9", "{}") + &recovered + &done(1);
    sitting.feed(lines.as_bytes()).expect("works");
    sitting.end().expect("works");
    assert_eq!(share(&home, "details"), Share::Known(10_000));
    assert_eq!(of(&home, "details").share(CoveragePolicy::Unsupported), Share::Unknown(WhyUnknown::NotCollected));
}

#[test]
fn what_a_listing_left_open_is_missing_until_it_is_a_gap() {
    let home = Home::new();
    // The cursor is withheld, so nothing is written as a gap.
    home.run(&(coverage(&["a", "b"], &[], &[]) + &state("items", "{}") + &done(0)));
    let details = of(&home, "details");
    let listing = details.listing.clone().expect("a listing");
    assert_eq!((listing.required, listing.unaccounted, details.missing()), (2, 2, 2));
    assert_eq!(share(&home, "details"), Share::Known(0));
    // With the cursor committed by a slice they become gaps, and are counted once.
    home.run(&(slice_state("items", "{}") + &coverage(&["a", "b"], &[], &[]) + &done(0)));
    let details = of(&home, "details");
    assert_eq!(details.listing.as_ref().map(|listing| listing.unaccounted), Some(0));
    assert_eq!((details.summary.gaps_pending, details.missing()), (2, 2));
    home.assert_whole();
    let mut store = home.open();
    let leases = lease(&mut store, "c");
    store.purge("c", &leases).expect("works");
    assert_eq!(home.sql::<i64>("SELECT count(*) FROM listings"), 0, "a purge forgets them");
}

/// Rejects bodies that say so.
#[derive(Debug)]
struct NotBad;

impl Validate for NotBad {
    fn check(&self, _stream: &str, body: &RawJson<'_>) -> Result<(), Misfit> {
        if body.as_str().contains("bad") {
            Err(Misfit { pointer: "/x".to_owned(), reason: "it is bad".to_owned() })
        } else {
            Ok(())
        }
    }
}

#[test]
fn a_listing_counts_each_key_by_what_became_of_it() {
    let home = Home::new();
    let terms = Terms { validator: Box::new(NotBad), ..Terms::default() };
    let mut sitting = Sitting::begin_with(home.open(), "c", MANIFEST, terms);
    let report = coverage(&["ok", "bad", "gap", "left-out"], &["ok", "bad"], &["gap"]);
    let report = report.replace("\"gap_keys\"", "\"optional_skip_keys\":[\"left-out\"],\"gap_keys\"");
    let records = record("details", "ok", "{}") + &record("details", "bad", "{\"x\":\"bad\"}") + &gap("details", "gap");
    sitting.feed((records + &report + &state("items", "{}") + &done(2)).as_bytes()).expect("works");
    assert_eq!(sitting.end().expect("works").violation, None);
    let details = of(&home, "details");
    let listing = details.listing.clone().expect("a listing");
    let counts = (listing.required, listing.hydrated, listing.gaps, listing.skipped, listing.unaccounted);
    assert_eq!(counts, (4, 1, 1, 1, 0));
    assert_eq!((details.listed(), details.missing(), details.skipped()), (Some(4), 2, 1));
    assert_eq!(details.share(CoveragePolicy::Collect), Share::Known(3333));
}

#[test]
fn a_part_of_a_list_and_a_skipped_stream_leave_no_share() {
    let listing = coverage(&["a"], &["a"], &[]);
    let complete = record("details", "a", "{}") + &listing + &state("items", "{}");
    let home = Home::new();
    home.run(&(complete.clone() + &done(1)));
    assert_eq!(share(&home, "details"), Share::Known(10_000));
    let skip = "{\"type\":\"SKIP_RESULT\",\"stream\":\"details\",\"reason\":\"moved\"}\n";
    home.run(&(complete.clone() + skip + &done(1)));
    assert_eq!(share(&home, "details"), Share::Unknown(WhyUnknown::Skipped));
    assert_eq!(of(&home, "details").skip_open.map(|skip| skip.why().to_owned()).as_deref(), Some("moved"));
    for rest in [
        gap("details", "backlog").replace("\"at\":\"backlog\"", "\"kind\":\"backlog\",\"ranges\":[]"),
        gap("details", "older").replace("\"at\":\"older\"", "\"watermark\":7"),
        gap("details", "k").replace("\"record_key\":\"k\",", ""),
    ] {
        let home = Home::new();
        home.run(&(complete.clone() + &rest + &done(1)));
        assert_eq!(share(&home, "details"), Share::Unknown(WhyUnknown::PartOfList), "{rest}");
    }
}

#[test]
fn gaps_are_counted_by_reason_and_own_budget_is_told_apart() {
    let home = Home::new();
    let because = |key: &str, reason: &str, more: &str| {
        gap("details", key).replace("temporary_unavailable\"", &format!("{reason}\"{more}"))
    };
    let capped = ",\"last_error\":{\"class\":\"run_cap_deferred\"}";
    let lines = because("1", "rate_limited", "")
        + &because("2", "rate_limited", "")
        + &because("3", "retry_exhausted", capped)
        + &because("4", "retry_exhausted", "");
    home.run(&(lines + &done(0)));
    let counts = home.reader().gap_counts("c").expect("readable");
    let found = counts.iter().map(|gap| (gap.reason.as_deref().unwrap_or(""), gap.run_cap, gap.count));
    let expected = [("rate_limited", false, 2), ("retry_exhausted", false, 1), ("retry_exhausted", true, 1)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn a_page_ends_where_it_would_not_fit_into_memory_and_nothing_is_left_out() {
    let home = Home::new();
    let large = "x".repeat(3_000_000);
    let body = |n: u32| format!("{{\"n\":{n},\"x\":\"{large}\"}}");
    let locator = format!("\"at\":\"{large}\"");
    for n in 0..4 {
        let key = n.to_string();
        let lines = record("items", &key, &body(n))
            + &record("items", "same", &body(n))
            + &gap("details", &key).replace(&format!("\"at\":\"{key}\""), &locator);
        home.run(&(lines + &done(2)));
    }
    let reader = home.reader();
    let first = reader.records("c", "items", None, PAGE_ROWS_MAX).expect("readable");
    assert_eq!(first.len(), 2, "two are more than a page has room for");
    let (mut keys, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = reader.records("c", "items", after.as_deref(), PAGE_ROWS_MAX).expect("readable");
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        keys.extend(page.iter().map(|record| record.key.clone()));
    }
    assert_eq!(keys, ["0", "1", "2", "3", "same"]);
    assert_eq!(reader.changes(0, PAGE_ROWS_MAX).expect("readable").len(), 2);
    assert_eq!(reader.changes_of("c", "items", 0, PAGE_ROWS_MAX).expect("readable").len(), 2);
    assert_eq!(reader.gaps("c", GapFilter::default(), 0, PAGE_ROWS_MAX).expect("readable").len(), 2);
    let newest = reader.history("c", "items", "same", None, PAGE_ROWS_MAX).expect("readable");
    let older =
        reader.history("c", "items", "same", newest.last().map(|one| one.seq), PAGE_ROWS_MAX).expect("readable");
    let versions = newest.iter().chain(&older).map(|version| version.seq).collect::<Vec<_>>();
    assert_eq!((newest.len(), versions), (2, vec![8, 6, 4, 2]));
    assert_eq!(reader.history("c", "items", "same", Some(6), 1).expect("readable")[0].seq, 4);
}

#[test]
fn an_export_is_of_one_moment() {
    let home = Home::new();
    home.run(&(record("items", "a", "{\"v\":1}") + &record("items", "b", "{\"v\":1}") + &done(2)));
    let reader = home.reader();
    let snapshot = reader.snapshot().expect("readable");
    let seen = |tombstones: bool| {
        let mut seen = Vec::new();
        let each = snapshot.each_record("c", "items", tombstones, |row| {
            seen.push((row.key.to_owned(), row.body.map(str::to_owned), row.deleted));
            // In the middle of it somebody changes all of it.
            if seen.len() == 1 {
                home.run(
                    &(record("items", "b", "{\"v\":2}")
                        + &delete("items", "a")
                        + &record("items", "c", "{}")
                        + &done(3)),
                );
            }
            Ok::<_, StoreError>(())
        });
        each.expect("readable");
        seen
    };
    let v1 = |key: &str| (key.to_owned(), Some("{\"v\":1}".to_owned()), false);
    assert_eq!(seen(true), [v1("a"), v1("b")]);
    assert_eq!(seen(false), [v1("a"), v1("b")], "also the second time");
    assert_eq!(snapshot.columns("c", "items").expect("readable"), ["id", "name"]);
    drop(snapshot);
    let later = reader.snapshot().expect("readable");
    let mut keys = Vec::new();
    let each = later.each_record("c", "items", true, |row| {
        keys.push((row.key.to_owned(), row.deleted));
        Ok::<_, StoreError>(())
    });
    each.expect("readable");
    assert_eq!(keys, [("a".to_owned(), true), ("b".to_owned(), false), ("c".to_owned(), false)]);
}

/// Rows as text.
#[derive(Default)]
struct Rows(Vec<String>);

impl QuerySink for Rows {
    type Error = QueryError;

    fn columns(&mut self, names: &[&str]) -> Result<(), QueryError> {
        self.0.push(names.join("|"));
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), QueryError> {
        self.0.push(format!("{cells:?}"));
        Ok(())
    }
}

fn query(reader: &mut Reader, sql: &str) -> Result<Vec<String>, QueryError> {
    let mut rows = Rows::default();
    reader.query(sql, &mut rows)?;
    Ok(rows.0)
}

#[test]
fn a_query_reads_and_does_nothing_else() {
    let home = Home::new();
    home.run(&(record("items", "k", "{\"id\":9223372036854775807,\"name\":\"n\"}") + &done(1)));
    let before = home.dump();
    let mut reader = home.reader();
    let answer = query(&mut reader, "SELECT key, id FROM \"c.items\"; -- the end").expect("an answer");
    assert_eq!(answer, ["key|id", "[Text(\"k\"), Integer(9223372036854775807)]"]);
    let answer = query(&mut reader, "SELECT x'00ff', CAST(x'ff' AS TEXT), NULL, 0.5").expect("an answer");
    assert_eq!(answer[1], "[Blob([0, 255]), Blob([255]), Null, Real(0.5)]");
    query(&mut reader, "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 9) SELECT * FROM n")
        .expect("an answer");
    query(&mut reader, "SELECT name FROM pragma_table_info('records')").expect("an answer");
    query(&mut reader, "EXPLAIN QUERY PLAN SELECT * FROM records").expect("an answer");
    let other = home.at("other.db");
    let attach = format!("ATTACH '{}' AS other", other.display());
    let vacuum = format!("VACUUM INTO '{}'", other.display());
    let refused = [
        ("DELETE FROM records", "deletes from records"),
        ("UPDATE records SET seq = 0", "changes records"),
        ("INSERT INTO meta VALUES ('a', 1)", "inserts into meta"),
        ("WITH x AS (SELECT 1) DELETE FROM records", "deletes from records"),
        ("DROP TABLE records", "changes tables"),
        ("CREATE TEMP TABLE t (x)", "changes tables"),
        (attach.as_str(), "attaches another file"),
        (vacuum.as_str(), "it writes"),
        ("PRAGMA journal_mode = DELETE", "PRAGMA journal_mode"),
        ("PRAGMA cache_size", "PRAGMA cache_size"),
        ("PRAGMA writable_schema = 1", "PRAGMA writable_schema"),
        ("SELECT load_extension('x')", "calls load_extension"),
        ("SELECT LOAD_EXTENSION('x')", "calls load_extension"),
        ("BEGIN IMMEDIATE", "transaction"),
        ("SAVEPOINT a", "transaction"),
        ("SELECT 1; SELECT 2", "more than one statement"),
        ("SELECT 1; DELETE FROM records", "deletes from records"),
    ];
    for (sql, wanted) in refused {
        match query(&mut reader, sql) {
            Err(QueryError::Refused(what)) => assert!(what.contains(wanted), "{sql}: {what}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
    for sql in ["", " -- nothing", "SELEC 1", "SELECT * FROM nowhere", "SELECT hex(zeroblob(100000000))"] {
        assert!(matches!(query(&mut reader, sql), Err(QueryError::Sql(_))), "{sql}");
    }
    assert!(!other.exists(), "no file was made");
    assert_eq!(before, home.dump());
    // The reader is what it was.
    assert_eq!(reader.connections().expect("readable").len(), 1);
}

#[test]
fn a_query_without_end_can_be_interrupted() {
    let home = Home::new();
    home.run(&done(0));
    let mut reader = home.reader();
    let interrupter = reader.interrupter();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        interrupter.interrupt();
    });
    let endless = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n";
    assert!(matches!(query(&mut reader, endless), Err(QueryError::Interrupted)));
    stopper.join().expect("a thread");
}

#[test]
fn a_store_of_schema_1_is_brought_up_to_date_with_its_gaps() {
    let home = Home::new();
    let first = include_str!("../../migrations/0001.sql");
    home.execute(&format!(
        "{first}; INSERT INTO meta VALUES ('store_id', 'x'), ('epoch', 0), ('next_seq', 1);
         PRAGMA application_id = 1735157089; PRAGMA user_version = 1;"
    ));
    let insert = |id: u8, key: &str, locator: &str| {
        home.execute(&format!(
            "INSERT INTO gaps (id, identity, connection, stream, grant_id, record_key, record_key_is_number, state,
             attempts, run_cap, since, due, run, hash, locator) VALUES ({id}, x'0{id}', 1, 1, 'all', {key}, 0,
             'pending', 0, 0, 0, 0, 1, 0, {locator})"
        ));
    };
    insert(1, "'k'", "'{\"at\":1}'");
    insert(2, "NULL", "NULL");
    insert(3, "'rest'", "'{\"watermark\":null}'");
    insert(4, "'k'", "'no json'");
    insert(5, "'rest'", "'{\"kind\":\"backlog\"}'");
    let error = Reader::open(&home.path()).expect_err("only a writer may change it");
    assert!(matches!(error, StoreError::OlderSchema { found: 1, known: 7, .. }), "{error}");
    drop(home.open());
    let parts = home.sql::<String>("SELECT group_concat(part_of_list) FROM (SELECT * FROM gaps ORDER BY id)");
    assert_eq!(parts, "0,1,1,0,1");
    assert_eq!(home.sql::<i64>("SELECT * FROM pragma_user_version"), 7);
}
