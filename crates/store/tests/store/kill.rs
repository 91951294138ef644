//! `kill -9` of the process that writes, at every write call and at random times, and what the next
//! process makes of it.
//!
//! Why strace: only it can end a process between two given system calls. Each call of a recorded run is
//! a place to die: before the first call nothing has happened, before the last one all but that. By
//! default 600 ids; with `GLEANER_TEST_ALL` in the environment 6,000. Power cuts, which take back what
//! the kernel was told, are the other test: here everything that was written stays.

use crate::crash::cores::in_parallel;
use crate::crash::is_full_size;
use crate::crash::judge::{Finding, Promise, judge, judge_image};
use crate::crash::program::{Place, Said, Work};
use crate::crash::strace;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

const SLICE: u64 = 100;
/// A restart that waits for the lease of the dead would take 30 seconds. This is for a machine with
/// other work.
const AT_ONCE: Duration = Duration::from_secs(10);
/// The mean number of ids that may be fetched again.
const REFETCHED_MEAN_MAX: f64 = 75.0;
/// Every call that writes, syncs, cuts or names a file. SQLite makes the others on a device or system
/// that is not this one; if it did, the plan would have them.
const CALLS: &str = "trace=pwrite64,pwritev,pwritev2,write,writev,fsync,fdatasync,ftruncate,fallocate,unlink,unlinkat,\
                     rename,renameat,renameat2";
/// Of the writes to standard output, which the store knows nothing of, each so many-th is a place to
/// die. They are not left out: a process that dies while it fetches is the common case, and all the
/// calls of a commit come when a whole slice is fetched and not stored. But nothing of the store
/// changes between two of them, so one stands for its neighbours.
const FETCHES_PER_KILL: usize = 20;

/// A place to die: before this call of this kind.
#[derive(Debug)]
struct Kill {
    call: String,
    nth: usize,
    /// How many calls it stands for.
    weight: f64,
}

/// What became of one kill.
#[derive(Debug)]
struct Outcome {
    kill: Kill,
    was_killed: bool,
    refetched: u64,
    restart: Duration,
    findings: Vec<Finding>,
}

fn work() -> Work {
    let ids = if is_full_size() { 6000 } else { 600 };
    Work { ids, slice: SLICE, rate: None, cursor_first: false }
}

/// Every write call of an undisturbed run, counted per kind of call as strace counts.
fn plan(work: Work) -> Vec<Kill> {
    let place = Place::new();
    let log = place.log();
    let options = ["-y", "-xx", "-o", log.to_str().unwrap(), "-e", CALLS];
    let ended = place.run_under_strace(&options, work);
    assert!(ended.status.success() && ended.said.done);
    let (mut counts, mut to_stdout, mut kills) = (BTreeMap::new(), 0, Vec::new());
    for call in strace::read(&log) {
        let nth = counts.entry(call.name.clone()).or_insert(0);
        *nth += 1;
        let is_to_stdout = call.name == "write" && call.is_to_stdout();
        to_stdout += usize::from(is_to_stdout);
        if !is_to_stdout || to_stdout.is_multiple_of(FETCHES_PER_KILL) {
            let weight = if is_to_stdout { FETCHES_PER_KILL as f64 } else { 1.0 };
            kills.push(Kill { call: call.name, nth: *nth, weight });
        }
    }
    kills
}

/// A new store, a process that dies there, and one that goes on.
fn kill_and_restart(work: Work, kill: Kill) -> Outcome {
    let place = Place::new();
    let (trace, inject) =
        (format!("trace={}", kill.call), format!("inject={}:signal=KILL:when={}", kill.call, kill.nth));
    let first = place.run_under_strace(&["-o", "/dev/null", "-e", &trace, "-e", &inject], work);
    let mut findings = judge_image(&place.image(), &acknowledged(&first.said));
    let second = place.run(work);
    assert!(second.status.success() && second.said.done, "the restart after {kill:?} failed: {second:?}");
    findings.extend(judge(&place.store(), &Promise { ids: 0..work.ids, is_done: true }));
    let refetched = refetched(&first.said, &second.said);
    Outcome { kill, was_killed: first.status.signal() == Some(9), refetched, restart: second.took, findings }
}

fn acknowledged(said: &Said) -> Promise {
    Promise { ids: 0..said.acknowledged().last().map_or(0, |last| last + 1), is_done: said.done }
}

fn refetched(first: &Said, second: &Said) -> u64 {
    let before = first.fetched.iter().collect::<BTreeSet<_>>();
    second.fetched.iter().filter(|id| before.contains(id)).count() as u64
}

/// Over all calls that these kills stand for.
fn mean_refetched(outcomes: &[Outcome], is_counted: fn(&Kill) -> bool) -> f64 {
    let counted = || outcomes.iter().filter(|outcome| is_counted(&outcome.kill));
    let calls = counted().map(|outcome| outcome.kill.weight).sum::<f64>();
    counted().map(|outcome| outcome.refetched as f64 * outcome.kill.weight).sum::<f64>() / calls
}

#[test]
fn killed_at_any_write_call_it_goes_on_at_once_and_nothing_is_lost() {
    let work = work();
    let outcomes = in_parallel(plan(work).into_iter(), |kill| kill_and_restart(work, kill));
    let bad = outcomes.iter().filter(|outcome| !outcome.findings.is_empty()).collect::<Vec<_>>();
    assert!(bad.is_empty(), "{} kills did harm, the first: {:?}", bad.len(), bad[0]);
    // A process number or a date of another length may make a page more or less, at the very end.
    let missed = outcomes.iter().filter(|outcome| !outcome.was_killed).collect::<Vec<_>>();
    assert!(missed.len() <= 2, "not every run makes the same calls: {missed:?}");
    let slowest = outcomes.iter().map(|outcome| outcome.restart).max().unwrap();
    assert!(slowest < AT_ONCE, "a restart took {slowest:?}");
    let most = outcomes.iter().map(|outcome| outcome.refetched).max().unwrap();
    assert!(most <= 2 * SLICE, "{most} ids were fetched again");
    let mean = mean_refetched(&outcomes, |_| true);
    // Higher by nature: most of these calls are made when a whole slice waits to be stored.
    let of_store = mean_refetched(&outcomes, |kill| kill.weight <= 1.0);
    let kills = outcomes.len();
    println!("{kills} kills: refetched mean {mean:.1}, most {most}; slowest restart {slowest:?}");
    println!("at calls of the store alone: refetched mean {of_store:.1}");
    assert!(mean <= REFETCHED_MEAN_MAX, "{mean} ids were fetched again in the mean");
}

/// One store whose processes are killed again and again, each at a random time after its first fetch.
/// Returns how many ids were fetched again after each.
fn kill_at_random_times(work: Work, kills: usize, seed: u64) -> Vec<u64> {
    let (place, mut random) = (Place::new(), fastrand::Rng::with_seed(seed));
    let (mut before, mut refetches) = (Said::default(), Vec::new());
    // Whatever is drawn, the last one that is killed is still at work then.
    let longest = work.ids * 900 / work.rate.unwrap() / kills as u64;
    for turn in 0..=kills {
        let mut running = place.start(work);
        let until_first = running.wait_for_first_word(AT_ONCE);
        assert!(until_first < AT_ONCE, "process {turn} fetched nothing for {until_first:?}");
        if turn == kills {
            let ended = running.end();
            assert!(ended.status.success() && ended.said.done, "seed {seed}: the last one failed: {ended:?}");
            refetches.push(refetched(&before, &ended.said));
            break;
        }
        let (was_working, said) = running.kill_after(Duration::from_millis(random.u64(..longest)));
        assert!(was_working, "seed {seed}: process {turn} was too fast to be killed");
        let findings = judge_image(&place.image(), &acknowledged(&said));
        assert!(findings.is_empty(), "seed {seed}, kill {turn}: {findings:?}");
        if turn > 0 {
            refetches.push(refetched(&before, &said));
        }
        before = said;
    }
    let findings = judge(&place.store(), &Promise { ids: 0..work.ids, is_done: true });
    assert!(findings.is_empty(), "seed {seed}: {findings:?}");
    refetches
}

#[test]
fn killed_at_random_times_it_goes_on_at_once_and_nothing_is_lost() {
    let work = Work { rate: Some(600), ..work() };
    // A tenth of the ids leaves room for three kills, so there are seven stores: a mean needs some twenty.
    let (stores, kills) = if is_full_size() { (1, 20) } else { (7, 3) };
    let refetches = in_parallel(0..stores, |seed| kill_at_random_times(work, kills, seed)).concat();
    let most = *refetches.iter().max().unwrap();
    let mean = refetches.iter().sum::<u64>() as f64 / refetches.len() as f64;
    println!("{} kills at random times: refetched mean {mean:.1}, most {most}", refetches.len());
    assert!(most <= 2 * SLICE, "{most} ids were fetched again");
    assert!(mean <= REFETCHED_MEAN_MAX, "{mean} ids were fetched again in the mean");
}

/// The negative control: a check that cannot fail proves nothing.
#[test]
fn a_store_that_commits_its_cursor_first_is_caught() {
    let work = Work { ids: 600, cursor_first: true, ..work() };
    let kills = plan(work).into_iter().step_by(8);
    let outcomes = in_parallel(kills, |kill| kill_and_restart(work, kill));
    let is_missing = |finding: &Finding| matches!(finding, Finding::Missing(_));
    let (caught, fine) = outcomes.iter().partition::<Vec<_>, _>(|outcome| outcome.findings.iter().any(is_missing));
    println!("cursor first: caught at {} of {} kills", caught.len(), outcomes.len());
    assert!(!caught.is_empty(), "a store that loses records was not caught");
    // Caught for what it does, and for nothing else: lost records, and a cursor that is ahead of its slice.
    // The cursor was written behind the store's back, which the check of the file notices as well.
    let is_cursor = |finding: &Finding| matches!(finding, Finding::Damaged(what) if what.starts_with("cursors"));
    let is_meant = |finding: &Finding| {
        is_missing(finding) || is_cursor(finding) || matches!(finding, Finding::Broken("A1" | "A3"))
    };
    let other = caught.iter().find(|outcome| !outcome.findings.iter().all(is_meant));
    assert!(other.is_none(), "caught by something else: {other:?}");
    let other = fine.iter().find(|outcome| !outcome.findings.is_empty());
    assert!(other.is_none(), "caught only by something else: {other:?}");
}
