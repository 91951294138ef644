//! What a connector said during a run, one line each, in words.
//!
//! A message that cannot be read is left out: it was checked when it was stored, so there is none.

use super::escape::short;
use super::words::{backoff_rate, number, pace};
use gleaner_engine::WallTime;
use gleaner_protocol::{Backoff, CircuitState, ConnectorMessage, Progress, ProviderBudget, SkipResult};
use gleaner_store::TracedEvent;

/// Of a message, so much is shown.
const MESSAGE_CHARS: usize = 600;

/// One line.
#[derive(Debug)]
pub(crate) struct TraceLine {
    pub(crate) at: WallTime,
    pub(crate) kind: &'static str,
    pub(crate) tone: &'static str,
    /// The connector's words.
    pub(crate) said: String,
    /// Ours.
    pub(crate) fact: String,
}

/// The events of a page, the newest first, as lines. A back-off is said where it happened and not again.
pub(crate) fn lines(events: &[TracedEvent]) -> Vec<TraceLine> {
    let mut known = None;
    let mut lines = events.iter().rev().filter_map(|event| TraceLine::of(event, &mut known)).collect::<Vec<_>>();
    lines.reverse();
    lines
}

impl TraceLine {
    /// An event as a line, after those with `known` as their last back-off; nothing for one that says nothing.
    fn of(event: &TracedEvent, known: &mut Option<Backoff>) -> Option<Self> {
        let line = |kind, tone, said: &str, fact| {
            Some(Self { at: event.at, kind, tone, said: short(said, MESSAGE_CHARS), fact })
        };
        match ConnectorMessage::decode(event.message.as_bytes()).ok()? {
            ConnectorMessage::Progress(progress) => {
                let last = progress.collection_rate.valid().map(|rate| rate.last_backoff);
                let slowed = last.flatten().filter(|backoff| *known != Some(*backoff));
                *known = last.unwrap_or(*known);
                let (kind, tone) = of_progress(&progress, slowed.is_some());
                line(kind, tone, &progress.message, progress_fact(&progress, slowed))
            }
            ConnectorMessage::SkipResult(skip) => {
                let said = skip.message.as_deref().or(skip.reason.as_deref()).unwrap_or_default();
                line("deferred", "wait", said, skip_fact(&skip))
            }
            ConnectorMessage::Assistance(help) => line("help", "bad", &help.message, String::new()),
            ConnectorMessage::AssistanceStatus(_) => {
                line("help", "calm", "", "what was asked for before is settled".to_owned())
            }
            _ => None,
        }
    }
}

fn of_progress(progress: &Progress, slowed: bool) -> (&'static str, &'static str) {
    match (progress.provider_budget.valid(), progress.collection_rate.valid()) {
        (None, Some(_)) if slowed => ("slowed down", "wait"),
        (Some(budget), _) if budget.circuit.state == CircuitState::Closed => ("circuit", "good"),
        (Some(_), _) => ("circuit", "wait"),
        (None, Some(_)) => ("pace", "calm"),
        (None, None) => ("progress", "calm"),
    }
}

fn progress_fact(progress: &Progress, slowed: Option<Backoff>) -> String {
    let mut facts = Vec::new();
    facts.extend(progress.provider_budget.valid().map(circuit_fact));
    if let Some(reported) = progress.collection_rate.valid() {
        facts.push(pace(reported));
        facts.extend(slowed.map(|backoff| {
            let slowed = backoff_rate(&backoff);
            format!("slowed down to {slowed} a minute because {}", backoff.reason.because())
        }));
    }
    match (progress.count, progress.total) {
        (Some(count), Some(total)) => facts.push(format!("{} of {}", number(count), number(total))),
        (Some(count), None) => facts.push(number(count)),
        (None, _) => {}
    }
    facts.join("; ")
}

fn circuit_fact(budget: &ProviderBudget) -> String {
    let name = |state: CircuitState| match state {
        CircuitState::Closed => "closed",
        CircuitState::HalfOpen => "half-open",
        CircuitState::Open => "open",
    };
    let change = budget.circuit;
    let (from, to) = (name(change.previous_state), name(change.state));
    let requests = number(budget.request_count);
    format!("the circuit went from {from} to {to} after {requests} requests: {}", change.reason.because())
}

fn skip_fact(skip: &SkipResult) -> String {
    let hint = skip.recovery_hint.as_ref().map(|hint| format!("asks for: {}", hint.action.code().replace('_', " ")));
    hint.unwrap_or_default()
}
