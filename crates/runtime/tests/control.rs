//! A run in another process is told things through its socket: what it takes, what it refuses, and that
//! nobody can hold it up. Connectors are small Python programs.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod driven;

use driven::Running;
use gleaner_engine::{AnswerTaken, Epoch};
use gleaner_protocol::{Answer, InteractionResponse, InteractionStatus, RawJson};
use gleaner_runtime::{Control, ControlError, tell};
use gleaner_store::Reader;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const QUESTION: &str = r#"
say(type="INTERACTION", request_id="q1", kind="otp", message="the code?")
code = json.loads(sys.stdin.readline())["data"]["code"]
print("got", code, file=sys.stderr)
say(type="PROGRESS", message="signed in with " + code)
say(type="RECORD", stream="ids", key="1", data={"id": 1, "order": code}, emitted_at="2031-01-01T00:00:00Z")
done(1); wait_for_end()
"#;

/// The first run of a store has this one.
const FIRST: u64 = 1;

fn start(folder: &Path, script: &str) -> Running {
    Running::start(folder, script, &["--interactive", "--control"])
}

fn answer(code: &str) -> Control {
    Control::Answer(InteractionResponse {
        request_id: "q1".to_owned(),
        status: InteractionStatus::Success,
        data: Some(Answer::new(RawJson::new(format!("{{\"code\":\"{code}\"}}")).unwrap())),
    })
}

fn tell_first(folder: &Path, order: &Control) -> Result<AnswerTaken, ControlError> {
    tell(&folder.join("run"), Epoch::new(FIRST), order)
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("run").join(format!("{FIRST}.sock"))
}

#[test]
fn an_answer_from_another_process_reaches_the_connector_and_is_masked_when_it_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = start(folder.path(), QUESTION);
    assert_eq!(running.line(), "asked q1 the code?");
    assert_eq!(fs::metadata(folder.path().join("run")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(socket(folder.path())).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(tell_first(folder.path(), &answer("c4n4ry7")).unwrap(), AnswerTaken::Yes);
    let second = tell_first(folder.path(), &answer("other99"));
    assert!(matches!(second, Ok(AnswerTaken::AlreadyAnswered) | Err(_)), "{second:?}");
    let said = running.rest();
    assert!(said.contains("reason succeeded\ncollected 1"), "a record may hold what was answered: {said}");
    assert!(said.contains("got [secret]") && !said.contains("c4n4ry7"), "{said}");
    assert!(!socket(folder.path()).exists(), "nothing is left of it");
    let reader = Reader::open(&folder.path().join("store.db")).unwrap();
    let run = reader.runs("c", 1).unwrap().remove(0);
    let events = reader.events(&run.run_id, 0, 10).unwrap();
    assert!(events[0].message.contains("signed in with [secret]"), "{events:?}");
}

#[test]
fn of_two_answers_the_second_is_told_that_it_came_second() {
    let folder = tempfile::tempdir().unwrap();
    let script = QUESTION.replace("print(\"got\"", "time.sleep(3); print(\"got\"");
    let mut running = start(folder.path(), &script);
    running.line();
    assert_eq!(tell_first(folder.path(), &answer("first11")).unwrap(), AnswerTaken::Yes);
    assert_eq!(tell_first(folder.path(), &answer("second2")).unwrap(), AnswerTaken::AlreadyAnswered);
    assert!(running.rest().contains("reason succeeded"));
}

#[test]
fn a_run_is_stopped_in_order_from_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
n = 0
while not stop or n % 10 != 0:
    record(n); n += 1
    if n % 10 == 0: slice(n)
    time.sleep(0.002)
done(n, "cancelled"); sys.exit(1)
"#;
    let mut running = start(folder.path(), script);
    assert!(running.line().starts_with("saved "));
    assert_eq!(tell_first(folder.path(), &Control::Cancel).unwrap(), AnswerTaken::Yes);
    assert!(running.rest().contains("reason cancelled"));
    let records = Reader::open(&folder.path().join("store.db")).unwrap().records("c", "ids", None, 1000).unwrap();
    assert!(records.len().is_multiple_of(10), "{}", records.len());
    assert!(matches!(tell_first(folder.path(), &Control::Cancel), Err(ControlError::NobodyListens)));
}

#[test]
fn clients_that_say_nothing_or_nonsense_hold_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = start(folder.path(), QUESTION);
    running.line();
    let connect = || UnixStream::connect(socket(folder.path())).unwrap();
    let silent = (0..5).map(|_| connect()).collect::<Vec<_>>();
    let mut nonsense = connect();
    nonsense.write_all(b"{\"type\":\"RECORD\"}\n").unwrap();
    let mut reply = String::new();
    nonsense.read_to_string(&mut reply).unwrap();
    assert_eq!(reply, "{\"reply\":\"not_understood\"}\n");
    let mut endless = connect();
    endless.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut sent = 0;
    // It is hung up on after its bound, and not listened to for ever.
    while sent < 64 && endless.write_all(&[b'x'; 64 * 1024]).is_ok() {
        sent += 1;
    }
    assert!(sent < 64, "4 MiB without an end of line were taken");
    let began = Instant::now();
    let Control::Answer(response) = answer("c4n4ry7") else { unreachable!() };
    let other = Control::Answer(InteractionResponse { request_id: "q2".to_owned(), ..response });
    assert_eq!(tell_first(folder.path(), &other).unwrap(), AnswerTaken::NoSuchQuestion);
    assert!(began.elapsed() < Duration::from_secs(10), "one after the other: {:?}", began.elapsed());
    // The silent ones are hung up on while the run goes on.
    for mut client in silent {
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    }
    assert_eq!(tell_first(folder.path(), &answer("c4n4ry7")).unwrap(), AnswerTaken::Yes);
    assert!(running.rest().contains("reason succeeded"));
}

#[test]
fn too_many_clients_are_hung_up_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = start(folder.path(), QUESTION);
    running.line();
    let mut clients = (0..9).map(|_| UnixStream::connect(socket(folder.path())).unwrap()).collect::<Vec<_>>();
    let last = clients.last_mut().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    assert_eq!(last.read(&mut [0; 1]).unwrap(), 0, "closed, long before the others' time is over");
    drop(clients);
    while tell_first(folder.path(), &answer("c4n4ry7")).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(running.rest().contains("reason succeeded"));
}

#[test]
fn what_a_killed_run_left_is_removed_and_what_lives_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fs::create_dir(&run).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
    drop(UnixListener::bind(run.join("77.sock")).unwrap());
    let _alive = UnixListener::bind(run.join("78.sock")).unwrap();
    let mut running = start(folder.path(), QUESTION);
    running.line();
    assert!(!run.join("77.sock").exists(), "nobody listens");
    assert!(run.join("78.sock").exists());
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert!(matches!(tell_first(folder.path(), &Control::Cancel), Err(ControlError::NobodyListens)));
}

#[test]
fn a_data_root_may_lie_deeper_than_the_path_of_a_socket() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("d".repeat(120));
    fs::create_dir(&folder).unwrap();
    let mut running = start(&folder, QUESTION);
    running.line();
    assert_eq!(tell_first(&folder, &answer("c4n4ry7")).unwrap(), AnswerTaken::Yes);
    assert!(running.rest().contains("reason succeeded"));
    assert!(!socket(&folder).exists());
}

#[test]
fn a_folder_that_others_can_look_into_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fs::create_dir(&run).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    let said = start(folder.path(), "done(0); wait_for_end()").rest();
    assert_eq!(said, "", "nothing was run");
    let runs = Reader::open(&folder.path().join("store.db")).unwrap().runs("c", 1).unwrap();
    assert!(runs[0].ended_at.is_some(), "on record, and ended");
}
