//! `gleaner repair`: an ordinary run that goes on from no cursor that is in doubt, and tries gaps again that were closed
//! without their record. The rules are in the store's `repair`.

use super::run::{run_spec, usual_interact};
use crate::args::collect::RepairArgs;
use crate::config::Config;
use crate::error::CliError;
use crate::terminal::output::{Output, counted};
use crate::terminal::run_view::Shown;
use gleaner_app::{Purpose, RunSpec};
use gleaner_base::outside::one_line;
use std::process::ExitCode;

pub(crate) fn run(args: &RepairArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let (app, name) = (args.home.app()?, args.connection.as_str());
    let repaired = app.repair(name)?;
    if !args.json {
        out.line(&format!(
            "{}: {} in doubt, listed again from the beginning; {} open again",
            one_line(name),
            counted(repaired.cursors, "cursor", "cursors"),
            counted(repaired.gaps, "gap", "gaps")
        ))?;
    }
    let purpose = if args.now { Purpose::OwnerNow } else { Purpose::Owner };
    let mut spec = RunSpec { command: args.command.clone(), ..RunSpec::new(name, purpose) };
    let mut interact = None;
    Config::load(&app)?.fill_run(&mut spec, &mut interact)?;
    let shown = Shown { json: args.json, quiet: args.quiet, interact: interact.unwrap_or_else(usual_interact) };
    run_spec(&app, spec, shown, None, out)
}
