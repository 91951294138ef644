//! `coverage`, `gaps`, `records --since --follow`, `export`, `query` and `why`, on what real connector processes
//! left in a store.

use crate::collect::Shop;
use crate::support::Answer;
use gleaner_engine::WallTime;
use gleaner_store::{Acquired, Holder, LeaseOn, Store};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const MANIFEST: &str = r#"{"connector_id":"shop","connector_key":"shop","version":"1","display_name":"Shop","streams":[
    {"name":"orders","semantics":"mutable_state","primary_key":"id",
     "schema":{"type":"object","properties":{"id":{},"total":{},"key":{},"tags":{},"note":{}}}},
    {"name":"lines","semantics":"mutable_state","primary_key":"id","parent_streams":["orders"],
     "coverage_strategy":"parent_detail_accounting"},
    {"name":"photos","semantics":"append_only","coverage_policy":"unsupported","required":false}]}"#;

/// Lines of one stream, each with a listing of what there is.
const LINES: &str = r#"
def line(n): say(type="RECORD", stream="lines", key=str(n), data={"id": n}, emitted_at="2031-01-01T00:00:00Z")
def gap(n, reason, **error): say(type="DETAIL_GAP", reference_only=True, status="pending", stream="lines", parent_stream="orders", record_key=str(n), reason=reason, detail_locator={"n": 1.0}, last_error=error)
def listing(required, hydrated, gaps=[], skipped=[]):
    text = lambda keys: [str(key) for key in keys]
    say(type="DETAIL_COVERAGE", reference_only=True, stream="lines", state_stream="orders", required_keys=text(required), hydrated_keys=text(hydrated), gap_keys=text(gaps), optional_skip_keys=text(skipped))
    say(type="STATE", stream="orders", cursor={"n": 1})
"#;

fn shop(test: &str) -> Shop {
    let shop = Shop::new(test);
    fs::write(shop.root.join("manifest.json"), MANIFEST).unwrap();
    shop
}

fn collect(shop: &Shop, script: &str) -> Answer {
    shop.run(&format!("{LINES}{script}"), &["--now"])
}

fn json_lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.code, 0, "{answer:?}");
    answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_stream(shop: &Shop, stream: &str) -> Value {
    let all = json_lines(&shop.gleaner(&["coverage", "shop", "--json"]));
    all.into_iter().find(|line| line["stream"] == stream).unwrap()
}

#[test]
fn coverage_tells_what_is_stored_of_what_is_known_and_says_where_it_cannot() {
    let shop = shop("coverage");
    let script = "for n in range(5): line(n)\nrecord(1)\ngap(7, 'rate_limited', **{'class': 'http', 'http_status': 429})\n\
                  gap(8, 'retry_exhausted', **{'class': 'run_cap_deferred'})\nlisting([0,1,2,3,4,7,8,9], [0,1,2,3,4], [7,8], [9])\n\
                  done(6); end()";
    assert_eq!(collect(&shop, script).code, 3);
    let lines = of_stream(&shop, "lines");
    let counts = ["listed", "stored", "missing", "skipped"].map(|name| lines[name].as_u64());
    assert_eq!(counts, [Some(8), Some(5), Some(2), Some(1)], "{lines}");
    assert_eq!((lines["percent"].as_f64(), lines["policy"].as_str()), (Some(71.42), Some("collect")), "{lines}");
    let gaps =
        lines["gaps"].as_array().unwrap().iter().map(|gap| (gap["code"].as_str().unwrap(), gap["origin"].as_str()));
    let expected = [("rate_limited", Some("source")), ("run_cap_deferred", Some("own_budget"))];
    assert_eq!(gaps.collect::<Vec<_>>(), expected);
    let orders = of_stream(&shop, "orders");
    assert_eq!((&orders["listed"], &orders["percent"]), (&Value::Null, &Value::Null), "{orders}");
    assert_eq!(orders["percent_unknown_because"], "no_listing");
    assert_eq!(of_stream(&shop, "photos")["percent_unknown_because"], "not_collected");
    let table = shop.gleaner(&["coverage"]).stdout;
    assert!(table.contains("71.42 %") && table.contains("1 run_cap_deferred"), "{table}");
    assert!(table.contains("total unknown: no run has reported one"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn gaps_are_paged_and_json_has_everything_about_each() {
    let shop = shop("gaps-paged");
    let script = "for n in range(2300): gap(n, 'not_found', **{'class': 'http', 'http_status': 404})\ndone(0); end()";
    assert_eq!(collect(&shop, script).code, 3);
    let all = json_lines(&shop.gleaner(&["gaps", "shop", "--json"]));
    assert_eq!(all.len(), 2300);
    let keys = all.iter().map(|gap| gap["record_key"].as_str().unwrap().parse::<usize>().unwrap());
    assert!(keys.eq(0..2300), "each once, in order");
    let gap = &all[0];
    assert_eq!((gap["reason"].as_str(), gap["class"].as_str()), (Some("not_found"), Some("http")), "{gap}");
    assert_eq!((gap["http_status"].as_u64(), gap["attempts"].as_u64()), (Some(404), Some(0)), "{gap}");
    assert!(gap["since"].is_string() && gap.get("not_before").is_some() && gap["state"] == "pending", "{gap}");
    let raw = shop.gleaner(&["gaps", "shop", "--json", "--limit", "1"]).stdout;
    assert!(raw.contains(r#""locator":{"n": 1.0}"#), "as it came: {raw}");
    let table = shop.gleaner(&["gaps", "shop"]).stdout;
    assert!(table.ends_with("20 of 2300 shown\n"), "{table}");
    assert_eq!(shop.gleaner(&["gaps", "shop", "--stream", "orders"]).stdout, "nothing is missing\n");
}

#[test]
fn a_gap_is_ignored_with_a_note_survives_the_next_run_and_is_taken_back() {
    let shop = shop("gaps-ignored");
    let script = "line(1)\ngap(7, 'not_found', **{'class': 'http', 'http_status': 404})\nlisting([1,7], [1], [7])\ndone(1); end()";
    assert_eq!(collect(&shop, script).code, 3);
    let gap = || json_lines(&shop.gleaner(&["gaps", "shop", "--json"]))[0].clone();
    let id = gap()["gap_id"].as_str().unwrap().to_owned();
    let table = shop.gleaner(&["gaps", "shop"]).stdout;
    assert!(table.contains(&format!("({})", &id[..10])), "{table}");
    let ignored = shop.gleaner(&["gaps", "ignore", &id[..10], "--note", "spam,\nsays \u{202e}me"]);
    assert_eq!(ignored.code, 0, "{ignored:?}");
    assert_eq!(collect(&shop, script).code, 0, "nothing is missing that somebody wants");
    assert_eq!((gap()["state"].as_str(), gap()["origin"].as_str()), (Some("ignored"), Some("ignored")));
    assert_eq!(gap()["ignored"]["note"], "spam,\nsays \u{202e}me");
    let table = shop.gleaner(&["gaps", "shop"]).stdout;
    assert!(
        table.contains("ignored by you") && table.contains("\"spam,\\nsays ") && !table.contains('\u{202e}'),
        "{table}"
    );
    let status = shop.gleaner(&["status"]).stdout;
    assert!(status.contains("healthy") && status.contains("1 gap is ignored, as you said"), "{status}");
    let lines = of_stream(&shop, "lines");
    assert_eq!((lines["percent"].as_f64(), lines["missing"].as_u64()), (Some(50.0), Some(1)), "not complete: {lines}");
    assert!(shop.gleaner(&["why", "shop"]).stdout.contains("1 ignored by you"));
    assert_eq!(shop.gleaner(&["verify"]).code, 0);
    assert_eq!(shop.gleaner(&["gaps", "take-back", &id]).code, 0);
    assert_eq!(gap()["state"], "pending");
    let refused: [(&[&str], &str); 6] = [
        (&["gaps", "take-back", &id], "has no ignored gap"),
        (&["gaps", "ignore", &id, "--note", " "], "the note is empty"),
        (&["gaps", "ignore", &id], "--note"),
        (&["gaps", "ignore", "abc", "--note", "x"], "at least 4 digits"),
        (&["gaps", "retry", "ffffffff"], "there is no gap"),
        (&["gaps"], "CONNECTION"),
    ];
    for (arguments, says) in refused {
        let answer = shop.gleaner(arguments);
        assert!(answer.code == 2 && answer.stderr.contains(says), "{arguments:?}: {answer:?}");
    }
}

#[test]
fn changes_come_by_number_with_tombstones_and_data_as_it_came() {
    let shop = shop("changes");
    let raw = r#"sys.stdout.write('{"type":"RECORD","stream":"orders","key":"a","data":{"n":1.0e400,"m":18446744073709551616},"emitted_at":"2031-01-01T00:00:00Z"}\n'); sys.stdout.flush()"#;
    assert_eq!(collect(&shop, &format!("{raw}\nline(1)\nrecord(2)\ndone(3); end()")).code, 0);
    assert_eq!(collect(&shop, "say(type='RECORD', stream='orders', key='2', op='delete')\ndone(1); end()").code, 0);
    let answer = shop.gleaner(&["records", "orders", "--since", "0", "--json"]).stdout;
    let first = r#"{"key":"a","data":{"n":1.0e400,"m":18446744073709551616},"deleted":false,"seq":1,"#;
    assert!(answer.starts_with(first), "{answer}");
    let seqs = answer.lines().map(|line| {
        let change = serde_json::from_str::<Value>(&line.replace("1.0e400", "0")).unwrap();
        (change["seq"].as_u64().unwrap(), change["deleted"].as_bool().unwrap())
    });
    assert_eq!(seqs.collect::<Vec<_>>(), [(1, false), (3, false), (4, true)]);
    let later = shop.gleaner(&["records", "orders", "--since", "3"]).stdout;
    assert_eq!(later, "       4  2  (deleted)\n");
    assert_eq!(shop.gleaner(&["records", "orders", "--since", "4"]).stdout, "");
}

struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn new(shop: &Shop, arguments: &[&str]) -> Self {
        let mut command = shop.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn seq(&mut self) -> u64 {
        let line = self.lines.next().unwrap().unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["seq"].as_u64().unwrap()
    }

    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }

    fn interrupt(&self) {
        assert!(Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap().success());
    }
}

#[test]
fn a_follower_prints_what_comes_until_ctrl_c_and_costs_nothing_meanwhile() {
    let shop = shop("follow");
    assert_eq!(collect(&shop, "record(1)\ndone(1); end()").code, 0);
    let mut follower = Follower::new(&shop, &["records", "orders", "--since", "0", "--follow", "--json"]);
    assert_eq!(follower.seq(), 1);
    assert_eq!(collect(&shop, "line(5)\nrecord(2)\ndone(2); end()").code, 0);
    assert_eq!(follower.seq(), 3);
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", follower.child.id())).unwrap();
        let fields = stat.rsplit_once(')').unwrap().1.split_whitespace().collect::<Vec<_>>();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(2));
    // A hundred are a second; a loop that does not wait would take most of two.
    assert!(ticks() - before < 30, "{} ticks of work while nothing happened", ticks() - before);
    follower.interrupt();
    assert_eq!(follower.end().0, Some(130));
}

fn copy_of_store(shop: &Shop, name: &str) -> PathBuf {
    let copy = shop.root.join("home").join(name);
    let backup = format!(".backup '{}'", copy.display());
    let store = shop.root.join("home/store.db");
    assert!(Command::new("sqlite3").arg(&store).arg(backup).status().unwrap().success());
    copy
}

fn replace_store(shop: &Shop, copy: &PathBuf) {
    let store = shop.root.join("home/store.db");
    for log in ["store.db-wal", "store.db-shm"] {
        let _gone = fs::remove_file(shop.root.join("home").join(log));
    }
    fs::rename(copy, store).unwrap();
}

#[test]
fn a_follower_goes_on_with_a_copy_and_stops_where_numbers_mean_something_else() {
    let shop = shop("follow-replaced");
    assert_eq!(collect(&shop, "record(1)\ndone(1); end()").code, 0);
    let old = copy_of_store(&shop, "old.db");
    let mut follower = Follower::new(&shop, &["records", "orders", "--since", "0", "--follow", "--json"]);
    assert_eq!(follower.seq(), 1);
    assert_eq!(collect(&shop, "record(2)\ndone(1); end()").code, 0);
    assert_eq!(follower.seq(), 2);
    let same = copy_of_store(&shop, "same.db");
    replace_store(&shop, &same);
    assert_eq!(collect(&shop, "record(3)\ndone(1); end()").code, 0);
    assert_eq!(follower.seq(), 3);
    replace_store(&shop, &old);
    let (code, said) = follower.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("note: the store was replaced; going on"), "{said}");
    assert!(said.contains("change 3 is no longer in it") && said.contains("hint: "), "{said}");
}

#[test]
fn a_follower_of_a_stream_that_is_purged_is_told_so() {
    let shop = shop("follow-purged");
    assert_eq!(collect(&shop, "record(1)\ndone(1); end()").code, 0);
    let mut follower = Follower::new(&shop, &["records", "orders", "--since", "0", "--follow", "--json"]);
    assert_eq!(follower.seq(), 1);
    let mut store = Store::open(&shop.root.join("home/store.db")).unwrap();
    let us = Holder::current().unwrap();
    let acquired = store.acquire(&[LeaseOn::Connection("shop")], &us, WallTime::default()).unwrap();
    let Acquired::Yes { leases, .. } = acquired else { panic!("{acquired:?}") };
    store.purge("shop", &leases).unwrap();
    let (code, said) = follower.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("shop.orders was purged; nothing more comes"), "{said}");
}

#[test]
fn an_export_is_written_as_a_whole_for_its_owner_alone() {
    let shop = shop("export");
    let script = r#"say(type="RECORD", stream="orders", key="a", data={"id": 1, "total": 1.50, "key": "=1+1", "tags": ["x", {"y": 1}], "note": "two\nlines, \"q\""}, emitted_at="2031-01-01T00:00:00Z")
record(2)
say(type='RECORD', stream='orders', key='2', op='delete')
line(3)
done(4); end()"#;
    assert_eq!(collect(&shop, script).code, 0);
    let all = json_lines(&shop.gleaner(&["export", "shop"]));
    let places = all.iter().map(|line| (line["stream"].as_str().unwrap(), line["key"].as_str().unwrap()));
    assert_eq!(places.collect::<Vec<_>>(), [("orders", "a"), ("lines", "3")]);
    let raw = shop.gleaner(&["export", "shop.orders"]).stdout;
    assert!(raw.contains(r#""data":{"id": 1, "total": 1.5, "key""#), "the bytes as they came: {raw}");
    let file = shop.root.join("out.csv");
    fs::write(&file, "what was there before").unwrap();
    let arguments = ["export", "shop.orders", "--format", "csv", "--tombstones", "--output", "out.csv"];
    let answer = shop.gleaner(&arguments);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, ""), "{answer:?}");
    assert_eq!(answer.stderr, "2 records were written to out.csv\n");
    let expected = "key,seq,emitted_at,deleted,id,total,data.key,tags,note\n\
                    2,3,,true,,,,,\n\
                    a,1,2031-01-01T00:00:00Z,false,1,1.5,=1+1,\"[\"\"x\"\", {\"\"y\"\": 1}]\",\"two\nlines, \"\"q\"\"\"\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let several = shop.gleaner(&["export", "shop", "--format", "csv"]);
    assert!(several.code == 2 && several.stderr.contains("hint: name one, for example shop.orders"), "{several:?}");
}

#[test]
fn an_export_that_cannot_be_finished_says_so_and_leaves_nothing_behind() {
    let shop = shop("export-fails");
    assert_eq!(collect(&shop, "for n in range(3000): line(n)\ndone(3000); end()").code, 0);
    fs::write(shop.root.join("out.jsonl"), "what was there before").unwrap();
    let files = || fs::read_dir(&shop.root).unwrap().count();
    let before = files();
    let sh = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_gleaner")]).current_dir(&shop.root);
        let output = command.env("GLEANER_HOME", shop.root.join("home")).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    // A file of at most 64 KiB; the signal for it would end the program before it could tidy up.
    let (code, said) = sh("trap '' XFSZ; ulimit -f 128; exec \"$0\" export shop --output out.jsonl");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot write out.jsonl: ") && said.contains("nothing was replaced"), "{said}");
    assert_eq!(fs::read_to_string(shop.root.join("out.jsonl")).unwrap(), "what was there before");
    let (code, said) = sh("\"$0\" export shop --output missing/out.jsonl");
    assert!(code == Some(1) && said.contains("cannot write missing/out.jsonl"), "{said}");
    let (code, said) = sh("\"$0\" export shop --output /dev/null");
    assert!(code == Some(1) && said.contains("not a regular file"), "{said}");
    let (code, said) = sh("exec \"$0\" export shop >/dev/full");
    assert!(code == Some(1) && said.contains("the disk is full; what was written is not complete"), "{said}");
    let (_, said) = sh("\"$0\" export shop | head -c 10 >/dev/null");
    assert!(said.contains("whoever read it has left; what was written is not complete"), "{said}");
    assert_eq!(files(), before);
}

#[test]
fn a_query_prints_rows_truly_and_refuses_to_write() {
    let shop = shop("query");
    assert_eq!(collect(&shop, "record(1, note='two\\nlines \\x1b[31m')\nline(2)\ndone(2); end()").code, 0);
    let table = shop.gleaner(&["query", "SELECT key, note, 9223372036854775807 AS n, x'00ff' FROM \"shop.orders\""]);
    assert_eq!(table.code, 0, "{table:?}");
    assert!(table.stdout.ends_with("1    two\\nlines \\u{1b}[31m  9223372036854775807  x'00ff'\n"), "{table:?}");
    let sql = "SELECT key, key, note, -9223372036854775807 AS n, x'00ff' AS b, NULL AS z FROM \"shop.orders\"";
    let json = shop.gleaner(&["query", sql, "--json"]).stdout;
    let expected = r#"{"key":"1","key_2":"1","note":"two\nlines \u001b[31m","n":-9223372036854775807,"b":{"blob":"00ff"},"z":null}"#;
    assert_eq!(json.trim_end(), expected);
    for sql in ["DELETE FROM records", "ATTACH 'x' AS y", "PRAGMA user_version = 9", "SELECT 1; SELECT 2"] {
        let refused = shop.gleaner(&["query", sql]);
        assert!(refused.code == 2 && refused.stderr.contains("Queries only read"), "{sql}: {refused:?}");
    }
    let wrong = shop.gleaner(&["query", "SELEC"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("syntax error") && wrong.stderr.contains("hint:"), "{wrong:?}");
    assert_eq!(shop.gleaner(&["verify"]).code, 0);
}

#[test]
fn ctrl_c_ends_a_query_that_would_go_on() {
    let shop = shop("query-interrupt");
    assert_eq!(collect(&shop, "done(0); end()").code, 0);
    let endless = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT n FROM n";
    let mut query = Follower::new(&shop, &["query", endless, "--json"]);
    assert_eq!(query.lines.next().unwrap().unwrap(), r#"{"n":1}"#);
    let began = Instant::now();
    query.interrupt();
    // What was printed before is read, so that it does not wait for us.
    query.lines.by_ref().for_each(drop);
    assert_eq!(query.end().0, Some(130));
    assert!(began.elapsed() < Duration::from_secs(20));
}

fn about(lines: &[Value], about: &str) -> Vec<Value> {
    lines.iter().filter(|line| line["about"] == about).cloned().collect()
}

#[test]
fn why_names_the_rest_the_pace_and_whose_doing_each_gap_is() {
    let shop = shop("why");
    let script = r#"
gap(1, 'rate_limited', **{'class': 'http', 'http_status': 429}); gap(2, 'retry_exhausted', **{'class': 'run_cap_deferred'}); gap(3, 'not_found', **{'class': 'http'})
say(type="PROGRESS", message="x", collection_rate={"object":"collection_rate","current_interval_ms":400,"effective_rate_per_min":150,"ceiling_interval_ms":20,"ceiling_rate_per_min":3000,"last_backoff":{"at_interval_ms":750,"reason":"retry_after"}},
    provider_budget={"object":"provider_budget_circuit_transition","circuit":{"previous_state":"closed","state":"open","reason":"provider_failure","trigger":"provider_failure"},"elapsed_ms":12.0,"request_count":9})
done(0); end()"#;
    assert_eq!(collect(&shop, script).code, 3);
    let lines = json_lines(&shop.gleaner(&["why", "shop", "--json"]));
    let resting = &about(&lines, "not_running")[0];
    assert_eq!((resting["code"].as_str(), resting["reason"].as_str()), (Some("resting"), Some("rate_limited")));
    assert!(resting["until"].is_string());
    let faster = about(&lines, "not_faster");
    assert_eq!(
        (faster[0]["rate_per_min"].as_f64(), faster[0]["ceiling_rate_per_min"].as_f64()),
        (Some(150.0), Some(3000.0))
    );
    assert_eq!(faster[1]["last_backoff"]["reason"], "retry_after");
    assert_eq!(faster[2]["state"], "open");
    let missing =
        about(&lines, "missing").iter().map(|line| (line["code"].clone(), line["count"].clone())).collect::<Vec<_>>();
    assert_eq!(missing, [("source".into(), 1.into()), ("own_budget".into(), 1.into()), ("other".into(), 1.into())]);
    let text = shop.gleaner(&["why", "shop"]).stdout;
    assert!(text.lines().count() <= 12 && text.lines().last().unwrap().starts_with("next "), "{text}");
    assert!(text.contains("The service is limiting how fast it can be asked.") && text.contains("--now"), "{text}");
    assert!(text.contains("It last slowed down to 80 a minute: the service asked for a pause."), "{text}");
}

#[test]
fn why_has_at_most_twelve_lines_whatever_is_known_and_ends_with_what_comes_next() {
    let shop = shop("why-much");
    let script = r#"
gap(1, 'rate_limited', **{'class': 'http'}); gap(2, 'retry_exhausted', **{'class': 'run_cap_deferred'}); gap(3, 'not_found', **{'class': 'http'}); gap(4, 'gone', **{'class': 'http'})
listing([1, 2, 3, 4, 5], [], [1, 2, 3, 4])
say(type="PROGRESS", message="x", collection_rate={"object":"collection_rate","current_interval_ms":400,"effective_rate_per_min":150,"ceiling_interval_ms":20,"ceiling_rate_per_min":3000,"last_backoff":{"at_interval_ms":750,"reason":"latency"}},
    provider_budget={"object":"provider_budget_circuit_transition","circuit":{"previous_state":"open","state":"half_open","reason":"reset_timeout","trigger":"before_request"},"elapsed_ms":12.0,"request_count":9})
done(0); end()"#;
    assert_eq!(collect(&shop, script).code, 3);
    let sql = "UPDATE connections SET state = 'paused'; UPDATE streams SET quarantined = 3 WHERE id = 1;
        UPDATE gaps SET state = 'terminal', terminal_reason = 'gone' WHERE reason = 'gone';
        INSERT INTO interactions (run, request_id, kind, message, asked_at, state)
            VALUES (1, 'q', 'otp', 'The code' || char(27) || '[31m' || char(10) || 'please', 0, 'open');
        WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 4)
        INSERT INTO runs (run_id, connection, track, epoch, lease, started_at, ended_at, reason)
            SELECT 'f' || n, 1, 'steady', 1, 'l', 0, 0, 'connector_failed' FROM n;";
    let store = shop.root.join("home/store.db");
    assert!(Command::new("sqlite3").arg(&store).arg(sql).status().unwrap().success());
    let text = shop.gleaner(&["why", "shop"]).stdout;
    assert!(!text.contains("It asks since"), "its run is gone, so nobody waits for the answer: {text}");
    let ourselves = Holder::current().unwrap();
    let now = gleaner_app::dates::now();
    Store::open(&store).unwrap().acquire(&[LeaseOn::Connection("shop")], &ourselves, now).unwrap();
    let text = shop.gleaner(&["why", "shop"]).stdout;
    assert_eq!(text.lines().count(), 12, "{text}");
    assert_eq!(text.lines().last(), Some("next         Answer the question: `gleaner answer 1`."));
    assert!(
        text.contains("needs you    It asks since 1970-01-01T00:00:00Z: \"The code\\u{1b}[31m\\nplease\""),
        "{text}"
    );
    assert!(text.contains("You paused it.") && text.contains("It failed the same way 4 times in a row."), "{text}");
}

#[test]
fn why_names_who_is_at_work_what_was_cut_short_and_what_is_paused() {
    let shop = shop("why-running");
    let mut run = shop.start("record(1); slice(2)\nwhile True: time.sleep(1)");
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("\"saved\""));
    let why = json_lines(&shop.gleaner(&["why", "shop", "--json"]));
    let running = &about(&why, "running")[0];
    assert_eq!(running["pid"].as_u64(), Some(run.id().into()), "{running}");
    assert!(running["since"].is_string() && running["until"].is_string(), "{running}");
    assert_eq!(about(&why, "not_faster")[0]["code"], "not_reported");
    run.kill().unwrap();
    run.wait().unwrap();
    let why = json_lines(&shop.gleaner(&["why", "shop", "--json"]));
    assert_eq!(about(&why, "last_run")[0]["code"], "interrupted");
    assert_eq!(about(&why, "not_running")[0]["code"], "idle");
    Store::open(&shop.root.join("home/store.db")).unwrap().set_paused("shop", true).unwrap();
    let why = json_lines(&shop.gleaner(&["why", "shop", "--json"]));
    assert_eq!(about(&why, "not_running")[0]["code"], "paused");
    assert_eq!(shop.gleaner(&["why", "shopp"]).code, 2);
}
