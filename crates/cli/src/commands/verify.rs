//! `gleaner verify`: checks the store and names every row that is damaged.

use crate::args::collect::VerifyArgs;
use crate::error::{CliError, EXIT_FAILED};
use crate::home::Home;
use crate::output::{Output, visible};
use serde_json::json;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

pub(crate) fn run(args: &VerifyArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let reader = Home::find(&args.home)?.reader()?;
    let live = io::stderr().is_terminal() && !args.json;
    let mut versions = 0;
    let damage = reader.verify(|seen, total| {
        versions = seen;
        if live {
            let _shown = write!(io::stderr(), "\r\x1b[K{seen} of {total} versions");
        }
    })?;
    if live {
        let _shown = write!(io::stderr(), "\r\x1b[K");
    }
    for fault in &damage {
        let line = json!({"table": fault.table, "row": fault.row, "what": fault.what}).to_string();
        out.line(&if args.json { line } else { visible(&fault.to_string()) })?;
    }
    if damage.is_empty() {
        if !args.json {
            out.line(&format!(
                "the store is whole: {versions} versions. Checked: pages, tables, indexes, views and triggers; records, \
                 gaps and cursors by their hashes; connections, runs, events and quarantine by form and reference; \
                 counters and commits"
            ))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !args.json {
        out.line("hint: copy the store before anything else, then restore a backup; nothing was changed")?;
    }
    Ok(ExitCode::from(EXIT_FAILED))
}
