//! Collects the notes of one account: a list, newest first, and the text of each note.
//!
//! Everything here is yours to change. Slices, gaps, caps, backlog, coverage, pace and its memory, scope,
//! validation, credentials and a clean end are the framework's. There is no provider yet: a recording of one
//! answers in its place, here and in the test below.

use gleaner_sdk::lane::{Detail, ListAt, ListItem, ListPage, Target, Timestamp};
use gleaner_sdk::{Client, Collect, Connector, FetchError, Stop, run_connector};
use serde_json::{Value, json};
use std::process::ExitCode;

const MANIFEST: &str = include_str!("../manifest.json");
/// Sixty notes, of which one is listed and no longer there. `gleaner run --record FILE` makes one of your own.
const EXCHANGES: &str = include_str!("../tests/exchanges.jsonl");
const API: &str = "https://notes.invalid";

struct Notes;

impl Connector for Notes {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        let token = run.credential("EXAMPLE_TOKEN")?.to_owned();
        // With a real provider: run.client_with(|client| client.bearer(&token))?
        let api = run.sample_client(EXCHANGES, |client| client.bearer(&token))?;
        let _ = run.lane("notes", "texts").collect(|at| list(&api, at), |note| detail(&api, note))?;
        Ok(())
    }
}

/// One page of the list, newest first. `at` says which page, and from which time on it is wanted.
fn list(api: &Client, at: &ListAt) -> Result<ListPage, FetchError> {
    let page = at.page.iter().map(|page| ("page", page)).collect::<Vec<_>>();
    let answer = api.get(format!("{API}/notes")).query(&page).send()?.error_for_status()?.json::<Value>()?;
    let notes = answer["notes"].as_array().into_iter().flatten();
    let items =
        notes.map(|note| ListItem::new(text(note, "id"), Timestamp::new(text(note, "t"))).record(&parse_note(note)));
    Ok(ListPage { items: items.collect(), next: answer["next"].as_str().map(ToOwned::to_owned), left: None })
}

/// The text of one note.
fn detail(api: &Client, note: &Target) -> Result<Detail, FetchError> {
    let answer = api.get(format!("{API}/notes/{}", note.key)).send()?.error_for_status()?.json::<Value>()?;
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
    run_connector(MANIFEST, &Notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a network and without a credential.
    #[test]
    fn what_the_provider_said_becomes_records_and_a_gap() {
        let said = gleaner_sdk::replay(MANIFEST, &Notes, EXCHANGES).expect("the recording can be read");
        assert_eq!(said.done()["status"], "succeeded", "{}", said.done());
        assert_eq!((said.records("notes").len(), said.records("texts").len()), (60, 59));
        assert_eq!(said.records("texts")[0]["text"], "Once upon a time.");
        assert_eq!(said.gaps("texts")[0]["record_key"], "n042");
    }
}
