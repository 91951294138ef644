//! What a run left open although it may have succeeded: for its last lines, and for programs.

use crate::terminal::output::counted;
use gleaner_engine::{RunOutcome, Shortfall, Warning, Withheld, WithheldBecause};
use serde_json::{Value, json};

/// Skips that are named.
const SKIPS_SHOWN: usize = 3;

/// What a person is told, a line each. May hold text from outside.
pub(crate) fn lines(outcome: &RunOutcome) -> Vec<String> {
    let mut lines = Vec::new();
    for withheld in outcome.withheld.iter().filter(|withheld| withheld.why == WithheldBecause::CoverageShortfall) {
        let reasons = reasons(outcome, &withheld.stream).join("; ");
        lines.push(format!("checkpoint of {} withheld: {reasons}", withheld.stream));
    }
    let is_withheld = |short: &&Shortfall| outcome.withheld.iter().any(|held| held.stream == short.state_stream);
    let others = outcome.shortfalls.iter().filter(|short| !is_withheld(short));
    lines.extend(others.map(|short| format!("coverage of {} falls short: {}", short.state_stream, short.sentence())));
    let confirmed = outcome.counts.confirmed;
    if confirmed.unconfirmed > 0 {
        let gaps = counted(confirmed.unconfirmed, "gap", "gaps");
        lines.push(format!("{gaps} reported as recovered without a record and not closed"));
    }
    if confirmed.empty > 0 {
        let gaps = counted(confirmed.empty, "gap", "gaps");
        lines.push(format!("{gaps} closed as empty: only another stream has that key"));
    }
    if confirmed.lists > 0 {
        let lists = counted(confirmed.lists, "backlog gap", "backlog gaps");
        let (records, left) = (confirmed.list_records, confirmed.list_gaps);
        lines.push(format!("{lists} closed; {records} records and {left} new gaps replaced them"));
    }
    if outcome.skips.count > 0 {
        let why = |skip: &gleaner_engine::Skipped| {
            let why = skip.message.clone().or_else(|| skip.reason.clone());
            let why = why.unwrap_or_else(|| "the connector does not say why".to_owned());
            skip.stream.as_ref().map_or_else(|| why.clone(), |stream| format!("{stream}: {why}"))
        };
        let first = outcome.skips.first.iter().take(SKIPS_SHOWN).map(why).collect::<Vec<_>>().join("; ");
        let times = match outcome.skips.count {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        lines.push(format!("skipped {times}: {first}"));
    }
    lines.extend(outcome.warnings.iter().map(|warning| format!("warning: {}", warning.sentence())));
    lines
}

fn reasons(outcome: &RunOutcome, stream: &str) -> Vec<String> {
    let own = outcome.shortfalls.iter().filter(|short| short.state_stream == stream).collect::<Vec<_>>();
    // A checkpoint also waits for streams that are found by its list through others.
    let all = outcome.shortfalls.iter().collect::<Vec<_>>();
    (if own.is_empty() { all } else { own }).into_iter().map(Shortfall::sentence).collect()
}

/// The same for programs.
pub(crate) fn json(outcome: &RunOutcome) -> Value {
    let withheld = |withheld: &Withheld| {
        let keys = outcome.shortfalls.iter().filter(|short| short.state_stream == withheld.stream);
        let keys = keys.flat_map(|short| &short.keys).collect::<Vec<_>>();
        let reasons = reasons(outcome, &withheld.stream);
        json!({"stream": withheld.stream, "why": withheld.why.code(), "reasons": reasons, "keys": keys})
    };
    let warning = |warning: &Warning| {
        json!({
            "code": warning.code.code(), "stream": warning.stream, "count": warning.count,
            "message": warning.sentence(),
        })
    };
    let confirmed = outcome.counts.confirmed;
    json!({
        "checkpoints_withheld": outcome.withheld.iter().map(withheld).collect::<Vec<_>>(),
        "coverage_shortfalls": outcome.shortfalls.iter().map(Shortfall::sentence).collect::<Vec<_>>(),
        "skipped": outcome.skips.count,
        "warnings": outcome.warnings.iter().map(warning).collect::<Vec<_>>(),
        "gaps_recovered": outcome.counts.recovered, "gaps_empty": confirmed.empty,
        "gaps_unconfirmed": confirmed.unconfirmed, "lists_closed": confirmed.lists,
        "list_records": confirmed.list_records, "list_gaps": confirmed.list_gaps,
    })
}
