//! Stores the learned state on the cursor of a stream that the run collects.
//!
//! A connector can store state beyond its run only in cursors of declared streams; the runtime would reject an
//! invented stream. So a declared cursor gets extra fields. The governor ignores a stale rate when it is restored;
//! the connector only passes the cursor through.

use gleaner_governor::{Learned, WallTime};
use serde_json::{Map, Value};
use std::time::Duration;

/// Interval in milliseconds; a number, with fractions.
const INTERVAL: &str = "pacing_interval_ms";
/// Time of recording, in milliseconds since 1970.
const RECORDED_AT: &str = "pacing_recorded_at_ms";
/// The full learned state, gates included, in the governor's text form.
const LEARNED: &str = "pacing_learned";

/// The learned rate was to be stored on an undeclared stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stream {stream:?} is not declared in this run; keep the learned rate on one of {declared:?}")]
pub struct UndeclaredStream {
    /// The requested stream.
    pub stream: String,
    /// The declared streams.
    pub declared: Vec<String>,
}

/// Adds the learned state to the cursor of `stream`, which must be `declared`. Other fields of the cursor stay.
/// Without learned state (pacing is off) nothing is added.
///
/// # Errors
/// The stream is not declared.
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

/// Reads the state that an earlier run left on a cursor; `None` when it is absent or invalid. The governor decides
/// whether it is fresh.
#[must_use]
pub fn restore_from(cursor: &Map<String, Value>) -> Option<Learned> {
    let interval = cursor.get(INTERVAL)?.as_f64().filter(|ms| ms.is_finite() && *ms > 0.0)?;
    let recorded_at = WallTime::from_unix_millis(cursor.get(RECORDED_AT)?.as_u64()?);
    let all = cursor.get(LEARNED).and_then(Value::as_str).and_then(|text| Learned::decode(text.as_bytes()));
    // Code that knows only the two fields may have changed them since.
    if let Some(learned) = all.filter(|learned| learned.recorded_at == recorded_at) {
        return Some(learned);
    }
    let interval = Duration::try_from_secs_f64(interval / 1000.0).ok()?;
    Some(Learned::from_interval(interval, recorded_at))
}
