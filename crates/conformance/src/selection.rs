//! Starts that ask for less: one stream, one record, some fields, a range of time; and one that asks for everything
//! afterwards.

use crate::ask::Ask;
use crate::observed::{Line, Observed, Place};
use crate::plan::{Plan, judge_success};
use crate::report::Board;
use gleaner_protocol::{Checkpoint, CollectionMode, StreamManifest, StreamScope, TimeRange};
use serde_json::Value;
use std::collections::BTreeSet;

/// One stream alone, one that needs no other.
pub(crate) fn one_stream(plan: &mut Plan<'_>, board: &mut Board<'_>) {
    if plan.streams.len() < 2 {
        return board.skip("one_stream", "there is only one stream");
    }
    let Some(name) = stream_alone(plan) else {
        return board.skip("one_stream", "no stream can be collected without another");
    };
    if plan.start_for("one_stream", &Ask::full("one stream", &[name]), board).is_some() {
        board.pass("one_stream");
    }
}

fn stream_alone(plan: &Plan<'_>) -> Option<String> {
    let alone = |name: &&String| plan.manifest.stream(name).is_some_and(|stream| stream.checkpoint == Checkpoint::Own);
    plan.streams.iter().find(alone).cloned()
}

/// The streams in scope that claim something, each with its records in the full run.
fn claiming<'r>(
    plan: &Plan<'_>,
    full: &'r Observed,
    claims: fn(&StreamManifest) -> bool,
) -> Vec<(StreamManifest, Vec<&'r Line>)> {
    let records = full.records();
    let of = |name: &str| records.iter().filter(|((stream, _), _)| stream == name).map(|(_, line)| *line).collect();
    let asked = plan.manifest.streams.iter().filter(|stream| plan.streams.contains(&stream.name) && claims(stream));
    asked.map(|stream| (stream.clone(), of(&stream.name))).collect()
}

/// All streams, with one of them narrowed. Its parents stay in scope, because it may need them.
fn narrowed(plan: &Plan<'_>, name: &'static str, scope: &StreamScope) -> Ask {
    let mut ask = Ask::full(name, &plan.streams);
    for stream in &mut ask.streams {
        if stream.name == scope.name {
            stream.clone_from(scope);
        }
    }
    ask
}

/// One record of a stream that claims to be selectable by records.
pub(crate) fn resources(plan: &mut Plan<'_>, full: &Observed, board: &mut Board<'_>) {
    let Some((scope, key)) = one_record(plan, full) else {
        return board.skip("resources", "no stream with several records claims `selection.resources`");
    };
    let ask = narrowed(plan, "one record", &scope);
    let Some(run) = plan.start_for("resources", &ask, board) else { return };
    if run.known().contains(&(scope.name.clone(), key.clone())) {
        board.pass("resources");
    } else {
        let what = format!("stream {:?}: the record {key:?} was asked for and did not come", scope.name);
        board.warn("resources", what, None);
    }
}

/// One record of the full run, and its key.
fn one_record(plan: &Plan<'_>, full: &Observed) -> Option<(StreamScope, String)> {
    let streams = claiming(plan, full, |stream| stream.selection.resources);
    let (stream, records) = streams.into_iter().find(|(_, records)| records.len() > 1)?;
    let key = records.get(records.len() / 2)?.key()?;
    Some((StreamScope { resources: vec![key.clone()], ..StreamScope::all_of(&stream.name) }, key))
}

/// Everything, after runs that asked for less, in one store and by the rules of every store: the state of each scope is
/// apart from that of ordinary runs.
pub(crate) fn everything_after(plan: &mut Plan<'_>, full: &Observed, board: &mut Board<'_>) {
    const ID: &str = "complete_after_scope";
    if !plan.same_keys {
        return board.skip(ID, "two runs from the beginning do not give the same keys");
    }
    if board.has_failed("first_incremental") {
        return board.skip(ID, "a first run with nothing saved does not work");
    }
    let mut store = match plan.bench.fresh_store() {
        Ok(store) => store,
        Err(why) => return board.skip(ID, why),
    };
    let mut known = BTreeSet::new();
    for ask in asks_for_less(plan, full) {
        let Some(run) = plan.start_in(ID, &ask, &mut store, board) else { return };
        known.extend(run.known());
    }
    let ask = Ask::from_state("everything, after runs that asked for less", &plan.streams);
    let Some(run) = plan.start_in(ID, &ask, &mut store, board) else { return };
    if !judge_success(ID, &run, board) {
        return;
    }
    known.extend(run.known());
    let expected = full.known();
    let lost = expected.difference(&known).collect::<Vec<_>>();
    let what = |(stream, key): &&Place| {
        let number = lost.len();
        format!("{number} records do not come any more, for instance stream {stream:?}, key {key:?}")
    };
    board.judge(ID, lost.first().map(|place| (what(place), None)));
}

/// One stream, one record, a range of time: incremental, as an owner asks for them.
fn asks_for_less(plan: &Plan<'_>, full: &Observed) -> Vec<Ask> {
    let alone = stream_alone(plan).filter(|_| plan.streams.len() > 1);
    let mut asks = alone.map(|name| Ask::full("one stream, incremental", &[name])).into_iter().collect::<Vec<_>>();
    asks.extend(one_record(plan, full).map(|(scope, _)| narrowed(plan, "one record, incremental", &scope)));
    asks.extend(later_part(plan, full).map(|scope| narrowed(plan, "a range of time, incremental", &scope)));
    asks.into_iter().map(|ask| Ask { mode: CollectionMode::Incremental, ..ask }).collect()
}

/// All but one field of a stream that claims to be selectable by fields.
pub(crate) fn fields(plan: &mut Plan<'_>, full: &Observed, board: &mut Board<'_>) {
    let streams = claiming(plan, full, |stream| stream.selection.fields);
    let found = streams.iter().find_map(|(stream, records)| {
        let all = records.iter().filter_map(|line| line.data()?.as_object()).flat_map(|data| data.keys());
        let all = all.cloned().collect::<BTreeSet<_>>();
        let needed = needed_fields(stream);
        let left_out = all.iter().find(|field| !needed.contains(*field))?.clone();
        let fields = all.into_iter().filter(|field| *field != left_out).collect::<Vec<_>>();
        (!fields.is_empty()).then(|| StreamScope { fields, ..StreamScope::all_of(&stream.name) })
    });
    let Some(scope) = found else {
        return board.skip("fields", "no stream that claims `selection.fields` has a field that could be left out");
    };
    let ask = narrowed(plan, "some fields", &scope);
    if plan.start_for("fields", &ask, board).is_some() {
        board.pass("fields");
    }
}

/// What a record has whatever was asked for.
fn needed_fields(stream: &StreamManifest) -> BTreeSet<String> {
    let schema = stream.schema.as_ref().and_then(|schema| serde_json::from_str::<Value>(schema.as_str()).ok());
    let required = schema.as_ref().and_then(|schema| schema.get("required")?.as_array());
    let required = required.into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned);
    required.chain(stream.primary_key.iter().cloned()).chain(stream.consent_time_field.clone()).collect()
}

/// The later part of a stream whose records have times.
pub(crate) fn time_range(plan: &mut Plan<'_>, full: &Observed, board: &mut Board<'_>) {
    let Some(scope) = later_part(plan, full) else {
        return board.skip("time_range", "no stream has several times in UTC in its `consent_time_field`");
    };
    let ask = narrowed(plan, "a range of time", &scope);
    if plan.start_for("time_range", &ask, board).is_some() {
        board.pass("time_range");
    }
}

/// From the middle of the times that the full run has.
fn later_part(plan: &Plan<'_>, full: &Observed) -> Option<StreamScope> {
    let streams = claiming(plan, full, |stream| stream.consent_time_field.is_some());
    streams.iter().find_map(|(stream, records)| {
        let field = stream.consent_time_field.as_deref()?;
        // Texts of one form are in the order of their times; only such a stream is asked.
        let times = records.iter().filter_map(|line| line.data()?.get(field)?.as_str()).collect::<BTreeSet<_>>();
        let alike = times.iter().all(|time| time.ends_with('Z') && super::judge::time::is_time(time));
        let since = times.iter().nth(times.len() / 2).filter(|_| alike && times.len() > 1)?;
        let time_range = Some(TimeRange { since: Some((*since).to_owned()), until: None });
        Some(StreamScope { time_range, ..StreamScope::all_of(&stream.name) })
    })
}
