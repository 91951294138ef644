//! Fetches a list of URLs politely: each host at its own pace, resumable, one result per URL.
//!
//! ```text
//! discovery ──▶ scheduler ──▶ extraction ──▶ processing ──▶ output
//! a thread      frontier,     a task per     its body,      journal, and
//! reads the     registry,     request        hashed and     whoever listens
//! list          robots.txt                   stored
//! ```
//!
//! Everything is bounded: the list stays in its file, at most [`Settings::concurrency`] requests run at a time, and a
//! slow reader of results slows down everything before it. [`fetch`] is the entry point.
//!
//! # Files
//!
//! - `settings.rs`, `host_settings.rs`: settings of a fetch; settings of hosts by name
//! - `robots.rs`, `frontier.rs`, `job.rs`, `url_list.rs`: pure: robots.txt, order of sites, one URL and its line, the
//!   list
//! - `journal.rs`, `bodies.rs`, `result_line.rs`: files: finished URLs, bodies by hash, a result line
//! - `discovery.rs`: the thread that reads the list
//! - `pipeline.rs`, `pipeline/`: the scheduler, with `rules` (robots.txt) and `maintenance`
//! - `exchange.rs`, `wire.rs`: one request; the interface to sockets
//! - `progress.rs`, `stop.rs`: progress; stopping

#![warn(missing_docs)]

mod bodies;
mod discovery;
mod exchange;
mod frontier;
mod host_settings;
mod job;
mod journal;
mod pipeline;
#[cfg(test)]
mod pipeline_tests;
mod progress;
mod result_line;
mod robots;
mod settings;
mod stop;
mod url_list;
mod wire;

pub use host_settings::{Assignment, HOST_SETTINGS, HostSetting, HostSettingError};
pub use progress::Progress;
pub use result_line::ResultLine;
pub use robots::{ROBOTS_BYTES_MAX, ROBOTS_PATH, Robots};
pub use settings::{BODY_BYTES_MAX, CONCURRENCY, List, Settings, WAIT_MAX};
pub use stop::Stop;

use bodies::Bodies;
use exchange::Shared;
use gleaner_http::governor::ConfigError;
use gleaner_http::{DomainSettings, Domains, DomainsError};
use journal::{Folder, Journal, Previous};
use pipeline::{Parts, Pipeline};
use progress::PipelineEvent;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, channel};
use url_list::{LineFile, Spool};
use wire::{Sockets, Wire};

/// Capacity of the channel of finished lines.
const LINES_AHEAD: usize = 256;

/// Why a fetch ended early. Finished URLs are saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The list cannot be read.
    #[error("the list cannot be read: {0}")]
    List(#[source] io::Error),
    /// The results folder cannot be used.
    #[error("the results folder cannot be used: {0}")]
    Folder(#[source] io::Error),
    /// Another process fetches into the same folder.
    #[error("another fetch uses {}", .0.display())]
    Busy(PathBuf),
    /// A setting is invalid.
    #[error("{0}")]
    Setting(#[from] ConfigError),
    /// The HTTP client cannot be created.
    #[error(transparent)]
    Client(#[from] gleaner_http::Error),
    /// The listener failed.
    #[error("{0}")]
    Listener(#[source] io::Error),
    /// A bug.
    #[error("internal error: a task ended unexpectedly: {0}")]
    Bug(String),
}

/// Events for the listener.
#[derive(Debug)]
pub enum Event<'a> {
    /// The start, with the hosts to watch.
    Started(&'a Domains),
    /// A URL is finished and saved; also as the saved line.
    Line(&'a ResultLine, &'a str),
    /// Progress, about once a second.
    Progress(&'a Progress),
}

/// How a fetch ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// URLs of this pass with a body, including earlier runs.
    pub fetched: u64,
    /// Fetched URLs that are unchanged since the previous pass; only of this run.
    pub unchanged: u64,
    /// URLs of this pass without a body.
    pub failed: u64,
    /// URLs that an earlier run of this pass finished.
    pub before: u64,
    /// Whether the pass is complete; otherwise the next run resumes it.
    pub is_complete: bool,
}

/// Fetches a list. `listen` is called for each result, in order of completion, and may block; its error ends the
/// fetch.
///
/// The next run with the same folder resumes a stopped or killed run. The thread that reads a pipe ends with its next
/// line, because a blocked read cannot be interrupted.
///
/// # Errors
/// The list, the folder or the settings cannot be used, or `listen` fails.
pub async fn fetch(
    list: List,
    settings: Settings,
    stop: Stop,
    listen: impl FnMut(Event<'_>) -> io::Result<()>,
) -> Result<Summary, FetchError> {
    let wire = Sockets::new(&settings)?;
    fetch_over(wire, list, settings, stop, listen).await
}

async fn fetch_over<W: Wire>(
    wire: W,
    list: List,
    mut settings: Settings,
    stop: Stop,
    listen: impl FnMut(Event<'_>) -> io::Result<()>,
) -> Result<Summary, FetchError> {
    settings.governor.check()?;
    settings.concurrency = settings.concurrency.max(1);
    let folder = Folder::open(&settings.out).map_err(FetchError::Folder)?;
    let folder = folder.ok_or_else(|| FetchError::Busy(settings.out.clone()))?;
    let bodies = Arc::new(Bodies::open(&folder.root).map_err(FetchError::Folder)?);
    let (journal, finished) = Journal::open(&folder, &bodies).map_err(FetchError::Folder)?;
    let (previous, previous_file) = Previous::open(&folder).map_err(FetchError::Folder)?;
    let (reader, list) = open_list(list, &folder)?;
    let domains = domains(&folder, &settings)?;

    let before = finished.fetched + finished.failed;
    let summary = Summary { fetched: finished.fetched, failed: finished.failed, before, ..Summary::default() };
    let progress = Progress { found: before, ..Progress::default() };
    let found = discovery::start(BufReader::new(reader), finished, previous).map_err(FetchError::List)?;
    let (heard_sender, heard) = channel(settings.concurrency);
    let (told, lines) = channel(LINES_AHEAD);
    let mut output = Output { journal, summary, failure: None, listen };
    (output.listen)(Event::Started(&domains)).map_err(FetchError::Listener)?;
    let shared = Arc::new(Shared { wire, domains, bodies, heard: heard_sender });
    let parts = Parts { shared, heard, found, told, list, previous: previous_file, stop: stop.clone() };
    let scheduler = tokio::spawn(Pipeline::new(settings, parts, progress).run());
    output.take(lines, &stop).await;
    let ended = scheduler.await.map_err(|error| FetchError::Bug(error.to_string()))?;
    output.close(ended, &stop)
}

/// The hosts, with the file of learned rates: a restart continues with them, and a ban survives a kill.
fn domains(folder: &Folder, settings: &Settings) -> Result<Domains, FetchError> {
    let settings = DomainSettings { config: settings.governor.clone(), ..DomainSettings::default() };
    Domains::remembering(settings, &folder.root.join("hosts.txt")).map_err(|error| match error {
        DomainsError::Config(error) => FetchError::Setting(error),
        DomainsError::Memory(error) => FetchError::Folder(error.source),
        error @ DomainsError::SnapshotEvery => FetchError::Bug(error.to_string()),
    })
}

/// A reader for discovery, and the file in which lines are found again.
fn open_list(list: List, folder: &Folder) -> Result<(Box<dyn Read + Send>, LineFile), FetchError> {
    let pipe: Box<dyn Read + Send> = match list {
        List::Pipe(pipe) => pipe,
        List::File(path) => {
            let file = File::open(&path).map_err(FetchError::List)?;
            if file.metadata().map_err(FetchError::List)?.is_file() {
                let again = File::open(&path).map_err(FetchError::List)?;
                return Ok((Box::new(file), LineFile(again)));
            }
            Box::new(file)
        }
    };
    let path = folder.root.join("list.txt");
    let spool = OpenOptions::new().create(true).truncate(true).write(true).open(&path).map_err(FetchError::Folder)?;
    let again = File::open(&path).map_err(FetchError::Folder)?;
    Ok((Box::new(Spool { from: pipe, to: spool }), LineFile(again)))
}

/// End of the pipeline: saves each line, then passes it to the listener.
struct Output<L> {
    journal: Journal,
    summary: Summary,
    failure: Option<FetchError>,
    listen: L,
}

impl<L: FnMut(Event<'_>) -> io::Result<()>> Output<L> {
    async fn take(&mut self, mut lines: Receiver<PipelineEvent>, stop: &Stop) {
        while let Some(told) = lines.recv().await {
            let result = match told {
                PipelineEvent::Line(line) => self.line(&line),
                PipelineEvent::Progress(_) if self.failure.is_some() => Ok(()),
                PipelineEvent::Progress(progress) => {
                    let Summary { fetched, failed, .. } = self.summary;
                    let progress = Progress { done: fetched + failed, failed, ..progress };
                    (self.listen)(Event::Progress(&progress)).map_err(FetchError::Listener)
                }
            };
            if let Err(error) = result {
                self.failure.get_or_insert(error);
                stop.stop();
            }
        }
    }

    /// Finished lines are saved even after the listener failed.
    fn line(&mut self, line: &ResultLine) -> Result<(), FetchError> {
        let json = line.to_json();
        self.journal.append(&json).map_err(FetchError::Folder)?;
        self.summary.fetched += u64::from(line.is_fetched());
        self.summary.unchanged += u64::from(line.status == Some(304) && line.is_fetched());
        self.summary.failed += u64::from(!line.is_fetched());
        if self.failure.is_some() {
            return Ok(());
        }
        (self.listen)(Event::Line(line, &json)).map_err(FetchError::Listener)
    }

    fn close(self, ended: Result<(), FetchError>, stop: &Stop) -> Result<Summary, FetchError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        ended?;
        let is_complete = !stop.is_set();
        if is_complete {
            self.journal.finish().map_err(FetchError::Folder)?;
        }
        Ok(Summary { is_complete, ..self.summary })
    }
}
