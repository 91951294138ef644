//! What is said about a connection is true, also when its runs do not go well: nothing is called healthy, missing or
//! committed on less than evidence.

use crate::place::{Place, SHOP, last_line, signal};
use serde_json::{Value, json};

const FOREVER: &str = "record(1); slice(1)\nwhile True: time.sleep(1)";
const GOOD: &str = "record(1); slice(1); done(1); end()";

fn lines_of(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let answer = place.gleaner(arguments);
    answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{answer:?}"))).collect()
}

fn gaps(place: &Place) -> String {
    place.gleaner(&["gaps", "shop"]).stdout
}

/// What everybody says of a connection none of whose runs has succeeded.
fn check_unknown(place: &Place, grade: &str, why: &str) {
    let status = place.gleaner(&["status"]).stdout;
    assert!(status.starts_with(&format!("shop  {grade}")) && status.contains(why), "{status}");
    let all = gaps(place);
    assert!(all.contains(&format!("no gap is on record, but {why}")) && !all.contains("nothing is missing"), "{all}");
    let told = place.gleaner(&["why", "shop"]).stdout;
    assert!(told.contains(&format!("No gap is on record, but {why}")), "{told}");
    let json = lines_of(place, &["gaps", "shop", "--json"]);
    assert!(json.iter().any(|line| line["kind"] == "unfinished"), "{json:?}");
}

#[test]
fn a_connection_whose_only_run_was_stopped_is_not_healthy() {
    let place = Place::new();
    let mut run = place.start(FOREVER, &[]);
    run.wait_for_saved();
    let all = gaps(&place);
    assert_eq!(all, "no gap is on record, but no run has finished yet; one is running\n");
    assert_eq!(lines_of(&place, &["runs", "shop", "--json"])[0]["state"], "running");
    run.signal("TERM");
    assert_eq!(run.end().1, Some(130));
    check_unknown(&place, "unknown", "no run has finished yet: ");
    assert!(place.gleaner(&["status"]).stdout.contains("no run has finished yet: the last one was cancelled"));

    let mut run = place.start(FOREVER, &[]);
    run.wait_for_saved();
    signal(&run.child.id().to_string(), "KILL");
    drop(run);
    check_unknown(&place, "unknown", "no run has finished yet: the last one was interrupted");
    assert_eq!(lines_of(&place, &["runs", "shop", "--json"])[0]["state"], "interrupted");
    assert!(place.gleaner(&["runs", "shop"]).stdout.contains("interrupted"));

    assert_eq!(place.run(GOOD, &[]).code, 0);
    assert!(place.gleaner(&["status"]).stdout.starts_with("shop  healthy"));
    assert_eq!(gaps(&place), "nothing is missing\n");
}

#[test]
fn a_run_that_asked_for_less_makes_nothing_healthy() {
    let place = Place::new();
    assert_eq!(place.run(GOOD, &["--resource", "orders=1"]).code, 0);
    check_unknown(&place, "unknown", "no run has collected everything yet: the runs so far asked for less");
}

#[test]
fn after_a_run_that_failed_nobody_says_that_nothing_is_missing() {
    let place = Place::new();
    place.run("record(1); slice(1); raise KeyError('accounts')", &[]);
    let crashed = "Connector crashed (exit code 1): KeyError: 'accounts'";
    assert_eq!(gaps(&place), format!("no gap is on record, but no run has finished yet: {crashed}\n"));
    assert_eq!(place.run(GOOD, &[]).code, 0);
    assert_eq!(gaps(&place), "nothing is missing\n");
    place.run("gap('7'); slice(1); raise KeyError('accounts')", &[]);
    let all = gaps(&place);
    assert!(
        all.ends_with(&format!("1 of 1 shown; more may be missing: the last run did not finish: {crashed}\n")),
        "{all}"
    );
    let why = place.gleaner(&["why", "shop"]).stdout;
    assert!(why.contains(&format!("More may be missing: the last run did not finish: {crashed}.")), "{why}");
}

#[test]
fn what_a_run_left_open_is_told_to_programs_too() {
    let place = Place::new();
    let manifest = SHOP.replace(
        r#""streams":["#,
        r#""streams":[{"name":"details","semantics":"mutable_state","parent_streams":["orders"],"coverage_strategy":"parent_detail_accounting"},"#,
    );
    place.write("manifest.json", &manifest);
    let script = "record(1)\nsay(type='SKIP_RESULT', stream='orders', reason='login', message='sign in first')\n\
                  say(type='STATE', stream='orders', cursor={'next': 1}); done(1); end()";
    assert_eq!(place.run(script, &[]).code, 3);
    let lines = lines_of(&place, &["gaps", "shop", "--json"]);
    let told = lines.iter().map(|line| (line["kind"].as_str(), line["stream"].as_str())).collect::<Vec<_>>();
    assert_eq!(told, [(Some("withheld"), Some("orders")), (Some("skipped"), Some("orders"))], "{lines:?}");
    assert_eq!(lines[1]["message"], "sign in first");
    let why = place.gleaner(&["why", "shop"]).stdout;
    assert!(why.contains("checkpoint of orders withheld: ") && why.contains("skipped: orders: sign in first"), "{why}");
    assert!(!why.contains("Nothing that is known of"), "{why}");
    let script = "record(1)\nsay(type='DETAIL_COVERAGE', reference_only=True, stream='details', state_stream='orders', \
                  required_keys=['1', '2'], hydrated_keys=[])\n\
                  say(type='STATE', stream='orders', cursor={'next': 1}); done(1); end()";
    assert_eq!(place.run(script, &[]).code, 3);
    let lines = lines_of(&place, &["gaps", "shop", "--json"]);
    let listed = (&lines[0]["kind"], &lines[0]["stream"], &lines[0]["count"], &lines[0]["first_keys"]);
    assert_eq!(listed, (&json!("unaccounted"), &json!("details"), &json!(2), &json!(["1", "2"])), "{lines:?}");
}

#[test]
fn a_mistyped_option_is_no_failure_of_the_connection() {
    let place = Place::new();
    let manifest = SHOP.replace(r#""primary_key":"id","#, r#""primary_key":"id","consent_time_field":"at","#);
    place.write("manifest.json", &manifest);
    assert_eq!(place.run(GOOD, &[]).code, 0);
    for _ in 0..3 {
        let typo = place.run(GOOD, &["--since", "yesterday"]);
        assert!(typo.code == 2 && typo.stderr.contains("which is not a time"), "{typo:?}");
    }
    assert_eq!(lines_of(&place, &["runs", "shop", "--json"]).len(), 1, "nothing began");
    assert!(place.gleaner(&["status"]).stdout.starts_with("shop  healthy"));
}

#[test]
fn a_cooldown_is_told_by_the_run_that_begins_it_and_ends_when_it_is_said_to() {
    let place = Place::new();
    let script = "record(1); gap('p', reason='rate_limited'); gap('t'); slice(1); done(1); end()";
    let until = || lines_of(&place, &["status", "--json"])[0]["findings"][0].as_str().unwrap().to_owned();
    let first = place.run(script, &["--json"]);
    let ends = |stdout: &str| last_line(stdout)["cooldown_until"].as_str().unwrap_or_default().to_owned();
    let end = ends(&first.stdout);
    assert!(!end.is_empty() && until().contains(&end), "{end} {}", until());
    let second = place.run(script, &[]);
    assert_eq!(second.code, 5, "{second:?}");
    let text = second.stdout.split("cooldown until ").nth(1).unwrap().split(": ").next().unwrap().to_owned();
    assert!(until().contains(&text), "{text} {}", until());
    let now = place.run(script, &["--now"]);
    assert!(now.stdout.contains("  cooldown until ") && !now.stdout.contains("only gaps"), "{now:?}");
    // Nothing but pressure is left to do.
    let refused = place.run(script, &["--json"]);
    let line = last_line(&refused.stdout);
    assert_eq!((refused.code, line["status"].as_str()), (5, Some("refused")), "{refused:?}");
    assert!(until().contains(&ends(&refused.stdout)), "{line} {}", until());
    assert!(line["message"].as_str().unwrap().contains("is in a cooldown until"), "{line}");
}

#[test]
fn a_key_with_line_ends_stays_in_its_line() {
    let place = Place::new();
    let key = r"'k\nnothing is missing\r\u2028x'";
    let manifest = SHOP.replace(r#""properties":{"id":{"type":"integer"}}"#, r#""properties":{}"#);
    place.write("manifest.json", &manifest);
    place.run(
        &format!(
            "say(type='RECORD', stream='orders', key={key}, data={{'id': 1}}, emitted_at='2031-01-01T00:00:00Z')\n\
             gap({key}, last_error={{'class': 'x', 'message': 'a\\nnothing is missing'}})\n\
             say(type='RECORD', stream='orders', key={key} + 'y', data={{}}, emitted_at='2031-01-01T00:00:00Z')\n\
             say(type='SKIP_RESULT', stream='orders', reason='r', message='a\\nnothing is missing')\n\
             slice(1); done(2, 'failed', error={{'message': 'a\\nnothing is missing', 'retryable': False}}); end(1)"
        ),
        &[],
    );
    let looks: [&[&str]; 6] = [
        &["gaps", "shop"],
        &["records", "orders"],
        &["status"],
        &["why", "shop"],
        &["runs", "shop"],
        &["coverage", "shop"],
    ];
    for look in looks {
        let answer = place.gleaner(look);
        assert!(answer.stdout.lines().all(|line| !line.starts_with("nothing is missing")), "{answer:?}");
        assert!(!answer.stdout.contains(['\r', '\u{2028}']), "{answer:?}");
    }
    let all = gaps(&place);
    assert!(all.contains(r"orders k\nnothing is missing\r\u{2028}x  waits"), "{all}");
}

#[test]
fn what_slices_committed_is_told_by_runs_as_by_the_run() {
    let place = Place::new();
    let run = place.run(GOOD, &["--json"]);
    assert_eq!(last_line(&run.stdout)["checkpoints_committed"], json!(["orders"]));
    assert_eq!(lines_of(&place, &["runs", "shop", "--json"])[0]["committed"], json!([["orders", 1]]));
}

#[test]
fn a_permission_is_told_as_it_is_now() {
    let place = Place::new();
    assert_eq!(place.run(GOOD, &[]).code, 0);
    place.gleaner(&["resume", "shop", "--expires", "2020-01-01"]);
    let over = "the permission to collect it is over";
    let status = place.gleaner(&["status"]).stdout;
    assert!(status.starts_with("shop  needs you") && status.contains(over), "{status}");
    let why = place.gleaner(&["why", "shop"]).stdout;
    assert!(why.contains("The permission to collect it is over.") && why.contains("--expires TIME"), "{why}");
    assert!(!why.contains("Nothing holds it back"), "{why}");
    for _ in 0..3 {
        assert_eq!(place.run(GOOD, &[]).code, 4);
    }
    assert_eq!(place.gleaner(&["resume", "shop", "--expires", "never"]).code, 0);
    let status = place.gleaner(&["status"]).stdout;
    assert!(status.starts_with("shop  healthy"), "{status}");
    let why = place.gleaner(&["why", "shop"]).stdout;
    assert!(!why.contains("times in a row") && !why.contains("--expires"), "{why}");
    assert_eq!(place.gleaner(&["remove", "shop"]).code, 0);
    let why = place.gleaner(&["why", "shop"]).stdout;
    assert!(why.contains("You removed it") && why.contains("`gleaner add` adds it again"), "{why}");
}

#[test]
fn why_names_what_only_the_owner_can_do_and_says_nothing_against_it() {
    let place = Place::new();
    let refused = r#"done(0, 'failed', error={"message": "401", "retryable": False, "code": "auth_failed", "recovery_hint": "refresh_credentials"}); end(1)"#;
    assert_eq!(place.run(refused, &[]).code, 12);
    let why = place.gleaner(&["why", "shop"]).stdout;
    assert!(why.contains("needs you") && why.contains("`gleaner check shop --sign-in`"), "{why}");
    assert!(!why.contains("Nothing holds it back") && !why.contains("until then"), "{why}");
    let skip = "record(1); say(type='SKIP_RESULT', stream='orders', reason='login', message='sign in first', \
                recovery_hint={'action': 'refresh_credentials'}); slice(1); done(1); end()";
    assert_eq!(place.run(skip, &[]).code, 3);
    let why = place.gleaner(&["why", "shop"]).stdout;
    assert!(why.contains("This part needs a fresh sign-in: \"sign in first\"") && why.contains("--sign-in`"), "{why}");
    assert!(why.contains("skipped: orders: sign in first"), "{why}");
}
