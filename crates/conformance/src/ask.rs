//! What a connector is asked in one start, and how it is treated meanwhile.

use gleaner_protocol::{CollectionMode, RunBudget, StreamScope};
use std::time::Duration;

/// One start.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// What it is for, in words.
    pub(crate) name: &'static str,
    pub(crate) mode: CollectionMode,
    pub(crate) streams: Vec<StreamScope>,
    pub(crate) recovery_only: bool,
    pub(crate) budget: Option<RunBudget>,
    /// START has keys that nobody knows.
    pub(crate) unknown_keys: bool,
    /// Variables that are taken away.
    pub(crate) without: Vec<String>,
    pub(crate) treatment: Treatment,
    /// How long it is watched after DONE before its input is closed.
    pub(crate) linger: Duration,
}

/// What is done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// It is left alone.
    Patient,
    /// It is killed after so many lines.
    Kill(u64),
    /// It is asked to end after so many lines.
    Terminate(u64),
    /// Its input ends right after START.
    EndOfInput,
    /// Its output is read slowly for so long.
    Slow(Duration),
}

impl Ask {
    /// Everything of these streams, from the beginning.
    pub(crate) fn full(name: &'static str, streams: &[String]) -> Self {
        Self {
            name,
            mode: CollectionMode::FullRefresh,
            streams: streams.iter().map(StreamScope::all_of).collect(),
            recovery_only: false,
            budget: None,
            unknown_keys: false,
            without: Vec::new(),
            treatment: Treatment::Patient,
            linger: Duration::ZERO,
        }
    }

    /// From the saved state.
    pub(crate) fn from_state(name: &'static str, streams: &[String]) -> Self {
        Self { mode: CollectionMode::Incremental, ..Self::full(name, streams) }
    }

    pub(crate) fn treated(self, treatment: Treatment) -> Self {
        Self { treatment, ..self }
    }
}
