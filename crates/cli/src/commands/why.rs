//! `gleaner why`: why a connection is not running, not faster, not complete, and what comes next.
//!
//! At most twelve lines, each from evidence in the store and none from a guess. A stop by our own budget and a
//! service that pushed back are told apart everywhere.

use crate::args::inspect::WhyArgs;
use crate::commands::why_missing;
use crate::error::CliError;
use crate::terminal::output::{Output, Tone};
use crate::terminal::run_view::merge;
use gleaner_app::{ConnectionView, Explained, Outlook, dates, renew};
use gleaner_base::outside::{one_line, shortened};
use gleaner_engine::{BACK_OFF_FROM, Finding, Grade, Rest, WallTime, is_failure};
use gleaner_protocol::{CircuitState, RecoveryAction, TerminalReason};
use gleaner_store::{ConnectionState, HeldBy, OpenQuestion, RunSummary};
use serde_json::{Value, json};

/// What fits on a small screen with room to spare.
const LINES_MAX: usize = 12;
/// Of a text from outside, so much is shown: a line stays a line.
const QUOTED_CHARS: usize = 40;
/// Of the cause of a failure, so much: it is what its owner asks for.
const CAUSE_CHARS: usize = 200;
const MS_PER_MIN: f64 = 60_000.0;

/// One thing that is known.
pub(super) struct Line {
    /// What it is about, in the words of the table and of JSON.
    about: &'static str,
    text: String,
    facts: Value,
}

impl Line {
    pub(super) const fn new(about: &'static str, text: String, facts: Value) -> Self {
        Self { about, text, facts }
    }
}

/// Everything that is looked at.
struct Known {
    view: ConnectionView,
    outlook: Outlook,
    /// What only the owner can do something about.
    needs_owner: Vec<Finding>,
    /// Whether a service runs, so that something begins by itself.
    is_served: bool,
}

pub(crate) fn run(args: &WhyArgs, out: &mut Output) -> Result<(), CliError> {
    let Explained { view, streams, left_open, service } = args.print.home.app()?.explain(&args.connection)?;
    let known = Known::new(view, service.is_some());
    let mut lines = known.not_running();
    lines.extend(known.pace());
    lines.extend(known.circuit());
    lines.extend(why_missing::lines(&streams, left_open, &known.view.evidence));
    // What comes next is never the line that is left out.
    lines.truncate(LINES_MAX - 1);
    lines.push(known.next());
    let mut before = "";
    for line in &lines {
        if args.print.json {
            let about = line.about.replace(' ', "_");
            let mut value = json!({"connection": args.connection, "about": about, "message": line.text});
            merge(&mut value, line.facts.clone());
            out.line(&value.to_string())?;
            continue;
        }
        let about = if line.about == before { "" } else { line.about };
        before = line.about;
        let about = out.paint(Tone::Strong, &format!("{about:<12}"));
        out.line(&format!("{about} {}", line.text))?;
    }
    Ok(())
}

impl Known {
    fn new(view: ConnectionView, is_served: bool) -> Self {
        let findings = view.health.iter().flat_map(|health| &health.findings);
        // Questions, rests and rows of failures have lines of their own.
        let has_no_line = |finding: &Finding| {
            matches!(finding, Finding::PermissionOver | Finding::OwnerAction(_) | Finding::LastRunFailed(_))
        };
        let needs_owner = findings.filter(|finding| finding.grade() == Grade::NeedsOwner && has_no_line(finding));
        Self { needs_owner: needs_owner.cloned().collect(), outlook: view.outlook(), is_served, view }
    }

    fn not_running(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        lines.extend(self.view.holder.as_ref().map(|by| running(by, self.view.now)));
        lines.extend(self.waits());
        lines.extend(self.view.questions.first().map(asks));
        lines.extend(self.needs_owner.iter().map(|finding| self.needs(finding)));
        let state = match self.view.evidence.summary.state {
            ConnectionState::Active => None,
            ConnectionState::Paused => Some(("You paused it.", "paused")),
            ConnectionState::Removed => Some(("You removed it: it is no longer collected.", "removed")),
            ConnectionState::Purging => Some(("You removed it, and its data is being deleted.", "purging")),
        };
        lines.extend(state.map(|(text, code)| Line::new("not running", text.to_owned(), json!({"code": code}))));
        lines.extend(self.rests());
        if self.view.evidence.equal_failures >= BACK_OFF_FROM {
            let failures = self.view.evidence.equal_failures;
            let text = format!("It failed the same way {failures} times in a row.");
            lines.push(Line::new("not running", text, json!({"code": "failing", "failures": failures})));
        }
        if self.view.holder.is_some() {
            // What holds back the next run is told beside the one that goes on.
            lines.iter_mut().filter(|line| line.about == "not running").for_each(|line| line.about = "running");
        }
        if lines.is_empty() {
            let text = "Nothing holds it back, and no run is going on.".to_owned();
            lines.push(Line::new("not running", text, json!({"code": "idle"})));
        }
        if let (Some(run), None) = (&self.view.evidence.open_run, &self.view.holder) {
            let (id, records) = (one_line(&run.run_id), run.records_words());
            let text = format!("Run {id} was interrupted: its process is gone. Records it saved: {records}.");
            lines.push(Line::new("last run", text, json!({"code": "interrupted", "run_id": run.run_id})));
        } else if let Some(run) = &self.view.evidence.last_run {
            lines.push(self.ended(run));
        }
        lines
    }

    fn needs(&self, finding: &Finding) -> Line {
        let text = match finding {
            Finding::OwnerAction(action) => {
                let said = self.view.evidence.last_run.as_ref().map(|run| run.skips_told().1).unwrap_or_default();
                let said = said.into_iter().next().map(|told| format!(": {}", quoted(&told.text))).unwrap_or_default();
                format!("{}{said}", action.wording().what.trim_end_matches('.'))
            }
            // The connector's own words are in the line about the last run.
            Finding::LastRunFailed(reason) => reason.wording().what.to_owned(),
            other => {
                let sentence = other.sentence(dates::rfc3339);
                let mut letters = sentence.chars();
                letters.next().map(|first| format!("{}{}.", first.to_uppercase(), letters.as_str())).unwrap_or_default()
            }
        };
        Line::new("needs you", text, json!({"code": finding.code()}))
    }

    /// What to do about what only the owner can do something about.
    fn what_helps(&self) -> Option<String> {
        let name = one_line(self.view.name());
        Some(match self.needs_owner.first()? {
            Finding::PermissionOver => format!("Permission: {}.", renew(self.view.name())),
            Finding::OwnerAction(RecoveryAction::ManualActionRequired) => {
                format!("{} `gleaner run {name}` runs it.", RecoveryAction::ManualActionRequired.wording().next)
            }
            Finding::LastRunFailed(TerminalReason::InteractionExpired) => {
                format!("`gleaner run {name}`, when you can answer.")
            }
            _ => format!("`gleaner check {name} --sign-in` asks for new credentials; then `gleaner run {name}`."),
        })
    }

    /// What the run waits for, while it does.
    fn waits(&self) -> Option<Line> {
        let (waiting, until) = self.view.waits()?;
        let text = format!("It is {}.", waiting.sentence(&dates::until(until)));
        let facts = json!({"code": "waiting", "reason": waiting.reason, "until": dates::rfc3339(until)});
        Some(Line::new("not running", text, facts))
    }

    fn rests(&self) -> Option<Line> {
        match self.view.rest {
            Rest::No => None,
            Rest::Until { until, why, cycles } => {
                let text = format!("It is waiting until {}: {}", dates::until(until), why.wording().what);
                let until = dates::rfc3339(until);
                let facts = json!({"code": "resting", "reason": why.code(), "until": until, "rests_in_a_row": cycles});
                Some(Line::new("not running", text, facts))
            }
            Rest::NeedsAttention { why, cycles } => {
                let text = format!("Rested {cycles} times in a row: {}", why.wording().what);
                let facts = json!({"code": "rested_too_often", "reason": why.code(), "rests_in_a_row": cycles});
                Some(Line::new("not running", text, facts))
            }
        }
    }

    fn ended(&self, run: &RunSummary) -> Line {
        let ago = run.ended_at.map(|ended| dates::span(self.view.now.since(ended))).unwrap_or_default();
        let cause = run.ended().map_or_else(|| "How it ended is not known.".to_owned(), |ended| ended.cause());
        let facts = json!({
            "code": run.reason.map(TerminalReason::code), "run_id": run.run_id, "error_code": run.error_code,
            "ended_at": run.ended_at.map(dates::rfc3339),
        });
        Line::new("last run", format!("{ago} ago: {}", shortened(&cause, CAUSE_CHARS)), facts)
    }

    fn pace(&self) -> Vec<Line> {
        // While it waits it does not ask at all.
        if self.waits().is_some() {
            return Vec::new();
        }
        let Some(rate) = &self.view.evidence.rate else {
            let text = "Its pace is not known: no connector of it has reported one.".to_owned();
            return vec![Line::new("not faster", text, json!({"code": "not_reported"}))];
        };
        let (now, ceiling) = (rate.effective_rate_per_min, rate.ceiling_rate_per_min);
        let is_fastest = now >= ceiling;
        let fastest = if is_fastest { "that is its ceiling of" } else { "its ceiling is" };
        let text = format!("It asks {} times a minute; {fastest} {}.", number(now), number(ceiling));
        let facts = json!({
            "code": if is_fastest { "at_ceiling" } else { "below_ceiling" },
            "interval_ms": rate.current_interval_ms, "rate_per_min": now,
            "ceiling_interval_ms": rate.ceiling_interval_ms, "ceiling_rate_per_min": ceiling,
        });
        let mut lines = vec![Line::new("not faster", text, facts)];
        if let Some(backoff) = rate.last_backoff.filter(|_| !is_fastest) {
            let slowed = number(MS_PER_MIN / backoff.at_interval_ms);
            let text = format!("It last slowed down to {slowed} a minute: {}.", backoff.reason.because());
            lines.push(Line::new("not faster", text, json!({"code": "slowed_down", "last_backoff": backoff})));
        }
        lines
    }

    fn circuit(&self) -> Option<Line> {
        let change = self.view.evidence.circuit.as_ref()?.circuit;
        let state = match change.state {
            CircuitState::Closed => return None,
            CircuitState::HalfOpen => "It asks with single careful requests",
            CircuitState::Open => "It stopped asking for a while",
        };
        let why = change.reason.because();
        let facts = json!({"code": "circuit", "state": change.state.code(), "reason": change.reason.code()});
        Some(Line::new("not faster", format!("{state}: {why}."), facts))
    }

    fn next(&self) -> Line {
        let name = one_line(self.view.name());
        let last = self.view.evidence.last_run.as_ref().and_then(RunSummary::ended);
        let text = if let Some(question) = self.view.questions.first() {
            format!("Answer the question: `gleaner answer {}`.", question.id)
        } else if self.view.holder.is_some() {
            "The run continues.".to_owned()
        } else if matches!(self.view.evidence.summary.state, ConnectionState::Removed | ConnectionState::Purging) {
            "Nothing: `gleaner add` adds it again.".to_owned()
        } else if let Some(helps) = self.what_helps() {
            helps
        } else if let Some(at) = self.outlook.at().filter(|_| self.is_served) {
            let when = self.outlook.plan.zone.show(at.max(self.view.now));
            one_line(&format!("The service runs it at {when}: {}.", self.outlook.why().trim_end_matches('.')))
        } else if self.is_served && self.outlook.what_to_do().is_some() {
            let todo = self.outlook.what_to_do().unwrap_or_default();
            one_line(&format!("No automatic run: {}. To do: {todo}", self.outlook.why().trim_end_matches('.')))
        } else if self.view.evidence.summary.state == ConnectionState::Paused {
            format!("`gleaner resume {name}`, then `gleaner run {name}`.")
        } else if let Rest::Until { until, .. } = self.view.rest {
            format!("`gleaner run {name}` after {}; --now does not wait.", dates::rfc3339(until))
        } else if let Some(ended) = last.filter(|ended| is_failure(ended.reason)) {
            format!("{} `gleaner run {name}` starts it.", ended.next())
        } else {
            format!("`gleaner run {name}` collects what is new and retries the gaps that are due.")
        };
        let facts = json!({"code": self.outlook.code(), "at": self.outlook.at().map(dates::rfc3339)});
        Line::new("next", text, if self.is_served { facts } else { json!({}) })
    }
}

fn running(by: &HeldBy, now: WallTime) -> Line {
    let (since, until) = (dates::rfc3339(by.since), dates::rfc3339(by.until));
    let ago = dates::span(now.since(by.since));
    let text = format!("Process {} is at work for {ago}; its lease ends {until}.", by.pid);
    Line::new("running", text, json!({"code": "running", "pid": by.pid, "since": since, "until": until}))
}

fn asks(question: &OpenQuestion) -> Line {
    let until = question.expires_at.map(dates::rfc3339);
    let asked = dates::rfc3339(question.asked_at);
    let limit = until.as_ref().map(|until| format!(" until {until}")).unwrap_or_default();
    let text = format!("It asks since {asked}{limit}: {}", quoted(&question.message));
    let facts =
        json!({"code": "question", "id": question.id, "kind": question.kind, "asked_at": asked, "until": until});
    Line::new("needs you", text, facts)
}

/// Text from outside: one line, and not a long one.
fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text, QUOTED_CHARS))
}

fn number(rate: f64) -> String {
    if rate >= 10.0 { format!("{rate:.0}") } else { format!("{rate:.2}") }
}
