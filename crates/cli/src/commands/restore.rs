//! `gleaner restore`: a backup becomes the store again; what was there is kept.

use crate::args::care::RestoreArgs;
use crate::copy_progress::CopyProgress;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, visible};
use gleaner_store::{HeldBy, Holder, RestoreOutcome, StoreError};
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
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
    let (kept, was_older, settings) = match restored? {
        RestoreOutcome::Restored { kept, was_older, settings } => (kept, was_older, settings),
        RestoreOutcome::Held(by) => return Err(held(&by)),
    };
    let config = put_back(settings.as_deref(), home)?;
    if args.json {
        let line = json!({
            "message_type": "restored", "file": file, "kept": kept, "was_older": was_older, "config": config,
        });
        return Ok(out.line(&line.to_string()).map(|()| ExitCode::SUCCESS)?);
    }
    out.line(&visible(&format!("restored {}; it was found whole", file.display())))?;
    if let Some(kept) = &kept {
        out.line(&visible(&format!("  the store before it is kept: {}", kept.display())))?;
    }
    if was_older {
        out.line("  it is older than what was here: runs go on from its cursors and collect the rest again")?;
    }
    let config = if config { "config.toml came with it; credentials" } else { "config.toml and credentials" };
    out.line(&format!("  {config} are as they were"))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes `config.toml` where there is none. One that is there is newer, and its owner's.
fn put_back(settings: Option<&str>, home: &Home) -> Result<bool, CliError> {
    let Some(text) = settings else { return Ok(false) };
    let path = home.config_path();
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    match made.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(CliError::Failed {
            message: format!("the store was restored, but {}: {error}", path.display()),
            hint: "check that the data root is yours and has space".to_owned(),
        }),
    }
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
