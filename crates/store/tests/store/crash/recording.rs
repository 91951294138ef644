//! From system calls to what a disk is asked to do, and what was said in between.
//!
//! The index of the log in shared memory is left out: after a power cut it does not exist, SQLite makes
//! it anew. A call that writes in a way that is not modelled is a panic.

use super::program::{Place, Said, Work};
use super::strace::{self, Call};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

/// Everything that changes a file or a folder.
const CALLS: &str = "trace=openat,open,creat,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,sync_file_range,\
                     ftruncate,truncate,fallocate,copy_file_range,unlink,unlinkat,rename,renameat,renameat2,link,linkat";
/// No text may be cut short.
const TEXT_BYTES_MAX: &str = "1000000";

/// One step of the log. Names are those of files in the folder of the store.
#[derive(Debug)]
pub(crate) enum Step {
    Create(String),
    Write {
        file: String,
        offset: u64,
        bytes: Vec<u8>,
    },
    /// At the end of what is there: the note beside the store is written in one go.
    Append {
        file: String,
        bytes: Vec<u8>,
    },
    Truncate {
        file: String,
        len: u64,
    },
    Sync(String),
    SyncFolder,
    Unlink(String),
    Rename {
        from: String,
        to: String,
    },
    /// A new process.
    Start,
    Fetched,
    /// All ids below this one are durable, it says.
    Acknowledged(u64),
    /// The run has ended well, it says.
    Done,
}

/// One store from its first moment on.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) steps: Vec<Step>,
}

/// How the disk is while we record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syncs {
    AreDone,
    /// The program is told that they were: what `synchronous=OFF` amounts to.
    AreFaked,
}

/// The write of the first process at which it is killed, so that a second one has a log to recover.
const FIRST_ENDS_AT: u32 = 4300;

/// Records two processes on one store: the first is killed, the second recovers and finishes.
pub(crate) fn record(work: Work, syncs: Syncs) -> Recording {
    let place = Place::new();
    let mut recording = Recording { steps: Vec::new() };
    let killed = record_process(&place, work, syncs, Some(FIRST_ENDS_AT), &mut recording);
    assert!(killed, "the first process ended by itself: more ids or an earlier kill");
    let killed = record_process(&place, work, syncs, None, &mut recording);
    assert!(!killed, "who killed the second process?");
    assert!(matches!(recording.steps.iter().rev().find(|step| step.is_said()), Some(Step::Done)));
    recording
}

fn record_process(place: &Place, work: Work, syncs: Syncs, kill: Option<u32>, recording: &mut Recording) -> bool {
    let log = place.log();
    let kill = kill.map(|at| format!("inject=pwrite64:signal=KILL:when={at}"));
    let mut options = vec!["-y", "-xx", "-s", TEXT_BYTES_MAX, "-o", log.to_str().unwrap(), "-e", CALLS];
    if syncs == Syncs::AreFaked {
        options.extend(["-e", "inject=fsync,fdatasync:retval=0"]);
    }
    if let Some(kill) = &kill {
        options.extend(["-e", kill]);
    }
    let ended = place.run_under_strace(&options, work);
    recording.steps.push(Step::Start);
    let (folder, mut said) = (place.folder(), Said::default());
    for call in strace::read(&log) {
        understand(&call, &folder, &mut said, &mut recording.steps);
    }
    assert_eq!(said.fetched, ended.said.fetched, "the log does not have what was said");
    ended.status.signal() == Some(9)
}

impl Step {
    pub(crate) const fn is_said(&self) -> bool {
        matches!(self, Self::Fetched | Self::Acknowledged(_) | Self::Done)
    }

    pub(crate) fn is_write_to(&self, name: &str) -> bool {
        matches!(self, Self::Write { file, .. } if file == name)
    }
}

/// The name of a file of the store, if it is one.
fn name_in(folder: &Path, path: &Path) -> Option<String> {
    let name = path.strip_prefix(folder).ok()?.to_str()?;
    (name.starts_with("store.db") && !name.ends_with("-shm")).then(|| name.to_owned())
}

fn understand(call: &Call, folder: &Path, said: &mut Said, steps: &mut Vec<Step>) {
    match call.name.as_str() {
        "openat" => {
            let Some(file) = call.returned_path.as_deref().and_then(|path| name_in(folder, path)) else { return };
            if call.has_flag("O_CREAT") {
                steps.push(Step::Create(file.clone()));
            }
            if call.has_flag("O_TRUNC") {
                steps.push(Step::Truncate { file, len: 0 });
            }
        }
        "write" if call.is_to_stdout() => steps.push(hear(said, &call.bytes(1))),
        "unlink" => {
            let file = name_in(folder, &call.path_argument(0));
            steps.extend(file.map(Step::Unlink));
        }
        "rename" => {
            let names = (name_in(folder, &call.path_argument(0)), name_in(folder, &call.path_argument(1)));
            let (Some(from), Some(to)) = names else { panic!("a rename out of the folder: {call:?}") };
            steps.push(Step::Rename { from, to });
        }
        "fsync" | "fdatasync" if call.is_faked => {}
        "fsync" | "fdatasync" if call.path() == folder => steps.push(Step::SyncFolder),
        "pwrite64" | "write" | "ftruncate" | "fsync" | "fdatasync" => {
            steps.extend(name_in(folder, &call.path()).map(|file| on_file(call, file)));
        }
        other => panic!("{other} is not modelled: {call:?}"),
    }
}

fn on_file(call: &Call, file: String) -> Step {
    let written = || {
        let bytes = call.bytes(1);
        assert_eq!(bytes.len() as u64, call.result, "a short write");
        bytes
    };
    match call.name.as_str() {
        "pwrite64" => Step::Write { file, offset: call.number(3), bytes: written() },
        "write" => Step::Append { file, bytes: written() },
        "ftruncate" => Step::Truncate { file, len: call.number(1) },
        _ => Step::Sync(file),
    }
}

fn hear(said: &mut Said, line: &[u8]) -> Step {
    let line = std::str::from_utf8(line).unwrap().trim_end();
    let saved = said.saved;
    said.line(line);
    if said.done {
        return Step::Done;
    }
    if said.saved == saved {
        return Step::Fetched;
    }
    Step::Acknowledged(said.acknowledged().last().unwrap() + 1)
}
