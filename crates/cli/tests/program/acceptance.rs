//! What was promised of a run as a whole, ten promises, each with everything real: the program, the connector of
//! the demonstration as a process of its own, a provider over HTTP, a store. Judged by what an owner sees, and by
//! the provider's own account of who asked what and when.

mod bounds;
mod killed;
mod pace;
mod recovery;
mod steps;

use crate::notes_provider::NotesProvider;
use crate::place::{Place, Running, answer, last_line};
use crate::support::Answer;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// What the program has compiled in.
const MANIFEST: &str = include_str!("../../src/demo/manifest.json");
/// A run before this one has found this pace, and says so where the connector looks for it. Without it each run here
/// would begin with one request a second.
const FOUND: &str = r#"
say(type="STATE", stream="notes", cursor={"pacing_interval_ms": float(sys.argv[1]), "pacing_recorded_at_ms": int(time.time() * 1000)}, slice=True)
done(0); end()"#;

/// A data root, and a provider that is collected into it.
pub(crate) struct Notes {
    place: Place,
    pub(crate) provider: NotesProvider,
}

impl Notes {
    /// With so many notes. The pace is known, and the owner allows no faster one.
    pub(crate) fn new(count: usize, interval_ms: u64) -> Self {
        Self::of(NotesProvider::start(count), interval_ms)
    }

    fn of(provider: NotesProvider, interval_ms: u64) -> Self {
        let place = Place::new();
        place.write("manifest.json", MANIFEST);
        place.script(FOUND);
        let notes = Self { place, provider };
        notes.knows_pace(&[], interval_ms);
        notes
    }

    /// The next run with these options begins with this pace.
    fn knows_pace(&self, options: &[&str], interval_ms: u64) {
        let mut before = self.place.run_command(options);
        let found = answer(before.arg(interval_ms.to_string()));
        assert_eq!(found.code, 0, "{found:?}");
    }

    /// A run of the connector, at most this fast.
    fn command(&self, options: &[&str], ceiling_ms: u64) -> Command {
        let mut arguments = vec!["run", "--manifest", "manifest.json", "--json"];
        arguments.extend(options);
        arguments.extend(["--", env!("CARGO_BIN_EXE_gleaner"), "connector", "demo"]);
        let mut command = self.place.command(&arguments);
        command.env("DEMO_URL", &self.provider.url);
        command.env("PDPP_DEMO_PACING_MIN_INTERVAL_MS", ceiling_ms.to_string());
        command
    }

    /// The same to its end: the exit code, and the last line.
    pub(crate) fn run(&self, options: &[&str], ceiling_ms: u64) -> (i32, Value) {
        run(&mut self.command(options, ceiling_ms))
    }

    fn start(&self, options: &[&str], ceiling_ms: u64) -> Running {
        Running::of(self.command(options, ceiling_ms))
    }

    /// The keys of what is stored.
    fn stored(&self) -> BTreeSet<String> {
        let printed = self.lines(&["records", "demo.notes", "--json"]);
        printed.iter().map(|record| record["key"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn gaps(&self) -> Vec<Value> {
        let lines = self.lines(&["gaps", "demo", "--json"]);
        lines.into_iter().filter(|line| line["kind"] == "gap" || line["kind"] == "quarantine").collect()
    }

    fn why(&self) -> Vec<Value> {
        self.lines(&["why", "demo", "--json"])
    }

    fn status(&self) -> Value {
        self.lines(&["status", "--json"]).into_iter().find(|line| line["connection"] == "demo").unwrap()
    }

    /// The cursor of a track, byte for byte.
    fn cursor(&self, track: &str) -> Option<String> {
        let sql = format!("SELECT token FROM cursors WHERE track = '{track}'");
        let rows = self.lines(&["query", "--json", &sql]);
        rows.first().map(|row| row["token"].as_str().unwrap().to_owned())
    }

    pub(crate) fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        let Answer { code, stdout, stderr } = self.place.gleaner(arguments);
        assert_eq!(code, 0, "{arguments:?}: {stderr}");
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Everything that the provider has is stored, nothing is missing, and the store is sound.
    fn assert_complete(&self) {
        assert_eq!(self.stored(), self.provider.keys().into_iter().collect());
        assert_eq!(self.gaps(), Vec::<Value>::new());
        let verify = self.place.gleaner(&["verify"]);
        assert_eq!(verify.code, 0, "{verify:?}");
    }

    /// Nothing of it was taken for the provider's pressure: it does not rest, and a run is not refused.
    fn assert_no_cooldown(&self) {
        let rests = |line: &Value| matches!(line["code"].as_str(), Some("resting" | "rested_too_often"));
        assert!(!self.why().iter().any(rests), "{:?}", self.why());
        assert_ne!(self.status()["health"], "resting");
        assert!(self.gaps().iter().all(|gap| gap["origin"] != "source"), "{:?}", self.gaps());
    }
}

fn run(command: &mut Command) -> (i32, Value) {
    let answer = answer(command);
    assert_eq!(last_line(&answer.stdout)["message_type"], "run_finished", "{answer:?}");
    (answer.code, last_line(&answer.stdout))
}

/// The key of a gap that stands for a part of the list.
fn is_part_of_list(gap: &Value) -> bool {
    gap["record_key"].as_str().is_none_or(|key| key.starts_with("gleaner:"))
}
