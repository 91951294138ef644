//! Runs a connector in a test, answered from a recording: no process, no network, no credential, no waiting.

use crate::clock::SystemClock;
use crate::connector::{Connector, Surroundings, run_with};
use crate::exchanges::{Recording, RecordingFault};
use crate::wire::{Wire, WireFault};
use gleaner_protocol::{
    CollectionMode, CoveragePolicy, Manifest, ManifestOrigin, RawJson, RuntimeMessage, Scope, Start, StreamScope,
};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Runs a connector once, from the start, with everything that its manifest declares, answered from the text of a
/// recording. Pass it with `include_str!`, so that it is found from any working directory.
///
/// ```
/// use gleaner_sdk::{Collect, Connector, Page, Stop, replay};
///
/// const MANIFEST: &str = r#"{"connector_id": "notes", "connector_key": "notes", "version": "1", "streams": [
///     {"name": "notes", "semantics": "mutable_state", "primary_key": "id", "incremental": true,
///      "schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}]}"#;
/// const EXCHANGES: &str = r#"{"gleaner_exchanges": 1}
/// {"request": {"method": "GET", "url": "https://notes.invalid/"}, "response": {"status": 200, "body": [{"id": "n1"}]}}
/// "#;
///
/// struct Notes;
///
/// impl Connector for Notes {
///     fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
///         let api = run.client()?;
///         run.pages("notes", |_| {
///             let notes: Vec<serde_json::Value> = api.get("https://notes.invalid/").send()?.json()?;
///             Ok(notes.iter().fold(Page::only(), |page, note| page.record(note["id"].as_str().unwrap_or(""), note)))
///         })?;
///         Ok(())
///     }
/// }
///
/// let said = replay(MANIFEST, &Notes, EXCHANGES)?;
/// assert_eq!(said.records("notes")[0]["id"], "n1");
/// # Ok::<(), gleaner_sdk::exchanges::RecordingFault>(())
/// ```
///
/// # Errors
///
/// The recording is invalid. A failed run, also for a request that is not recorded, is in the connector's last
/// message.
pub fn replay(manifest: &str, connector: &dyn Connector, exchanges: &str) -> Result<Replayed, RecordingFault> {
    Replay::new(manifest, exchanges)?.run(connector)
}

/// A replay with more settings.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    manifest: &'a str,
    recording: Recording,
    state: BTreeMap<String, Value>,
    variables: BTreeMap<String, String>,
}

impl<'a> Replay<'a> {
    /// A run answered from this recording.
    ///
    /// # Errors
    ///
    /// The recording is invalid.
    pub fn new(manifest: &'a str, exchanges: &str) -> Result<Self, RecordingFault> {
        let recording = Recording::parse(exchanges)?;
        Ok(Self { manifest, recording, state: BTreeMap::new(), variables: BTreeMap::new() })
    }

    /// Sets the cursor of an earlier run for a stream.
    #[must_use]
    pub fn state(mut self, stream: &str, cursor: Value) -> Self {
        self.state.insert(stream.to_owned(), cursor);
        self
    }

    /// Sets an environment variable. Nothing else of the environment is visible.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// The manifest is invalid.
    pub fn run(self, connector: &dyn Connector) -> Result<Replayed, RecordingFault> {
        let start = self.start().map_err(|what| RecordingFault { line: None, what })?;
        let mut wire = Script { inbox: VecDeque::from([start]), said: Vec::new(), half: Vec::new() };
        let variable = |name: &str| self.variables.get(name).cloned();
        let around = Surroundings { variable: &variable, clock: &SystemClock::default() };
        let _exit_code = run_with(&mut wire, self.manifest, connector, &around, Some(self.recording));
        Ok(Replayed { messages: wire.said })
    }

    fn start(&self) -> Result<RuntimeMessage, String> {
        let manifest = Manifest::parse(self.manifest.as_bytes(), ManifestOrigin::Foreign);
        let manifest = manifest.map_err(|rejected| format!("the manifest: {rejected}"))?;
        let collects = |policy| matches!(policy, CoveragePolicy::Collect | CoveragePolicy::Deferred);
        let streams = manifest.streams.iter().filter(|stream| collects(stream.coverage_policy));
        let streams = streams.map(|stream| StreamScope::all_of(&stream.name)).collect();
        let raw = |value: &Value| RawJson::new(value.to_string()).unwrap_or_default();
        let state = self.state.iter().map(|(stream, cursor)| (stream.clone(), raw(cursor))).collect::<Vec<_>>();
        Ok(RuntimeMessage::Start(Box::new(Start {
            run_id: "replay-1".to_owned(),
            collection_mode: CollectionMode::Incremental,
            scope: Scope::new(streams).map_err(|fault| format!("the manifest: {fault}"))?,
            state: (!state.is_empty()).then_some(state),
            bindings: vec![("network".to_owned(), raw(&Value::Object(serde_json::Map::new())))],
            detail_gaps: Vec::new(),
            recovery_only: false,
            run_budget: None,
        })))
    }
}

/// Messages of a connector.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Every message, in order.
    pub messages: Vec<Value>,
}

impl Replayed {
    /// The messages of one type, such as `RECORD` or `DETAIL_GAP`.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.messages.iter().filter(|message| message["type"] == kind).collect()
    }

    /// The bodies of the records of a stream, in order; `null` for one that was deleted.
    pub fn records(&self, stream: &str) -> Vec<&Value> {
        self.of("RECORD")
            .into_iter()
            .filter(|record| record["stream"] == stream)
            .map(|record| &record["data"])
            .collect()
    }

    /// The gaps of a stream.
    pub fn gaps(&self, stream: &str) -> Vec<&Value> {
        self.of("DETAIL_GAP").into_iter().filter(|gap| gap["stream"] == stream).collect()
    }

    /// The last message: `status`, and `error` if any.
    pub fn done(&self) -> &Value {
        self.messages.last().unwrap_or(&Value::Null)
    }
}

/// A runtime that stores all messages. Its START has no gaps, and nobody can answer questions.
struct Script {
    inbox: VecDeque<RuntimeMessage>,
    said: Vec<Value>,
    half: Vec<u8>,
}

impl Wire for Script {
    fn write(&mut self, bytes: &[u8]) -> Result<(), WireFault> {
        self.half.extend_from_slice(bytes);
        while let Some(end) = self.half.iter().position(|&byte| byte == b'\n') {
            let line = self.half.drain(..=end).collect::<Vec<_>>();
            self.said.extend(serde_json::from_slice::<Value>(&line).ok());
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Option<RuntimeMessage>, WireFault> {
        Ok(self.inbox.pop_front())
    }

    fn drain(&mut self, _: Duration) -> Result<(), WireFault> {
        Ok(())
    }

    fn wait_for_end(&mut self, _: Duration) -> bool {
        true
    }
}
