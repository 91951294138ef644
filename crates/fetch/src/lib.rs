//! A list of URLs, fetched politely: each host at its own pace, resumable, one result per URL.
//!
//! ```text
//! discovery ──▶ scheduler ──▶ extraction ──▶ processing ──▶ output
//! a thread      frontier,     a task per     its body,      journal, and
//! reads the     registry,     request        hashed and     whoever listens
//! list          robots.txt                   stored
//! ```
//!
//! All of it is bounded: the list stays in its file, at most [`Settings::concurrency`] requests are under way, and
//! who does not take results holds up everything before them. [`fetch`] is the whole of it.
//!
//! # Files
//!
//! - `settings.rs`, `host_settings.rs`: the whole of it; what can be set, and of hosts by name
//! - `robots.rs`, `frontier.rs`, `job.rs`, `url_list.rs`: pure: what a host allows, which site is next, one URL and
//!   its line, the list
//! - `journal.rs`, `bodies.rs`, `result_line.rs`: files: what is finished, bodies by their hash, a line
//! - `discovery.rs`: the thread that reads the list
//! - `pipeline.rs`, `pipeline/`: the scheduler, with `rules` (robots.txt) and `maintenance`
//! - `exchange.rs`, `wire.rs`: one request; the seam to sockets
//! - `progress.rs`, `stop.rs`: how it goes; how it is stopped

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
use progress::Told;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, channel};
use url_list::{LineFile, Spool};
use wire::{Sockets, Wire};

/// Lines that are finished and not yet written down.
const LINES_AHEAD: usize = 256;

/// Why a fetch ended before its end. What was finished is written down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The list cannot be read.
    #[error("the list cannot be read: {0}")]
    List(#[source] io::Error),
    /// The folder of results cannot be used.
    #[error("the folder of results cannot be used: {0}")]
    Folder(#[source] io::Error),
    /// Another process fetches into the same folder.
    #[error("another fetch uses {}", .0.display())]
    Busy(PathBuf),
    /// A setting makes no sense.
    #[error("{0}")]
    Setting(#[from] ConfigError),
    /// No client can be made.
    #[error(transparent)]
    Client(#[from] gleaner_http::Error),
    /// Whoever listens has failed.
    #[error("{0}")]
    Listener(#[source] io::Error),
    /// Something that cannot happen.
    #[error("a task ended in a way that it must not: {0}")]
    Bug(String),
}

/// What a listener is told.
#[derive(Debug)]
pub enum Event<'a> {
    /// It begins: these are the hosts, to be looked at for as long as it takes.
    Started(&'a Domains),
    /// A URL is finished and written down; also as it was written.
    Line(&'a ResultLine, &'a str),
    /// How it goes, about once a second.
    Progress(&'a Progress),
}

/// How a fetch ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// URLs of this pass that have a body, those of former runs included.
    pub fetched: u64,
    /// Of those, the ones that are as they were in the last pass; only of this run.
    pub unchanged: u64,
    /// URLs of this pass that have none.
    pub failed: u64,
    /// URLs that a former run of this pass had finished.
    pub before: u64,
    /// Whether the pass is over; otherwise the next run goes on with it.
    pub is_complete: bool,
}

/// Fetches a list. `listen` is called for each result, in the order in which they are finished, and may hold
/// everything up; its error ends the fetch.
///
/// A run that was stopped or killed is gone on with by the next one with the same folder. The thread that reads a
/// pipe ends with its next line: nobody can take a blocked reader away.
///
/// # Errors
/// When the list, the folder or the settings cannot be used, or `listen` fails.
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

/// The hosts, with the file of learned paces: a restart goes on with them, and a ban outlives a kill.
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

/// The end of the pipeline: writes each line down, and then tells it.
struct Output<L> {
    journal: Journal,
    summary: Summary,
    failure: Option<FetchError>,
    listen: L,
}

impl<L: FnMut(Event<'_>) -> io::Result<()>> Output<L> {
    async fn take(&mut self, mut lines: Receiver<Told>, stop: &Stop) {
        while let Some(told) = lines.recv().await {
            let result = match told {
                Told::Line(line) => self.line(&line),
                Told::Progress(_) if self.failure.is_some() => Ok(()),
                Told::Progress(progress) => {
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

    /// What is finished is written down, also when nobody listens any more.
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
