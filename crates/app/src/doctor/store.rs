//! The store: is it ours, whole, not older than what was here, and does anybody work in it.

use super::{Check, all_well, failed, folder, warning, well};
use crate::app::App;
use crate::dates;
use crate::error::ErrorKind;
use gleaner_store::{Holder, LeaseStanding, Reader, StoreError};
use std::fs;

/// The log is moved into the store at 4 MB and cut back to 16. Longer than this, something keeps it from that.
const LOG_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Opens it, if there is one.
pub(super) fn open(app: &App, checks: &mut Vec<Check>) -> Option<Reader> {
    const NAME: &str = "store";
    match app.reader() {
        Ok(reader) => {
            let (schema, _) = Reader::versions();
            checks.push(well(NAME, format!("{} opens, schema {schema}", app.store_path().display())));
            Some(reader)
        }
        Err(error) => {
            checks.push(match error.kind {
                ErrorKind::NotInitialized => warning(NAME, error.message, "run: gleaner init"),
                _ => failed(NAME, error.message, "gleaner restore FILE puts a backup in its place"),
            });
            None
        }
    }
}

pub(super) fn checks(reader: &Reader, app: &App) -> Vec<Check> {
    vec![folder::modes(app), pages(reader), older_copy(reader), log(app), leases(reader), questions(reader)]
}

fn unreadable(name: &'static str, error: &StoreError) -> Check {
    failed(name, error.to_string(), "run: gleaner verify")
}

fn pages(reader: &Reader) -> Check {
    const NAME: &str = "store pages";
    match reader.quick_check() {
        Ok(faults) => {
            let hint = "copy the data root, then run: gleaner verify, and restore a backup";
            all_well(NAME, &faults, "every page is in order; `gleaner verify` also looks at what is in them", hint)
        }
        Err(error) => unreadable(NAME, &error),
    }
}

fn older_copy(reader: &Reader) -> Check {
    const NAME: &str = "older copy";
    match reader.check_not_restored() {
        Ok(()) => well(NAME, "the store is not older than what was here before"),
        Err(error @ StoreError::OlderThanSeen { .. }) => {
            let hint = "put the newer store back, or go on from this one: gleaner restore --accept";
            failed(NAME, error.to_string(), hint)
        }
        Err(error) => unreadable(NAME, &error),
    }
}

fn log(app: &App) -> Check {
    const NAME: &str = "store log";
    let mut path = app.store_path().into_os_string();
    path.push("-wal");
    let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    let what = format!("{} KiB", bytes / 1024);
    if bytes <= LOG_BYTES_MAX {
        return well(NAME, what);
    }
    let hint = "a program reads the store for very long, or was killed; close it, then run something";
    warning(NAME, what, hint)
}

fn leases(reader: &Reader) -> Check {
    const NAME: &str = "leases";
    let holder = match Holder::current() {
        Ok(holder) => holder,
        Err(error) => return failed(NAME, format!("cannot tell who we are: {error}"), "check that /proc is there"),
    };
    let standings = match reader.leases(&holder, dates::now()) {
        Ok(standings) => standings,
        Err(error) => return unreadable(NAME, &error),
    };
    let mut at_work = Vec::new();
    let mut abandoned = Vec::new();
    for standing in standings {
        match standing {
            LeaseStanding::Held(by) => at_work.push(format!("process {} holds {}", by.pid, by.lease)),
            LeaseStanding::Abandoned(name) => abandoned.push(name),
        }
    }
    if abandoned.is_empty() {
        let what = if at_work.is_empty() { "nobody is at work".to_owned() } else { at_work.join("; ") };
        return well(NAME, what);
    }
    let what = format!("a process ended without giving back: {}", abandoned.join(", "));
    warning(NAME, what, "nothing is lost: the next run resumes at once")
}

fn questions(reader: &Reader) -> Check {
    const NAME: &str = "questions";
    match reader.open_questions() {
        Ok(open) if open.is_empty() => well(NAME, "none waits for you"),
        Ok(open) => {
            let names = open.iter().map(|question| question.connection.as_str()).collect::<Vec<_>>();
            let what = format!("{} wait for you: {}", open.len(), names.join(", "));
            warning(NAME, what, "`gleaner status` shows them, `gleaner answer` answers")
        }
        Err(error) => unreadable(NAME, &error),
    }
}
