//! A store, and a real runtime that runs one of the examples with it, as a process.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use gleaner_engine::{CatchUp, GrantPart, RunScope, Steady, Track, WallTime};
use gleaner_protocol::{Manifest, ManifestOrigin, RunBudget, Scope, StreamScope};
use gleaner_runtime::{Environment, Launch, RunReport, RunRequest, Unobserved};
use gleaner_store::{GapFilter, Reader, Store};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An example, which cargo puts beside the folder of the tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let ourselves = std::env::current_exe().unwrap();
    let path = ourselves.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.exists(), "build it first: cargo build -p gleaner-sdk --example {name}");
    path
}

pub(crate) struct World {
    folder: tempfile::TempDir,
    program: PathBuf,
    manifest: String,
    streams: &'static [&'static str],
}

impl World {
    /// An example by its name. Its manifest is taken from its source, so that there is one.
    pub(crate) fn new(name: &str, source: &str, streams: &'static [&'static str]) -> Self {
        let (_, rest) = source.split_once("r#\"").unwrap();
        let manifest = rest.split_once("\"#;").unwrap().0.to_owned();
        Self { folder: tempfile::tempdir().unwrap(), program: example(name), manifest, streams }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    pub(crate) fn run(&self, settings: &[(&str, &str)], budget: Option<RunBudget>) -> RunReport {
        self.run_on::<Steady>(settings, budget)
    }

    /// The same on one of the two tracks.
    pub(crate) fn run_on<T: Track>(&self, settings: &[(&str, &str)], budget: Option<RunBudget>) -> RunReport {
        let manifest = Manifest::parse(self.manifest.as_bytes(), ManifestOrigin::FirstParty).unwrap();
        let mut store = Store::open(&self.store()).unwrap();
        store.register("c", &self.manifest, &manifest, WallTime::default()).unwrap();
        let mut environment = Environment::default();
        for (name, value) in settings {
            environment.set(name, value);
        }
        let program = self.program.clone().into_os_string();
        let scope = Scope::new(self.streams.iter().copied().map(StreamScope::all_of).collect()).unwrap();
        let is_history = T::NAME == CatchUp::NAME;
        let part = if is_history { GrantPart::History { until: None } } else { GrantPart::All };
        let launch = Launch {
            command: vec![program.clone()],
            environment,
            folder: None,
            guard: vec![program.clone(), "guard".into()],
            exec: vec![program, "exec".into()],
        };
        let scope = RunScope { part, ..RunScope::ordinary(scope) };
        let overrun = Duration::from_secs(5);
        let request = RunRequest { budget, overrun, ..RunRequest::new("c", Arc::new(manifest), scope, launch) };
        let (_orders, control) = std::sync::mpsc::channel();
        gleaner_runtime::run(&mut store, request, control, &mut Unobserved).unwrap()
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(&self.store()).unwrap()
    }

    /// The committed cursor of a track, as it was written.
    pub(crate) fn cursor<T: Track>(&self, stream: &str) -> Option<String> {
        let cursors = self.reader().bookmarks::<T>("c").unwrap();
        cursors.iter().find(|cursor| cursor.stream() == stream).map(|cursor| cursor.token().as_str().to_owned())
    }

    pub(crate) fn records(&self, stream: &str) -> usize {
        self.reader().records("c", stream, None, 1000).unwrap().len()
    }

    /// The states of all gaps that there ever were.
    pub(crate) fn gaps(&self) -> Vec<(String, bool)> {
        let filter = GapFilter { stream: None, closed_too: true };
        let gaps = self.reader().gaps("c", filter, 0, 100).unwrap();
        gaps.into_iter().map(|gap| (gap.state, gap.run_cap)).collect()
    }
}
