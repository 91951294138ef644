//! The manifest: that it can be read, and that it says what owners and schedules need.

use crate::report::Board;
use crate::subject::Subject;
use gleaner_engine::Schemas;
use gleaner_protocol::{Manifest, ManifestOrigin, StreamManifest};
use serde_json::{Value, json};

const OF_MANIFEST: [&str; 5] =
    ["manifest_valid", "manifest_clean", "manifest_schemas", "manifest_primary_keys", "manifest_refresh_policy"];

/// The manifest and its text: the subject's, or one made from the streams that it names.
///
/// `None` when nothing can be started; the board says why.
pub(crate) fn judge(subject: &Subject, board: &mut Board<'_>) -> Option<(Manifest, String)> {
    let Some(text) = &subject.manifest else { return stand_in(subject, board) };
    match Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign) {
        Ok(manifest) => {
            board.pass("manifest_valid");
            judge_warnings(&manifest, board);
            let usable = judge_schemas(&manifest, board);
            judge_primary_keys(&manifest, board);
            judge_policy(&manifest, board);
            if !usable {
                board.not_reached = "a schema of the manifest cannot be used, so nothing was started".to_owned();
            }
            usable.then(|| (manifest, text.clone()))
        }
        Err(rejected) => {
            let more = rejected.faults.len().saturating_sub(1);
            let first = rejected.faults.first().map(ToString::to_string).unwrap_or_default();
            let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
            board.fail("manifest_valid", format!("{first}{more}"), None);
            board.not_reached = "the manifest cannot be read, so nothing was started".to_owned();
            None
        }
    }
}

/// As little as a run needs: streams of which nothing is known.
fn stand_in(subject: &Subject, board: &mut Board<'_>) -> Option<(Manifest, String)> {
    for id in OF_MANIFEST {
        board.skip(id, "there is no manifest");
    }
    if subject.streams.is_empty() {
        board.not_reached = "there is neither a manifest nor a stream to ask for; name one of them".to_owned();
        return None;
    }
    let streams = subject.streams.iter().map(|name| json!({"name": name, "semantics": "mutable_state"}));
    let text = json!({
        "connector_id": "conformance-subject", "connector_key": "subject", "version": "0",
        "streams": streams.collect::<Vec<_>>(),
    })
    .to_string();
    match Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign) {
        Ok(manifest) => Some((manifest, text)),
        Err(rejected) => {
            board.not_reached = format!("the streams cannot be asked for: {rejected}");
            None
        }
    }
}

fn judge_warnings(manifest: &Manifest, board: &mut Board<'_>) {
    match manifest.warnings.first() {
        Some(warning) => board.warn("manifest_clean", warning.to_string(), None),
        None => board.pass("manifest_clean"),
    }
}

fn collected(manifest: &Manifest) -> impl Iterator<Item = &StreamManifest> {
    manifest.streams.iter().filter(|stream| !stream.coverage_policy.collects_nothing())
}

fn judge_schemas(manifest: &Manifest, board: &mut Board<'_>) -> bool {
    if let Err(fault) = Schemas::new(manifest) {
        board.fail("manifest_schemas", fault.to_string(), None);
        return false;
    }
    match collected(manifest).find(|stream| stream.schema.is_none()) {
        Some(stream) => board.warn("manifest_schemas", format!("stream {:?} has no schema", stream.name), None),
        None => board.pass("manifest_schemas"),
    }
    true
}

fn judge_primary_keys(manifest: &Manifest, board: &mut Board<'_>) {
    for stream in collected(manifest) {
        if stream.primary_key.is_empty() {
            board.warn("manifest_primary_keys", format!("stream {:?} has no primary key", stream.name), None);
        }
        let schema = stream.schema.as_ref().and_then(|schema| serde_json::from_str::<Value>(schema.as_str()).ok());
        let Some(properties) = schema.as_ref().and_then(|schema| schema.get("properties")?.as_object()) else {
            continue;
        };
        if let Some(field) = stream.primary_key.iter().find(|field| !properties.contains_key(*field)) {
            let what =
                format!("the primary key of stream {:?} is {field:?}, which its schema does not have", stream.name);
            board.fail("manifest_primary_keys", what, None);
        }
    }
    board.pass("manifest_primary_keys");
}

fn judge_policy(manifest: &Manifest, board: &mut Board<'_>) {
    if manifest.refresh_policy.is_some() {
        board.pass("manifest_refresh_policy");
    } else {
        board.warn("manifest_refresh_policy", "there is no refresh policy", None);
    }
}
