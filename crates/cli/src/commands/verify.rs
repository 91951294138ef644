//! `gleaner verify`: checks the store, names every row that is damaged, and what an earlier version left in doubt.

use crate::args::collect::PrintArgs;
use crate::error::{CliError, EXIT_FAILED, EXIT_GAPS};
use crate::terminal::output::Output;
use gleaner_app::{AppError, ErrorKind};
use gleaner_base::live_line::LiveLine;
use gleaner_base::outside::one_line;
use gleaner_store::{Doubt, DoubtAbout};
use serde_json::{Value, json};
use std::process::ExitCode;

pub(crate) fn run(args: &PrintArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let app = args.home.app()?;
    let line = LiveLine::new(!args.json);
    let mut versions = 0;
    let verified = app.verify(|seen, total| {
        versions = seen;
        line.show(|| format!("{seen} of {total} versions"));
    });
    if let (true, Err(error @ AppError { kind: ErrorKind::Store, .. })) = (args.json, &verified) {
        out.line(&json!({"table": null, "row": null, "what": error.to_string()}).to_string())?;
    }
    let (damage, doubts) = verified?;
    drop(line);
    for fault in &damage {
        let line = json!({"table": fault.table, "row": fault.row, "what": fault.what}).to_string();
        out.line(&if args.json { line } else { one_line(&fault.to_string()) })?;
    }
    if !damage.is_empty() {
        if !args.json {
            out.line("hint: copy the store before anything else, then restore a backup; nothing was changed")?;
        }
        return Ok(ExitCode::from(EXIT_FAILED));
    }
    if !args.json {
        out.line(&format!(
            "the store is whole: {versions} versions. Checked: pages, tables, indexes, views and triggers; records, gaps \
             and the positions of cursors by their hashes; connections, streams, runs, listings, events and quarantine \
             by form and reference; counters of streams; commits. Not checked: counters of runs, whether events or \
             listings are gone, and a changed value that still has the right form in a row without a hash"
        ))?;
    }
    for doubt in &doubts {
        out.line(&if args.json { doubt_json(doubt).to_string() } else { doubt_text(doubt) })?;
    }
    Ok(if doubts.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_GAPS) })
}

fn doubt_text(doubt: &Doubt) -> String {
    let (name, stream) = (one_line(&doubt.connection), one_line(&doubt.stream));
    let what = match &doubt.about {
        DoubtAbout::Cursor { track } => format!(
            "an earlier version of Gleaner moved the {track} cursor; a run with a narrower scope may have moved it past records"
        ),
        DoubtAbout::ClosedGaps { gaps } => format!("{gaps} closed gaps have no record"),
        DoubtAbout::Hydrated { claimed, stored } => {
            format!("the connector reported {claimed} records as collected; {stored} are stored")
        }
    };
    format!("{name} {stream}: {what}\n    run: gleaner repair {name}")
}

fn doubt_json(doubt: &Doubt) -> Value {
    let (kind, detail) = match &doubt.about {
        DoubtAbout::Cursor { track } => ("cursor", json!({ "track": track })),
        DoubtAbout::ClosedGaps { gaps } => ("closed_gaps", json!({ "gaps": gaps })),
        DoubtAbout::Hydrated { claimed, stored } => ("hydrated", json!({ "claimed": claimed, "stored": stored })),
    };
    json!({ "doubt": kind, "connection": doubt.connection, "stream": doubt.stream, "detail": detail })
}
