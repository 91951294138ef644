//! What a run is asked to do, and what comes of it.

use crate::process::{Launch, LaunchError};
use gleaner_engine::{Redactor, Refusal, RunOutcome, RunPurpose, RunScope, TrackChoice, WallTime};
use gleaner_protocol::{CollectionMode, InteractionResponse, Manifest, RawJson, RunBudget};
use gleaner_store::{HeldBy, StoreError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One run of one connection.
#[derive(Debug)]
pub struct RunRequest {
    /// The connection, which the store knows.
    pub connection: String,
    /// The connector's description of itself.
    pub manifest: Arc<Manifest>,
    /// What to collect, beside what the owner allows. Which track the run moves follows from it.
    pub scope: RunScope,
    /// From the beginning, or from where the last run ended.
    pub mode: CollectionMode,
    /// What for: with [`RunPurpose::RecoveryOnly`] it recovers gaps, and does not walk forward.
    pub purpose: RunPurpose,
    /// The owner's permission, by its name.
    pub grant: String,
    /// The end of that permission.
    pub grant_expires_at: Option<WallTime>,
    /// How to start it.
    pub launch: Launch,
    /// What it may use, and how. `interactive` among them if somebody can answer.
    pub bindings: Vec<(String, RawJson<'static>)>,
    /// How much it may do.
    pub budget: Option<RunBudget>,
    /// How long a connector may go on after its time is over, to finish the request that it is in.
    pub overrun: Duration,
    /// Whose limit it shares: provider, and a keyed hash of the credential.
    pub credential: Option<(String, String)>,
    /// The connection's secrets, to be masked.
    pub redactor: Redactor,
    /// How often the connection runs by itself: the base of its cooldown.
    pub interval: Option<Duration>,
    /// After so long without any news the connector is taken for stuck.
    pub silence_max: Option<Duration>,
    /// The folder with a socket by which other processes reach the run: see [`tell`](crate::tell).
    pub control: Option<PathBuf>,
}

impl RunRequest {
    /// An incremental run for everything, without bindings, budget, secrets and other processes that could reach it. A
    /// caller sets the fields that it wants otherwise.
    #[must_use]
    pub fn new(connection: impl Into<String>, manifest: Arc<Manifest>, scope: RunScope, launch: Launch) -> Self {
        Self {
            connection: connection.into(),
            manifest,
            scope,
            mode: CollectionMode::Incremental,
            purpose: RunPurpose::Full,
            grant: "owner".to_owned(),
            grant_expires_at: None,
            launch,
            bindings: Vec::new(),
            budget: None,
            overrun: Duration::from_secs(30),
            credential: None,
            redactor: Redactor::default(),
            interval: None,
            silence_max: None,
            control: None,
        }
    }
}

/// What somebody wants of a run that goes on.
#[derive(Debug)]
pub enum Control {
    /// Finish the slice, then stop.
    Cancel,
    /// Stop at once.
    CancelNow,
    /// An answer of the owner.
    Answer(InteractionResponse),
}

/// How a run ended.
#[derive(Debug)]
pub struct RunReport {
    /// Its name.
    pub run_id: String,
    /// Why it is over, and what went through it.
    pub outcome: RunOutcome,
    /// The store's trouble, if that ended it.
    pub store_error: Option<StoreError>,
    /// The end of what the connector wrote to its errors, without secrets.
    pub errors: String,
    /// How many earlier runs were found that never ended.
    pub interrupted_before: u64,
    /// Records that left quarantine when it began, because they fit their schema now.
    pub left_quarantine: u64,
    /// Whether somebody told it to stop.
    pub was_told_to_stop: bool,
    /// Which track it moved.
    pub track: TrackChoice,
}

/// Why a run was not begun.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The engine refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A schema of the manifest cannot be used.
    #[error(transparent)]
    Schema(#[from] gleaner_engine::SchemaFault),
    /// The process could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It could not be made reachable, so nobody could answer or stop it.
    #[error("cannot listen for answers in {}: {error}", folder.display())]
    Control {
        /// Where.
        folder: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Another run goes on.
    #[error("{} is at work for process {}", .0.lease, .0.pid)]
    Held(HeldBy),
}
