//! Real connector processes, well-behaved and not, run by a real runtime: what is stored, what is said,
//! and what is left of them afterwards. Connectors are small Python programs.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod driven;

use driven::{MANIFEST, Running};
use gleaner_store::Reader;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("manifest.json"), MANIFEST).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, script: &str, flags: &[&str]) -> Running {
        Running::start(self.folder.path(), script, flags)
    }

    fn run(&self, script: &str) -> String {
        self.start(script, &[]).rest()
    }

    fn keys(&self) -> usize {
        Reader::open(&self.path("store.db")).unwrap().records("c", "ids", None, 1000).unwrap().len()
    }
}

fn pid_in(path: &Path) -> u32 {
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        if let Ok(text) = fs::read_to_string(path)
            && let Ok(pid) = text.trim().parse()
        {
            return pid;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no pid in {}", path.display());
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn is_gone_within(pid: u32, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    while is_alive(pid) {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

#[test]
fn a_connector_is_told_what_to_do_and_its_records_are_stored() {
    let world = World::new();
    let script = r#"
assert start["type"] == "START" and start["state"] is None and start["detail_gaps"] == []
assert start["collection_mode"] == "incremental" and start["scope"]["streams"] == [{"name": "ids"}]
assert "filesystem" in start["bindings"] and "interactive" not in start["bindings"]
for n in range(5): record(n)
slice(5); done(5); wait_for_end()
"#;
    let said = world.run(script);
    assert!(said.contains("reason succeeded\ncollected 5"), "{said}");
    assert_eq!(world.keys(), 5);
    let said =
        world.run(r#"assert start["state"] == {"ids": {"next": 5}}; record(5); slice(6); done(1); wait_for_end()"#);
    assert!(said.contains("reason succeeded\ncollected 1"), "{said}");
    assert_eq!(world.keys(), 6);
}

#[test]
fn a_connector_sees_what_it_declares_and_its_own_secret_and_nothing_else() {
    let world = World::new();
    let said = world.run(
        r#"
assert os.environ["DECLARED"] == "yes" and os.environ["TEST_SECRET"] == "s3cr3t-value"
assert "NOT_DECLARED" not in os.environ and "CARGO" not in os.environ
print("my secret is", os.environ["TEST_SECRET"], file=sys.stderr)
done(0); wait_for_end()"#,
    );
    assert!(said.contains("reason succeeded"), "{said}");
    assert!(said.contains("my secret is [secret]") && !said.contains("s3cr3t"), "{said}");
}

#[test]
fn its_own_secret_in_a_record_ends_the_run() {
    let world = World::new();
    let said = world
        .run(r#"say(type="RECORD", stream="ids", key="k", data={"t": os.environ["TEST_SECRET"]}, emitted_at="2031-01-01"); wait_for_end()"#);
    assert!(said.contains("violation credential_in_output"), "{said}");
    assert_eq!(world.keys(), 0);
}

#[test]
fn input_is_closed_only_when_everything_is_durable() {
    let world = World::new();
    let said = world.run(
        r#"
for n in range(3): record(n)
done(3); wait_for_end()
import sqlite3
path = os.path.join(os.path.dirname(sys.argv[0]), "store.db")
assert sqlite3.connect(path).execute("select count(*) from records").fetchone() == (3,)
"#,
    );
    assert!(said.contains("reason succeeded"), "{said}");
}

#[test]
fn a_connector_that_ends_without_done_keeps_its_saved_slices() {
    let world = World::new();
    let said = world.run("record(1); slice(1); record(2); os._exit(0)");
    assert!(said.contains("violation exit_without_done"), "{said}");
    assert_eq!(world.keys(), 2, "what was accepted is kept");
    let said = world.run("sys.stdout.write('{\"type\":\"REC'); sys.stdout.flush(); os._exit(1)");
    assert!(said.contains("violation incomplete_line") && said.contains("reason connector_crashed"), "{said}");
    let said = world.run("record(3); os.kill(os.getpid(), signal.SIGSEGV)");
    assert!(said.contains("reason connector_crashed"), "{said}");
}

#[test]
fn a_connector_that_floods_its_errors_and_never_reads_its_input_is_no_problem() {
    let world = World::new();
    let said = world.run("sys.stderr.write('x' * 5_000_000); record(1); done(1); os.close(0); sys.exit(0)");
    assert!(said.contains("reason succeeded"), "{}", &said[..said.len().min(300)]);
    assert!(said.contains("bytes dropped"));
}

#[test]
fn nothing_is_left_of_a_connector_whose_runtime_was_killed() {
    let world = World::new();
    // It ignores everything that can be ignored, and so does a child of its that left group and parent.
    let script = r#"
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN)
folder = os.path.dirname(sys.argv[0])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(folder + "/grandchild", "w").write(str(os.getpid()))
        while True: time.sleep(1)
    os._exit(0)
open(folder + "/connector", "w").write(str(os.getpid()))
while True: time.sleep(1)
"#;
    let mut running = world.start(script, &[]);
    let pids = ["connector", "grandchild"].map(|name| pid_in(&world.path(name)));
    assert!(pids.iter().all(|&pid| is_alive(pid)));
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    for pid in pids {
        assert!(is_gone_within(pid, Duration::from_secs(5)), "{pid} is left");
    }
}

#[test]
fn what_a_connector_leaves_behind_is_ended_and_does_not_hold_the_run() {
    let world = World::new();
    let script = r#"
if os.fork() == 0:
    os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(os.path.dirname(sys.argv[0]) + "/left", "w").write(str(os.getpid()))
    while True: time.sleep(1)
while not os.path.exists(os.path.dirname(sys.argv[0]) + "/left"): time.sleep(0.01)
record(1); slice(1); done(1); wait_for_end()
"#;
    let began = Instant::now();
    let said = world.run(script);
    assert!(said.contains("reason succeeded"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(is_gone_within(pid_in(&world.path("left")), Duration::from_secs(10)));
}

#[test]
fn a_cancelled_run_finishes_its_slice_and_goes_on_there_later() {
    let world = World::new();
    let script = r#"
stop = False
def on_term(*_):
    global stop; stop = True
signal.signal(signal.SIGTERM, on_term)
first = (start["state"] or {"ids": {"next": 0}})["ids"]["next"]
n = first
while not stop or n % 10 != 0:
    record(n); n += 1
    if n % 10 == 0: slice(n)
    time.sleep(0.002)
done(n - first, "cancelled"); sys.exit(1)
"#;
    let mut running = world.start(script, &[]);
    assert!(running.line().starts_with("saved "));
    running.orders.write_all(b"cancel\n").unwrap();
    let began = Instant::now();
    let said = running.rest();
    assert!(said.contains("reason cancelled"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(10));
    let keys = world.keys();
    assert!(keys.is_multiple_of(10), "the slice was finished: {keys}");
    let said = world.run(&format!("assert start['state']['ids']['next'] == {keys}; done(0); wait_for_end()"));
    assert!(said.contains("reason succeeded"), "{said}");
}

#[test]
fn a_connector_that_ignores_a_cancellation_is_ended_at_once_the_second_time() {
    let world = World::new();
    let mut running = world
        .start("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nrecord(1); slice(1)\nwhile True: time.sleep(1)", &[]);
    assert_eq!(running.line(), "saved 1");
    running.orders.write_all(b"cancel\nnow\n").unwrap();
    let began = Instant::now();
    assert!(running.rest().contains("reason cancelled"));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[test]
fn a_question_is_answered_once_and_the_answer_is_stored_nowhere() {
    let world = World::new();
    let script = r#"
say(type="INTERACTION", request_id="q1", kind="otp", message="the code?")
answer = json.loads(sys.stdin.readline())
assert answer == {"type": "INTERACTION_RESPONSE", "request_id": "q1", "status": "success", "data": {"code": "c4n4ry"}}, answer
record(1); done(1); wait_for_end()
"#;
    let mut running = world.start(script, &["--interactive"]);
    assert_eq!(running.line(), "asked q1 the code?");
    running.orders.write_all(b"answer q1 {\"code\":\"c4n4ry\"}\nanswer q1 {\"code\":\"other\"}\n").unwrap();
    assert!(running.rest().contains("reason succeeded\ncollected 1"));
    for file in fs::read_dir(world.folder.path()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension != "py") {
            let bytes = fs::read(&path).unwrap();
            assert!(!bytes.windows(6).any(|window| window == b"c4n4ry"), "{}", path.display());
        }
    }
}

#[test]
fn a_question_without_somebody_to_answer_ends_the_run() {
    let world = World::new();
    let said = world.run(r#"say(type="INTERACTION", request_id="q", kind="credentials", message="?"); wait_for_end()"#);
    assert!(said.contains("violation interaction_without_binding"), "{said}");
}

#[test]
fn gaps_are_served_recovered_and_put_back() {
    let world = World::new();
    let said = world.run(
        r#"
for n in range(3):
    say(type="DETAIL_GAP", reference_only=True, status="pending", stream="ids", record_key=str(n), reason="temporary_unavailable", detail_locator={"n": n})
slice(1); done(0); wait_for_end()"#,
    );
    assert!(said.contains("reason succeeded"), "{said}");
    let said = world.run(
        r#"
gaps = start["detail_gaps"]
assert [gap["detail_locator"]["n"] for gap in gaps] == [0, 1, 2], gaps
for gap in gaps[:2]:
    n = gap["detail_locator"]["n"]
    record(n)
    say(type="DETAIL_GAP_RECOVERED", reference_only=True, stream="ids", gap_id=gap["gap_id"], lease_id=gap["lease_id"])
say(type="DETAIL_GAPS_PAGE_REQUEST", reference_only=True, request_id="p1")
assert json.loads(sys.stdin.readline()) == {"type": "DETAIL_GAPS_PAGE_RESPONSE", "request_id": "p1", "reference_only": True, "detail_gaps": []}
done(2); wait_for_end()"#,
    );
    assert!(said.contains("reason succeeded\ncollected 2"), "{said}");
    let streams = Reader::open(&world.path("store.db")).unwrap().streams("c").unwrap();
    assert_eq!((streams[0].gaps_recovered, streams[0].gaps_pending), (2, 1), "the third waits again");
}

#[test]
fn a_program_that_is_not_there_is_named_and_nothing_is_started() {
    let world = World::new();
    let output = Command::new(env!("CARGO_BIN_EXE_runtime-driver"))
        .arg("run")
        .arg(world.path("store.db"))
        .arg(world.path("manifest.json"))
        .args(["--", "no-such-connector"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("\"no-such-connector\" was not found"), "{said}");
    let runs = Reader::open(&world.path("store.db")).unwrap().runs("c", 10).unwrap();
    assert!(runs[0].ended_at.is_some(), "on record, and ended");
}

#[test]
fn a_second_run_is_told_who_is_at_work() {
    let world = World::new();
    let mut first = world.start("record(1); slice(1)\nwhile True: time.sleep(1)", &[]);
    assert_eq!(first.line(), "saved 1");
    let output = Command::new(env!("CARGO_BIN_EXE_runtime-driver"))
        .arg("run")
        .arg(world.path("store.db"))
        .arg(world.path("manifest.json"))
        .args(["--", "true"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&format!("process {}", first.child.id())), "{said}");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let said = world.run("done(0); wait_for_end()");
    assert!(said.contains("reason succeeded") && said.contains("interrupted 1"), "at once: {said}");
}

#[test]
fn a_connector_that_does_not_stop_at_its_time_is_ended_and_a_gap_says_where() {
    let world = World::new();
    let endless = r#"
assert start["run_budget"] == {"max_duration_ms": 2000}, start
n = 0
while True:
    record(n); n += 1
    if n % 10 == 0: slice(n)
    time.sleep(0.005)
"#;
    let said = world.start(endless, &["--max-ms", "2000"]).rest();
    assert!(said.contains("reason budget_reached"), "{said}");
    let reader = Reader::open(&world.path("store.db")).unwrap();
    let gaps = reader.gaps("c", gleaner_store::GapFilter::default(), 0, 10).unwrap();
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].reason.as_deref(), gaps[0].run_cap), (Some("retry_exhausted"), true));
    let error = gaps[0].last_error.as_deref().unwrap();
    assert!(error.contains("run_cap_deferred") && !error.contains("http_status"), "{error}");
    let [cursor] = &reader.bookmarks::<gleaner_engine::Steady>("c").unwrap()[..] else { panic!("one stream") };
    let sql = "SELECT list_cursor || '|' || ifnull(http_status, 'none') FROM gaps";
    let kept = Command::new("sqlite3").arg(world.path("store.db")).arg(sql).output().unwrap();
    let expected = format!("{}|none", cursor.token().as_str());
    assert_eq!(String::from_utf8(kept.stdout).unwrap().trim(), expected, "where it was last saved");
    assert!(reader.cooldown("c").unwrap().is_none(), "a planned stop arms nothing");
    drop(reader);
    // It is not served, and the next run that goes to its end closes it.
    let said =
        world.run("assert start['detail_gaps'] == [] and start['state']['ids']['next'] > 0\ndone(0); wait_for_end()");
    assert!(said.contains("reason succeeded"), "{said}");
    let streams = Reader::open(&world.path("store.db")).unwrap().streams("c").unwrap();
    assert_eq!((streams[0].gaps_open(), streams[0].gaps_recovered), (0, 1));
}

#[test]
fn what_a_connector_says_is_stored_without_its_secret() {
    let world = World::new();
    let said = world.run(
        r#"
secret = os.environ["TEST_SECRET"]
say(type="PROGRESS", message="using " + secret)
say(type="SKIP_RESULT", stream="ids", reason="x", message=secret, diagnostics={"url": "https://x/?t=" + secret})
say(type="DETAIL_GAP", reference_only=True, status="pending", stream="ids", record_key="1", reason="not_found", last_error={"class": "x", "url": secret})
done(0, "failed", error={"message": "refused: " + secret, "retryable": False, "code": "test_auth_failed"}); sys.exit(1)"#,
    );
    assert!(said.contains("reason credentials_refused"), "{said}");
    assert!(!said.contains("s3cr3t"), "{said}");
    let run = Reader::open(&world.path("store.db")).unwrap().runs("c", 1).unwrap().remove(0);
    assert_eq!(run.error_message.as_deref(), Some("refused: [secret]"));
    for name in ["store.db", "store.db-wal"] {
        let bytes = fs::read(world.path(name)).unwrap_or_default();
        assert!(!bytes.windows(6).any(|window| window == b"s3cr3t"), "{name}");
    }
}
