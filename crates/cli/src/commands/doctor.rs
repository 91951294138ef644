//! `gleaner doctor`: what a run depends on, looked at, with what to do about it.

use crate::args::collect::PrintArgs;
use crate::error::{CliError, EXIT_FAILED};
use crate::terminal::output::{Output, Tone, wrap};
use gleaner_app::{Check, CheckVerdict};
use gleaner_base::outside;
use gleaner_store::Reader;
use serde_json::json;
use std::process::ExitCode;

/// Where the text of a check begins.
const INDENT: usize = 8;

pub(crate) fn run(args: &PrintArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let (version, (schema, sqlite)) = (env!("CARGO_PKG_VERSION"), Reader::versions());
    let checks = args.home.app()?.doctor();
    let width = out.width().clamp(40, 100) - INDENT;
    if args.json {
        let line = json!({"message_type": "program", "version": version, "sqlite": sqlite, "schema": schema});
        out.line(&line.to_string())?;
    } else {
        out.line(&format!("gleaner {version}, SQLite {sqlite}, schema {schema}"))?;
    }
    for check in &checks {
        let Check { name, verdict, what, hint } = check;
        if args.json {
            let line = json!({
                "message_type": "check", "name": name, "verdict": verdict.word(), "what": what, "hint": hint,
            });
            out.line(&line.to_string())?;
            continue;
        }
        let word = format!("{:<8}", verdict.word());
        let word = out.paint(if *verdict == CheckVerdict::Well { Tone::Quiet } else { Tone::Bad }, &word);
        let hint = hint.iter().map(|hint| format!("hint: {hint}"));
        let texts = std::iter::once(format!("{name}: {what}")).chain(hint);
        let lines = texts.flat_map(|text| wrap(&outside::lines(&text), width)).collect::<Vec<_>>();
        for (at, line) in lines.iter().enumerate() {
            let (word, line) =
                if at == 0 { (word.as_str(), strong(line, name, out)) } else { ("        ", line.clone()) };
            out.line(&format!("{word}{line}"))?;
        }
    }
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (failed, warnings) = (count(CheckVerdict::Failed), count(CheckVerdict::Warning));
    if !args.json {
        out.line(&format!("{} checks: {failed} failed, {warnings} warnings", checks.len()))?;
    }
    Ok(if failed > 0 { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
}

/// The name of a check stands out where it begins a line.
fn strong(line: &str, name: &str, out: &Output) -> String {
    let rest = line.strip_prefix(name);
    rest.map_or_else(|| line.to_owned(), |rest| format!("{}{rest}", out.paint(Tone::Strong, name)))
}
