//! What a scoped run or a catch-up run left out: told as its own, with the command that helps, until a run covers it.

use crate::place::Place;

const MANIFEST: &str = r#"{"connector_id":"shop","connector_key":"shop","version":"1","display_name":"Shop","streams":[
    {"name":"orders","semantics":"mutable_state","primary_key":"id","consent_time_field":"at"},
    {"name":"lines","semantics":"mutable_state","primary_key":"id","consent_time_field":"at","parent_streams":["orders"],
     "coverage_strategy":"parent_detail_accounting"}]}"#;

const WORDS: &str = r#"
sent = 0
def put(stream, n):
    global sent; sent += 1
    say(type="RECORD", stream=stream, key=str(n), data={"id": n, "at": "2001-02-03"}, emitted_at="2031-01-01T00:00:00Z")
def order(n): put("orders", n)
def line(n): put("lines", n)
def skip(): say(type="SKIP_RESULT", stream="orders", reason="closed", message="the shop is closed")
def finish(required, hydrated):
    say(type="DETAIL_COVERAGE", reference_only=True, stream="lines", state_stream="orders", required_keys=required, hydrated_keys=hydrated)
    say(type="STATE", stream="orders", cursor={"n": 1})
    done(sent); end()
"#;

const ALL: &str = "order(1); line(1); finish(['1'], ['1'])";
const NOTHING_NEW: &str = "finish([], [])";
const SINCE: [&str; 2] = ["--since", "2001-01-01"];

struct Shop(Place);

impl Shop {
    /// After an ordinary run that was complete.
    fn new() -> Self {
        let place = Place::new();
        place.write("manifest.json", MANIFEST);
        let shop = Self(place);
        shop.run(ALL, &[], 0);
        shop
    }

    fn run(&self, script: &str, options: &[&str], code: i32) -> String {
        let answer = self.0.run(&format!("{WORDS}{script}"), options);
        assert_eq!(answer.code, code, "{script} {options:?}: {answer:?}");
        answer.stdout
    }

    fn gaps(&self) -> String {
        self.0.gleaner(&["gaps", "shop"]).stdout
    }

    /// The three commands that tell what is missing agree.
    fn check_open(&self, sentence: &str) {
        let (gaps, why) = (self.gaps(), self.0.gleaner(&["why", "shop"]).stdout);
        assert!(gaps.contains(sentence) && !gaps.contains("nothing is missing"), "{gaps}");
        assert!(why.contains(sentence), "{why}");
        assert!(self.0.gleaner(&["status"]).stdout.starts_with("shop  incomplete"));
    }

    fn check_complete(&self) {
        assert_eq!(self.gaps(), "nothing is missing\n");
        assert!(self.0.gleaner(&["status"]).stdout.starts_with("shop  healthy"));
        assert_eq!(self.0.gleaner(&["verify"]).code, 0);
    }
}

#[test]
fn a_shortfall_of_a_catch_up_run_is_settled_once_the_store_has_the_key() {
    let shop = Shop::new();
    let stdout = shop.run("order(1); finish(['1'], [])", &["--catch-up"], 3);
    let sentence = "checkpoint of orders withheld: 1 listed lines without an outcome: 1";
    assert!(stdout.contains(sentence) && !stdout.contains("not stored"), "{stdout}");
    shop.check_open(&format!("{sentence} (by the run with --catch-up; `gleaner run shop --catch-up` lists it again)"));
    shop.run(NOTHING_NEW, &[], 0);
    shop.check_complete();
}

#[test]
fn a_shortfall_of_a_key_that_nobody_has_stays_until_a_run_accounts_for_it() {
    let both = "order(1); line(1); order(2); line(2); finish(['1', '2'], ['1', '2'])";
    for (script, options) in [(both, "--full-refresh"), ("line(2); finish(['2'], ['2'])", "--catch-up")] {
        let shop = Shop::new();
        shop.run("order(2); finish(['2'], [])", &["--catch-up"], 3);
        let stdout = shop.run(NOTHING_NEW, &[], 3);
        assert!(stdout.contains("`gleaner run shop --catch-up` lists it again"), "{stdout}");
        shop.run(script, &[options], 0);
        shop.run(NOTHING_NEW, &[], 0);
        shop.check_complete();
    }
}

#[test]
fn a_skip_of_a_scoped_run_is_its_own_until_a_run_goes_over_it() {
    let again = [SINCE[0], SINCE[1], "--full-refresh"];
    for options in [&again[..], &["--full-refresh"]] {
        let shop = Shop::new();
        shop.run("skip(); finish([], [])", &SINCE, 3);
        let sentence = "skipped: orders: the shop is closed (by the run with --since 2001-01-01; \
                        `gleaner run shop --since 2001-01-01 --full-refresh` lists it again)";
        shop.check_open(sentence);
        assert!(shop.run(NOTHING_NEW, &[], 3).contains(sentence), "the cursor was past it");
        shop.check_open(sentence);
        shop.run(ALL, options, 0);
        shop.check_complete();
    }
}

#[test]
fn a_shortfall_of_a_scoped_run_is_its_own_until_the_same_scope_or_an_ordinary_run_settles_it() {
    let shop = Shop::new();
    let sentence = "1 listed lines without an outcome: 2 (by the run with --since 2001-01-01; \
                    `gleaner run shop --since 2001-01-01` lists it again)";
    let short = || shop.run("order(2); finish(['2'], [])", &SINCE, 3);
    short();
    shop.check_open(sentence);
    shop.run(NOTHING_NEW, &[], 3);
    shop.check_open(sentence);
    shop.run("order(2); line(2); finish(['2'], ['2'])", &SINCE, 0);
    shop.check_complete();
    // Now the store has it.
    short();
    shop.check_open(sentence);
    shop.run(NOTHING_NEW, &[], 0);
    shop.check_complete();
}
