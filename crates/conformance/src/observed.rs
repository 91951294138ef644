//! What was seen in one start: every line, and how it ended.
//!
//! Lines are kept as values because checks compare runs with each other. What a connector may write is
//! not bounded, so what is kept is: lines after that are judged by the engine alone.

use crate::checked_run::Kept;
use crate::report::Fault;
use gleaner_engine::{Exit, RunOutcome};
use gleaner_protocol::{ConnectorMessage, RecordKey, TerminalReason, Violation};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How much of a run's output is kept.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A stream and a key in it.
pub(crate) type Place = (String, String);

/// One complete line of output.
#[derive(Debug)]
pub(crate) struct Line {
    /// Counted from 1.
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
    /// What it says, if it is JSON.
    pub(crate) value: Option<Value>,
}

impl Line {
    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.value.as_ref()?.get(field)?.as_str()
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.text("type") == Some(kind)
    }

    pub(crate) fn data(&self) -> Option<&Value> {
        self.value.as_ref()?.get("data")
    }

    /// The key as one text, as in a grant.
    pub(crate) fn key(&self) -> Option<String> {
        match self.value.as_ref()?.get("key")? {
            Value::String(key) => Some(key.clone()),
            parts @ Value::Array(_) => serde_json::to_string(parts).ok(),
            _ => None,
        }
    }

    /// Stream and key of a RECORD.
    pub(crate) fn place(&self) -> Option<Place> {
        self.is("RECORD").then_some(())?;
        Some((self.text("stream")?.to_owned(), self.key()?))
    }

    /// Stream and key of a DETAIL_GAP.
    pub(crate) fn gap_place(&self) -> Option<Place> {
        self.is("DETAIL_GAP").then_some(())?;
        let key = match self.value.as_ref()?.get("record_key")? {
            Value::String(key) => key.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        Some((self.text("stream")?.to_owned(), key))
    }

    /// The keys in a list of a coverage report.
    pub(crate) fn keys(&self, field: &str) -> impl Iterator<Item = &str> {
        let list = self.value.as_ref().and_then(|value| value.get(field)?.as_array());
        list.into_iter().flatten().filter_map(Value::as_str)
    }

    pub(crate) fn is_delete(&self) -> bool {
        self.is("RECORD") && self.text("op") == Some("delete")
    }

    pub(crate) fn is_slice(&self) -> bool {
        self.is("STATE") && self.value.as_ref().and_then(|value| value.get("slice")) == Some(&Value::Bool(true))
    }
}

/// Cuts output into lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) lines: Vec<Line>,
    open: Vec<u8>,
    number: u64,
    kept: usize,
}

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.kept < KEPT_BYTES_MAX {
                self.kept += piece.len();
                self.open.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                self.number += 1;
                let mut bytes = std::mem::take(&mut self.open);
                bytes.truncate(bytes.trim_ascii_end().len());
                if !bytes.is_empty() {
                    let value = serde_json::from_slice(&bytes).ok().or_else(|| outline(&bytes));
                    self.lines.push(Line { number: self.number, bytes, value });
                }
            }
        }
    }

    /// Whether there was more than is kept.
    pub(crate) const fn is_cut(&self) -> bool {
        self.kept >= KEPT_BYTES_MAX
    }

    /// How many lines there were, blank ones too.
    pub(crate) const fn count(&self) -> u64 {
        self.number
    }
}

/// A record whose body does not survive a parser (a huge number, half a character): the body as text.
fn outline(bytes: &[u8]) -> Option<Value> {
    let Ok(ConnectorMessage::Record(record)) = ConnectorMessage::decode(bytes) else { return None };
    let key = match &record.key {
        RecordKey::Single(key) => json!(key),
        RecordKey::Compound(parts) => json!(parts),
    };
    let data = record.data.as_ref().map(|data| data.as_str());
    Some(json!({"type": "RECORD", "stream": record.stream, "key": key, "op": record.op.code(), "data": data,
        "emitted_at": record.emitted_at}))
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) name: &'static str,
    pub(crate) lines: Vec<Line>,
    pub(crate) line_count: u64,
    /// There was more than is kept, so it cannot be compared.
    pub(crate) is_cut: bool,
    /// Nothing was stored before it.
    pub(crate) is_fresh: bool,
    pub(crate) kept: Kept,
    pub(crate) outcome: RunOutcome,
    pub(crate) exit: Exit,
    pub(crate) errors: Vec<u8>,
    /// What was wrong about the time.
    pub(crate) late: Option<Late>,
    /// It ended before its input did.
    pub(crate) left_early: bool,
    /// Names of processes that outlived it.
    pub(crate) leftovers: Vec<String>,
}

/// What took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    FirstLine,
    End,
    ExitAfterAck,
    ExitAfterTerm,
}

impl Late {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::FirstLine => "it wrote nothing",
            Self::End => "it did not come to an end",
            Self::ExitAfterAck => "it did not exit after the end of its input",
            Self::ExitAfterTerm => "it did not end after SIGTERM",
        }
    }
}

impl Observed {
    pub(crate) fn succeeded(&self) -> bool {
        self.outcome.reason == TerminalReason::Succeeded && self.late.is_none()
    }

    pub(crate) const fn violation(&self) -> Option<&Violation> {
        self.outcome.violation.as_ref()
    }

    pub(crate) fn line(&self, number: u64) -> Option<&Line> {
        self.lines.iter().find(|line| line.number == number)
    }

    pub(crate) fn last_line(&self) -> Option<u64> {
        self.lines.last().map(|line| line.number)
    }

    /// Something that was seen in this run.
    pub(crate) fn say(&self, what: &str) -> String {
        format!("in the run {:?}: {what}", self.name)
    }

    pub(crate) fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Line> {
        self.lines.iter().filter(move |line| line.is(kind))
    }

    /// Why it did not succeed, with the line if there is one.
    pub(crate) fn trouble(&self) -> Option<Fault> {
        if let Some(late) = self.late {
            return Some((late.words().to_owned(), self.last_line()));
        }
        if let Some(violation) = self.violation() {
            return Some((violation.to_string(), violation.position.map(|position| position.line)));
        }
        if self.succeeded() {
            return None;
        }
        let done = self.of_type("DONE").last();
        let error = done.and_then(|line| line.value.as_ref()?.get("error")?.get("message")?.as_str());
        let error = error.map(|error| format!(": {error:?}")).unwrap_or_default();
        Some((format!("the run ended as {}{error}", self.outcome.reason), done.map(|line| line.number)))
    }

    /// The records that are there in the end, each with its last line.
    pub(crate) fn records(&self) -> BTreeMap<Place, &Line> {
        let mut records = BTreeMap::new();
        for line in &self.lines {
            if let Some(place) = line.place() {
                if line.is_delete() {
                    records.remove(&place);
                } else {
                    records.insert(place, line);
                }
            }
        }
        records
    }

    /// The gaps that were named.
    pub(crate) fn gaps(&self) -> BTreeSet<Place> {
        self.lines.iter().filter_map(Line::gap_place).collect()
    }

    /// Every key that it accounted for, as record or gap.
    pub(crate) fn known(&self) -> BTreeSet<Place> {
        self.records().into_keys().chain(self.gaps()).collect()
    }
}
