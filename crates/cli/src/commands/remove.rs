//! `gleaner remove`: a connection runs no more. What it collected stays, or is forgotten for good.

use crate::args::manage::RemoveArgs;
use crate::error::CliError;
use crate::terminal::output::{Output, counted};
use crate::terminal::prompt;
use gleaner_app::Removed;
use gleaner_base::outside::one_line;
use gleaner_store::ConnectionSummary;

pub(crate) fn run(args: &RemoveArgs, out: &mut Output) -> Result<(), CliError> {
    let (app, name) = (args.home.app()?, args.connection.as_str());
    if args.purge {
        confirm(args, &app.reader()?.connection(name)?)?;
    }
    let removed = app.remove(name, args.purge)?;
    let name = one_line(name);
    match removed {
        Removed::Purged { rows } => {
            out.line(&format!("{name} is forgotten: {rows} rows and its credentials are gone for good"))?;
        }
        Removed::Kept { records } => {
            let stays = ("record with its history and gaps stays", "records with their history and gaps stay");
            let (records, store) = (counted(records, stays.0, stays.1), app.store_path());
            out.line(&format!("{name} is removed, its credentials are deleted"))?;
            out.line(&format!(
                "  {records} in {}\n  `gleaner remove {name} --purge` forgets them too",
                store.display()
            ))?;
        }
    }
    Ok(())
}

/// What is forgotten cannot be had again, so it is asked for by name.
fn confirm(args: &RemoveArgs, summary: &ConnectionSummary) -> Result<(), CliError> {
    if args.yes {
        return Ok(());
    }
    let (name, totals) = (&summary.name, &summary.totals);
    let question = format!(
        "{name}: {} and {} will be gone for good.",
        counted(totals.records, "record", "records"),
        counted(totals.gaps_missing(), "gap", "gaps")
    );
    match prompt::confirm(&question, name) {
        Some(true) => Ok(()),
        Some(false) => {
            Err(CliError::usage("nothing was removed", "type the name of the connection to go on, or say --yes"))
        }
        None => {
            Err(CliError::usage("there is no terminal to ask on, and nothing was removed", "say --yes if you mean it"))
        }
    }
}
