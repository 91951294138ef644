//! `gleaner restore`: a backup becomes the store again; what was there is kept.

use crate::args::maintenance::RestoreArgs;
use crate::error::CliError;
use crate::terminal::output::Output;
use crate::terminal::progress::show_copy;
use gleaner_app::{App, Restored};
use gleaner_base::live_line::LiveLine;
use gleaner_base::outside::one_line;
use serde_json::json;
use std::path::Path;

pub(crate) fn run(args: &RestoreArgs, out: &mut Output) -> Result<(), CliError> {
    let app = args.home.app()?;
    match &args.file {
        Some(file) => restore(args, file, &app, out)?,
        None => accept(args, &app, out)?,
    }
    Ok(())
}

fn restore(args: &RestoreArgs, file: &Path, app: &App, out: &mut Output) -> Result<(), CliError> {
    let progress = LiveLine::new(!args.quiet && !args.json);
    let restored = app.restore(file, |step, done, total| show_copy(&progress, step, done, total));
    progress.clear();
    let Restored { kept, was_older, put_config_back } = restored?;
    if args.json {
        let line = json!({
            "message_type": "restored", "file": file, "kept": kept, "was_older": was_older, "config": put_config_back,
        });
        return Ok(out.line(&line.to_string())?);
    }
    out.line(&one_line(&format!("restored {}; it was found whole", file.display())))?;
    if let Some(kept) = &kept {
        out.line(&one_line(&format!("  the store before it is kept: {}", kept.display())))?;
    }
    if was_older {
        out.line("  it is older than what was here: runs go on from its cursors and collect the rest again")?;
    }
    let config = if put_config_back { "config.toml came with it; credentials" } else { "config.toml and credentials" };
    Ok(out.line(&format!("  {config} are as they were"))?)
}

/// The owner says that the store is the one to go on with.
fn accept(args: &RestoreArgs, app: &App, out: &mut Output) -> Result<(), CliError> {
    let was_older = app.accept_restored()?;
    if args.json {
        return Ok(out.line(&json!({"message_type": "accepted", "was_older": was_older}).to_string())?);
    }
    Ok(out.line(if was_older {
        "accepted: runs go on from the cursors of this store and collect the rest again"
    } else {
        "nothing to accept: this store is not older than what was here"
    })?)
}
