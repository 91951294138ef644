//! `gleaner run --limit N` and `--replay FILE`: a run that nobody keeps, for the author of a connector. What was asked,
//! what came back and what came out of it are shown side by side.

mod page;
mod pairing;
mod pretty;

use super::run::{say_recorded, warn};
use crate::args::collect::CollectArgs;
use crate::error::CliError;
use crate::terminal::output::{Output, report_to_stderr};
use crate::terminal::stop_signals;
use gleaner_app::{App, Purpose, RehearsalSpec, RunSpec, place_of_recording};
use gleaner_base::outside::one_line;
use std::process::ExitCode;
use std::sync::mpsc::channel;

pub(super) fn run(app: &App, run: RunSpec, args: &CollectArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let record = run.record.as_deref().map(place_of_recording).transpose()?;
    let rehearsal = app.rehearse(RehearsalSpec {
        run: RunSpec { purpose: Purpose::Rehearsal, record: record.clone(), ..run },
        limit: args.author.limit,
        now: args.now,
    })?;
    warn(&rehearsal.credentials.warnings);
    let name = one_line(rehearsal.name());
    if !args.quiet && !args.json {
        let is_replay = args.author.replay.is_some();
        let asked = if is_replay { "answered from a recording" } else { "asking the service" };
        report_to_stderr(&format!("{name}: {asked}; nothing will be stored"));
    }
    let (orders, control) = channel();
    stop_signals::forward(&orders);
    let rehearsed = rehearsal.run(orders, control)?;
    let code = page::show(&name, args, &rehearsed, out)?;
    if let Some(file) = &record {
        say_recorded(rehearsed.check_recording(file)?, file, args.quiet);
    }
    Ok(code)
}
