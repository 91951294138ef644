//! `gleaner conformance`: checks any connector program against the protocol.

use crate::args::collect::ConformanceArgs;
use crate::error::{CliError, EXIT_FAILED};
use crate::terminal::output::{Output, Tone, report_to_stderr};
use gleaner_app::{parse_manifest, read_manifest};
use gleaner_base::outside::one_line;
use gleaner_conformance::{CheckResult, Finding, Limits, Subject, Verdict};
use gleaner_protocol::Auth;
use gleaner_runtime::Environment;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

pub(crate) fn run(args: &ConformanceArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let subject = subject(args)?;
    let live = io::stderr().is_terminal();
    let report = gleaner_conformance::check(&subject, &mut |finding| {
        if let Finding::Start(name) = finding
            && live
        {
            report_to_stderr(&format!("starting it: {name}"));
        }
    });
    for result in &report.checks {
        let line = if args.json { json(result)? } else { text(result, out) };
        if args.json || !matches!(result.verdict, Verdict::Passed) || args.verbose {
            out.line(&line)?;
        }
    }
    if !args.json {
        let count = |is: fn(&Verdict) -> bool| report.checks.iter().filter(|check| is(&check.verdict)).count();
        let passed = count(|verdict| matches!(verdict, Verdict::Passed));
        let failed = count(|verdict| matches!(verdict, Verdict::Failed { .. }));
        let skipped = count(|verdict| matches!(verdict, Verdict::Skipped { .. }));
        out.line(&format!(
            "{passed} passed, {failed} failed, {skipped} skipped; kill points chosen by --seed {}",
            report.seed
        ))?;
        if !report.is_conclusive() {
            out.line("hint: the connector did not get through a whole run, so little could be checked")?;
        }
    }
    let good = report.is_clean() && report.is_conclusive();
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

fn subject(args: &ConformanceArgs) -> Result<Subject, CliError> {
    let manifest = args.manifest.as_deref().map(read_manifest).transpose()?.map(|(text, _)| text);
    if manifest.is_none() && args.streams.is_empty() {
        let hint = "give --manifest FILE, or name what to ask for with --stream";
        return Err(CliError::usage("without a manifest it is not known what to ask for", hint));
    }
    let parsed = manifest.as_deref().and_then(|text| parse_manifest(text).ok());
    let signs_in = parsed.iter().flat_map(|manifest| manifest.auth.iter().flat_map(Auth::names)).map(str::to_owned);
    let declared = parsed.iter().flat_map(|manifest| manifest.environment_variables.iter().cloned());
    let declared = declared.chain(signs_in).collect::<Vec<_>>();
    let ourselves = std::env::current_exe()?.into_os_string();
    let word = |word: &str| vec![ourselves.clone(), OsString::from(word)];
    Ok(Subject {
        command: args.command.clone(),
        manifest,
        streams: args.streams.clone(),
        environment: Environment::for_connector(std::env::vars_os(), &declared),
        secrets: Vec::new(),
        provider_variable: args.provider_variable.clone(),
        folder: None,
        scratch: None,
        guard: word("guard"),
        exec: word("guard-exec"),
        limits: Limits::default(),
        seed: args.seed,
    })
}

fn json(result: &CheckResult) -> Result<String, CliError> {
    Ok(serde_json::to_string(result).map_err(io::Error::from)?)
}

fn text(result: &CheckResult, out: &Output) -> String {
    let (word, tone, detail) = match &result.verdict {
        Verdict::Passed => ("ok", Tone::Plain, String::new()),
        Verdict::Warned { what, line, hint } => ("look", Tone::Limit, detail(what, *line, hint)),
        Verdict::Failed { what, line, hint } => ("FAILED", Tone::Bad, detail(what, *line, hint)),
        Verdict::Skipped { why } => ("skipped", Tone::Quiet, format!("\n        {}", one_line(why))),
    };
    format!("{}  {}  {}{detail}", out.paint(tone, &format!("{word:<7}")), result.id, result.title)
}

fn detail(what: &str, line: Option<u64>, hint: &str) -> String {
    let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
    format!("\n         {place}{}\n         hint: {}", one_line(what), one_line(hint))
}
