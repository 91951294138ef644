//! Starts that go on where another ended: from a saved state, from gaps, after a kill.
//!
//! The important one is the kill. The connector is killed after an exact line, everything after the
//! last slice is taken for lost, as it is when the machine loses power, and it is started again. Both
//! runs together must account for every key that a run in one piece accounts for.

use crate::ask::{Ask, Treatment};
use crate::judge;
use crate::observed::{Line, Observed, Place};
use crate::plan::{Plan, judge_success};
use crate::report::Board;
use gleaner_store::Store;
use std::collections::{BTreeMap, BTreeSet};

/// So many records of a stream are needed to say that everything came again.
const RECORDS_MIN: usize = 10;

/// Recovers the gaps of the full run, and then nothing where there is nothing to recover.
pub(crate) fn recover(plan: &mut Plan<'_>, full: &Observed, store: &mut Store, board: &mut Board<'_>) {
    let waiting = full.gaps().len();
    if waiting == 0 {
        for id in ["gaps_answered", "gap_ids", "gap_pages", "recovery_only"] {
            board.skip(id, "the run from the beginning left no gap that could be served");
        }
        return;
    }
    let ask = Ask { recovery_only: true, ..Ask::from_state("gaps only", &plan.streams) };
    if let Some(run) = plan.start_in("gaps_answered", &ask, store, board)
        && judge_success("gaps_answered", &run, board)
    {
        judge::gaps::judge(&run, waiting, board);
    }
    let ask = Ask { recovery_only: true, ..Ask::full("gaps only, and there are none", &plan.streams) };
    if let Some(run) = plan.start_for("recovery_only", &ask, board) {
        let record = run.of_type("RECORD").next();
        let what = |line: &Line| ("there was nothing to recover, and it sent a record".to_owned(), Some(line.number));
        board.judge("recovery_only", record.map(what));
    }
}

/// A run from the state that the full run left.
pub(crate) fn go_on(plan: &mut Plan<'_>, full: &Observed, store: &mut Store, board: &mut Board<'_>) {
    let ask = Ask::from_state("from the saved state", &plan.streams);
    let Some(run) = plan.start_in("continues", &ask, store, board) else { return };
    if !judge_success("continues", &run, board) {
        return;
    }
    board.pass("continues");
    judge::records::judge_append_only(full, &run, &plan.manifest, board);
    judge_little(plan, full, &run, board);
}

fn judge_little(plan: &Plan<'_>, full: &Observed, run: &Observed, board: &mut Board<'_>) {
    let (before, again) = (full.records(), run.records());
    let incremental = |name: &String| {
        run.kept.gone_on_from.contains(name) && plan.manifest.stream(name).is_some_and(|stream| stream.incremental)
    };
    for name in plan.streams.iter().filter(|name| incremental(name)) {
        let of_stream = |(stream, _): &&Place| stream == name;
        let all = before.keys().filter(of_stream).count();
        let repeated = again.keys().filter(of_stream).filter(|place| before.contains_key(*place)).count();
        if all < RECORDS_MIN {
            continue;
        }
        if repeated * 2 > all {
            let what =
                format!("stream {name:?}: {repeated} of {all} records came again, although its state was given back");
            board.fail("continues_with_little", what, None);
        } else {
            board.pass("continues_with_little");
        }
    }
    board.skip("continues_with_little", "no stream that claims `incremental` has a state and ten records");
}

/// From the beginning again, with keys in START that nobody knows. Whether the same keys came.
pub(crate) fn again(plan: &mut Plan<'_>, full: &Observed, board: &mut Board<'_>) -> bool {
    let ask = Ask { unknown_keys: true, ..Ask::full("everything again, with unknown keys", &plan.streams) };
    let Some(run) = plan.start_for("unknown_start_keys", &ask, board) else { return true };
    board.pass("unknown_start_keys");
    judge::records::judge_append_only(full, &run, &plan.manifest, board);
    let (first, second) = (full.known(), run.known());
    match first.symmetric_difference(&second).next() {
        None => board.pass("deterministic"),
        Some((stream, key)) => {
            let what = format!("only one of two runs from the beginning has stream {stream:?}, key {key:?}");
            board.warn("deterministic", what, None);
        }
    }
    first == second
}

/// Killed at several points, and started again each time.
pub(crate) fn kill(plan: &mut Plan<'_>, full: &Observed, board: &mut Board<'_>) {
    if !plan.same_keys {
        for id in ["resume_complete", "resume_bounded"] {
            board.skip(id, "two runs from the beginning do not give the same keys");
        }
        return;
    }
    for point in points(plan, full) {
        if let Err(why) = kill_at(plan, full, point, board) {
            board.skip("resume_complete", why);
            return;
        }
    }
    let slices = full.lines.iter().any(Line::is_slice);
    let why =
        if slices { "no kill came after the second slice of a stream" } else { "it sends no states with `slice`" };
    board.skip("resume_bounded", why);
}

/// Lines to kill after. Half of them right after a slice, where a cursor ahead of its records shows.
fn points(plan: &Plan<'_>, full: &Observed) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(plan.bench.subject.seed);
    let slices = full.lines.iter().filter(|line| line.is_slice()).map(|line| line.number).collect::<Vec<_>>();
    let mut points = BTreeSet::new();
    for turn in 0..plan.bench.subject.limits.kills {
        let point = match random.choice(&slices) {
            Some(&slice) if turn % 2 == 0 => slice,
            _ => random.u64(1..full.line_count.max(2)),
        };
        points.insert(point);
    }
    points.into_iter().collect()
}

fn kill_at(plan: &mut Plan<'_>, full: &Observed, point: u64, board: &mut Board<'_>) -> Result<(), String> {
    let mut store = plan.bench.fresh_store()?;
    let ask = Ask::full("killed in the middle", &plan.streams).treated(Treatment::Kill(point));
    let killed = plan.bench.start(&ask, &mut store, board)?;
    plan.judge_always(&killed, board);
    let ask = Ask::from_state("started again after a kill", &plan.streams);
    let resumed = plan.bench.start(&ask, &mut store, board)?;
    plan.judge_always(&resumed, board);
    let id = "resume_complete";
    if let Some((what, line)) = resumed.trouble() {
        board.fail(id, format!("killed after line {point} and started again: {what}"), line);
        return Ok(());
    }
    let mut known = durable(&killed);
    known.extend(resumed.known());
    let expected = full.known();
    let lost = expected.difference(&known).collect::<Vec<_>>();
    let what = |(stream, key): &Place| {
        let number = lost.len();
        format!(
            "killed after line {point} and started again, {number} records are lost, for instance stream {stream:?}, key {key:?}"
        )
    };
    board.judge(id, lost.first().map(|place| (what(place), Some(point))));
    judge_bounded(full, &killed, &resumed, point, board);
    Ok(())
}

/// What is saved whatever happens: all that came before the last slice.
fn durable(killed: &Observed) -> BTreeSet<Place> {
    let end = killed.lines.iter().rposition(Line::is_slice).map_or(0, |at| at + 1);
    killed.lines[..end].iter().filter_map(|line| line.place().or_else(|| line.gap_place())).collect()
}

/// How many records a slice of each stream has at most.
fn slice_sizes(full: &Observed) -> BTreeMap<String, usize> {
    let (mut open, mut sizes) = (BTreeMap::<String, usize>::new(), BTreeMap::<String, usize>::new());
    for line in &full.lines {
        let Some(stream) = line.text("stream").map(ToOwned::to_owned) else { continue };
        if line.is("RECORD") {
            *open.entry(stream).or_default() += 1;
        } else if line.is_slice() {
            let size = open.remove(&stream).unwrap_or_default();
            let largest = sizes.entry(stream).or_default();
            *largest = size.max(*largest);
        }
    }
    sizes
}

fn judge_bounded(full: &Observed, killed: &Observed, resumed: &Observed, point: u64, board: &mut Board<'_>) {
    let again = resumed.records();
    for (stream, largest) in slice_sizes(full) {
        let is_its = |line: &&Line| line.text("stream") == Some(stream.as_str());
        let last = killed.lines.iter().rposition(|line| line.is_slice() && is_its(&line));
        let saved = &killed.lines[..last.map_or(0, |at| at + 1)];
        let saved = saved.iter().filter(is_its).filter_map(Line::place).collect::<BTreeSet<_>>();
        // One slice may come again, so more than one must be saved to see anything. A stream whose cursor was not given
        // back, because no report stands behind it, begins again.
        if saved.len() <= largest || !resumed.kept.gone_on_from.contains(&stream) {
            continue;
        }
        let repeated = saved.iter().filter(|place| again.contains_key(*place)).count();
        let what = || {
            let what = format!(
                "killed after line {point} and started again, stream {stream:?} sent {repeated} of {} saved records again; a slice has {largest}",
                saved.len()
            );
            (what, Some(point))
        };
        board.judge("resume_bounded", (repeated > largest).then(what));
    }
}
