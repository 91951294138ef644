//! What talks to a run that goes on (`answer`, `cancel`, `status`), and the life of a connection: `check`,
//! `pause`, `resume`, `remove`, and the end of the owner's permission. Connectors are small Python programs.

use crate::collect::{Shop, last_line};
use crate::support::Answer;
use gleaner_vault::{Secret, Vault};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Asks for a code, repeats it where people look, and ends as its answer says.
const ASKS: &str = r#"
say(type="INTERACTION", request_id="q1", kind="otp", message="the code from your phone?", **more)
answer = json.loads(sys.stdin.readline())
if answer["status"] != "success":
    done(0, "failed", error={"message": "no code: " + answer["status"], "retryable": False}); end(1)
code = answer["data"]["code"]
print("debug", code, file=sys.stderr)
say(type="PROGRESS", message="signed in with " + code)
record(1); slice(1); done(1); end()"#;

/// A run in the background whose messages are read one by one.
struct Run {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Run {
    fn start(shop: &Shop, script: &str, options: &[&str]) -> Self {
        shop.script(script);
        let mut arguments = vec!["run", "--manifest", "manifest.json", "--json"];
        arguments.extend(options);
        arguments.extend(["--", "python3", "-u", "shop.py"]);
        Self::of(shop, &arguments)
    }

    fn of(shop: &Shop, arguments: &[&str]) -> Self {
        let mut child = shop.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next message of this type.
    fn until(&mut self, message_type: &str) -> Value {
        loop {
            let line = self.lines.next().expect("it goes on").unwrap();
            let message = serde_json::from_str::<Value>(&line).unwrap();
            if message["message_type"] == message_type {
                return message;
            }
        }
    }

    fn end(mut self) -> (i32, Value) {
        let last = self.until("run_finished");
        (self.child.wait().unwrap().code().unwrap(), last)
    }
}

/// A test that fails leaves nobody behind who waits for an answer.
impl Drop for Run {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn pipe(shop: &Shop, arguments: &[&str], input: &str) -> Answer {
    let mut command = shop.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Answer {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn add(shop: &Shop, script: &str, options: &[&str]) -> Answer {
    shop.script(script);
    let mut arguments = vec!["add", "--manifest", "manifest.json"];
    arguments.extend(options);
    arguments.extend(["--", "python3", "-u", "shop.py"]);
    shop.gleaner(&arguments)
}

fn vault(shop: &Shop) -> Vault {
    let home = shop.root.join("home");
    fs::create_dir_all(&home).unwrap();
    fs::set_permissions(&home, PermissionsExt::from_mode(0o700)).unwrap();
    Vault::open(&home).unwrap()
}

fn sign_in(shop: &Shop) {
    vault(shop).set("shop", "SHOP_TOKEN", Secret::new("v4ult-c4n4ry".to_owned())).unwrap();
}

/// So many seconds from now, in RFC 3339.
fn in_seconds(seconds: u64) -> String {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds;
    let arguments = ["-u", "-d", &format!("@{at}"), "+%Y-%m-%dT%H:%M:%SZ"];
    let output = std::process::Command::new("date").args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What became of the questions, as the store has it.
fn questions(shop: &Shop) -> String {
    let store = shop.root.join("home/store.db");
    let output = std::process::Command::new("sqlite3").arg(store).arg("SELECT state FROM interactions").output();
    String::from_utf8(output.unwrap().stdout).unwrap().trim().to_owned()
}

/// Whether a text is in any file of the data root.
fn is_kept(shop: &Shop, text: &str) -> bool {
    let home = shop.root.join("home");
    let folders = [home.clone(), home.join("secrets"), home.join("run")];
    let files = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).any(|path| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn a_parked_question_is_shown_answered_once_and_its_answer_is_kept_nowhere() {
    let shop = Shop::new("parked");
    // The second sleep leaves time for a second answer.
    let script = format!("more = {{'timeout_seconds': 300}}\n{}", ASKS.replace("code = ", "time.sleep(2); code = "));
    let mut run = Run::start(&shop, &script, &["--interact", "park"]);
    let id = run.until("question")["id"].to_string();
    let status = shop.gleaner(&["status"]).stdout;
    assert!(status.starts_with("shop  needs you, running\n"), "{status}");
    assert!(status.contains(&format!("process {} works on it since", run.child.id())), "{status}");
    assert!(status.contains(&format!("question {id}, ")) && status.contains("min left: the code from"), "{status}");
    let list = shop.gleaner(&["answer"]).stdout;
    assert!(list.contains("shop  otp") && list.contains(&format!("gleaner answer {id}")), "{list}");
    let no_terminal = shop.gleaner(&["answer", &id]);
    assert!(no_terminal.code == 2 && no_terminal.stderr.contains("--stdin"), "{no_terminal:?}");
    let no_object = pipe(&shop, &["answer", &id, "--stdin"], "[1]");
    assert!(no_object.code == 2 && no_object.stderr.contains("no JSON object"), "{no_object:?}");
    let taken = pipe(&shop, &["answer", &id, "--stdin"], "{\n \"code\": \"c4n4ry7\"}\n");
    assert!(taken.code == 0 && taken.stdout.contains("is answered; the run of shop continues"), "{taken:?}");
    let second = pipe(&shop, &["answer", &id, "--stdin"], r#"{"code":"too-late"}"#);
    assert!(second.code == 1 && second.stderr.contains("it was answered"), "{second:?}");
    assert_eq!(run.until("progress")["message"], "signed in with [secret]");
    let (code, end) = run.end();
    assert_eq!((code, end["status"].as_str()), (0, Some("succeeded")), "{end}");
    assert_eq!(questions(&shop), "answered");
    assert!(!is_kept(&shop, "c4n4ry7"), "an answer is for the connector alone");
    assert!(shop.gleaner(&["answer"]).stdout.contains("no question waits"));
    let left = fs::read_dir(shop.root.join("home/run")).unwrap().count();
    assert_eq!(left, 0, "no socket is left");
}

#[test]
fn a_declined_question_ends_the_run_as_its_connector_decides() {
    let shop = Shop::new("declined");
    let mut run = Run::start(&shop, &format!("more = {{}}\n{ASKS}"), &["--interact", "park"]);
    let id = run.until("question")["id"].to_string();
    let declined = shop.gleaner(&["answer", &id, "--decline"]);
    assert!(declined.stdout.contains("is declined"), "{declined:?}");
    let (code, end) = run.end();
    assert_eq!((code, end["reason"].as_str()), (1, Some("connector_failed")), "{end}");
    let runs = shop.gleaner(&["runs", "shop"]).stdout;
    assert!(runs.contains("no code: cancelled"), "{runs}");
    assert_eq!(questions(&shop), "cancelled");
}

/// Runs a program on a terminal of its own, types when it asks, and prints what was seen: whether typing was
/// shown while it asked and after the end, the exit code, and the screen.
const TERMINAL: &str = r#"
import os, pty, select, subprocess, sys, termios, time
typed, program = sys.argv[1], sys.argv[2:]
pid, fd = pty.fork()
if pid == 0: os.execv(program[0], program)
screen = b""
def look(until, seconds):
    global screen
    end = time.time() + seconds
    while time.time() < end and until not in screen:
        if select.select([fd], [], [], 0.1)[0]:
            try: screen += os.read(fd, 65536)
            except OSError: return
def shown(): return bool(termios.tcgetattr(fd)[3] & termios.ECHO)
look(b"decline): ", 30)
end = time.time() + 10
while shown() and time.time() < end: time.sleep(0.01)
asking = shown()
if typed == "elsewhere": subprocess.run([program[0], "answer", "1", "--stdin"], input=b'{"code": "c4n4ry7"}', stdout=subprocess.DEVNULL, check=True)
else: os.write(fd, typed.encode().decode("unicode_escape").encode())
end = time.time() + 10
while not shown() and time.time() < end: time.sleep(0.01)
time.sleep(0.7)
ended = os.waitpid(pid, os.WNOHANG)
look(b"hopefully never on the screen", 10)
after = shown()
_, status = ended if ended[0] else os.waitpid(pid, 0)
print(asking, after, os.waitstatus_to_exitcode(status), "" if ended[0] else "and went on")
print(screen.decode())
"#;

#[test]
fn what_is_typed_on_a_terminal_is_not_shown_and_the_terminal_is_put_right() {
    let shop = Shop::new("terminal");
    shop.script(&format!("more = {{}}\n{}", ASKS.replace("code = ", "time.sleep(3); code = ")));
    fs::write(shop.root.join("terminal.py"), TERMINAL).unwrap();
    let run = ["run", "--manifest", "manifest.json", "--", "python3", "-u", "shop.py"];
    let add = ["add", "--manifest", "manifest.json", "--", "python3", "-u", "shop.py"];
    for (typed, arguments, end) in [
        // Taken back at once, and not when the run is over.
        ("elsewhere", run, "0 and went on"),
        ("c4n4ry7\\n", run, "0 and went on"),
        ("\\n", run, "1 "),
        ("\\x03", run, "130 "),
        // Ended by the signal, after the terminal was put right.
        ("\\x03", add, "-2 "),
    ] {
        let mut terminal = std::process::Command::new("python3");
        terminal.args(["terminal.py", typed, env!("CARGO_BIN_EXE_gleaner")]).args(arguments);
        terminal.env("GLEANER_HOME", shop.root.join("home")).current_dir(&shop.root);
        let output = terminal.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(&format!("False True {end}")), "{typed}: {text}");
        assert!(!text.contains("c4n4ry7"), "{typed}: {text}");
    }
}

#[test]
fn a_question_that_nobody_answers_in_time_ends_the_run_with_exit_4() {
    let shop = Shop::new("question-expires");
    let run = Run::start(&shop, &format!("more = {{'timeout_seconds': 1}}\n{ASKS}"), &["--interact", "park"]);
    let (code, end) = run.end();
    assert_eq!((code, end["reason"].as_str()), (4, Some("interaction_expired")), "{end}");
    assert_eq!(questions(&shop), "expired");
    let status = shop.gleaner(&["status"]).stdout;
    assert!(status.starts_with("shop  needs you\n"), "{status}");
}

#[test]
fn a_question_of_a_killed_run_waits_for_nobody() {
    let shop = Shop::new("killed-question");
    let mut run = Run::start(&shop, &format!("more = {{}}\n{ASKS}"), &["--interact", "park"]);
    let id = run.until("question")["id"].to_string();
    run.child.kill().unwrap();
    run.child.wait().unwrap();
    assert!(shop.gleaner(&["answer"]).stdout.contains("no question waits"));
    assert_eq!(pipe(&shop, &["answer", &id, "--stdin"], "{}").code, 1);
    let status = shop.gleaner(&["status"]).stdout;
    assert!(!status.contains("needs you") && !status.contains("running"), "{status}");
}

#[test]
fn a_run_under_a_dead_grant_is_not_started_and_a_renewed_one_is() {
    let shop = Shop::new("dead-grant");
    let script = "open('started', 'a').write('x'); record(1); slice(1); done(1); end()";
    assert_eq!(add(&shop, script, &["--expires", "2020-01-01"]).code, 0);
    let dead = shop.gleaner(&["run", "shop"]);
    assert_eq!(dead.code, 4, "{dead:?}");
    assert!(dead.stderr.contains("gleaner resume shop --expires"), "{dead:?}");
    assert!(!shop.root.join("started").exists());
    // Neither adding it again nor describing it on the command line lifts it by the way.
    assert_eq!(add(&shop, script, &[]).code, 0);
    assert_eq!(shop.run(script, &[]).code, 4);
    let renewed = shop.gleaner(&["resume", "shop", "--expires", "never"]);
    assert_eq!(renewed.code, 0, "{renewed:?}");
    assert_eq!(shop.gleaner(&["run", "shop"]).code, 0);
    let past = shop.gleaner(&["resume", "shop", "--expires", "2020-01-01"]);
    assert!(past.code == 4 && past.stderr.contains("its permission is over"), "{past:?}");
    let wrong = shop.gleaner(&["resume", "shop", "--expires", "soon"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("2031-12-31"), "{wrong:?}");
}

#[test]
fn a_parked_run_ends_resumable_when_its_grant_does() {
    let shop = Shop::new("parked-grant");
    let script = format!("record(0); slice(1); more = {{'timeout_seconds': 300}}\n{ASKS}");
    assert_eq!(add(&shop, &script, &["--expires", &in_seconds(5)]).code, 0);
    let mut run = Run::of(&shop, &["run", "shop", "--json", "--interact", "park"]);
    run.until("question");
    let (code, end) = run.end();
    assert_eq!((code, end["reason"].as_str()), (4, Some("grant_expired")), "{end}");
    assert_eq!(end["checkpoints_committed"], serde_json::json!(["orders"]), "what was saved is a place to go on from");
    assert!(shop.gleaner(&["status"]).stdout.starts_with("shop  needs you\n"));
}

#[test]
fn a_run_that_collects_ends_when_its_grant_does_and_keeps_what_it_saved() {
    let shop = Shop::new("grant-ends");
    let script = "n = 0\nwhile True:\n    record(n); n += 1; slice(n); time.sleep(0.05)";
    assert_eq!(add(&shop, script, &["--expires", &in_seconds(5)]).code, 0);
    let ended = shop.gleaner(&["run", "shop"]);
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(ended.stdout.contains("permission ended") && ended.stdout.contains("resume shop --expires"), "{ended:?}");
    assert!(shop.gleaner(&["records", "orders"]).stdout.lines().count() > 1);
}

const MISSING: &str = r#"
if "SHOP_TOKEN" in os.environ:
    record(2); slice(2); done(1); end()
elif "interactive" in start["bindings"]:
    say(type="INTERACTION", request_id="q", kind="missing_credentials", message="SHOP_TOKEN is not set")
    data = json.loads(sys.stdin.readline())["data"]
    assert data == {"SHOP_TOKEN": "t0ken-c4n4ry", "code": "123456"}, data
    record(1); slice(1); done(1); end()
else:
    done(0, "failed", error={"message": "SHOP_TOKEN is not set", "retryable": False, "code": "missing_credentials"}); end(1)"#;

#[test]
fn missing_credentials_with_interactive_binding() {
    let shop = Shop::new("missing-with");
    let input = r#"{"SHOP_TOKEN":"t0ken-c4n4ry","code":"123456"}"#;
    // Without --remember the next run asks again; with it the one after that does not.
    for remember in [false, true] {
        let mut run = Run::start(&shop, MISSING, &["--interact", "park"]);
        let id = run.until("question")["id"].to_string();
        let mut arguments = vec!["answer", &id, "--stdin"];
        arguments.extend(remember.then_some("--remember"));
        let answered = pipe(&shop, &arguments, input);
        assert_eq!(answered.code, 0, "{answered:?}");
        assert_eq!(answered.stderr.contains("stored SHOP_TOKEN encrypted"), remember, "{answered:?}");
        assert_eq!(run.end().0, 0);
    }
    assert!(!is_kept(&shop, "t0ken-c4n4ry"), "encrypted, or not at all");
    assert_eq!(vault(&shop).names("shop").unwrap(), ["SHOP_TOKEN"], "what is valid once is not kept");
    let third = shop.run(MISSING, &["--interact", "park"]);
    assert_eq!(third.code, 0, "{third:?}");
    assert!(shop.gleaner(&["records", "orders"]).stdout.contains("2  {\"id\": 2}"));
}

#[test]
fn missing_credentials_without_interactive_binding() {
    let shop = Shop::new("missing-without");
    let answer = shop.run(MISSING, &[]);
    assert_eq!(answer.code, 4, "{answer:?}");
    assert!(answer.stdout.contains("missing is SHOP_TOKEN"), "{answer:?}");
    assert!(answer.stdout.contains("gleaner check shop --sign-in"), "{answer:?}");
    assert!(shop.gleaner(&["status"]).stdout.starts_with("shop  needs you\n"));
}

#[test]
fn a_request_for_help_is_shown_and_blocks_nothing() {
    let shop = Shop::new("help");
    let script = r#"
def help(n, message): say(type="ASSISTANCE", assistance_request_id=n, message=message, owner_action="act_elsewhere", progress_posture="running", response_contract="none")
help("a", "approve it in\x1b[2J the app\nfake  healthy"); help("b", "confirm the mail")
say(type="ASSISTANCE_STATUS", assistance_request_id="b", status="resolved")
record(1); slice(1)
while not os.path.exists("go"): time.sleep(0.02)
done(1); end()"#;
    let mut run = Run::start(&shop, script, &[]);
    run.until("saved");
    let status = shop.gleaner(&["status"]).stdout;
    assert!(status.contains("asks for help: approve it in\\u{1b}[2J the app\\nfake  healthy"), "{status}");
    assert!(!status.contains("confirm the mail"), "settled: {status}");
    fs::write(shop.root.join("go"), "").unwrap();
    assert_eq!(run.end().0, 0);
    assert!(!shop.gleaner(&["status"]).stdout.contains("asks for help"), "it did without");
}

#[test]
fn a_paused_connection_runs_again_when_it_is_resumed_or_by_order() {
    let shop = Shop::new("paused");
    let script = "record(1); slice(1); done(1); end()";
    assert_eq!(shop.run(script, &[]).code, 0);
    assert_eq!(shop.gleaner(&["pause", "shop"]).code, 0);
    let refused = shop.gleaner(&["run", "shop"]);
    assert!(refused.code == 4 && refused.stderr.contains("gleaner resume"), "{refused:?}");
    assert!(shop.gleaner(&["status"]).stdout.starts_with("shop  healthy, paused\n"));
    assert_eq!(shop.gleaner(&["run", "shop", "--now"]).code, 0);
    assert_eq!(shop.gleaner(&["run", "shop"]).code, 4, "that was once");
    assert_eq!(shop.gleaner(&["resume", "shop"]).code, 0);
    assert_eq!(shop.gleaner(&["run", "shop"]).code, 0);
    assert_eq!(shop.gleaner(&["pause", "shopp"]).code, 2);
}

const STOPS_IN_ORDER: &str = r#"
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
n = 0
while not stop or n % 10 != 0:
    record(n); n += 1
    if n % 10 == 0: slice(n)
    time.sleep(0.002)
done(n, "cancelled"); end(1)"#;

#[test]
fn a_run_is_cancelled_from_anywhere_after_its_slice() {
    let shop = Shop::new("cancel");
    let mut run = Run::start(&shop, STOPS_IN_ORDER, &[]);
    run.until("saved");
    let cancelled = shop.gleaner(&["cancel", "shop"]);
    let process = format!("process {} ends after the slice", run.child.id());
    assert!(cancelled.code == 0 && cancelled.stdout.contains(&process), "{cancelled:?}");
    let (code, end) = run.end();
    assert_eq!((code, end["status"].as_str()), (130, Some("cancelled")), "{end}");
    assert!(end["records_accepted"].as_u64().unwrap().is_multiple_of(10), "{end}");
    let nothing = shop.gleaner(&["cancel", "shop"]);
    assert!(nothing.code == 0 && nothing.stdout.contains("shop does not run"), "{nothing:?}");
    assert_eq!(shop.gleaner(&["cancel", "nobody"]).code, 2);
}

#[test]
fn a_run_that_ignores_everything_is_cancelled_at_once_with_now() {
    let shop = Shop::new("cancel-now");
    let script = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nrecord(1); slice(1)\nwhile True: time.sleep(1)";
    let mut run = Run::start(&shop, script, &[]);
    run.until("saved");
    let began = Instant::now();
    assert_eq!(shop.gleaner(&["cancel", "shop", "--now"]).code, 0);
    assert_eq!(run.end().0, 130);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_holder_that_does_not_listen_is_named() {
    let shop = Shop::new("no-socket");
    let mut run = Run::start(&shop, "record(1); slice(1)\nwhile True: time.sleep(1)", &[]);
    run.until("saved");
    for entry in fs::read_dir(shop.root.join("home/run")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let answer = shop.gleaner(&["cancel", "shop"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stderr.contains(&format!("kill {}", run.child.id())), "{answer:?}");
    let removed = shop.gleaner(&["remove", "shop"]);
    assert_eq!(removed.code, 11, "nobody is removed while it runs: {removed:?}");
    run.child.kill().unwrap();
    run.child.wait().unwrap();
}

#[test]
fn a_removed_connection_runs_no_more_and_its_records_stay_until_it_is_added_again() {
    let shop = Shop::new("removed");
    sign_in(&shop);
    assert_eq!(shop.run("record(1); slice(1); done(1); end()", &[]).code, 0);
    let removed = shop.gleaner(&["remove", "shop"]);
    assert_eq!(removed.code, 0, "{removed:?}");
    assert!(removed.stdout.contains("1 record with its history") && removed.stdout.contains("store.db"), "{removed:?}");
    assert_eq!(vault(&shop).names("shop").unwrap(), Vec::<String>::new());
    assert!(shop.gleaner(&["status"]).stdout.starts_with("shop  removed; 1 record stays"));
    let refused = shop.gleaner(&["run", "shop", "--now"]);
    assert!(refused.code == 4 && refused.stderr.contains("gleaner add"), "{refused:?}");
    assert_eq!(shop.gleaner(&["resume", "shop"]).code, 4);
    assert_eq!(shop.gleaner(&["records", "orders"]).stdout.lines().count(), 1);
    let script = "assert start['state'] == {'orders': {'next': 1}}; record(2); slice(2); done(1); end()";
    assert_eq!(add(&shop, script, &[]).code, 0);
    assert_eq!(shop.gleaner(&["run", "shop"]).code, 0, "it goes on where it stopped");
}

#[test]
fn a_purge_forgets_everything_and_goes_on_when_it_was_cut_short() {
    let shop = Shop::new("purged");
    sign_in(&shop);
    let script = "record(1, total=1.5); slice(1); done(1); end()";
    assert_eq!(shop.run(script, &[]).code, 0);
    let asked = shop.gleaner(&["remove", "shop", "--purge"]);
    assert!(asked.code == 2 && asked.stderr.contains("--yes"), "nobody was asked: {asked:?}");
    assert_eq!(shop.gleaner(&["records", "orders"]).stdout.lines().count(), 1);
    // As a purge leaves it that was cut short after its first step.
    let store = shop.root.join("home/store.db");
    let sql = "UPDATE connections SET state = 'purging'";
    assert!(std::process::Command::new("sqlite3").arg(&store).arg(sql).status().unwrap().success());
    assert!(shop.gleaner(&["status"]).stdout.contains("shop  being forgotten; `gleaner remove shop --purge`"));
    let run = shop.gleaner(&["run", "shop"]);
    assert!(run.code != 0 && run.stderr.contains("remove --purge"), "{run:?}");
    let forgotten = shop.gleaner(&["remove", "shop", "--purge", "--yes"]);
    assert!(forgotten.code == 0 && forgotten.stdout.contains("shop is forgotten"), "{forgotten:?}");
    assert!(!is_kept(&shop, "\"total\""));
    assert_eq!(vault(&shop).names("shop").unwrap(), Vec::<String>::new());
    assert!(shop.gleaner(&["status"]).stdout.starts_with("nothing is connected"));
    assert_eq!(shop.gleaner(&["remove", "shop", "--purge", "--yes"]).code, 2);
}

#[test]
fn a_check_makes_one_call_and_stores_nothing() {
    let shop = Shop::new("check-works");
    sign_in(&shop);
    let script = r#"
assert os.environ["SHOP_TOKEN"] == "v4ult-c4n4ry" and os.environ["GLEANER_MAX_REQUESTS"] == "1"
assert start["run_budget"]["max_requests"] == 1 and "interactive" not in start["bindings"]
assert [s["name"] for s in start["scope"]["streams"]] == ["orders"]
began = time.monotonic()
def on_term(*_): open("waited", "w").write(str(time.monotonic() - began)); os._exit(1)
signal.signal(signal.SIGTERM, on_term)
record(1)
while True: time.sleep(1)"#;
    assert_eq!(add(&shop, script, &["--no-check"]).code, 0);
    let works = shop.gleaner(&["check", "shop"]);
    let waited = fs::read_to_string(shop.root.join("waited")).unwrap().parse::<f64>().unwrap();
    // Sooner than an unfinished slice is written, which takes five seconds.
    assert!(waited < 4.0, "it is stopped at the first record, not after {waited} s");
    assert_eq!((works.code, works.stdout.as_str()), (0, "SHOP_TOKEN comes from the vault\nshop works\n"), "{works:?}");
    assert_eq!(shop.gleaner(&["records", "orders"]).stdout, "");
    assert_eq!(shop.gleaner(&["runs", "shop", "--json"]).stdout, "");
    assert!(!shop.gleaner(&["status"]).stdout.contains("running"), "what was held is given back");
}

#[test]
fn a_check_has_a_verdict_and_a_code_for_everything_that_can_be_wrong() {
    let shop = Shop::new("check-verdicts");
    assert_eq!(add(&shop, "done(0); end()", &[]).code, 0, "what is missing is not tried");
    let no_terminal = shop.gleaner(&["check", "shop", "--sign-in"]);
    assert!(no_terminal.code == 2 && no_terminal.stderr.contains("no terminal"), "{no_terminal:?}");
    let missing = shop.gleaner(&["check", "shop"]);
    assert!(missing.code == 4 && missing.stderr.contains("SHOP_TOKEN is missing"), "{missing:?}");
    sign_in(&shop);
    let failed = |error: &str| format!("done(0, 'failed', error={{'message': {error}}}); end(1)");
    let skip =
        r#"say(type="SKIP_RESULT", stream="orders", reason="x", recovery_hint="refresh_credentials"); done(0); end()"#;
    for (script, code, verdict) in [
        ("done(0); end()".to_owned(), 0, "works"),
        ("say(type='PROGRESS', message='10 listed', count=10)\nwhile True: time.sleep(1)".to_owned(), 0, "works"),
        ("slice(1)\nwhile True: time.sleep(1)".to_owned(), 0, "works"),
        (failed("'x', 'retryable': False, 'code': 'shop_auth_failed'"), 12, "credentials_refused"),
        (skip.to_owned(), 12, "credentials_refused"),
        (failed("'x', 'retryable': False, 'code': 'missing_credentials'"), 4, "credentials_missing"),
        (failed("'shop_rate_limited', 'retryable': True"), 5, "service_trouble"),
        (failed("'503', 'retryable': True"), 5, "service_trouble"),
        ("say(type='PROGRESS', message='starting')\nwhile True: time.sleep(1)".to_owned(), 5, "service_trouble"),
        (failed("'no idea', 'retryable': False"), 1, "connector_broken"),
        ("print('noise'); end()".to_owned(), 1, "connector_broken"),
        ("sys.exit(0)".to_owned(), 1, "connector_broken"),
    ] {
        shop.script(&script);
        let answer = shop.gleaner(&["check", "shop", "--json", "--max-duration", "2s"]);
        assert_eq!(
            (answer.code, last_line(&answer)["verdict"].as_str()),
            (code, Some(verdict)),
            "{script}: {answer:?}"
        );
    }
    assert_eq!(shop.gleaner(&["runs", "shop", "--json"]).stdout, "", "none of it is on record");
}

#[test]
fn a_check_does_not_ask_a_service_beside_a_run_or_while_it_rests() {
    let shop = Shop::new("check-beside");
    sign_in(&shop);
    let mut run = Run::start(&shop, "record(1); slice(1)\nwhile True: time.sleep(1)", &[]);
    run.until("saved");
    assert_eq!(shop.gleaner(&["check", "shop"]).code, 11);
    assert_eq!(shop.gleaner(&["cancel", "shop", "--now"]).code, 0);
    assert_eq!(run.end().0, 130);
    let limited = r#"done(0, "failed", error={"message": "shop_rate_limited", "retryable": True}); end(1)"#;
    assert_eq!(shop.run(limited, &[]).code, 5);
    let resting = shop.gleaner(&["check", "shop"]);
    assert!(resting.code == 5 && resting.stderr.contains("shop is in a cooldown until"), "{resting:?}");
}

#[test]
fn credentials_are_tried_before_a_connection_is_added() {
    let shop = Shop::new("add-checks");
    sign_in(&shop);
    let refused =
        r#"done(0, "failed", error={"message": "401", "retryable": False, "code": "shop_auth_failed"}); end(1)"#;
    let answer = add(&shop, refused, &[]);
    assert_eq!(answer.code, 12, "{answer:?}");
    assert!(answer.stderr.contains("shop was not added") && answer.stderr.contains("401"), "{answer:?}");
    assert!(shop.gleaner(&["status"]).stdout.starts_with("nothing is connected"));
    assert_eq!(add(&shop, refused, &["--no-check"]).code, 0);
    assert_eq!(add(&shop, "record(1); slice(1); done(1); end()", &[]).code, 0);
}

#[test]
fn what_a_manifest_asks_of_itself_in_vain_is_said_by_check() {
    let shop = Shop::new("check-warns");
    let manifest = r#"{"connector_id":"shop","connector_key":"shop","version":"1","streams":[
        {"name":"orders","semantics":"mutable_state","primary_key":"id"},
        {"name":"refunds","semantics":"append_only","coverage_policy":"unsupported"}]}"#;
    fs::write(shop.root.join("manifest.json"), manifest).unwrap();
    assert_eq!(add(&shop, "done(0); end()", &[]).code, 0);
    let answer = shop.gleaner(&["check", "shop"]);
    assert!(answer.code == 0 && answer.stderr.contains("warning: "), "{answer:?}");
    assert!(answer.stderr.contains("streams[1]") || answer.stderr.contains("refunds"), "{answer:?}");
}

#[test]
fn refused_credentials_end_the_run_at_once_and_need_the_owner() {
    let shop = Shop::new("refused");
    let script = r#"
open("calls", "a").write("x")
done(0, "failed", error={"message": "401", "retryable": True, "code": "shop_auth_failed"}); end(1)"#;
    let answer = shop.run(script, &[]);
    assert_eq!(answer.code, 12, "{answer:?}");
    assert!(answer.stdout.contains("gleaner check shop --sign-in"), "{answer:?}");
    assert_eq!(fs::read_to_string(shop.root.join("calls")).unwrap(), "x", "not retried");
    let status = shop.gleaner(&["status"]).stdout;
    assert!(status.starts_with("shop  needs you\n"), "{status}");
    // By hand it is tried once more: the owner may have put it right with the service.
    assert_eq!(shop.gleaner(&["run", "shop"]).code, 12);
    assert_eq!(fs::read_to_string(shop.root.join("calls")).unwrap(), "xx");
}

#[test]
fn budgets_reach_the_connector_and_what_they_leave_is_a_gap() {
    let shop = Shop::new("budgets");
    let script = r#"
assert start["run_budget"] == {"max_requests": 7, "max_duration_ms": 600000}, start
assert os.environ["GLEANER_MAX_REQUESTS"] == "7" and os.environ["GLEANER_MAX_DURATION_MS"] == "600000"
for n in range(7): record(n)
slice(7)
say(type="DETAIL_GAP", reference_only=True, status="pending", stream="orders", reason="retry_exhausted", detail_locator={"from": 7}, list_cursor={"next": 7}, last_error={"class": "run_cap_deferred"})
done(7); end()"#;
    let answer = shop.run(script, &["--max-requests", "7", "--max-duration", "10m", "--json"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    let gaps = shop.gleaner(&["gaps", "shop", "--json"]).stdout;
    let gap = serde_json::from_str::<Value>(gaps.lines().next().unwrap()).unwrap();
    assert_eq!((gap["reason"].as_str(), gap["run_cap"].as_bool()), (Some("retry_exhausted"), Some(true)), "{gap}");
    assert_eq!(gap["last_error"], serde_json::json!({"class": "run_cap_deferred"}), "no http_status");
    assert_eq!(gaps.lines().count(), 1);
    // A planned stop is no pressure: the next run is let through, from the last saved cursor.
    let next = shop.run("assert start['state'] == {'orders': {'next': 7}}; done(0); end()", &[]);
    assert_eq!(next.code, 3, "the gap is open: {next:?}");
}
