//! Invalid records: counted, and reported without their content.
//!
//! A report names the stream, the key and the path of the fault. The path shows only names of the schema, because
//! others may be data. The first faults of a stream are reported one by one, the rest as a number: after a change of
//! the provider's API every record may be invalid, and a million reports say no more than a hundred.

use gleaner_protocol::{Manifest, RawJson, RecordKey, RecoveryAction, RecoveryHint, SkipResult};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Single reports per stream.
const REPORTS_MAX: u64 = 100;

/// Why a record is invalid.
#[derive(Debug)]
pub(super) enum Fault {
    /// It cannot be serialized as JSON.
    NotJson,
    /// It is not an object.
    NotAnObject,
    /// Its key is missing, empty, or contains U+0000.
    Key,
    /// It does not match its schema, at this JSON pointer.
    Schema(String),
    /// It contains the credential of the connection.
    Credential,
    /// It is longer than a line may be.
    TooLong,
}

impl Fault {
    const fn reason(&self) -> &'static str {
        match self {
            Self::NotJson | Self::NotAnObject | Self::Key => "record_malformed",
            Self::Schema(_) => "record_schema_mismatch",
            Self::Credential => "record_holds_credential",
            Self::TooLong => "record_too_long",
        }
    }

    const fn text(&self) -> &'static str {
        match self {
            Self::NotJson => "it cannot be serialized as JSON",
            Self::NotAnObject => "it is not an object",
            Self::Key => "its key is empty or holds U+0000",
            Self::Schema(_) => "it does not match the schema of its stream",
            Self::Credential => "it contains the credential of this connection",
            Self::TooLong => "it is longer than a line may be",
        }
    }
}

/// Checks a key.
pub(super) fn fault_of_key(key: &RecordKey<'_>) -> Option<Fault> {
    let is_no_name = |part: &str| part.is_empty() || part.contains('\0');
    let is_unusable = match key {
        RecordKey::Single(key) => is_no_name(key),
        RecordKey::Compound(parts) => parts.is_empty() || parts.iter().any(|part| is_no_name(part)),
    };
    is_unusable.then_some(Fault::Key)
}

/// Rejections so far, by stream. A manifest has at most a thousand streams.
#[derive(Debug, Default)]
pub(super) struct Rejections {
    streams: BTreeMap<String, Rejected>,
}

#[derive(Debug, Default)]
struct Rejected {
    count: u64,
    /// Names in the schema; collected at the first invalid record.
    names: Option<BTreeSet<String>>,
}

impl Rejections {
    /// Counts a record, and returns its own report if it gets one.
    pub(super) fn add(
        &mut self,
        manifest: &Manifest,
        stream: &str,
        key: &RecordKey<'_>,
        fault: &Fault,
    ) -> Option<SkipResult> {
        let rejected = self.streams.entry(stream.to_owned()).or_default();
        rejected.count += 1;
        if rejected.count > REPORTS_MAX {
            return None;
        }
        let names = rejected.names.get_or_insert_with(|| names_in_schema(manifest, stream));
        let place = match fault {
            Fault::Schema(pointer) => Some(shown(pointer, names)),
            _ => None,
        };
        let at = place.as_ref().filter(|place| !place.is_empty()).map_or_else(String::new, |at| format!(", at {at}"));
        let diagnostics = place.and_then(|place| RawJson::new(serde_json::json!({"pointer": place}).to_string()).ok());
        let mut skip = report(stream, fault.reason(), format!("a record was left out: {}{at}", fault.text()));
        skip.diagnostics = diagnostics;
        // A credential in the key must not leak through its report.
        let names_key = !matches!(fault, Fault::Credential | Fault::Key);
        skip.resources = names_key.then(|| key.canonical().into_owned()).into_iter().collect();
        Some(skip)
    }

    /// One report for each stream with more rejections than reports.
    pub(super) fn take_rest(&mut self) -> Vec<SkipResult> {
        let streams = std::mem::take(&mut self.streams);
        let more = streams.into_iter().filter(|(_, rejected)| rejected.count > REPORTS_MAX);
        let say = |(stream, rejected): (String, Rejected)| {
            let rest = rejected.count - REPORTS_MAX;
            report(&stream, "records_rejected", format!("{rest} more invalid records were left out"))
        };
        more.map(say).collect()
    }
}

fn report(stream: &str, reason: &str, message: String) -> SkipResult {
    SkipResult {
        stream: Some(stream.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message),
        recovery_hint: Some(RecoveryHint { action: RecoveryAction::RetryOnConnectorUpgrade, retryable: Some(false) }),
        ..SkipResult::default()
    }
}

/// A path that shows only numbers and names of the schema.
fn shown(pointer: &str, names: &BTreeSet<String>) -> String {
    let own = |segment: &str| {
        let name = segment.replace("~1", "/").replace("~0", "~");
        segment.is_empty() || names.contains(&name) || segment.bytes().all(|byte| byte.is_ascii_digit())
    };
    let segments = pointer.split('/').map(|segment| if own(segment) { segment } else { "*" });
    segments.collect::<Vec<_>>().join("/")
}

/// All property names in a stream's schema, at any depth, and its time field.
fn names_in_schema(manifest: &Manifest, stream: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Some(stream) = manifest.stream(stream) else { return names };
    names.extend(stream.consent_time_field.clone());
    let schema = stream.schema.as_ref().and_then(|schema| serde_json::from_str::<Value>(schema.as_str()).ok());
    // A manifest has at most 4 MiB, and its nesting was limited when it was parsed.
    let mut open = Vec::from_iter(schema);
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                if let Some(Value::Object(properties)) = members.get("properties") {
                    names.extend(properties.keys().cloned());
                }
                open.extend(members.into_iter().map(|(_, value)| value));
            }
            Value::Array(values) => open.extend(values),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    names
}
