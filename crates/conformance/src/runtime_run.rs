//! One start as an owner's: through the runtime and its guard, incremental, with nothing saved.

use crate::checked_run::CONNECTION;
use crate::plan::Plan;
use crate::report::{Board, Finding};
use gleaner_engine::RunScope;
use gleaner_protocol::{Scope, StreamScope, TerminalReason};
use gleaner_runtime::{Control, Launch, RunReport, RunRequest, Unobserved};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

const ID: &str = "first_incremental";

/// A first run, the way every connection begins.
pub(crate) fn first_incremental(plan: &mut Plan<'_>, board: &mut Board<'_>) {
    match run(plan, board) {
        Ok(report) => {
            let outcome = &report.outcome;
            if outcome.reason == TerminalReason::Succeeded {
                return board.pass(ID);
            }
            let line = outcome.violation.as_ref().and_then(|violation| violation.position).map(|place| place.line);
            let breach = outcome.violation.as_ref().map(|violation| format!(": {violation}")).unwrap_or_default();
            board.fail(ID, format!("with `state: null` the run ended as {}{breach}", outcome.reason), line);
        }
        Err(why) => board.skip(ID, why),
    }
}

fn run(plan: &mut Plan<'_>, board: &mut Board<'_>) -> Result<RunReport, String> {
    let deadline = plan.bench.deadline()?;
    let mut store = plan.bench.fresh_store()?;
    board.tell(&Finding::Start("a first run under the runtime"));
    plan.bench.starts += 1;
    let request = request(plan)?;
    let (orders, control) = channel();
    // The runtime waits as long as an owner would; here it is told when to stop.
    let (ended, ends) = channel::<()>();
    let watch = std::thread::spawn(move || {
        let wait = deadline.saturating_duration_since(Instant::now());
        if ends.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            drop(orders.send(Control::CancelNow));
        }
    });
    let report = gleaner_runtime::run(&mut store, request, control, &mut Unobserved);
    // Dropping it wakes the watch, which then has nobody to tell.
    drop(ended);
    drop(watch.join());
    let report = report.map_err(|error| error.to_string())?;
    plan.bench.check_time(report.outcome.reason != TerminalReason::Cancelled)?;
    Ok(report)
}

fn request(plan: &Plan<'_>) -> Result<RunRequest, String> {
    let subject = plan.bench.subject;
    let streams = plan.streams.iter().map(StreamScope::all_of).collect();
    let launch = Launch {
        command: subject.command.clone(),
        environment: plan.bench.environment(&[]),
        folder: subject.folder.clone(),
        guard: subject.guard.clone(),
        exec: subject.exec.clone(),
    };
    let scope = RunScope::ordinary(Scope::new(streams).map_err(|fault| fault.to_string())?);
    Ok(RunRequest {
        bindings: plan.bench.ground.bindings.clone(),
        redactor: plan.bench.ground.redactor.clone(),
        ..RunRequest::new(CONNECTION, Arc::clone(&plan.manifest), scope, launch)
    })
}
