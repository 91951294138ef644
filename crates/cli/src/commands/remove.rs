//! `gleaner remove`: a connection runs no more. What it collected stays, or is forgotten for good.

use crate::args::manage::RemoveArgs;
use crate::commands::run::refused;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, counted, visible};
use crate::prompt;
use gleaner_runtime::RunError;
use gleaner_store::{Acquired, ConnectionState, ConnectionSummary, Holder, Lease, LeaseOn, Store, StoreError};
use gleaner_vault::Vault;
use std::process::ExitCode;

pub(crate) fn run(args: &RemoveArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let (home, name) = (Home::find(&args.home)?, args.connection.as_str());
    let summary = home.reader()?.connection(name)?;
    if args.purge {
        confirm(args, &summary)?;
    } else if summary.state == ConnectionState::Purging {
        return Err(StoreError::Purging(name.to_owned()).into());
    }
    let mut store = home.store()?;
    let leases = lease(&mut store, name)?;
    Vault::open(home.root())?.remove(name)?;
    if args.purge {
        let rows = store.purge(name, &leases)?;
        out.line(&format!("{} is forgotten: {rows} rows and its credentials are gone for good", visible(name)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let removed = store.set_removed(name, &leases);
    store.release(&leases)?;
    removed?;
    let stays = ("record with its history and gaps stays", "records with their history and gaps stay");
    let records = counted(summary.totals.records, stays.0, stays.1);
    out.line(&format!("{} is removed, its credentials are deleted", visible(name)))?;
    out.line(&format!(
        "  {records} in {}\n  `gleaner remove {} --purge` forgets them too",
        store.path().display(),
        visible(name)
    ))?;
    Ok(ExitCode::SUCCESS)
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

/// Whoever works on it is named.
pub(crate) fn lease(store: &mut Store, name: &str) -> Result<Vec<Lease>, CliError> {
    let holder = Holder::current().map_err(StoreError::Holder)?;
    match store.acquire(&[LeaseOn::Connection(name)], &holder, dates::now())? {
        Acquired::Yes { leases, .. } => Ok(leases),
        Acquired::Held(by) => Err(refused(RunError::Held(by), name)),
    }
}
