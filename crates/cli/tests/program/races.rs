//! Two runs that are started at the same moment: one is at work, the other is told who.
//!
//! The connector itself is the witness: it makes a file that must not be there, and notes when it is. A thousand races
//! with `GLEANER_TEST_ALL` in the environment, forty by default.

use crate::cores::in_parallel;
use crate::place::{Place, is_full_size};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Works for a while on what nobody else may work on. The name of the file comes from the folder in which it is started.
const WITNESS: &str = r#"
busy = "busy"
try:
    os.close(os.open(busy, os.O_CREAT | os.O_EXCL))
except FileExistsError:
    open("overlaps", "a").write("overlap\n")
    done(0); end()
n = 0
for n in range(3):
    record(n); slice(n + 1)
    time.sleep(0.05)
os.unlink(busy)
done(3); end()"#;
/// How long the connector is at work, about.
const AT_WORK: Duration = Duration::from_millis(150);

/// How often somebody was sent away, and how often one came after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sent_away: usize,
    one_after_the_other: usize,
}

/// One race. The second starts this much later than the first.
fn race(first: Command, second: Command, delay: Duration) -> Tally {
    let starts = Barrier::new(2);
    let start = |mut command: Command, delay: Duration| {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        starts.wait();
        thread::sleep(delay);
        command.spawn().unwrap()
    };
    let children = thread::scope(|scope| {
        let second = scope.spawn(|| start(second, delay));
        [start(first, Duration::ZERO), second.join().unwrap()]
    });
    let pids = [children[0].id(), children[1].id()];
    let ends = children.map(|child: Child| child.wait_with_output().unwrap());
    let mut tally = Tally::default();
    for (end, other) in ends.iter().zip([pids[1], pids[0]]) {
        let said = String::from_utf8_lossy(&end.stderr);
        match end.status.code() {
            Some(0) => {}
            Some(11) => {
                tally.sent_away += 1;
                let named = format!("is being collected by process {other}, since 20");
                assert!(said.contains(&named) && said.contains(" and until 20"), "{said}");
                assert!(said.contains("hint: wait for it"), "{said}");
            }
            code => panic!("ended with {code:?}: {said}{}", String::from_utf8_lossy(&end.stdout)),
        }
    }
    assert!(tally.sent_away < 2, "both were sent away, by each other");
    tally.one_after_the_other = 1 - tally.sent_away;
    tally
}

/// Races in one place: the store is made by the first of them, and each run leaves it as the next one finds it.
fn races_in_one_place(seed: u64, races: usize, commands: &(dyn Fn(&Place) -> [Command; 2] + Sync)) -> Tally {
    let place = Place::new();
    place.script(WITNESS);
    let mut total = Tally::default();
    for race_number in 0..races {
        let [first, second] = commands(&place);
        // Half of them at the same moment, the others when the first is at work, or about to end.
        let spread = if race_number % 2 == 0 { 0 } else { (seed * 37 + race_number as u64 * 29) % 100 };
        let tally = race(first, second, AT_WORK.mul_f64(spread as f64 / 40.0));
        total.sent_away += tally.sent_away;
        total.one_after_the_other += tally.one_after_the_other;
    }
    assert_eq!(place.read("overlaps"), "", "two were at work at once");
    assert_eq!(place.gleaner(&["verify"]).code, 0);
    total
}

fn many_races(all: usize, commands: &(dyn Fn(&Place) -> [Command; 2] + Sync)) -> String {
    const PER_PLACE: usize = 10;
    let began = Instant::now();
    let tallies = in_parallel(0..all / PER_PLACE, |seed| races_in_one_place(seed as u64, PER_PLACE, commands));
    let sum = |count: fn(&Tally) -> usize| tallies.iter().map(count).sum::<usize>();
    let (sent_away, after) = (sum(|tally| tally.sent_away), sum(|tally| tally.one_after_the_other));
    assert!(sent_away * 4 >= all, "too few of them met to prove anything: {sent_away} of {all}");
    format!("{all} races in {:.0?}: {sent_away} were sent away, {after} came after", began.elapsed())
}

#[test]
fn of_two_starts_of_one_connection_one_is_at_work_and_the_other_told_who() {
    let same = |place: &Place| [place.run_command(&[]), place.run_command(&[])];
    println!("{}", many_races(if is_full_size() { 1000 } else { 40 }, &same));
}

fn named(place: &Place, name: &str, token: &str) -> Command {
    let mut command = place.run_command(&["--name", name]);
    command.env("SHOP_TOKEN", token);
    command
}

#[test]
fn two_connections_with_one_credential_are_never_at_work_at_once() {
    let same = |place: &Place| [named(place, "mine", "one-token"), named(place, "ours", "one-token")];
    println!("{}", many_races(if is_full_size() { 200 } else { 20 }, &same));
}

#[test]
fn whoever_is_sent_away_is_told_whether_it_is_the_connection_or_its_account() {
    let place = Place::new();
    place.script("record(1); slice(1); open('at-work', 'w').close()\nwhile True: time.sleep(1)");
    let mut first = named(&place, "mine", "one-token").stdout(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while !place.path("at-work").exists() {
        assert!(began.elapsed() < Duration::from_secs(30), "it did not begin");
        thread::sleep(Duration::from_millis(10));
    }
    for (name, sentence) in [("mine", "mine is being collected by"), ("ours", "ours shares its account with what is")] {
        let end = named(&place, name, "one-token").output().unwrap();
        let said = String::from_utf8_lossy(&end.stderr);
        assert_eq!(end.status.code(), Some(11), "{said}");
        assert!(said.contains(sentence), "{said}");
    }
    first.kill().unwrap();
    first.wait().unwrap();
}

/// The negative control: without a lease between them they meet, and the witness says so.
fn meet(commands: &dyn Fn(&Place) -> [Command; 2]) {
    let place = Place::new();
    place.script(&WITNESS.replace("time.sleep(0.05)", "time.sleep(1)"));
    let [first, second] = commands(&place);
    race(first, second, Duration::ZERO);
    assert_eq!(place.read("overlaps"), "overlap\n");
}

#[test]
fn two_data_roots_know_nothing_of_each_other_and_the_witness_notices() {
    meet(&|place| {
        let mut other = place.run_command(&[]);
        other.env("GLEANER_HOME", place.path("other-home"));
        [place.run_command(&[]), other]
    });
}

#[test]
fn two_credentials_are_two_accounts_and_work_at_once() {
    meet(&|place| [named(place, "mine", "one-token"), named(place, "ours", "other-token")]);
}
