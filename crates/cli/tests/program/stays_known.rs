//! What a run named and did not bring is asked for again by the next one, whichever way the connector moved its cursors.

use crate::collect::{Shop, last_line};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// `list`, `detail` and `file`, with these more members each.
fn shop(test: &str, [list, detail, file]: [&str; 3]) -> Shop {
    let shop = Shop::new(test);
    write_manifest(&shop, "1", [list, detail, file]);
    shop
}

fn write_manifest(shop: &Shop, version: &str, more: [&str; 3]) {
    let streams = ["list", "detail", "file"]
        .iter()
        .zip(more)
        .map(|(name, more)| format!(r#"{{"name":"{name}","semantics":"mutable_state","primary_key":"id"{more}}}"#));
    let streams = streams.collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{"connector_id":"shop","connector_key":"shop","version":"{version}","display_name":"Shop","streams":[{streams}]}}"#
    );
    fs::write(shop.root.join("manifest.json"), text).unwrap();
}

const MESSAGES: &str = r#"
n = 0
def rec(stream, key):
    global n; n += 1
    say(type="RECORD", stream=stream, key=key, data={"id": key}, emitted_at="2031-01-01T00:00:00Z")
def state(stream, at, **more): say(type="STATE", stream=stream, cursor={"at": at}, **more)
def cov(stream, list, required, hydrated):
    say(type="DETAIL_COVERAGE", reference_only=True, stream=stream, state_stream=list, required_keys=required, hydrated_keys=hydrated)
def gap(stream, **more): say(type="DETAIL_GAP", reference_only=True, status="pending", stream=stream, reason="temporary_unavailable", **more)
def fin(**more): done(n, **more)
with open("start.json", "w") as file: json.dump(start, file)
"#;

/// Runs it, and answers its exit code and what it was told at the start.
fn run(shop: &Shop, script: &str, options: &[&str]) -> (i32, Value) {
    let answer = shop.run(&format!("{MESSAGES}{script}; end()"), options);
    (answer.code, serde_json::from_slice(&fs::read(shop.root.join("start.json")).unwrap()).unwrap())
}

const OF_LIST: &str = r#","parent_streams":["list"],"coverage_strategy":"parent_detail_accounting""#;
const OF_DETAIL: &str = r#","parent_streams":["detail"],"coverage_strategy":"parent_detail_accounting""#;

#[test]
fn a_chain_of_streams_withholds_every_checkpoint_of_it() {
    let shop = shop("chain", ["", OF_LIST, OF_DETAIL]);
    let script = "rec('list', 'a'); rec('detail', 'a'); cov('detail', 'list', ['a'], ['a']); cov('file', 'detail', ['a'], []); \
                  state('list', 1); state('detail', 1); state('file', 1); fin()";
    assert_eq!(run(&shop, script, &[]).0, 3);
    assert_eq!(run(&shop, "fin()", &[]).1["state"], Value::Null);
}

#[test]
fn a_failed_stream_withholds_the_list_that_earlier_reports_named() {
    let shop = shop("failed-child", ["", "", ""]);
    let first = "rec('list', 'a'); rec('detail', 'a'); cov('detail', 'list', ['a'], ['a']); state('list', 1); fin()";
    assert_eq!(run(&shop, first, &[]).0, 0);
    let failed = "rec('list', 'b'); say(type='SKIP_RESULT', stream='detail', reason='stream_collection_failed'); state('list', 2, slice=True); \
                  done(n, 'failed', error=dict(message='down', retryable=True, code='stream_collection_failed')); end(1)";
    assert_eq!(run(&shop, failed, &[]).0, 1);
    let (_, start) = run(&shop, "fin()", &[]);
    assert_eq!(start["state"].get("list"), None, "a slice had moved it: it is listed again: {start}");
}

#[test]
fn a_report_before_its_last_record_counts_that_record() {
    let shop = shop("early", ["", OF_LIST, ""]);
    let script = "rec('list', 'a'); cov('detail', 'list', ['a'], ['a']); rec('detail', 'a'); state('list', 1); fin()";
    let answer = shop.run(&format!("{MESSAGES}{script}; end()"), &["--json"]);
    assert_eq!((answer.code, &last_line(&answer)["checkpoints_committed"]), (0, &json!(["list"])), "{answer:?}");
    assert_eq!(last_line(&answer)["warnings"][0]["code"], "coverage_early");
}

#[test]
fn records_that_a_report_considered_and_does_not_cover_stay_known() {
    let shop = shop("considered", ["", OF_LIST, ""]);
    let report = |covered: u64| {
        format!(
            "say(type='DETAIL_COVERAGE', reference_only=True, stream='detail', state_stream='list', required_keys=[], \
             hydrated_keys=[], considered=10, covered={covered}); state('list', 1); fin()"
        )
    };
    let answer = shop.run(&format!("{MESSAGES}{}; end()", report(6)), &["--json"]);
    assert_eq!((answer.code, &last_line(&answer)["skipped"]), (3, &json!(1)), "{answer:?}");
    // A later run that does not go over the list again proves nothing.
    assert_eq!(run(&shop, "fin()", &[]).0, 3);
    let gaps = shop.gleaner(&["gaps", "shop"]);
    assert!(gaps.stdout.contains("considered 4 records more than it covers"), "{gaps:?}");
    assert_eq!(run(&shop, &report(10), &["--full-refresh"]).0, 0);
}

#[test]
fn a_list_without_the_report_that_its_connector_once_sent_falls_short() {
    let shop = shop("no-report", ["", "", ""]);
    let first = "rec('list', 'a'); rec('detail', 'a'); cov('detail', 'list', ['a'], ['a']); state('list', 1); fin()";
    assert_eq!(run(&shop, first, &[]).0, 0);
    let answer = shop.run(&format!("{MESSAGES}rec('list', 'b'); state('list', 2); fin(); end()"), &["--json"]);
    let short = json!(["no coverage report came for detail"]);
    assert_eq!((answer.code, &last_line(&answer)["coverage_shortfalls"]), (3, &short), "{answer:?}");
    let gaps = shop.gleaner(&["gaps", "shop"]);
    assert!(gaps.stdout.contains("coverage of list falls short: no coverage report came for detail"), "{gaps:?}");
    let second = "rec('list', 'b'); rec('detail', 'b'); cov('detail', 'list', ['b'], ['b']); state('list', 2); fin()";
    let (code, start) = run(&shop, second, &[]);
    assert_eq!((code, &start["state"]), (0, &json!({"list": {"at": 1}})));
    // A list that brought nothing needs no report.
    assert_eq!(run(&shop, "state('list', 3); fin()", &[]).0, 0);
}

#[test]
fn after_a_count_that_does_not_agree_everything_is_listed_again() {
    let shop = shop("count", ["", "", ""]);
    assert_eq!(run(&shop, "rec('list', 'a'); state('list', 1, slice=True); done(n + 1)", &[]).0, 1);
    assert_eq!(run(&shop, "rec('list', 'a'); rec('list', 'b'); state('list', 1); fin()", &[]).1["state"], Value::Null);
    assert_eq!(run(&shop, "fin()", &[]).1["state"], json!({"list": {"at": 1}}));
}

#[test]
fn a_record_that_was_asked_for_by_its_key_and_did_not_come_is_named() {
    let shop = shop("absent", ["", "", ""]);
    let options = ["--resource", "list=a", "--resource", "list=zzz", "--json"];
    let answer = shop.run(&format!("{MESSAGES}rec('list', 'a'); fin(); end()"), &options);
    assert_eq!((answer.code, &last_line(&answer)["resources_absent"]), (3, &json!(["list=zzz"])), "{answer:?}");
}

#[test]
fn a_subset_of_streams_that_nobody_has_placed_moves_no_ordinary_cursor() {
    let shop = shop("unplaced", ["", "", ""]);
    assert_eq!(run(&shop, "rec('list', 'a'); rec('file', 'a'); state('list', 1); fin()", &[]).0, 0);
    // Its cursor stands on the first stream that it is asked for.
    run(&shop, "rec('file', 'a'); state('file', 1); fin()", &["--stream", "file"]);
    run(&shop, "rec('list', 'b'); state('list', 2); fin()", &["--stream", "list"]);
    assert_eq!(run(&shop, "fin()", &[]).1["state"], json!({"list": {"at": 1}}));
}

#[test]
fn a_stream_that_is_collected_from_now_on_has_its_list_read_again() {
    let deferred = r#","required":false,"coverage_policy":"deferred""#;
    let shop = shop("policy", ["", deferred, ""]);
    assert_eq!(run(&shop, "rec('list', 'a'); state('list', 1); fin()", &[]).0, 0);
    assert_eq!(run(&shop, "fin()", &[]).1["state"], json!({"list": {"at": 1}}));
    write_manifest(&shop, "2", ["", "", ""]);
    assert_eq!(run(&shop, "fin()", &[]).1["state"], Value::Null);
}

#[test]
fn parts_of_a_list_are_gaps_of_their_own() {
    let shop = shop("list-cursors", ["", "", ""]);
    let parts = "gap('list', list_cursor={'page': 1}); gap('list', list_cursor={'page': 2}); state('list', 2); fin()";
    assert_eq!(run(&shop, parts, &[]).0, 3);
    assert_eq!(shop.gleaner(&["gaps", "shop", "--json"]).stdout.matches(r#""kind":"gap""#).count(), 2);
}

#[test]
fn another_account_is_listed_from_its_beginning() {
    let shop = shop("account", ["", "", ""]);
    let add = |account: &str| {
        shop.script(&format!("{MESSAGES}state('list', 1); fin(); end()"));
        let set = format!("ACCOUNT={account}");
        let add =
            shop.gleaner(&["add", "--manifest", "manifest.json", "--set", &set, "--", "python3", "-u", "shop.py"]);
        assert_eq!(add.code, 0, "{add:?}");
        assert_eq!(shop.gleaner(&["run", "shop"]).code, 0);
        serde_json::from_slice::<Value>(&fs::read(shop.root.join("start.json")).unwrap()).unwrap()["state"].clone()
    };
    assert_eq!(add("alice"), Value::Null);
    assert_eq!(add("alice"), json!({"list": {"at": 1}}), "nothing changed");
    assert_eq!(add("bob"), Value::Null);
}

#[test]
fn a_cooldown_lasts_as_long_as_the_provider_said() {
    let shop = shop("told", ["", "", ""]);
    let limited = "say(type='DETAIL_GAP', reference_only=True, status='pending', stream='list', record_key='a', reason='rate_limited', \
                   not_before='2999-01-01T00:00:00Z'); done(0, 'failed', error=dict(message='shop_rate_limited', retryable=True)); end(1)";
    run(&shop, limited, &[]);
    let again = shop.run("done(0); end()", &["--json"]);
    assert_eq!(again.code, 5, "{again:?}");
    let until = last_line(&again)["cooldown_until"].as_str().unwrap().to_owned();
    // Without a word of the provider it would be 15 minutes.
    let later = Command::new("date").args(["-u", "-d", "+1 hour", "+%Y-%m-%dT%H:%M:%SZ"]).output().unwrap().stdout;
    assert!(until > String::from_utf8(later).unwrap(), "{until}");
}

/// Starts a run, and kills it as soon as a record with this key is saved.
fn kill_after(shop: &Shop, script: &str, stream: &str, saved: &str) {
    let mut run = shop.start(&format!("{MESSAGES}{script}; time.sleep(60); end()"));
    let is_saved = || shop.gleaner(&["records", stream, "--json"]).stdout.contains(saved);
    for _ in 0..400 {
        if is_saved() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(is_saved(), "{saved} never came");
    run.kill().unwrap();
    run.wait().unwrap();
}

#[test]
fn what_a_run_skipped_before_it_was_killed_is_asked_for_again() {
    let shop = shop("skip-killed", ["", "", ""]);
    let script =
        "say(type='SKIP_RESULT', stream='list', reason='timeout'); rec('list', 'b'); state('list', 2, slice=True)";
    kill_after(&shop, script, "list", "\"b\"");
    let (_, start) = run(&shop, "fin()", &[]);
    assert_eq!(start["state"], Value::Null, "the cursor is past what was skipped");
}

const FIELDS: &str = r#"
def fields(stream, key, **data):
    global n; n += 1
    say(type="RECORD", stream=stream, key=key, data=dict(data, id=key), emitted_at="2031-01-01T00:00:00Z")
"#;

/// A run that gives its whole account, one that is killed right after a slice, and where the third one starts.
fn killed_after_slice(test: &str, [first, second]: [&str; 2]) -> Value {
    let shop = shop(test, ["", OF_LIST, ""]);
    let first = format!("{FIELDS}{first}; state('list', 1); cov('detail', 'list', ['c1'], ['c1']); fin()");
    assert_eq!(run(&shop, &first, &[]).0, 0);
    kill_after(&shop, &format!("{FIELDS}{second}; rec('file', 'f'); state('list', 2, slice=True)"), "file", "\"f\"");
    run(&shop, "fin()", &[]).1["state"]["list"]["at"].clone()
}

#[test]
fn a_slice_whose_details_came_is_resumed_after_a_kill() {
    let scripts = ["rec('list', 'c1'); rec('detail', 'c1')", "rec('list', 'c2'); rec('detail', 'c2')"];
    assert_eq!(killed_after_slice("paid", scripts), 2);
}

#[test]
fn a_slice_whose_details_did_not_come_is_listed_again() {
    // A detail under a key of its own names the record of the list in a field. Without one it is not empty: nobody said so.
    let by_field = ["rec('list', 'c1'); fields('detail', 'm1', of='c1')", "rec('list', 'c2')"];
    assert_eq!(killed_after_slice("owed-field", by_field), 1);
    // The detail of an earlier version of the record is not that of the new one.
    let changed = ["fields('list', 'c1', v=1); fields('detail', 'c1', v=1)", "fields('list', 'c1', v=2)"];
    assert_eq!(killed_after_slice("owed-changed", changed), 1);
    // Nor if the list does not show what changed.
    let same = ["rec('list', 'c1'); rec('detail', 'c1')", "rec('list', 'c1')"];
    assert_eq!(killed_after_slice("owed-same", same), 1);
}

#[test]
fn a_report_stands_behind_a_slice_only_once_its_run_has_succeeded() {
    let first = "rec('list', 'c1'); rec('detail', 'c1')";
    for (test, report) in [
        ("no-outcome", "cov('detail', 'list', ['c2'], [])"),
        ("not-sent", "cov('detail', 'list', ['c2'], ['c2'])"),
        ("nothing-required", "cov('detail', 'list', [], [])"),
    ] {
        let killed = format!("rec('list', 'c2'); {report}");
        assert_eq!(killed_after_slice(&format!("report-{test}"), [first, &killed]), 1, "{test}");
    }
    let paid = "rec('list', 'c2'); rec('detail', 'c2'); cov('detail', 'list', ['c2'], ['c2'])";
    assert_eq!(killed_after_slice("report-paid", [first, paid]), 2);
}

#[test]
fn a_damaged_cursor_is_not_continued_from() {
    let shop = shop("damaged-cursor", ["", "", ""]);
    run(&shop, "rec('list', 'a'); state('list', 1); fin()", &[]);
    let store = rusqlite::Connection::open(shop.root.join("home/store.db")).unwrap();
    assert_eq!(store.execute(r#"UPDATE cursors SET token = '{"at": 9}'"#, []).unwrap(), 1);
    drop(store);
    assert_eq!(run(&shop, "fin()", &[]).1["state"], Value::Null);
}

/// Calls the gap that was served recovered, and fails.
const RECOVER_AND_FAIL: &str = "g = start['detail_gaps'][0]; say(type='DETAIL_GAP_RECOVERED', gap_id=g['gap_id'], lease_id=g['lease_id'], stream='list', \
    reference_only=True); state('list', 1, slice=True); done(n, 'failed', error=dict(message='down', retryable=True)); end(1)";

#[test]
fn a_gap_of_a_list_closes_when_the_details_of_its_records_came() {
    let parts = ["record_key='x'", "record_key='gleaner:backlog', detail_locator={'kind': 'backlog'}"];
    for (test, part) in ["record", "part"].into_iter().zip(parts) {
        let shop = shop(&format!("list-gap-{test}"), ["", OF_LIST, ""]);
        let first = format!(
            "rec('list', 'a'); rec('detail', 'a'); gap('list', {part}); state('list', 1); cov('detail', 'list', ['a'], ['a']); fin()"
        );
        assert_eq!(run(&shop, &first, &[]).0, 3);
        assert_eq!(run(&shop, &format!("rec('list', 'x'); {RECOVER_AND_FAIL}"), &[]).0, 1);
        let (_, start) = run(&shop, &format!("rec('list', 'x'); rec('detail', 'x'); {RECOVER_AND_FAIL}"), &["--now"]);
        assert_eq!(start["detail_gaps"][0]["stream"], "list", "{test}: the detail of x did not come: {start}");
        let (_, start) = run(&shop, "cov('detail', 'list', [], []); fin()", &["--now"]);
        assert_eq!(start["detail_gaps"], json!([]), "{test}");
    }
}

#[test]
fn a_deletion_by_an_earlier_run_is_no_detail_of_a_record_that_came_back() {
    let shop = shop("came-back", ["", OF_LIST, ""]);
    let delete = "say(type='RECORD', stream='list', key='a', op='delete'); say(type='RECORD', stream='detail', key='a', op='delete'); n += 2; \
                  cov('detail', 'list', [], []); state('list', 2); fin()";
    run(
        &shop,
        "rec('list', 'a'); rec('detail', 'a'); cov('detail', 'list', ['a'], ['a']); state('list', 1); fin()",
        &[],
    );
    assert_eq!(run(&shop, delete, &[]).0, 0);
    assert_eq!(run(&shop, "rec('list', 'a'); cov('detail', 'list', ['a'], ['a']); state('list', 3); fin()", &[]).0, 3);
    let came = "rec('list', 'a'); rec('detail', 'a'); cov('detail', 'list', ['a'], ['a']); state('list', 3); fin()";
    assert_eq!(run(&shop, came, &[]).0, 0);
}

#[test]
fn a_run_without_the_report_that_earlier_ones_sent_is_listed_again_unless_the_details_came() {
    for (test, detail, at) in [("unreported", "", 1), ("unreported-paid", "rec('detail', 'c2')", 2)] {
        let shop = shop(test, ["", "", ""]);
        run(
            &shop,
            "rec('list', 'c1'); rec('detail', 'c1'); state('list', 1); cov('detail', 'list', ['c1'], ['c1']); fin()",
            &[],
        );
        run(&shop, &format!("rec('list', 'c2'); {detail}; state('list', 2); fin()"), &[]);
        assert_eq!(run(&shop, "fin()", &[]).1["state"]["list"]["at"], at, "{test}");
    }
}

#[test]
fn a_key_that_a_report_left_open_and_no_later_one_names_becomes_a_gap() {
    let second = [
        (
            "named-less",
            OF_LIST,
            "rec('list', 'c1'); rec('list', 'c2'); state('list', 1); cov('detail', 'list', ['c1'], ['c1'])",
        ),
        ("not-reported", "", "rec('list', 'c1'); rec('list', 'c2'); state('list', 1)"),
        ("not-listed", OF_LIST, "rec('list', 'c1'); state('list', 1); cov('detail', 'list', ['c1'], ['c1'])"),
    ];
    for (test, more, script) in second {
        let shop = shop(test, ["", more, ""]);
        let first = "rec('list', 'c1'); rec('list', 'c2'); rec('detail', 'c1'); state('list', 1); cov('detail', 'list', ['c1', 'c2'], ['c1']); fin()";
        assert_eq!(run(&shop, first, &[]).0, 3, "{test}");
        run(&shop, &format!("{script}; fin()"), &[]);
        assert_eq!(run(&shop, "cov('detail', 'list', [], []); fin()", &[]).0, 3, "{test}");
        let gaps = shop.gleaner(&["gaps", "shop", "--json"]).stdout;
        assert!(gaps.contains(r#""record_key":"c2""#), "{test}: {gaps}");
        // It closes as every gap does.
        let recover = "rec('detail', 'c2'); g = start['detail_gaps'][0]; say(type='DETAIL_GAP_RECOVERED', gap_id=g['gap_id'], \
                       lease_id=g['lease_id'], stream='detail', reference_only=True); cov('detail', 'list', [], []); fin()";
        assert_eq!(run(&shop, recover, &[]).0, 0, "{test}");
    }
}

#[test]
fn a_gap_is_not_empty_where_both_streams_have_the_same_keys_or_its_record_is_in_quarantine() {
    let recovered = "g = start['detail_gaps'][0]; say(type='DETAIL_GAP_RECOVERED', gap_id=g['gap_id'], lease_id=g['lease_id'], stream='detail', reference_only=True); fin()";
    let same_keys = shop("shared-keys", ["", "", ""]);
    run(
        &same_keys,
        "rec('list', 'c1'); rec('detail', 'c1'); rec('list', 'c2'); gap('detail', record_key='c2'); fin()",
        &[],
    );
    assert_eq!(run(&same_keys, &format!("rec('list', 'c2'); {recovered}"), &[]).0, 3);
    let schema = r#","schema":{"type":"object","properties":{"id":{"type":"string"},"bad":false}}"#;
    let quarantined = shop("quarantined-gap", ["", schema, ""]);
    run(&quarantined, "rec('list', 'c1'); gap('detail', record_key='c1'); fin()", &[]);
    let script = format!("{FIELDS}rec('list', 'c1'); fields('detail', 'c1', bad=1); {recovered}");
    assert_eq!(run(&quarantined, &script, &[]).0, 3);
    let gaps = quarantined.gleaner(&["gaps", "shop", "--json"]).stdout;
    assert_eq!(gaps.matches(r#""kind":"gap""#).count(), 1, "{gaps}");
}

#[test]
fn a_part_of_a_list_that_was_not_served_is_not_overwritten_by_another_part() {
    let shop = shop("two-parts", ["", "", ""]);
    let part = |from: u32, more: &str| {
        format!(
            "gap('list', record_key='gleaner:backlog', detail_locator={{'kind': 'backlog', 'from': {from}}}{more}); fin()"
        )
    };
    run(&shop, &part(1, ", not_before='2099-01-01T00:00:00Z'"), &[]);
    let (_, start) = run(&shop, &part(101, ""), &[]);
    assert_eq!(start["detail_gaps"], json!([]), "the first part is not due");
    // A run is served one part of a list at a time, and puts that one back.
    let (_, start) = run(&shop, &part(120, ""), &["--now"]);
    assert_eq!(start["detail_gaps"].as_array().map(Vec::len), Some(1), "{start}");
    let gaps = shop.gleaner(&["gaps", "shop", "--json"]).stdout;
    for from in ["\"from\": 1}", "\"from\": 120}"] {
        assert!(gaps.contains(from), "{from}: {gaps}");
    }
    assert!(!gaps.contains("\"from\": 101}"), "{gaps}");
}

#[test]
fn a_record_of_the_list_after_the_report_is_told_and_listed_again() {
    let shop = shop("late-list", ["", OF_LIST, ""]);
    let script = "rec('list', 'c1'); rec('detail', 'c1'); cov('detail', 'list', ['c1'], ['c1']); rec('list', 'c2'); state('list', 2); fin()";
    let answer = shop.run(&format!("{MESSAGES}{script}; end()"), &["--json"]);
    assert_eq!(last_line(&answer)["warnings"][0]["code"], "coverage_early", "{answer:?}");
    assert_eq!(run(&shop, "fin()", &[]).1["state"], Value::Null);
}

#[test]
fn a_key_that_is_called_collected_and_has_no_record_stays_visible_as_empty_until_a_record_comes() {
    let shop = shop("hydrated-empty", ["", OF_LIST, ""]);
    let lists = "rec('list', 'c1'); rec('list', 'c2'); rec('list', 'c3');";
    let report = "cov('detail', 'list', ['c1', 'c2', 'c3'], ['c1', 'c2', 'c3']); state('list', 1); fin(); end()";
    let script = format!("{MESSAGES}{FIELDS}{lists} fields('detail', 'm1', of='c1'); {report}");
    let answer = shop.run(&script, &["--json"]);
    let warning = &last_line(&answer)["warnings"][0];
    assert_eq!((&warning["code"], &warning["count"]), (&json!("hydrated_empty"), &json!(2)), "{answer:?}");
    // Also after a run that says nothing about them.
    assert_eq!(run(&shop, "cov('detail', 'list', [], []); fin()", &[]).0, 0);
    let says = |command: &[&str], text: &str| {
        let answer = shop.gleaner(command);
        assert!(answer.stdout.contains(text), "{command:?}: {answer:?}");
    };
    says(&["gaps", "shop"], "nothing is missing; 2 listed keys are empty");
    says(&["gaps", "shop", "--recovered", "--json"], r#""record_key":"c3""#);
    says(&["coverage", "shop"], "2 are empty");
    says(&["why", "shop"], "2 gaps closed as empty");
    // The connector brings one of them after all.
    let script =
        format!("{MESSAGES}{FIELDS}{lists} fields('detail', 'm1', of='c1'); fields('detail', 'm2', of='c2'); {report}");
    assert_eq!(shop.run(&script, &["--full-refresh"]).code, 0);
    says(&["gaps", "shop"], "nothing is missing; 1 listed keys are empty");
    assert_eq!(shop.gleaner(&["verify"]).code, 0);
}

#[test]
fn a_detail_in_quarantine_counts_as_that_also_where_only_a_field_has_the_key_of_the_list() {
    let schema = r#","schema":{"type":"object","properties":{"id":{"type":"string"},"bad":false}}"#;
    let shop = shop("quarantined-by-field", ["", &format!("{schema}{OF_LIST}"), ""]);
    let script = "rec('list', 'c1'); rec('list', 'c2'); fields('detail', 'm1', of='c1'); fields('detail', 'm2', of='c2', bad=1); \
                  cov('detail', 'list', ['c1', 'c2'], ['c1', 'c2']); state('list', 1); fin(); end()";
    let answer = shop.run(&format!("{MESSAGES}{FIELDS}{script}"), &["--json"]);
    let last = last_line(&answer);
    assert_eq!((answer.code, &last["checkpoints_withheld"]), (3, &json!([])), "{answer:?}");
    assert_eq!((&last["missing"], &last["coverage_shortfalls"]), (&json!(1), &json!([])), "{answer:?}");
}
