//! What a run shows: a live line for people, JSON lines for programs, and the account at its end.

use crate::args::collect::Interact;
use crate::error::{
    CliError, EXIT_CREDENTIALS, EXIT_FAILED, EXIT_GAPS, EXIT_INTERRUPTED, EXIT_NEEDS_OWNER, EXIT_PROVIDER,
};
use crate::terminal::output::{Output, Tone, counted, report_to_stderr};
use crate::terminal::prompt::{self, Prompt};
use crate::terminal::run_account;
use gleaner_app::{AppError, EndedRun, ErrorKind, dates, end_of_rest, how_to_give, renew, rest_text};
use gleaner_base::live_line::LiveLine;
use gleaner_base::outside::one_line;
use gleaner_engine::{Counts, Rest, TraceEvent, TrackChoice, WallTime};
use gleaner_protocol::{Interaction, SkipResult, TerminalReason, ViolationCode, Waiting};
use gleaner_runtime::{Control, Observer, RunReport, Saved};
use gleaner_store::Reader;
use serde_json::json;
use std::io::{self, Write};

use std::process::ExitCode;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How often a line is printed where nobody watches.
const PRINT_EVERY: Duration = Duration::from_secs(10);

/// Lines of stderr that are shown of a run that failed.
const STDERR_SHOWN: usize = 5;

/// How many of the things that were left out are shown one by one.
const SKIPS_SHOWN: u64 = 10;

/// How a run is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    /// What happens to questions.
    pub(crate) interact: Interact,
}

/// Shows a run while it goes on.
#[derive(Debug)]
pub(crate) struct View {
    name: String,
    shown: Shown,
    live: LiveLine,
    /// What to ask for where a question does not say.
    missing: Vec<String>,
    prompt: Option<Prompt>,
    orders: Sender<Control>,
    began: Instant,
    drawn: Instant,
    saved: Saved,
    pace: Option<String>,
    /// What the connector waits for, and until when.
    waiting: Option<(Waiting, WallTime)>,
    said: String,
    /// How often something was left out.
    skips: u64,
}

impl View {
    pub(crate) fn new(name: &str, shown: Shown, missing: Vec<String>, orders: Sender<Control>) -> Self {
        let now = Instant::now();
        Self {
            name: name.to_owned(),
            shown,
            live: LiveLine::new(!shown.quiet && !shown.json),
            missing,
            prompt: None,
            orders,
            began: now,
            drawn: now,
            saved: Saved::default(),
            pace: None,
            waiting: None,
            said: String::new(),
            skips: 0,
        }
    }

    fn line(&self) -> String {
        let counts = self.saved.counts;
        let per_second = (counts.collected() + counts.deleted) as f64 / self.began.elapsed().as_secs_f64().max(0.1);
        let mut parts = vec![self.name.clone()];
        if self.saved == Saved::default() {
            parts.push("nothing saved yet".to_owned());
        } else {
            parts.push(format!("records: {}  {per_second:.0}/s", counts.words()));
        }
        parts.extend((counts.gaps > 0).then(|| counted(counts.gaps, "gap", "gaps")));
        match self.waiting.as_ref().filter(|(_, until)| *until > dates::now()) {
            Some((waiting, until)) => parts.push(waiting.sentence(&dates::until(*until))),
            None => {
                parts.extend(self.pace.clone());
                parts.extend((!self.said.is_empty()).then(|| self.said.clone()));
            }
        }
        one_line(&parts.join("  "))
    }

    fn draw(&mut self) {
        if self.live.is_shown() {
            self.live.show(|| self.line());
        } else if !self.shown.quiet && !self.shown.json && self.drawn.elapsed() >= PRINT_EVERY {
            self.drawn = Instant::now();
            report_to_stderr(&self.line());
        }
    }

    /// What was left out is told, whoever watches. The first few one by one: a broken disk makes thousands.
    fn show_skip(&mut self, skip: &SkipResult) {
        self.print(&json!({
            "message_type": "skip", "stream": skip.stream, "reason": skip.reason, "message": skip.message,
        }));
        self.skips += 1;
        if self.shown.json || self.shown.quiet || self.skips > SKIPS_SHOWN + 1 {
            return;
        }
        self.live.clear();
        let what =
            skip.message.as_ref().or(skip.reason.as_ref()).map_or("the connector does not say why", String::as_str);
        let text = if self.skips > SKIPS_SHOWN { "more was left out; --json tells all of it" } else { what };
        report_to_stderr(&one_line(&format!("left out: {text}")));
    }

    fn print(&self, value: &serde_json::Value) {
        if self.shown.json {
            // That nobody reads it is found out by the last line.
            let _written = writeln!(io::stdout(), "{value}");
        }
    }
}

/// The records of a run for programs: what is durable, and nothing else.
pub(crate) fn counts_json(counts: &Counts) -> serde_json::Value {
    json!({
        "records_accepted": counts.collected(), "records_new": counts.new, "records_changed": counts.changed,
        "records_unchanged": counts.unchanged, "records_deleted": counts.deleted, "records_rejected": counts.rejected,
        "times_unreadable": counts.times_unreadable,
    })
}

/// Puts the fields of one object into another.
pub(crate) fn merge(into: &mut serde_json::Value, fields: serde_json::Value) {
    if let (Some(all), serde_json::Value::Object(fields)) = (into.as_object_mut(), fields) {
        all.extend(fields);
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // Gives the terminal back as it was.
        self.prompt = None;
    }
}

impl Observer for View {
    fn saved(&mut self, saved: Saved) {
        self.saved = saved;
        let mut line = json!({"message_type": "saved", "slices": saved.slices, "gaps": saved.counts.gaps});
        merge(&mut line, counts_json(&saved.counts));
        self.print(&line);
        self.draw();
    }

    fn said(&mut self, event: &TraceEvent) {
        match event {
            TraceEvent::Progress(progress) => {
                self.said.clone_from(&progress.message);
                if let Some(rate) = progress.collection_rate.valid() {
                    let (now, most) = (rate.effective_rate_per_min, rate.ceiling_rate_per_min);
                    self.pace = Some(format!("{now:.0} of at most {most:.0} requests/min"));
                }
                if let Some(waiting) = progress.waiting.valid() {
                    let until = waiting.as_ref().and_then(|waiting| WallTime::parse(&waiting.until));
                    self.waiting = waiting.clone().zip(until);
                }
                let rate = progress.collection_rate.valid().map(|rate| rate.effective_rate_per_min);
                let mut line = json!({
                    "message_type": "progress", "message": progress.message, "stream": progress.stream,
                    "rate_per_min": rate,
                });
                if let Some(waiting) = progress.waiting.valid() {
                    line["waiting"] = json!(waiting);
                }
                self.print(&line);
            }
            TraceEvent::Assistance(help) => {
                let text = format!("{} asks for help: {}", self.name, help.message);
                if !self.shown.json {
                    report_to_stderr(&one_line(&text));
                }
                self.print(&json!({"message_type": "assistance", "message": help.message}));
            }
            TraceEvent::Skip(skip) => self.show_skip(skip),
            TraceEvent::AssistanceStatus(_) => {}
        }
        self.draw();
    }

    fn asked(&mut self, question: &Interaction, id: i64) {
        let kind = question.kind.code();
        let (request, message) = (&question.request_id, &question.message);
        self.print(&json!({
            "message_type": "question", "id": id, "request_id": request, "kind": kind, "message": message,
            "timeout_seconds": question.timeout_seconds,
        }));
        self.live.clear();
        if self.shown.interact == Interact::Prompt {
            self.prompt = Some(prompt::ask(question.clone(), &self.missing, self.orders.clone()));
        } else if !self.shown.json {
            let text = one_line(&format!("{} asks: {message}", self.name));
            report_to_stderr(&format!("{text}\nanswer with: gleaner answer {id}"));
        }
    }

    fn withdrawn(&mut self, _request_id: &str) {
        self.prompt = None;
    }
}

/// What a person is told about the cooldown of a connection.
fn cooldown_text(ended: &EndedRun) -> Option<String> {
    let limited = ended.rest_before != Rest::No;
    let only = "this run tried only gaps with other reasons";
    match rest_text(ended.rest_after) {
        Some(lasts) => {
            let limited = if limited { format!("{only}; ") } else { String::new() };
            Some(format!("cooldown {lasts}: the provider rate-limited this connection; {limited}--now runs everything"))
        }
        None => limited.then(|| format!("{only}, because of a cooldown that is over now")),
    }
}

/// Says how the run ended, and with which code the program does.
pub(crate) fn finished(
    reader: &Reader,
    ended: &EndedRun,
    resources: &[String],
    json: bool,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let (name, report) = (ended.connection.as_str(), &ended.report);
    let outcome = &report.outcome;
    let gaps_open = reader.connection(name)?.totals.gaps_open();
    let now_missing = reader.missing(name)?;
    let helps = what_helps(report);
    let left_open = reader.left_open(name)?;
    let absent = absent(reader, name, resources)?;
    let is_complete = now_missing.wanted() == 0 && left_open.is_empty() && absent.is_empty();
    let is_missing_something = !is_complete || outcome.is_incomplete();
    let code = match exit_code(helps, is_missing_something, report.was_told_to_stop) {
        // It did what may be done meanwhile, and that was not everything.
        0 | EXIT_GAPS if ended.rest_before != Rest::No => EXIT_PROVIDER,
        code => code,
    };
    if json {
        let status = match outcome.reason {
            TerminalReason::Succeeded => "succeeded",
            TerminalReason::Cancelled => "cancelled",
            TerminalReason::BudgetReached => "deferred",
            _ => "failed",
        };
        let mut line = json!({
            "message_type": "run_finished", "run_id": report.run_id, "status": status, "gaps_open": gaps_open,
            "checkpoints_committed": reader.committed_streams(&report.run_id)?, "reason": outcome.reason.code(),
            "message": cause(report), "exit": outcome.exit.map(|exit| exit.to_string()), "stderr": outcome.stderr,
            "cooldown_until": end_of_rest(ended.rest_after).map(dates::rfc3339), "left_quarantine": report.left_quarantine,
            "missing": now_missing.total(), "quarantined": now_missing.quarantined, "left_open": left_open.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "resources_absent": absent,
        });
        merge(&mut line, counts_json(&outcome.counts));
        merge(&mut line, run_account::json(outcome));
        out.line(&line.to_string())?;
        return Ok(ExitCode::from(code));
    }
    account(report, name, gaps_open, now_missing.quarantined, out)?;
    for resource in &absent {
        out.line(&format!("  not stored, although this run asked for it: {}", one_line(resource)))?;
    }
    if !outcome.is_incomplete() {
        for line in &left_open {
            let helps = match line.asked_for {
                // Its own sentence names the command.
                Some(_) => String::new(),
                None => format!("; `{}` lists it again", one_line(&line.helps)),
            };
            out.line(&format!("  {} (an earlier run{helps})", one_line(&line.to_string())))?;
        }
    }
    if let Some(text) = cooldown_text(ended) {
        out.line(&format!("  {text}"))?;
    }
    if outcome.reason != TerminalReason::Succeeded {
        out.line(&format!("hint: {}", hint(report, helps, name, &ended.missing)))?;
    }
    Ok(ExitCode::from(code))
}

/// What the owner can do something about. A connector that asks where nobody can answer breaks the rules; but who can
/// help is its owner, and not its author.
fn what_helps(report: &RunReport) -> TerminalReason {
    let code = report.outcome.violation.as_ref().map(|violation| violation.code);
    let asked_in_vain = code == Some(ViolationCode::InteractionWithoutBinding);
    if asked_in_vain { TerminalReason::InteractionExpired } else { report.outcome.reason }
}

/// The last line where no run came to be: the same fields, and why not.
pub(crate) fn not_begun(error: &CliError, out: &mut Output) -> Result<(), CliError> {
    let until = match error {
        CliError::App(AppError { kind: ErrorKind::Resting(until), .. }) => *until,
        _ => None,
    };
    let mut line = json!({
        "message_type": "run_finished", "run_id": null, "status": "refused", "gaps_open": null,
        "checkpoints_committed": [], "reason": error.kind().1, "message": error.message(),
        "cooldown_until": until.map(dates::rfc3339),
    });
    merge(&mut line, counts_json(&Counts::default()));
    Ok(out.line(&line.to_string())?)
}

fn account(report: &RunReport, name: &str, gaps_open: u64, quarantined: u64, out: &mut Output) -> Result<(), CliError> {
    let outcome = &report.outcome;
    let has_failed = outcome.reason != TerminalReason::Succeeded;
    let tone = if has_failed { Tone::Bad } else { Tone::Strong };
    out.line(&out.paint(tone, &format!("{}: {}", one_line(name), one_line(&cause(report)))))?;
    if has_failed {
        let last = report.errors.lines().rev().take(STDERR_SHOWN).collect::<Vec<_>>();
        for line in last.into_iter().rev() {
            out.line(&out.paint(Tone::Quiet, &format!("  | {}", one_line(line))))?;
        }
    }
    out.line(&format!("  records: {}", outcome.counts.words()))?;
    let times = outcome.counts.times_unreadable;
    if times > 0 {
        out.line(&format!(
            "  {times} have a time that could not be read: stored, and not held against the time range"
        ))?;
    }
    if report.track == TrackChoice::Scoped {
        out.line(&format!("  {}", one_line(&asked_for_less(name))))?;
    }
    if gaps_open > 0 {
        let (are, them) = if gaps_open == 1 { ("gap is", "it") } else { ("gaps are", "them") };
        out.line(&format!("  {gaps_open} {are} open; `gleaner gaps {}` lists {them}", one_line(name)))?;
    }
    if quarantined > 0 {
        let (are, they) = if quarantined == 1 { ("record is", "it does") } else { ("records are", "they do") };
        out.line(&format!(
            "  {quarantined} {are} in quarantine, because {they} not fit the schema; `gleaner gaps {}` says why",
            one_line(name)
        ))?;
    }
    let left = report.left_quarantine;
    if left > 0 {
        let (records, they) = if left == 1 { ("record", "it fits") } else { ("records", "they fit") };
        out.line(&format!("  {left} {records} left quarantine: {they} the schema now"))?;
    }
    for line in run_account::lines(outcome) {
        out.line(&format!("  {}", one_line(&line)))?;
    }
    if report.interrupted_before > 0 {
        out.line("  the run before this one was interrupted; what it had saved is kept")?;
    }
    Ok(())
}

/// The records that `--resource` named and that are not stored.
fn absent<'a>(reader: &Reader, name: &str, resources: &'a [String]) -> Result<Vec<&'a str>, CliError> {
    let mut absent = Vec::new();
    for resource in resources {
        let Some((stream, key)) = resource.split_once('=') else { continue };
        if reader.record(name, stream, key)?.is_none() {
            absent.push(resource.as_str());
        }
    }
    Ok(absent)
}

/// Why the run is over, in the connector's own words.
fn cause(report: &RunReport) -> String {
    let outcome = &report.outcome;
    let violation = outcome.violation.as_ref().map(ToString::to_string);
    let error = report.store_error.as_ref().map(ToString::to_string);
    match outcome.reason {
        TerminalReason::Cancelled if report.was_told_to_stop => "Stopped on request.".to_owned(),
        TerminalReason::Cancelled if outcome.error.is_none() => "The connector cancelled the run.".to_owned(),
        _ => outcome.ended(violation.as_deref(), error.as_deref()).cause(),
    }
}

/// What a run that asked for less than all says about the rest.
fn asked_for_less(name: &str) -> String {
    format!("this run asked for less than all: the steady cursor is not moved, `gleaner run {name}` collects the rest")
}

/// What to do next, as exactly as we know it.
fn hint(report: &RunReport, reason: TerminalReason, name: &str, missing: &[String]) -> String {
    match reason {
        TerminalReason::InteractionExpired if missing.is_empty() => {
            let name = one_line(name);
            format!(
                "it asks something: run it on a terminal, or `gleaner run {name} --interact park` and `gleaner answer`"
            )
        }
        TerminalReason::CredentialsMissing | TerminalReason::InteractionExpired if !missing.is_empty() => {
            format!("missing is {}; {}", one_line(&missing.join(", ")), how_to_give(&one_line(name), missing))
        }
        TerminalReason::CredentialsRefused => {
            format!("`gleaner check {} --sign-in` asks for new ones and tries them", one_line(name))
        }
        TerminalReason::GrantExpired => renew(name),
        TerminalReason::ProtocolViolation => {
            let violation = report.outcome.violation.as_ref();
            violation.map_or_else(|| reason.wording().next, |violation| violation.wording().next).to_owned()
        }
        other => other.wording().next.to_owned(),
    }
}

/// What the program ends with.
pub(crate) fn exit_code(reason: TerminalReason, is_missing_something: bool, was_told_to_stop: bool) -> u8 {
    match reason {
        TerminalReason::Cancelled if was_told_to_stop => EXIT_INTERRUPTED,
        TerminalReason::Succeeded if is_missing_something => EXIT_GAPS,
        TerminalReason::Succeeded => 0,
        TerminalReason::BudgetReached => EXIT_GAPS,
        TerminalReason::Cancelled
        | TerminalReason::GrantExpired
        | TerminalReason::InteractionExpired
        | TerminalReason::CredentialsMissing => EXIT_NEEDS_OWNER,
        TerminalReason::SourceCooldown => EXIT_PROVIDER,
        TerminalReason::CredentialsRefused => EXIT_CREDENTIALS,
        _ => EXIT_FAILED,
    }
}
