//! Records, one by one and compared between two runs.

use crate::observed::{Line, Observed, Place};
use crate::report::{Board, Fault};
use gleaner_engine::{Misfit, Schemas, Validate};
use gleaner_protocol::{ConnectorMessage, Evidence, Manifest, Semantics, StreamManifest};
use serde_json::Value;
use std::collections::BTreeMap;

/// Judges the records of a run.
pub(crate) fn judge(run: &Observed, manifest: &Manifest, board: &mut Board<'_>) {
    let records = || run.of_type("RECORD");
    judge_evidence(run, board);
    if records().next().is_none() {
        return;
    }
    board.judge("key_type_stable", key_types(run));
    board.judge("key_unique_in_slice", contradiction(run));
    board.judge("emitted_at_is_time", records().find_map(wrong_time));
    if run.violation().is_none() {
        board.pass("deletes_allowed");
    }
    judge_schemas(run, manifest, board);
    let with_key = manifest.streams.iter().filter(|stream| !stream.primary_key.is_empty()).collect::<Vec<_>>();
    if !with_key.is_empty() {
        let stream_of = |line: &Line| with_key.iter().find(|stream| line.text("stream") == Some(&stream.name));
        board.judge("primary_key_matches", records().find_map(|line| wrong_key(line, stream_of(line)?)));
    }
}

fn at(line: &Line, what: String) -> Option<Fault> {
    Some((what, Some(line.number)))
}

/// A stream and the record's key, as they are shown.
fn named(line: &Line) -> String {
    let (stream, key) = line.place().unwrap_or_default();
    format!("stream {stream:?}, key {key:?}")
}

fn key_types(run: &Observed) -> Option<Fault> {
    let mut parts_of = BTreeMap::new();
    for line in run.of_type("RECORD") {
        let parts = match line.value.as_ref().and_then(|value| value.get("key")) {
            Some(Value::Array(parts)) => parts.len(),
            _ => 0,
        };
        let known = *parts_of.entry(line.text("stream")?).or_insert(parts);
        if known != parts {
            return at(line, format!("{}: earlier keys of the stream have another form", named(line)));
        }
    }
    None
}

/// The same key with another content, and no state of its stream in between.
fn contradiction(run: &Observed) -> Option<Fault> {
    let mut seen = BTreeMap::<Place, &Line>::new();
    for line in &run.lines {
        if line.is("STATE") {
            let stream = line.text("stream").unwrap_or_default();
            seen.retain(|(of, _), _| of != stream);
        }
        let Some(place) = line.place() else { continue };
        if let Some(first) = seen.get(&place)
            && (first.data(), first.is_delete()) != (line.data(), line.is_delete())
        {
            return at(line, format!("{}: line {} has another content", named(line), first.number));
        }
        seen.insert(place, line);
    }
    None
}

fn wrong_time(line: &Line) -> Option<Fault> {
    let text = line.text("emitted_at")?;
    if super::time::is_time(text) { None } else { at(line, format!("{}: `emitted_at` is not a time", named(line))) }
}

fn judge_schemas(run: &Observed, manifest: &Manifest, board: &mut Board<'_>) {
    let with_schema = |line: &&Line| {
        let stream = line.text("stream").and_then(|stream| manifest.stream(stream));
        stream.is_some_and(|stream| stream.schema.is_some()) && !line.is_delete()
    };
    let Ok(schemas) = Schemas::new(manifest) else { return };
    let misfit = |line: &Line| {
        // The bytes as they were written: numbers do not survive a parser.
        let Ok(ConnectorMessage::Record(record)) = ConnectorMessage::decode(&line.bytes) else { return None };
        let Misfit { pointer, reason } = schemas.check(&record.stream, record.data.as_ref()?).err()?;
        at(line, format!("{}: {pointer:?} does not fit the schema: {reason}", named(line)))
    };
    if run.of_type("RECORD").any(|line| with_schema(&line)) {
        board.judge("fits_schema", run.of_type("RECORD").filter(with_schema).find_map(misfit));
    }
}

fn wrong_key(line: &Line, stream: &StreamManifest) -> Option<Fault> {
    // A key of another kind is another check's.
    line.place().filter(|_| !line.is_delete())?;
    let data = line.data().filter(|data| data.is_object())?;
    let mut values = Vec::new();
    for field in &stream.primary_key {
        match data.get(field) {
            None | Some(Value::Null) => return at(line, format!("{}: the record has no {field:?}", named(line))),
            Some(value) => values.push(text_of(value)),
        }
    }
    let key = line.value.as_ref()?.get("key")?;
    let same = match key {
        Value::Array(parts) => parts.len() == values.len() && parts.iter().map(text_of).eq(values),
        // How several fields become one text is the connector's affair.
        key => values.len() > 1 || values.first() == Some(&text_of(key)),
    };
    if same { None } else { at(line, format!("{}: the primary key in the record is another", named(line))) }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn judge_evidence(run: &Observed, board: &mut Board<'_>) {
    for line in run.of_type("PROGRESS") {
        let Ok(ConnectorMessage::Progress(progress)) = ConnectorMessage::decode(&line.bytes) else { continue };
        let (rate, budget, waiting) = (&progress.collection_rate, &progress.provider_budget, &progress.waiting);
        let malformed = [
            ("collection_rate", *rate == Evidence::Malformed),
            ("provider_budget", *budget == Evidence::Malformed),
            ("waiting", *waiting == Evidence::Malformed),
        ];
        for (field, _) in malformed.into_iter().filter(|(_, is_malformed)| *is_malformed) {
            board.warn("evidence", format!("`{field}` cannot be read"), Some(line.number));
        }
        if rate.valid().is_some() || budget.valid().is_some() || waiting.valid().is_some() {
            board.pass("evidence");
        }
    }
}

/// Records of append-only streams that two runs both have must be alike.
pub(crate) fn judge_append_only(first: &Observed, second: &Observed, manifest: &Manifest, board: &mut Board<'_>) {
    let append_only =
        |name: &str| manifest.stream(name).is_some_and(|stream| stream.semantics == Semantics::AppendOnly);
    let before = first.records();
    for (place, line) in second.records() {
        let Some(earlier) = before.get(&place).filter(|_| append_only(&place.0)) else { continue };
        if earlier.data() == line.data() {
            board.pass("append_only_unchanged");
        } else {
            let what = second.say(&format!("{} was another before", named(line)));
            board.fail("append_only_unchanged", what, Some(line.number));
        }
    }
}
