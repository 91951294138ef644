//! Keeps what was learned on the cursor of a stream that the run collects anyway.
//!
//! A connector has no place of its own that outlives its run but the cursors of declared streams, and a
//! made-up stream would be refused by the runtime. So two fields ride along on a declared one. Restoring
//! applies the staleness guard of the governor; a connector threads a cursor through and knows no more.

use gleaner_governor::{Learned, WallTime};
use serde_json::{Map, Value};
use std::time::Duration;

/// Interval in milliseconds; a number, with fractions.
const INTERVAL: &str = "pacing_interval_ms";
/// When it was written down, in milliseconds since 1970.
const RECORDED_AT: &str = "pacing_recorded_at_ms";
/// All that was learned, gates included, as the governor writes it.
const LEARNED: &str = "pacing_learned";

/// A connector wanted to keep its rate on a stream that the run has not declared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stream {stream:?} is not declared in this run; keep the learned rate on one of {declared:?}")]
pub struct UndeclaredStream {
    /// What was asked for.
    pub stream: String,
    /// What there is.
    pub declared: Vec<String>,
}

/// Adds what was learned to the cursor of `stream`, which must be among the `declared` ones. Whatever
/// else is in the cursor stays. Without anything learned (pacing opted out) nothing is added.
///
/// # Errors
/// When the stream is not declared.
pub fn persist_onto(
    cursor: &mut Map<String, Value>,
    stream: &str,
    declared: &[&str],
    learned: Option<&Learned>,
) -> Result<(), UndeclaredStream> {
    if !declared.contains(&stream) {
        let declared = declared.iter().map(|&name| name.to_owned()).collect();
        return Err(UndeclaredStream { stream: stream.to_owned(), declared });
    }
    let Some(learned) = learned else { return Ok(()) };
    cursor.insert(INTERVAL.to_owned(), Value::from(learned.interval.as_secs_f64() * 1000.0));
    cursor.insert(RECORDED_AT.to_owned(), Value::from(learned.recorded_at.as_unix_millis()));
    cursor.insert(LEARNED.to_owned(), Value::from(learned.to_string()));
    Ok(())
}

/// What a former run left on a cursor; `None` when there is nothing, or nothing that makes sense. The
/// governor that it is given to decides whether it is still fresh.
#[must_use]
pub fn restore_from(cursor: &Map<String, Value>) -> Option<Learned> {
    let interval = cursor.get(INTERVAL)?.as_f64().filter(|ms| ms.is_finite() && *ms > 0.0)?;
    let recorded_at = WallTime::from_unix_millis(cursor.get(RECORDED_AT)?.as_u64()?);
    let all = cursor.get(LEARNED).and_then(Value::as_str).and_then(|text| Learned::decode(text.as_bytes()));
    // Somebody who knows only the two fields may have changed them since.
    if let Some(learned) = all.filter(|learned| learned.recorded_at == recorded_at) {
        return Some(learned);
    }
    let interval = Duration::try_from_secs_f64(interval / 1000.0).ok()?;
    Some(Learned::from_interval(interval, recorded_at))
}
