//! Starts that treat a connector roughly: no credentials, no budget, a slow reader, no input, SIGTERM.

use crate::ask::{Ask, Treatment};
use crate::judge;
use crate::observed::{Late, Line, Observed};
use crate::plan::Plan;
use crate::report::Board;
use gleaner_protocol::RunBudget;
use serde_json::Value;

/// Without the variables that the manifest names as credentials.
pub(crate) fn missing_credentials(plan: &mut Plan<'_>, board: &mut Board<'_>) {
    const ID: &str = "missing_credentials";
    let names = plan.manifest.auth.iter().flat_map(|auth| auth.required.iter().flatten());
    let names = names.cloned().collect::<Vec<_>>();
    if names.is_empty() {
        return board.skip(ID, "the manifest declares no credentials (`capabilities.auth`)");
    }
    let ask = Ask { without: names, ..Ask::full("no credentials", &plan.streams) };
    let Some(run) = plan.start_fresh(ID, &ask, board) else { return };
    let done = run.of_type("DONE").last();
    let line = done.map(|line| line.number);
    let error = done.and_then(|line| line.value.as_ref()?.get("error")?.get("message")?.as_str());
    if let Some((what, line)) = run.trouble().filter(|_| run.violation().is_some() || run.late.is_some()) {
        board.fail(ID, run.say(&what), line);
    } else if run.succeeded() {
        board.fail(ID, "it succeeded without its credentials", line);
    } else if error.is_none_or(str::is_empty) {
        board.fail(ID, "its DONE has no error that says what is missing", line);
    } else {
        board.pass(ID);
    }
}

/// With a budget of one request. Whether requests are counted cannot be seen from outside; that a stop
/// is no failure can.
pub(crate) fn budget(plan: &mut Plan<'_>, full: &Observed, board: &mut Board<'_>) {
    const ID: &str = "run_budget";
    let budget = Some(RunBudget { max_requests: Some(1), max_duration_ms: None });
    let ask = Ask { budget, ..Ask::full("a budget of one request", &plan.streams) };
    let Some(run) = plan.start_for(ID, &ask, board) else { return };
    judge_end(plan, &run, full, board);
    let is_deferred = |line: &&Line| {
        let class = line.value.as_ref().and_then(|value| value.get("last_error")?.get("class"));
        class == Some(&Value::from("run_cap_deferred"))
    };
    // A record that the full run brought is a gap because of the cap.
    let records = full.records();
    let is_capped = |line: &&Line| line.gap_place().is_some_and(|place| records.contains_key(&place));
    let mut gaps = run.of_type("DETAIL_GAP");
    if let Some(line) = gaps.find(|line| plan.same_keys && is_capped(line) && !is_deferred(line)) {
        return board.fail(ID, "a gap at the cap is not of class `run_cap_deferred`", Some(line.number));
    }
    let deferred = run.of_type("DETAIL_GAP").any(|line| is_deferred(&line));
    if deferred || run.records().len() < full.records().len() {
        board.pass(ID);
    } else {
        board.skip(ID, "it shows no sign of knowing `run_budget`");
    }
}

/// What was cut short must say so; it can be seen only where runs can be compared.
fn judge_end(plan: &Plan<'_>, run: &Observed, full: &Observed, board: &mut Board<'_>) {
    if plan.same_keys {
        judge::claims::judge_end(run, full, board);
    } else {
        board.skip("honest_end", "two runs from the beginning do not give the same keys");
    }
}

/// Its output is read slowly, through a small pipe.
pub(crate) fn slow_reader(plan: &mut Plan<'_>, full: &Observed, board: &mut Board<'_>) {
    let slow = plan.bench.subject.limits.slow;
    let ask = Ask::full("a slow reader", &plan.streams).treated(Treatment::Slow(slow));
    let Some(run) = plan.start_for("slow_reader", &ask, board) else { return };
    let (came, expected) = (run.records().len(), full.records().len());
    let fewer = || (format!("{came} records came, {expected} when it was read fast"), None);
    board.judge("slow_reader", (came < expected).then(fewer));
}

/// Its input ends right after START.
pub(crate) fn end_of_input(plan: &mut Plan<'_>, full: &Observed, board: &mut Board<'_>) {
    const ID: &str = "early_end_of_input";
    let ask = Ask::full("no more input", &plan.streams).treated(Treatment::EndOfInput);
    let Some(run) = plan.start_fresh(ID, &ask, board) else { return };
    judge_end(plan, &run, full, board);
    let last = run.last_line();
    if run.late.is_some() {
        board.fail(ID, "its input ended, and it did not", last);
    } else if run.of_type("DONE").next().is_none() {
        board.fail(ID, "its input ended, and it ended without DONE", last);
    } else {
        board.pass(ID);
    }
}

/// SIGTERM in the middle.
pub(crate) fn terminate(plan: &mut Plan<'_>, full: &Observed, board: &mut Board<'_>) {
    const ID: &str = "stops_on_sigterm";
    let after = (full.line_count / 2).max(1);
    // Its input stays open: the end must come from the signal.
    let linger = plan.bench.subject.limits.after_term * 2;
    let ask = Ask { linger, ..Ask::full("SIGTERM in the middle", &plan.streams) };
    let ask = ask.treated(Treatment::Terminate(after));
    let Some(run) = plan.start_fresh(ID, &ask, board) else { return };
    judge_end(plan, &run, full, board);
    let limit = plan.bench.subject.limits.after_term;
    let ignored = run.late == Some(Late::ExitAfterTerm);
    let what = || (format!("it still ran {limit:?} after SIGTERM"), run.last_line());
    board.judge(ID, ignored.then(what));
}
