//! `gleaner backup`: the store and the settings in one file, also while a run goes on.

use crate::args::care::BackupArgs;
use crate::config::Config;
use crate::copy_progress::CopyProgress;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, report_to_stderr, visible};
use serde_json::json;
use std::fs;
use std::process::ExitCode;

pub(crate) fn run(args: &BackupArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let home = Home::find(&args.home)?;
    let reader = home.reader()?;
    let settings = settings(&home);
    let progress = CopyProgress::new(args.quiet || args.json);
    let shown = |step, done, total| progress.show(step, done, total);
    let written = reader.backup(&args.file, settings.as_deref(), shown);
    progress.clear();
    let bytes = written?;
    if args.json {
        let line = json!({
            "message_type": "backup", "file": args.file, "bytes": bytes, "verified": true,
            "config": settings.is_some(), "credentials": false,
        });
        out.line(&line.to_string())?;
    } else {
        let file = visible(&args.file.display().to_string());
        let also = if settings.is_some() { " and config.toml" } else { "" };
        out.line(&format!("{file}: the store{also}, {} KiB, read back and found whole", bytes.div_ceil(1024)))?;
        report_to_stderr("not in it: credentials (secrets/), and what was learned about paces");
    }
    Ok(ExitCode::SUCCESS)
}

/// What `config.toml` says, if it is right. One that is not may hold anything, also a secret.
fn settings(home: &Home) -> Option<String> {
    let path = home.config_path();
    if !path.exists() {
        return None;
    }
    let text = Config::load(home).ok().and_then(|_| fs::read_to_string(&path).ok());
    if text.is_none() {
        report_to_stderr("warning: config.toml is not right and is left out; `gleaner doctor` says why");
    }
    text
}
