//! Claims that a run can be held to by its own messages: what it recovered, what it hydrated, what its coverage
//! reports leave out, and whether a success says what is missing.
//!
//! A runtime believes none of them and looks into its store. Here they are judged so that an author learns which line
//! claims too much.

use crate::observed::{Line, Observed, Place};
use crate::report::{Board, Fault};
use gleaner_protocol::{STREAM_COLLECTION_FAILED, ServedGap};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Judges any run.
pub(crate) fn judge(run: &Observed, board: &mut Board<'_>) {
    if run.is_cut {
        return;
    }
    judge_gaps(run, board);
    let reports = run.of_type("DETAIL_COVERAGE").collect::<Vec<_>>();
    if reports.is_empty() {
        return;
    }
    board.judge("coverage_last", after_report(run, &reports));
    let counted = reports.iter().filter(|line| !counts_only(line)).collect::<Vec<_>>();
    if !counted.is_empty() {
        board.judge("coverage_names_gaps", counted.iter().find_map(|line| unnamed_gap(run, line)));
    }
    // With records of earlier runs in the store, a key may be hydrated although nothing is sent for it.
    if run.is_fresh && reports.iter().any(|line| line.keys("hydrated_keys").next().is_some()) {
        let sent = Sent::of(&run.lines);
        board.judge("hydrated_with_record", reports.iter().find_map(|line| hydrated_without_record(&sent, line)));
    }
}

/// Judges a run that may have been stopped before its end, by what a run in one piece has.
pub(crate) fn judge_end(run: &Observed, full: &Observed, board: &mut Board<'_>) {
    if !run.succeeded() {
        return;
    }
    let done = run.of_type("DONE").last().map(|line| line.number);
    let failed = run.of_type("SKIP_RESULT").find(|line| line.text("reason") == Some(STREAM_COLLECTION_FAILED));
    if let Some(line) = failed {
        let stream = line.text("stream").unwrap_or_default();
        let what = format!("stream {stream:?} could not be collected, and DONE says `succeeded`");
        return board.fail("honest_end", run.say(&what), done);
    }
    let (expected, known) = (full.known(), run.known());
    let missing = expected.difference(&known).collect::<Vec<_>>();
    let skips = |run: &Observed| run.of_type("SKIP_RESULT").count();
    let says_so = run.gaps().difference(&full.gaps()).next().is_some() || skips(run) > skips(full);
    let silent = missing.first().filter(|_| !says_so);
    let what = |(stream, key): &&Place| {
        let number = missing.len();
        let what = format!(
            "{number} records are missing, for instance stream {stream:?}, key {key:?}; there is no gap and no skip, and DONE says `succeeded`"
        );
        (run.say(&what), done)
    };
    board.judge("honest_end", silent.map(what));
}

/// What records were sent, by every name that a gap or a coverage report may have for them.
#[derive(Default)]
struct Sent<'r> {
    keys: BTreeSet<Place>,
    /// Values of top-level fields: the keys of some connectors' gaps are those of the parent.
    fields: BTreeSet<(&'r str, String)>,
}

impl<'r> Sent<'r> {
    fn of(lines: &'r [Line]) -> Self {
        let mut sent = Self::default();
        lines.iter().for_each(|line| sent.add(line));
        sent
    }

    fn add(&mut self, line: &'r Line) {
        let Some(place) = line.place() else { return };
        let fields = line.data().and_then(Value::as_object).into_iter().flat_map(|data| data.values());
        let stream = line.text("stream").unwrap_or_default();
        self.fields.extend(fields.filter_map(|value| Some((stream, scalar(value)?))));
        self.keys.insert(place);
    }

    fn has(&self, stream: &str, key: &str) -> bool {
        self.keys.contains(&(stream.to_owned(), key.to_owned())) || self.fields.contains(&(stream, key.to_owned()))
    }

    /// A stream other than this one that has the key.
    fn elsewhere(&self, stream: &str, key: &str) -> Option<&str> {
        self.keys.iter().find(|(of, known)| of != stream && known == key).map(|(of, _)| of.as_str())
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Every answer to a gap that was served names the gap's stream, and every recovered gap has its record.
fn judge_gaps(run: &Observed, board: &mut Board<'_>) {
    let served = run.kept.served.iter().map(|gap| (gap.gap_id.as_str(), gap)).collect::<BTreeMap<_, _>>();
    let mut sent = Sent::default();
    for line in &run.lines {
        sent.add(line);
        let Some(gap) = line.text("gap_id").and_then(|id| served.get(id)) else { continue };
        if line.text("stream") != Some(&gap.stream) {
            let said = line.text("stream").unwrap_or_default();
            let what =
                format!("gap {:?} is one of stream {:?}, and was answered as one of {said:?}", gap.gap_id, gap.stream);
            board.fail("gap_streams", run.say(&what), Some(line.number));
            continue;
        }
        board.pass("gap_streams");
        if line.is("DETAIL_GAP_RECOVERED") {
            judge_recovered(run, gap, &sent, line, board);
        }
    }
}

fn judge_recovered(run: &Observed, gap: &ServedGap, sent: &Sent<'_>, line: &Line, board: &mut Board<'_>) {
    // What stands for many records, or is known by its locator only, is closed by the word alone.
    let Some(key) = gap.record_key.as_ref().map(|key| key.as_str()) else { return };
    let locator = gap.detail_locator.as_ref().and_then(|locator| serde_json::from_str::<Value>(locator.as_str()).ok());
    if stands_for_many(key, locator.as_ref()) {
        return;
    }
    if sent.has(&gap.stream, key) {
        return board.pass("recovered_with_record");
    }
    match sent.elsewhere(&gap.stream, key) {
        // Its parent was found, and it has nothing of this stream: an empty conversation.
        Some(stream) if gap.parent_stream.as_deref().is_none_or(|parent| parent == stream) => {
            board.pass("recovered_with_record");
        }
        Some(stream) => {
            let what =
                format!("gap {:?} of stream {:?} was recovered with a record of {stream:?}", gap.gap_id, gap.stream);
            board.fail("gap_streams", run.say(&what), Some(line.number));
        }
        None => {
            let what =
                format!("stream {:?}, key {key:?} is called recovered, and no record of it was sent", gap.stream);
            board.fail("recovered_with_record", run.say(&what), Some(line.number));
        }
    }
}

/// A reserved key, or a locator with a `kind`: a backlog, or the rest of a list.
fn stands_for_many(key: &str, locator: Option<&Value>) -> bool {
    key.starts_with("gleaner:") || locator.is_some_and(|locator| locator.get("kind").is_some())
}

/// A report that says how many there were, and not which.
fn counts_only(line: &Line) -> bool {
    let counts = line.value.as_ref().is_some_and(|value| value.get("considered").is_some_and(Value::is_number));
    counts && line.keys("required_keys").next().is_none()
}

/// A record or gap of a stream after the stream's last report.
fn after_report(run: &Observed, reports: &[&Line]) -> Option<Fault> {
    let last = reports.iter().filter_map(|line| Some((line.text("stream")?, line.number))).collect::<BTreeMap<_, _>>();
    let late = run.lines.iter().find(|line| {
        let report = line.text("stream").and_then(|stream| last.get(stream));
        (line.is("RECORD") || line.is("DETAIL_GAP")) && report.is_some_and(|report| line.number > *report)
    })?;
    let (stream, kind) = (late.text("stream")?, late.text("type")?);
    let what = format!("a {kind} of stream {stream:?} comes after the report of its coverage");
    Some((run.say(&what), Some(late.number)))
}

/// A gap that was sent and is not in the report of its stream.
fn unnamed_gap(run: &Observed, report: &Line) -> Option<Fault> {
    let (stream, parent) = (report.text("stream")?, report.text("state_stream"));
    let named = report.keys("gap_keys").collect::<BTreeSet<_>>();
    let is_its = |line: &&Line| {
        let of_parent = line.text("parent_stream").is_none_or(|of| Some(of) == parent);
        line.is("DETAIL_GAP") && line.text("stream") == Some(stream) && of_parent
    };
    // What was found after all, later in the same run, is none.
    let came = run.lines.iter().filter_map(|line| Some((line.place()?, line.number))).collect::<BTreeMap<_, _>>();
    for line in run.lines.iter().filter(is_its) {
        let Some(place) = line.gap_place() else { continue };
        let key = &place.1;
        let locator = line.value.as_ref().and_then(|value| value.get("detail_locator"));
        let came = came.get(&place).is_some_and(|record| *record > line.number);
        if !named.contains(key.as_str()) && !stands_for_many(key, locator) && !came {
            let what = format!(
                "stream {stream:?}, key {key:?}: a gap was sent (line {}), and `gap_keys` does not have it",
                line.number
            );
            return Some((run.say(&what), Some(report.number)));
        }
    }
    None
}

fn hydrated_without_record(sent: &Sent<'_>, report: &Line) -> Option<Fault> {
    let stream = report.text("stream")?;
    let key = report.keys("hydrated_keys").find(|key| !sent.has(stream, key))?;
    let what = format!("stream {stream:?}, key {key:?} is called hydrated, and no record of it was sent");
    Some((what, Some(report.number)))
}
