//! `gleaner run`: one run of one connection, shown while it goes on, accounted for at its end.

use super::rehearsal;
use crate::args::collect::{CollectArgs, Interact};
use crate::config::Config;
use crate::error::CliError;
use crate::terminal::output::{Output, report_to_stderr};
use crate::terminal::run_view::{Shown, View, finished, not_begun};
use crate::terminal::stop_signals;
use gleaner_app::{App, NOT_RECORDED, Recorded, RunSpec, place_of_recording};
use gleaner_base::outside::one_line;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::channel;

pub(crate) fn run(args: &CollectArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let app = args.home.app()?;
    let (mut spec, mut interact) = (args.spec(), args.interact);
    Config::load(&app)?.fill_run(&mut spec, &mut interact)?;
    if args.author.is_rehearsal() {
        let ended = rehearsal::run(&app, spec, args, out);
        return say_the_end(args.json, ended, out);
    }
    let shown = Shown { json: args.json, quiet: args.quiet, interact: interact.unwrap_or_else(usual_interact) };
    run_spec(&app, spec, shown, out)
}

/// Questions are asked where somebody watches.
pub(super) fn usual_interact() -> Interact {
    let watched = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if watched { Interact::Prompt } else { Interact::None }
}

/// Runs what is asked, shows it, and says how it ended.
pub(super) fn run_spec(app: &App, mut spec: RunSpec, shown: Shown, out: &mut Output) -> Result<ExitCode, CliError> {
    spec.interactive = shown.interact != Interact::None;
    let ended = collect(app, spec, shown, out);
    say_the_end(shown.json, ended, out)
}

/// Whoever reads the lines of a program waits for the last one, also when there was no run.
fn say_the_end(json: bool, ended: Result<ExitCode, CliError>, out: &mut Output) -> Result<ExitCode, CliError> {
    if let (true, Err(error)) = (json, &ended) {
        not_begun(error, out)?;
    }
    ended
}

fn collect(app: &App, mut spec: RunSpec, shown: Shown, out: &mut Output) -> Result<ExitCode, CliError> {
    spec.record = spec.record.as_deref().map(place_of_recording).transpose()?;
    let prepared = app.prepare(&spec)?;
    warn(&prepared.warnings);
    let (orders, control) = channel();
    stop_signals::forward(&orders);
    let mut view = View::new(&prepared.connection, shown, prepared.missing.clone(), orders);
    let ended = prepared.run(control, &mut view);
    drop(view);
    let ended = ended?;
    let code = finished(&app.reader()?, &ended, &spec.scope.resources, shown.json, out)?;
    if let Some(file) = &spec.record {
        say_recorded(ended.check_recording(file)?, file, shown.quiet);
    }
    Ok(code)
}

/// Says what the owner should know about where something comes from.
pub(super) fn warn(warnings: &[String]) {
    for warning in warnings {
        report_to_stderr(&format!("warning: {}", one_line(warning)));
    }
}

/// Says what is in a recording.
pub(super) fn say_recorded(recorded: Option<Recorded>, file: &Path, quiet: bool) {
    let Some(Recorded { exchanges, is_full }) = recorded else {
        return report_to_stderr(&format!("nothing was recorded: {NOT_RECORDED}"));
    };
    if !quiet {
        let shown = one_line(&file.display().to_string());
        let full = if is_full { ", and there was no room for more" } else { "" };
        report_to_stderr(&format!(
            "{exchanges} exchanges are in {shown}{full}\ncredentials are masked in it; what the service said is not: \
             look at it before you give it away"
        ));
    }
}
