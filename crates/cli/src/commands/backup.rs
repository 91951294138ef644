//! `gleaner backup`: the store in one file, also while a run goes on.

use crate::args::care::BackupArgs;
use crate::copy_progress::CopyProgress;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, report_to_stderr, visible};
use serde_json::json;
use std::process::ExitCode;

pub(crate) fn run(args: &BackupArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let reader = Home::find(&args.home)?.reader()?;
    let progress = CopyProgress::new(args.quiet || args.json);
    let written = reader.backup(&args.file, |step, done, total| progress.show(step, done, total));
    progress.clear();
    let bytes = written?;
    if args.json {
        let line = json!({
            "message_type": "backup", "file": args.file, "bytes": bytes, "verified": true, "credentials": false,
        });
        out.line(&line.to_string())?;
    } else {
        let file = visible(&args.file.display().to_string());
        out.line(&format!("{file}: {} KiB, read back and found whole", bytes.div_ceil(1024)))?;
        report_to_stderr("not in it: credentials (secrets/), config.toml and what was learned about paces");
    }
    Ok(ExitCode::SUCCESS)
}
