//! `gleaner backup`: the store and the settings in one file, also while a run goes on.

use crate::args::maintenance::BackupArgs;
use crate::error::CliError;
use crate::terminal::output::{Output, report_to_stderr};
use crate::terminal::progress::show_copy;
use gleaner_base::live_line::LiveLine;
use gleaner_base::outside::one_line;
use serde_json::json;

pub(crate) fn run(args: &BackupArgs, out: &mut Output) -> Result<(), CliError> {
    let progress = LiveLine::new(!args.quiet && !args.json);
    let written = args.home.app()?.backup(&args.file, |step, done, total| show_copy(&progress, step, done, total));
    progress.clear();
    let written = written?;
    if written.left_config_out {
        report_to_stderr("warning: config.toml is not right and is left out; `gleaner doctor` says why");
    }
    if args.json {
        let line = json!({
            "message_type": "backup", "file": args.file, "bytes": written.bytes, "verified": true,
            "config": written.has_config, "credentials": false,
        });
        out.line(&line.to_string())?;
    } else {
        let file = one_line(&args.file.display().to_string());
        let also = if written.has_config { " and config.toml" } else { "" };
        out.line(&format!("{file}: the store{also}, {} KiB, read back and found whole", written.bytes.div_ceil(1024)))?;
        report_to_stderr("not in it: credentials (secrets/), and what was learned about paces");
    }
    Ok(())
}
