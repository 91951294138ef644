//! Ctrl-C and SIGTERM: once to stop in order, twice to stop at once; also while a question is open.

use crate::place::{Place, left_after};
use crate::terminal::{CTRL_C, on_a_terminal};
use std::time::{Duration, Instant};

/// Fetches for ever, in slices of ten, and says in a file what it fetched. Asked to stop, it finishes its slice.
const POLITE: &str = r#"
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
fetched, n = open("fetched", "a"), 0
while not stop or n % 10 != 0:
    fetched.write(("after\n" if stop else "before\n")); fetched.flush()
    record(n); n += 1
    if n % 10 == 0: slice(n)
    time.sleep(0.002)
done(n, "cancelled"); end(1)"#;

/// Hears nothing: neither the end of its input nor the request to stop.
const DEAF: &str = r#"
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)
open("pid", "w").write(str(os.getpid()))
record(1); slice(2)
while True: time.sleep(1)"#;

/// Within so long it is over, whatever the connector does.
const IN_ORDER_MAX: Duration = Duration::from_secs(10);
/// At once, on a machine with other work.
const AT_ONCE: Duration = Duration::from_secs(3);

fn stops_in_order(signal: &str) {
    let place = Place::new();
    let mut run = place.start(POLITE, &[]);
    run.wait_for_saved();
    let began = Instant::now();
    run.signal(signal);
    let (end, code) = run.end();
    assert!(began.elapsed() < IN_ORDER_MAX, "{:?}", began.elapsed());
    assert_eq!((code, end["status"].as_str()), (Some(130), Some("cancelled")), "{end}");
    let stored = end["records_accepted"].as_u64().unwrap();
    assert!(stored > 0 && stored.is_multiple_of(10), "the slice is whole: {end}");
    let after = place.read("fetched").lines().filter(|line| *line == "after").count();
    assert!(after < 10, "nothing beyond the slice that was under way: {after}");
    // What was finished is committed, and nothing else is.
    let next = place.run(&format!("assert start['state'] == {{'orders': {{'next': {stored}}}}}; done(0); end()"), &[]);
    assert_eq!(next.code, 0, "{next:?}");
    assert_eq!(place.gleaner(&["records", "orders"]).stdout.lines().count() as u64, stored);
    assert_eq!(place.gleaner(&["verify"]).code, 0);
}

#[test]
fn once_it_finishes_the_slice_and_ends_with_130() {
    stops_in_order("INT");
}

#[test]
fn sigterm_is_the_same() {
    stops_in_order("TERM");
}

#[test]
fn twice_it_ends_at_once_and_what_was_saved_is_saved() {
    let place = Place::new();
    let mut run = place.start(DEAF, &[]);
    run.wait_for_saved();
    let began = Instant::now();
    run.signal("INT");
    std::thread::sleep(Duration::from_millis(100));
    run.signal("INT");
    let (end, code) = run.end();
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!((code, end["records_accepted"].as_u64()), (Some(130), Some(1)), "{end}");
    assert_eq!(left_after(AT_ONCE, &[place.read("pid").parse().unwrap()]), Vec::<u32>::new());
    let next = place.run("assert start['state'] == {'orders': {'next': 2}}; done(0); end()", &[]);
    assert_eq!(next.code, 0, "{next:?}");
}

#[test]
fn a_connector_that_hears_nothing_is_ended_within_ten_seconds() {
    let place = Place::new();
    let mut run = place.start(DEAF, &[]);
    run.wait_for_saved();
    let began = Instant::now();
    run.signal("INT");
    let (end, code) = run.end();
    assert!(began.elapsed() < IN_ORDER_MAX, "{:?}", began.elapsed());
    assert_eq!((code, end["status"].as_str()), (Some(130), Some("cancelled")), "{end}");
    assert_eq!(left_after(AT_ONCE, &[place.read("pid").parse().unwrap()]), Vec::<u32>::new());
}

/// With a question open, on a terminal: Ctrl-C goes to the group of the terminal, in which no connector is.
fn ctrl_c_at_a_question(setup: &str, presses: usize, limit: Duration) {
    let place = Place::new();
    place.script(&format!(
        r#"{setup}
say(type="INTERACTION", request_id="q", kind="otp", message="The code?")
answer = json.loads(sys.stdin.readline())
while True: time.sleep(1)"#
    ));
    let mut plan = vec![("code (not shown, empty to decline): ", CTRL_C)];
    plan.extend((1..presses).map(|_| ("", CTRL_C)));
    let session = on_a_terminal(&place.run_command(&[]), &plan);
    assert_eq!(session.code, 130, "{session:?}");
    assert!(session.seconds < limit.as_secs_f64(), "{session:?}");
    assert!(session.is_as_before, "what is typed is shown again: {session:?}");
    let status = place.gleaner(&["status", "--json"]).stdout;
    assert!(status.contains(r#""question_open":false"#), "nobody waits for an answer: {status}");
}

#[test]
fn while_a_question_is_open_it_ends_and_the_terminal_is_as_before() {
    ctrl_c_at_a_question("", 1, AT_ONCE);
}

#[test]
fn while_a_question_of_a_deaf_connector_is_open_twice_ends_at_once() {
    ctrl_c_at_a_question("signal.signal(signal.SIGTERM, signal.SIG_IGN)", 2, AT_ONCE);
}

#[test]
fn a_question_of_a_deaf_connector_holds_nobody_longer_than_ten_seconds() {
    ctrl_c_at_a_question("signal.signal(signal.SIGTERM, signal.SIG_IGN)", 1, IN_ORDER_MAX);
}
