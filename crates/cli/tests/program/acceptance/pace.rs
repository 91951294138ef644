//! How fast a provider is asked, and what an owner sees of a provider that is unwell.

use super::{Notes, run};
use crate::notes_provider::{Asked, NotesProvider, Reply};
use crate::place::{Running, is_full_size};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long something that happens at once may take on a machine with other work.
const SOON: Duration = Duration::from_secs(20);

/// Waits until it is so.
fn until(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < limit, "never {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The mean time between two requests.
fn mean_gap(asked: &[Asked]) -> Duration {
    let gaps = u32::try_from(asked.len() - 1).unwrap();
    (asked[asked.len() - 1].at - asked[0].at) / gaps
}

#[test]
fn delay_is_per_provider_and_a_slow_one_does_not_delay_another() {
    // One data root, two connections of one connector, each with a provider of its own.
    let (notes, slow) = (Notes::new(60, 20), NotesProvider::start(4));
    notes.knows_pace(&["--name", "slow"], 20);
    // After two requests it wants to be left alone for five seconds.
    slow.rule(|_, asked| (asked.len() == 2).then(|| Reply { header: Some("retry-after: 5"), ..Reply::status(429) }));
    let mut command = notes.command(&["--name", "slow"], 20);
    let waiting = Running::of({
        command.env("DEMO_URL", &slow.url);
        command
    });
    until("told to wait", SOON, || slow.asked().iter().any(|asked| asked.status == 429));
    let (code, end) = notes.run(&[], 20);
    assert_eq!((code, &end["records_accepted"]), (0, &json!(60)), "{end}");
    let (end, code) = waiting.end();
    assert_eq!((code, &end["records_accepted"]), (Some(0), &json!(4)), "{end}");
    let (slow, fast) = (slow.asked(), notes.provider.asked());
    let refused = slow.iter().position(|asked| asked.status == 429).unwrap();
    // The slow one was left alone as long as it had asked for, and the other was asked all the while.
    let next = slow[refused + 1..].iter().map(|asked| asked.at).min().unwrap();
    assert!(next - slow[refused].at > Duration::from_millis(4900), "{:?}", next - slow[refused].at);
    let meanwhile = fast.iter().filter(|asked| asked.at > slow[refused].at && asked.at < next).count();
    assert!(meanwhile > 40, "{meanwhile} requests in the meantime");
    let mean = mean_gap(&fast);
    assert!(mean * 10 < next - slow[refused].at, "a gap of its own: {mean:?}");
}

/// The pace that is known at the beginning.
const INTERVAL: Duration = Duration::from_millis(200);

/// All requests of a run that begins with a known pace and may become faster. The list is there; the notes are
/// answered with this status.
fn asked_of(status: u16, count: usize) -> Vec<Asked> {
    let notes = Notes::new(count, 200);
    notes.provider.rule(move |note, _| note.map(|_| Reply::status(status)));
    // A circuit that opens is not waited for: that would be longer than this run may take.
    let (_, end) = run(&mut notes.command(&["--max-duration", "8s"], 20));
    assert_eq!(end["status"], "succeeded", "{end}");
    let asked = notes.provider.asked();
    assert!(asked.len() >= 3 && asked[1..].iter().all(|asked| asked.status == status), "{asked:?}");
    asked
}

#[test]
fn errors_never_shorten_the_delay() {
    // All of these are answered at once, and none of them says that there is room.
    let errors = [404, 400, 500, 429];
    let outcomes = std::thread::scope(|scope| {
        let count = |status| if status == 200 { 50 } else { 16 };
        let run = |status| scope.spawn(move || (status, asked_of(status, count(status))));
        let runs = errors.into_iter().chain([200]).map(run).collect::<Vec<_>>();
        runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    for (status, asked) in &outcomes {
        let (mean, last) = (mean_gap(asked), mean_gap(&asked[asked.len() / 2..]));
        println!("{status}: {} requests, {mean:?} apart, {last:?} at the end", asked.len());
        if errors.contains(status) {
            // A request that arrives late comes nearer to the next one.
            assert!(mean > INTERVAL * 3 / 4 && last > INTERVAL * 3 / 4, "{status}: {mean:?}, {last:?}");
        } else {
            // Otherwise the above would prove nothing.
            assert!(last < INTERVAL * 6 / 10, "successes shorten it: {last:?}");
        }
    }
    assert_eq!(outcomes.len(), 5);
}

/// Our own connectors say what they wait for from another thread: the one that collects is inside of a request.
#[test]
fn a_retry_after_is_seen_while_it_lasts() {
    let notes = Notes::new(30, 20);
    let busy = Reply { status: 429, header: Some("retry-after: 30"), ..Reply::default() };
    notes.provider.rule(move |note, _| note.map(|_| busy.clone()));
    let running = notes.start(&[], 20);
    until("a wait", SOON, || notes.status()["waiting"]["reason"] == "retry_after");
    let why = notes.why();
    assert!(why.iter().any(|line| line["code"] == "waiting"), "{why:?}");
    assert!(why.iter().all(|line| line["rate_per_min"].is_null()), "{why:?}");
    running.signal("KILL");
    drop(running.end());
    assert_eq!(notes.status()["waiting"], Value::Null, "a run that was killed waits for nothing");
}

#[test]
fn circuit_changes_are_seen_in_status() {
    let notes = Notes::new(30, 20);
    assert_eq!(notes.status()["circuit"], Value::Null);
    notes.provider.rule(|note, _| note.map(|_| Reply::status(500)));
    let running = notes.start(&[], 20);
    let circuit = || notes.status()["circuit"].clone();
    // While it goes on: the owner sees why nothing happens.
    until("open", SOON, || circuit()["state"] == "open");
    let status = notes.status();
    assert_eq!((&circuit()["previous_state"], &circuit()["reason"]), (&json!("closed"), &json!("provider_failure")));
    assert!(status["running"]["pid"].is_number(), "{status}");
    assert!(status["findings"].as_array().unwrap().contains(&json!("its circuit is open")), "{status}");
    let why = notes.why().into_iter().find(|line| line["code"] == "circuit").unwrap();
    assert_eq!((&why["state"], &why["reason"]), (&json!("open"), &json!("provider_failure")));
    let before = notes.provider.asked().len();
    notes.provider.heal();
    if is_full_size() {
        // A minute later one careful request goes out, then another, and then all of them.
        until("closed", SOON + Duration::from_secs(60), || circuit()["state"] == "closed");
        assert_eq!((&circuit()["previous_state"], &circuit()["reason"]), (&json!("half_open"), &json!("success")));
        let (end, _) = running.end();
        assert_eq!(end["status"], "succeeded", "{end}");
        let sql = "SELECT message FROM events WHERE message LIKE '%provider_budget%' ORDER BY id";
        let changes = notes.lines(&["query", "--json", sql]);
        let state = |row: &Value| {
            let message = serde_json::from_str::<Value>(row["message"].as_str().unwrap()).unwrap();
            message["provider_budget"]["circuit"]["state"].as_str().unwrap().to_owned()
        };
        assert_eq!(changes.iter().map(state).collect::<Vec<_>>(), ["open", "half_open", "closed"]);
    } else {
        assert_eq!(notes.provider.asked().len(), before, "an open circuit lets nothing through");
        running.signal("KILL");
        drop(running.end());
    }
    // A circuit belongs to the run that had it: the next one begins anew, and is not called open.
    let (code, end) = notes.run(&[], 20);
    assert_eq!(code, 0, "{end}");
    notes.assert_complete();
    assert_ne!(circuit()["state"], "open");
    assert_eq!(notes.status()["health"], "healthy");
}
