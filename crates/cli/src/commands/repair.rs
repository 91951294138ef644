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
use gleaner_store::Repaired;
use std::process::ExitCode;

pub(crate) fn run(args: &RepairArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let (app, name) = (args.home.app()?, args.connection.as_str());
    let repaired = app.repair(name)?;
    if !args.json {
        out.line(&format!("{}: {}", one_line(name), sentence(repaired)))?;
    }
    let purpose = if args.now { Purpose::OwnerNow } else { Purpose::Owner };
    let mut spec = RunSpec { command: args.command.clone(), ..RunSpec::new(name, purpose) };
    let mut interact = None;
    Config::load(&app)?.fill_run(&mut spec, &mut interact)?;
    let shown = Shown { json: args.json, quiet: args.quiet, interact: interact.unwrap_or_else(usual_interact) };
    run_spec(&app, spec, shown, out)
}

fn sentence(repaired: Repaired) -> String {
    let cursors =
        format!("{} in doubt, listed again from the beginning", counted(repaired.cursors, "cursor", "cursors"));
    let gaps = format!("{} open again", counted(repaired.gaps, "gap", "gaps"));
    match (repaired.cursors, repaired.gaps) {
        (0, 0) => "no earlier version of Gleaner left a cursor or gap in doubt; an ordinary run begins".to_owned(),
        (0, _) => format!("no cursor is in doubt; {gaps}"),
        (_, 0) => cursors,
        (..) => format!("{cursors}; {gaps}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_says_only_what_it_did() {
        let said = |cursors, gaps| sentence(Repaired { cursors, gaps });
        assert_eq!(said(0, 0), "no earlier version of Gleaner left a cursor or gap in doubt; an ordinary run begins");
        assert_eq!(said(1, 0), "1 cursor in doubt, listed again from the beginning");
        assert_eq!(said(0, 2), "no cursor is in doubt; 2 gaps open again");
        assert_eq!(said(2, 1), "2 cursors in doubt, listed again from the beginning; 1 gap open again");
    }
}
