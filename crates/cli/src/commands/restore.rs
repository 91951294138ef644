//! `gleaner restore`: a backup becomes the store again; what was there is kept.

use crate::args::care::RestoreArgs;
use crate::copy_progress::CopyProgress;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, visible};
use gleaner_store::{HeldBy, Holder, RestoreOutcome, StoreError};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(args: &RestoreArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let home = Home::find(&args.home)?;
    match &args.file {
        Some(file) => restore(args, file, &home, out),
        None => accept(args, &home, out),
    }
}

fn restore(args: &RestoreArgs, file: &Path, home: &Home, out: &mut Output) -> Result<ExitCode, CliError> {
    let store = home.store_path();
    if let (Ok(one), Ok(other)) = (fs::canonicalize(file), fs::canonicalize(&store))
        && one == other
    {
        let hint = "give a file that `gleaner backup` wrote";
        return Err(CliError::usage(format!("{} is the store itself", file.display()), hint));
    }
    home.make_root()?;
    let holder = Holder::current().map_err(StoreError::Holder)?;
    let now = dates::now();
    // As a part of a file name, without colons.
    let stamp = dates::rfc3339(now).replace([':', '-'], "");
    let progress = CopyProgress::new(args.quiet || args.json);
    let shown = |step, done, total| progress.show(step, done, total);
    let restored = gleaner_store::restore(file, &store, &holder, now, &stamp, shown);
    progress.clear();
    let (kept, was_older) = match restored? {
        RestoreOutcome::Restored { kept, was_older } => (kept, was_older),
        RestoreOutcome::Held(by) => return Err(held(&by)),
    };
    if args.json {
        let line = json!({"message_type": "restored", "file": file, "kept": kept, "was_older": was_older});
        return Ok(out.line(&line.to_string()).map(|()| ExitCode::SUCCESS)?);
    }
    out.line(&visible(&format!("restored {}; it was found whole", file.display())))?;
    if let Some(kept) = &kept {
        out.line(&visible(&format!("  the store before it is kept: {}", kept.display())))?;
    }
    if was_older {
        out.line("  it is older than what was here: runs go on from its cursors and collect the rest again")?;
    }
    out.line("  credentials and config.toml are as they were")?;
    Ok(ExitCode::SUCCESS)
}

fn held(by: &HeldBy) -> CliError {
    CliError::Held {
        message: visible(&format!(
            "process {} is at work ({}), since {}: nothing was restored",
            by.pid,
            by.lease,
            dates::rfc3339(by.since)
        )),
        hint: "wait for it, or end that process".to_owned(),
    }
}

/// The owner says that the store is the one to go on with.
fn accept(args: &RestoreArgs, home: &Home, out: &mut Output) -> Result<ExitCode, CliError> {
    // Where there is none, nothing is made.
    let was_older = home.reader()?.check_not_restored().is_err();
    home.store()?.accept_restored()?;
    if args.json {
        let line = json!({"message_type": "accepted", "was_older": was_older});
        return Ok(out.line(&line.to_string()).map(|()| ExitCode::SUCCESS)?);
    }
    out.line(if was_older {
        "accepted: runs go on from the cursors of this store and collect the rest again"
    } else {
        "nothing to accept: this store is not older than what was here"
    })?;
    Ok(ExitCode::SUCCESS)
}
