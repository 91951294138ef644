//! Collects the notes of one account: a list, newest first, and the text of each note.
//!
//! Everything here is yours to change. Slices, gaps, caps, backlog, coverage, pace and its memory, scope,
//! validation, credentials and a clean end are the framework's. The provider below is a sample without a
//! network; put yours in its place.

use gleaner_sdk::lane::{Detail, ListAt, ListItem, ListPage, Target, Timestamp};
use gleaner_sdk::{Collect, Connector, FetchError, Stop, run_connector};
use serde_json::{Value, json};
use std::process::ExitCode;

struct Notes;

impl Connector for Notes {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        let token = run.credential("EXAMPLE_TOKEN")?.to_owned();
        // With a real provider: let api = run.client_with(|client| client.bearer(&token))?;
        let provider = Sample { token };
        let _ = run.lane("notes", "texts").collect(|at| list(&provider, at), |note| detail(&provider, note))?;
        Ok(())
    }
}

/// One page of the list, newest first. `at` says which page, and from which time on it is wanted.
fn list(provider: &Sample, at: &ListAt) -> Result<ListPage, FetchError> {
    let (notes, next) = provider.list(at.page.as_deref())?;
    let items = notes
        .iter()
        .map(|note| ListItem::new(text(note, "id"), Timestamp::new(text(note, "t"))).record(&parse_note(note)));
    Ok(ListPage { items: items.collect(), next, left: None })
}

/// The text of one note.
fn detail(provider: &Sample, note: &Target) -> Result<Detail, FetchError> {
    let answer = provider.text(&note.key)?;
    Ok(Detail::new().record(note.key.as_str(), &parse_text(&answer)))
}

/// What the provider says about a note, as the record that the manifest describes.
fn parse_note(note: &Value) -> Value {
    json!({"id": note["id"], "changed_at": note["t"], "title": note["h"]})
}

fn parse_text(answer: &Value) -> Value {
    json!({"id": answer["id"], "changed_at": answer["t"], "text": answer["b"]})
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

fn main() -> ExitCode {
    run_connector(include_str!("../manifest.json"), &Notes)
}

/// The sample: sixty notes, of which one is listed and no longer there.
struct Sample {
    token: String,
}

impl Sample {
    const NOTES: u64 = 60;
    const PAGE: u64 = 20;

    fn note(n: u64) -> Value {
        let at = format!("2030-01-01T{:02}:{:02}:00Z", n / 60, n % 60);
        json!({"id": format!("n{n:03}"), "t": at, "h": format!("Note {n}"), "b": "Once upon a time."})
    }

    fn sign_in(&self) -> Result<(), FetchError> {
        if self.token.is_empty() { Err(FetchError::of_status(401)) } else { Ok(()) }
    }

    fn list(&self, page: Option<&str>) -> Result<(Vec<Value>, Option<String>), FetchError> {
        self.sign_in()?;
        // The page's name is the newest note on it.
        let newest = page.and_then(|page| page.parse().ok()).unwrap_or(Self::NOTES);
        let oldest = newest.saturating_sub(Self::PAGE);
        let notes = (oldest + 1..=newest).rev().map(Self::note).collect();
        Ok((notes, (oldest > 0).then(|| oldest.to_string())))
    }

    fn text(&self, id: &str) -> Result<Value, FetchError> {
        self.sign_in()?;
        let number = id.trim_start_matches('n').parse().unwrap_or(0);
        if number == 42 { Err(FetchError::of_status(404)) } else { Ok(Self::note(number)) }
    }
}
