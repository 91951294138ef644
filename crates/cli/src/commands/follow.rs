//! The changes of a stream by their number, and the ones to come.
//!
//! Waiting costs one row of counters and one look at the file, a few times a second. A store that was
//! replaced is opened anew; where the last change that was printed is not in it, the numbers mean something
//! else now, and going on would be a lie.

use crate::commands::records::{as_text, json_fields};
use crate::error::{CliError, EXIT_INTERRUPTED};
use crate::terminal::output::{Output, report_to_stderr};
use crate::terminal::stop_signals;
use gleaner_app::{App, dates};
use gleaner_base::outside::one_line;
use gleaner_store::{PAGE_ROWS_MAX, Reader, StoreError, StoredRecord};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks: soon enough for a person, seldom enough to cost nothing.
const POLL: Duration = Duration::from_millis(300);
/// How long the store may be away while somebody replaces it.
const AWAY_MAX: Duration = Duration::from_secs(10);

/// What is followed.
pub(super) struct Feed {
    pub(super) app: App,
    pub(super) connection: String,
    pub(super) stream: String,
    /// After this number.
    pub(super) since: u64,
    /// At most so many lines.
    pub(super) left: u64,
    pub(super) json: bool,
}

pub(super) fn run(mut feed: Feed, mut reader: Reader, forever: bool, out: &mut Output) -> Result<ExitCode, CliError> {
    if !forever {
        feed.print_new(&reader, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let us = thread::current();
    let stopped = stop_signals::watch(move || us.unpark());
    let mut mark = reader.change_mark(feed.since)?;
    while feed.left > 0 {
        let before = feed.since;
        feed.print_new(&reader, out)?;
        if feed.since != before {
            mark = reader.change_mark(feed.since)?;
        }
        thread::park_timeout(POLL);
        if stopped.is_set() {
            return Ok(ExitCode::from(EXIT_INTERRUPTED));
        }
        if !reader.is_current() {
            reader = feed.reopen()?;
        }
        feed.check(&reader, mark)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Feed {
    fn print_new(&mut self, reader: &Reader, out: &mut Output) -> Result<(), CliError> {
        while self.left > 0 && self.last_change(reader)? > self.since {
            let rows = usize::try_from(self.left).unwrap_or(usize::MAX).min(PAGE_ROWS_MAX);
            let page = reader.changes_of(&self.connection, &self.stream, self.since, rows);
            let page = page.map_err(|error| self.explain(error))?;
            let Some(last) = page.last() else { break };
            self.since = last.seq;
            self.left -= page.len() as u64;
            for change in &page {
                out.line(&if self.json { change_json(change)? } else { change_text(change) })?;
            }
        }
        Ok(())
    }

    /// Whether the last change that was printed is still what it was.
    fn check(&self, reader: &Reader, mark: Option<i64>) -> Result<(), CliError> {
        // Both answers are of one moment: a purge in between would pass for another copy.
        let _moment = reader.snapshot()?;
        self.last_change(reader)?;
        if mark.is_none() || reader.change_mark(self.since)? == mark {
            return Ok(());
        }
        Err(CliError::failed(
            format!("the store was replaced by another copy: change {} is no longer in it", self.since),
            "changes have other numbers now; begin again, for example with --since 0",
        ))
    }

    /// Opens what took the place of the store.
    fn reopen(&self) -> Result<Reader, CliError> {
        let began = Instant::now();
        loop {
            match self.app.reader() {
                Ok(reader) => {
                    report_to_stderr("note: the store was replaced; going on with the new one");
                    return Ok(reader);
                }
                Err(error) if began.elapsed() > AWAY_MAX => return Err(error.into()),
                Err(_) => thread::park_timeout(POLL),
            }
        }
    }

    fn last_change(&self, reader: &Reader) -> Result<u64, CliError> {
        reader.last_change_of(&self.connection, &self.stream).map_err(|error| self.explain(error))
    }

    /// What it means that a stream is gone that was there.
    fn explain(&self, error: StoreError) -> CliError {
        match error {
            StoreError::UnknownConnection(_) | StoreError::UnknownStream { .. } | StoreError::Purging(_) => {
                CliError::failed(
                    format!("{}.{} was purged; nothing more comes", one_line(&self.connection), one_line(&self.stream)),
                    "`gleaner status` lists what is there",
                )
            }
            other => other.into(),
        }
    }
}

fn change_text(change: &StoredRecord) -> String {
    format!("{:>8}  {}", change.seq, as_text(change))
}

fn change_json(change: &StoredRecord) -> Result<String, CliError> {
    let emitted = serde_json::to_string(&change.emitted_at).map_err(std::io::Error::from)?;
    let (fields, stored) = (json_fields(change)?, dates::rfc3339(change.stored_at));
    Ok(format!("{{{fields},\"seq\":{},\"emitted_at\":{emitted},\"stored_at\":\"{stored}\"}}", change.seq))
}
