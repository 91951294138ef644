//! A run that succeeded and left something open says so: in its last lines, in `--json`, in `gaps`, and by its exit code.

use crate::collect::Shop;
use serde_json::Value;
use std::fs;

const MANIFEST: &str = r#"{"connector_id":"shop","connector_key":"shop","version":"1","display_name":"Shop","streams":[
    {"name":"orders","semantics":"mutable_state","primary_key":"id"},
    {"name":"lines","semantics":"mutable_state","primary_key":"id","parent_streams":["orders"],
     "coverage_strategy":"parent_detail_accounting"},
    {"name":"photos","semantics":"append_only","coverage_policy":"deferred","required":false}]}"#;

const LINES: &str = r#"
def line(n): say(type="RECORD", stream="lines", key=str(n), data={"id": n}, emitted_at="2031-01-01T00:00:00Z")
def listing(required, hydrated, **more):
    say(type="DETAIL_COVERAGE", reference_only=True, stream="lines", state_stream="orders", required_keys=required, hydrated_keys=hydrated, **more)
def state(): say(type="STATE", stream="orders", cursor={"n": 1})
def skip(stream, reason): say(type="SKIP_RESULT", stream=stream, reason=reason, message="the shop is closed")
"#;

fn shop(test: &str) -> Shop {
    let shop = Shop::new(test);
    fs::write(shop.root.join("manifest.json"), MANIFEST).unwrap();
    shop
}

fn collect(shop: &Shop, script: &str, words: &[&str]) -> (u8, String) {
    let answer = shop.run(&format!("{LINES}{script}"), words);
    (u8::try_from(answer.code).unwrap(), answer.stdout)
}

fn last_line(stdout: &str) -> Value {
    serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
}

#[test]
fn a_withheld_checkpoint_is_named_with_its_reason_everywhere_and_the_exit_code_is_3() {
    let shop = shop("withheld");
    let script = "line(1); listing(['1', '2'], ['1', '2']); state(); done(1); end()";
    let (code, stdout) = collect(&shop, script, &["--now"]);
    assert_eq!(code, 3, "{stdout}");
    let sentence = "checkpoint of orders withheld: 1 listed lines were not stored, although the connector reported them as collected: 2";
    assert!(stdout.contains(sentence), "{stdout}");
    let (code, stdout) = collect(&shop, script, &["--now", "--json"]);
    assert_eq!(code, 3, "{stdout}");
    let last = last_line(&stdout);
    assert_eq!(last["checkpoints_withheld"][0]["stream"], "orders", "{last}");
    assert_eq!(last["checkpoints_withheld"][0]["why"], "coverage_shortfall", "{last}");
    assert_eq!(last["checkpoints_withheld"][0]["keys"], serde_json::json!(["2"]), "{last}");
    let gaps = shop.gleaner(&["gaps", "shop"]).stdout;
    assert!(gaps.contains(sentence) && !gaps.contains("nothing is missing"), "{gaps}");
    let status = shop.gleaner(&["status"]).stdout;
    assert!(status.contains("incomplete"), "{status}");
    let (code, _) = collect(&shop, "line(2); listing(['1', '2'], ['1', '2']); state(); done(1); end()", &["--now"]);
    assert_eq!(code, 0, "the record came");
    assert!(shop.gleaner(&["gaps", "shop"]).stdout.contains("nothing is missing"));
}

#[test]
fn a_skip_makes_a_run_incomplete_but_for_what_need_not_be_collected() {
    let shop = shop("skips");
    let (code, stdout) = collect(&shop, "skip('lines', 'not_available_in_mode'); done(0); end()", &["--now"]);
    assert_eq!(code, 3, "{stdout}");
    assert!(stdout.contains("skipped once: lines: the shop is closed"), "{stdout}");
    let gaps = shop.gleaner(&["gaps", "shop"]).stdout;
    assert!(gaps.contains("the shop is closed") && !gaps.contains("nothing is missing"), "{gaps}");
    assert_eq!(collect(&shop, "skip('photos', 'x'); done(0); end()", &["--now"]).0, 0, "they need not be collected");
    // The run asked for all lines.
    assert_eq!(collect(&shop, "skip('lines', 'out_of_scope'); done(0); end()", &["--now"]).0, 3);
}

#[test]
fn what_was_skipped_stays_known_until_a_run_goes_over_it_again() {
    let shop = shop("skips-stay");
    let (code, _) =
        collect(&shop, "line(1); listing(['1'], ['1']); skip('lines', 'timeout'); state(); done(1); end()", &["--now"]);
    assert_eq!(code, 3);
    let known = |what: &str| {
        let gaps = shop.gleaner(&["gaps", "shop"]).stdout;
        assert!(
            gaps.contains("skipped: lines: the shop is closed") && !gaps.contains("nothing is missing"),
            "{what}: {gaps}"
        );
        let status = shop.gleaner(&["status"]).stdout;
        assert!(!status.contains("healthy"), "{what}: {status}");
    };
    known("after the run");
    collect(&shop, "listing([], []); skip('lines', 'again'); done(0); end()", &["--now"]);
    known("after a run that skipped something else and moved no cursor");
    // It goes on behind the skipped part, so it proves nothing.
    let (code, stdout) = collect(&shop, "line(3); listing(['3'], ['3']); state(); done(1); end()", &["--now"]);
    assert_eq!(code, 3, "{stdout}");
    known("after a run that went on");
    collect(&shop, "done(0); end()", &["--now", "--stream", "photos"]);
    known("after a run with another scope");
    collect(&shop, "sys.exit(1)", &["--now"]);
    known("after a run that failed");
    let (code, stdout) =
        collect(&shop, "line(2); listing(['2'], ['2']); state(); done(1); end()", &["--now", "--full-refresh"]);
    assert_eq!(code, 0, "{stdout}");
    assert!(shop.gleaner(&["gaps", "shop"]).stdout.contains("nothing is missing"));
}

#[test]
fn what_the_specification_forbids_and_a_run_survives_is_a_warning() {
    let shop = shop("warnings");
    let script = "line(1); listing(['1', '2'], ['1'], optional_skip_keys=['2']); line(3); state(); done(2); end()";
    let (code, stdout) = collect(&shop, script, &["--now", "--json"]);
    assert_eq!(code, 0, "{stdout}");
    let last = last_line(&stdout);
    assert_eq!(last["warnings"][0]["code"], "coverage_early", "{last}");
    let runs = shop.gleaner(&["runs", "shop", "--json"]).stdout;
    assert!(runs.contains("coverage_early"), "{runs}");
}
