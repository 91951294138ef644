//! A connector with slices that is killed together with the program, again and again, at random times.
//!
//! The connector writes down what it fetches, as a provider would: so what was fetched twice is known from outside. By
//! default 600 ids; with `GLEANER_TEST_ALL` in the environment 6,000, killed 20 times.

use crate::cores::in_parallel;
use crate::place::{Place, Running, is_full_size, left_after, signal};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

/// How many ids a second.
const RATE: u64 = 600;
const SLICE: u64 = 100;
/// How many may be fetched again after a kill: the slice that was under way, and one that was on its way to the store.
const REFETCHED_MAX: u64 = 2 * SLICE;
const REFETCHED_MEAN_MAX: f64 = 75.0;
/// A restart that waits for the lease of the dead would take 30 seconds. This is for a machine with other work.
const AT_ONCE: Duration = Duration::from_secs(10);
/// From the issue: so long after the kill nothing is left.
const GONE_AFTER: Duration = Duration::from_secs(5);

/// Fetches ids at a rate, has a child that outlives everything it can, and writes down both.
const FETCH: &str = r#"
turn, ids, rate, size, is_slice, is_deaf = int(sys.argv[1]), *map(int, sys.argv[2:5]), sys.argv[5] == "slices", sys.argv[6] == "deaf"
child = os.fork()
if child == 0:
    os.setsid()
    for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(name, signal.SIG_IGN)
    os.close(0); os.close(1); os.close(2)
    while True: time.sleep(60)
if is_deaf:
    signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGPIPE, signal.SIG_IGN)
with open(f"pids-{turn}.new", "w") as pids: pids.write(f"{os.getpid()} {child}")
os.rename(f"pids-{turn}.new", f"pids-{turn}")
first = (start["state"] or {"orders": {"next": 0}})["orders"]["next"]
fetched = os.open(f"fetched-{turn}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
due = time.monotonic()
for n in range(first, ids):
    # A provider's limit: whoever was held up does not get faster afterwards.
    due = max(due + 1 / rate, time.monotonic())
    time.sleep(max(0, due - time.monotonic()))
    os.write(fetched, f"{n}\n".encode())
    try:
        record(n)
        if (n + 1) % size == 0: say(type="STATE", stream="orders", cursor={"next": n + 1}, **({"slice": True} if is_slice else {}))
    except BrokenPipeError:
        # Nobody listens any more. One that is deaf stays all the same.
        while is_deaf: time.sleep(60)
        raise
done(ids - first); os.kill(child, 9); end()"#;

#[derive(Clone, Copy, Debug)]
struct Work {
    ids: u64,
    kills: u64,
    is_slice: bool,
    is_deaf: bool,
    /// The whole group of the program, or the program alone.
    group: bool,
}

/// What came of all kills in one store.
#[derive(Debug, Default)]
struct Outcome {
    refetched: Vec<u64>,
    findings: Vec<String>,
}

fn fetched(place: &Place, turn: u64) -> BTreeSet<u64> {
    // A line that is cut off was not fetched: the number may be of another id.
    let text = place.read(&format!("fetched-{turn}"));
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| line.parse().unwrap()).collect()
}

/// How many of this run's ids one before it had fetched.
fn refetched(place: &Place, turn: u64) -> u64 {
    let before = (0..turn).flat_map(|turn| fetched(place, turn)).collect::<BTreeSet<_>>();
    fetched(place, turn).intersection(&before).count() as u64
}

fn pids(place: &Place, turn: u64) -> Vec<u32> {
    place.read(&format!("pids-{turn}")).split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn start(place: &Place, work: Work, turn: u64) -> Running {
    let words = [turn, work.ids, RATE, SLICE].map(|number| number.to_string());
    let mut command = place.run_command(&["--json"]);
    command.args(words).arg(if work.is_slice { "slices" } else { "no" }).arg(if work.is_deaf { "deaf" } else { "no" });
    command.process_group(0);
    Running::of(command)
}

/// Waits for the first fetch of a run; how long that took.
fn wait_for_first_fetch(place: &Place, turn: u64) -> Duration {
    let (began, path) = (Instant::now(), place.path(&format!("fetched-{turn}")));
    while began.elapsed() < AT_ONCE && fs::metadata(&path).map_or(0, |meta| meta.len()) == 0 {
        std::thread::sleep(Duration::from_millis(2));
    }
    began.elapsed()
}

fn kill_again_and_again(work: Work, seed: u64) -> Outcome {
    let (place, mut random, mut outcome) = (Place::new(), Random(seed * 7919 + 17), Outcome::default());
    place.script(FETCH);
    // Whatever is drawn, the last one that is killed is still at work then.
    let longest = work.ids * 900 / RATE / work.kills;
    for turn in 0..work.kills {
        let mut running = start(&place, work, turn);
        let until_first = wait_for_first_fetch(&place, turn);
        if until_first >= AT_ONCE {
            outcome.findings.push(format!("run {turn} fetched nothing for {until_first:?}"));
        }
        std::thread::sleep(Duration::from_millis(random.below(longest)));
        let group = running.child.id().to_string();
        let target = if work.group { format!("-{group}") } else { group };
        signal(&target, "KILL");
        running.child.wait().unwrap();
        if turn > 0 {
            outcome.refetched.push(refetched(&place, turn));
        }
    }
    outcome.findings.extend(what_is_left(&place, work.kills - 1));
    let (end, code) = start(&place, work, work.kills).end();
    outcome.refetched.push(refetched(&place, work.kills));
    if code != Some(0) {
        outcome.findings.push(format!("the last run ended with {code:?}: {end}"));
    }
    outcome.findings.extend(judge(&place, work));
    outcome
}

/// What is in the store: every id once, nothing else, and all of it sound.
fn judge(place: &Place, work: Work) -> Vec<String> {
    let mut findings = Vec::new();
    let printed = place.gleaner(&["records", "orders", "--json"]).stdout;
    let key = |line: &str| crate::place::last_line(line)["data"]["id"].as_u64().unwrap();
    let (lines, ids) = (printed.lines().count() as u64, printed.lines().map(key).collect::<BTreeSet<_>>());
    if !(lines == work.ids && ids == (0..work.ids).collect()) {
        findings.push(format!("{lines} records, {} ids", ids.len()));
    }
    let verify = place.gleaner(&["verify"]);
    if verify.code != 0 {
        findings.push(verify.stdout);
    }
    findings.extend((0..=work.kills).filter_map(|turn| what_is_left(place, turn)));
    findings
}

/// Processes of a run that should be gone. A test that failed does not leave them to others either.
fn what_is_left(place: &Place, turn: u64) -> Option<String> {
    let left = left_after(GONE_AFTER, &pids(place, turn));
    left.iter().for_each(|pid| signal(&pid.to_string(), "KILL"));
    (!left.is_empty()).then(|| format!("{left:?} of run {turn} are left after {GONE_AFTER:?}"))
}

/// Whether too much was fetched again.
fn judge_refetched(outcomes: &[Outcome]) -> Result<String, String> {
    let all = outcomes.iter().flat_map(|outcome| &outcome.refetched).copied().collect::<Vec<_>>();
    let most = all.iter().copied().max().unwrap();
    let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
    let told = format!("{} kills: refetched mean {mean:.1}, most {most}", all.len());
    if most > REFETCHED_MAX || mean > REFETCHED_MEAN_MAX { Err(told) } else { Ok(told) }
}

/// A tenth of the ids leaves room for three kills, so there are several stores.
fn killed(stores: u64, group: bool, is_deaf: bool) -> String {
    let (stores, ids, kills) = if is_full_size() { (1, 6000, 20) } else { (stores, 600, 3) };
    let work = Work { ids, kills, is_slice: true, is_deaf, group };
    let outcomes = in_parallel(0..stores, |seed| kill_again_and_again(work, seed));
    let findings = outcomes.iter().flat_map(|outcome| &outcome.findings).collect::<Vec<_>>();
    assert!(findings.is_empty(), "{findings:#?}");
    judge_refetched(&outcomes).unwrap()
}

#[test]
fn the_program_is_killed_and_the_next_run_goes_on_at_once() {
    // A mean needs some twenty.
    println!("{}", killed(7, false, false));
}

#[test]
fn its_whole_group_is_killed_and_the_next_run_goes_on_at_once() {
    println!("{}", killed(4, true, false));
}

#[test]
fn a_connector_that_ignores_every_request_to_end_is_gone_as_well() {
    println!("{}", killed(4, false, true));
}

/// The negative control: without slices everything since the first run is fetched again, and that is noticed.
#[test]
fn a_connector_without_slices_fetches_too_much_again_and_is_caught() {
    let work = Work { ids: 1200, kills: 2, is_slice: false, is_deaf: false, group: false };
    let outcomes = in_parallel(0..4, |seed| kill_again_and_again(work, seed));
    let findings = outcomes.iter().flat_map(|outcome| &outcome.findings).collect::<Vec<_>>();
    assert!(findings.is_empty(), "nothing is lost all the same: {findings:#?}");
    println!("without slices: {}", judge_refetched(&outcomes).unwrap_err());
}

/// Draws that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
