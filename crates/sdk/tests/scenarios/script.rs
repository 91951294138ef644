//! A run whose other side is a script: a START, answers, and a list of everything that was said.

use gleaner_engine::{Time, WallTime};
use gleaner_protocol::{ConnectorMessage, Decoder, Event, Limits, RuntimeMessage};
use gleaner_sdk::{Clock, Collect, Connector, Stop, Surroundings, Wire, WireFault, run_on};
use serde_json::{Value, json};
use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Two streams: notes change, events only grow.
pub(crate) const MANIFEST: &str = r#"{
    "connector_id": "org.example.notes", "connector_key": "notes", "version": "1", "display_name": "Notes",
    "streams": [
        {"name": "notes", "semantics": "mutable_state", "consent_time_field": "at",
         "schema": {"type": "object", "required": ["id"], "properties": {
             "id": {"type": "integer"}, "text": {"type": "string"}, "at": {"type": "string"},
             "tags": {"type": "object", "additionalProperties": {"type": "integer"}}}}},
        {"name": "events", "semantics": "append_only", "schema": {"type": "object"}}
    ]}"#;

/// The same with a credential, of which one has two names.
pub(crate) fn manifest_with_auth() -> String {
    let mut manifest = serde_json::from_str::<Value>(MANIFEST).unwrap();
    manifest["capabilities"] =
        json!({"auth": {"kind": "env", "required": ["NOTES_USER", ["NOTES_TOKEN", "NOTES_KEY"]]}});
    manifest.to_string()
}

/// A START for both streams.
pub(crate) fn start() -> Value {
    json!({
        "type": "START", "run_id": "r1", "collection_mode": "incremental", "state": null, "bindings": {},
        "scope": {"streams": [{"name": "notes"}, {"name": "events"}]}, "detail_gaps": [],
    })
}

/// The runtime's answer to a line.
pub(crate) type Answer = Box<dyn FnMut(&Value) -> Option<Value> + Send>;

/// One run to be made.
pub(crate) struct Script {
    pub(crate) manifest: String,
    pub(crate) start: Value,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) clock: Arc<SetClock>,
    pub(crate) answer: Answer,
    /// Whether a panic of the author's code is what the test is about.
    pub(crate) may_panic: bool,
}

/// Result of a script.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) lines: Vec<Value>,
    pub(crate) exit: ExitCode,
}

impl Script {
    pub(crate) fn new(start: Value) -> Self {
        let (manifest, clock) = (MANIFEST.to_owned(), Arc::default());
        Self { manifest, start, variables: BTreeMap::new(), clock, answer: Box::new(|_| None), may_panic: false }
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn answering(mut self, answer: impl FnMut(&Value) -> Option<Value> + Send + 'static) -> Self {
        self.answer = Box::new(answer);
        self
    }

    pub(crate) fn run(self, collect: impl Fn(&mut Collect<'_>) -> Result<(), Stop>) -> Said {
        let inbox = VecDeque::from([self.start]);
        let mut wire = ScriptWire { inbox, answer: self.answer, half: Vec::new(), lines: Vec::new() };
        let variable = |name: &str| self.variables.get(name).cloned();
        let around = Surroundings { variable: &variable, clock: self.clock.as_ref() };
        let code = Code { collect, panic: RefCell::default() };
        let exit = run_on(&mut wire, &self.manifest, &code, &around);
        let panic = code.panic.into_inner();
        if let (Some(panic), false) = (panic, self.may_panic) {
            resume_unwind(panic);
        }
        Said { lines: wire.lines, exit }
    }
}

/// An author's code. A panic in it is the framework's to take, and ours to hear of: it may be an assertion.
struct Code<F> {
    collect: F,
    panic: RefCell<Option<Box<dyn Any + Send>>>,
}

impl<F: Fn(&mut Collect<'_>) -> Result<(), Stop>> Connector for Code<F> {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        catch_unwind(AssertUnwindSafe(|| (self.collect)(run))).unwrap_or_else(|panic| {
            *self.panic.borrow_mut() = Some(panic);
            panic!("the panic of an author's code, once more")
        })
    }
}

struct ScriptWire {
    inbox: VecDeque<Value>,
    answer: Answer,
    half: Vec<u8>,
    lines: Vec<Value>,
}

impl Wire for ScriptWire {
    fn write(&mut self, bytes: &[u8]) -> Result<(), WireFault> {
        self.half.extend_from_slice(bytes);
        while let Some(end) = self.half.iter().position(|&byte| byte == b'\n') {
            let line = self.half.drain(..=end).collect::<Vec<_>>();
            let value = serde_json::from_slice::<Value>(&line).unwrap();
            self.inbox.extend((self.answer)(&value));
            self.lines.push(value);
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Option<RuntimeMessage>, WireFault> {
        Ok(self.inbox.pop_front().map(|line| RuntimeMessage::decode(line.to_string().as_bytes()).unwrap()))
    }

    fn drain(&mut self, _: Duration) -> Result<(), WireFault> {
        Ok(())
    }

    fn wait_for_end(&mut self, _: Duration) -> bool {
        true
    }
}

impl Said {
    /// The messages of one type.
    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["type"] == kind).collect()
    }

    /// The types in order.
    pub(crate) fn types(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
    }

    pub(crate) fn done(&self) -> &Value {
        let last = self.lines.last().unwrap();
        assert_eq!(last["type"], "DONE", "DONE is the last message");
        assert_eq!(self.of("DONE").len(), 1);
        last
    }

    /// Every line is one that the runtime's own reader takes.
    pub(crate) fn check(&self) -> &Self {
        let text = self.lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let mut decoder = Decoder::new(Limits::default());
        let mut feed = decoder.feed(text.as_bytes());
        let mut records = 0;
        while let Some(event) = feed.next() {
            assert!(!matches!(event, Event::Violation(_)), "{event:?}");
            records += u64::from(matches!(event, Event::Message { message: ConnectorMessage::Record(_), .. }));
        }
        assert_eq!(self.done()["records_emitted"], records);
        let succeeded = self.done()["status"] == "succeeded";
        let code = if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        assert_eq!(format!("{:?}", self.exit), format!("{code:?}"), "the exit code agrees with DONE");
        self
    }
}

/// A clock that moves when it is told to, or waited for.
#[derive(Debug, Default)]
pub(crate) struct SetClock(AtomicU64);

impl SetClock {
    pub(crate) fn advance(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn wall(&self) -> WallTime {
        WallTime::from_unix_millis(1_900_000_000_000 + self.0.load(Ordering::Relaxed))
    }

    fn pause(&self, wait: Duration) {
        self.advance(wait);
    }
}
