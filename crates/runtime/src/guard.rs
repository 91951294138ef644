//! The guard: a process between the runtime and a connector that outlives neither.
//!
//! Why a process of its own: a runtime that is killed cannot clean up, and a connector may ignore the
//! end of its input, ignore a request to end, and leave children that left its group. The guard holds
//! one end of a pipe to the runtime; when that breaks, or when it is told to, it ends the connector
//! and everything that came out of it. Orphans become the guard's children, so none gets lost. If the
//! guard itself is killed, the kernel kills the connector.
//!
//! It passes the runtime's bytes on to the connector's input and looks at none of them. Output does
//! not go through it: the connector writes to the runtime's pipes itself.
//!
//! ```text
//! runtime ── frames ──▶ guard ── input ──▶ connector
//!    ▲                                        │
//!    └──────────── output, errors ────────────┘
//! ```

use crate::frames::{Frame, read_frame};
use crate::process::start_thread;
use crate::process_tree;
use rustix::process::{Pid, Signal, getppid, kill_process, kill_process_group};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// How long a connector may take to end after it was asked to, when nobody is left to wait for it.
const ALONE_GRACE: Duration = Duration::from_secs(2);
/// How long what a connector left behind may go on by itself. A browser sees that its connector is gone, and saves what
/// it knows, the owner's session among it; told to end on top of that, it would drop everything.
const FAREWELL_GRACE: Duration = Duration::from_secs(1);
/// How long it may take once it was told to end.
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);
/// How often what is left is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// A connector that could not be started. What shells use.
const CANNOT_START: i32 = 127;

/// Guards the command in these words until it has ended, and ends as it did.
///
/// The words are those of [`exec_main`]: the connector is started by this same program, which first
/// ties its life to the guard's.
#[must_use]
pub fn guard_main(exec_command: &[OsString]) -> i32 {
    // The group of the terminal is not ours: Ctrl-C is for the runtime to handle.
    let subreaper = process_tree::adopt_orphans();
    debug_assert!(subreaper.is_ok());
    let Some((program, arguments)) = exec_command.split_first() else { return CANNOT_START };
    let spawned = Command::new(program).args(arguments).stdin(Stdio::piped()).process_group(0).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            report(&format!("cannot start the connector: {error}"));
            return CANNOT_START;
        }
    };
    let group = Pid::from_child(&child);
    let input = child.stdin.take();
    let (to_input, input_frames) = channel();
    let started = start_thread("input", move || write_input(input, &input_frames))
        .and_then(|_| start_thread("orders", move || obey(group, &to_input)));
    if let Err(error) = started {
        report(&format!("cannot start the connector: the system gives no thread: {error}"));
        drop(child.kill().and_then(|()| child.wait()));
        end_leftovers();
        return CANNOT_START;
    }
    let status = child.wait();
    end_leftovers();
    status.map_or(CANNOT_START, end_alike)
}

/// Ties this process to its parent, then becomes the connector.
#[must_use]
pub fn exec_main(command: &[OsString]) -> i32 {
    let Some((program, arguments)) = command.split_first() else { return CANNOT_START };
    let tied = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    // A guard that died before this line can no longer take us along.
    if tied.is_err() || getppid().is_none_or(Pid::is_init) {
        return CANNOT_START;
    }
    let error = Command::new(program).args(arguments).exec();
    report(&format!("cannot start {}: {error}", program.to_string_lossy()));
    CANNOT_START
}

/// Where the connector's own errors go, which the runtime keeps.
fn report(what: &str) {
    let written = writeln!(io::stderr(), "gleaner: {what}");
    drop(written);
}

/// Carries out what the runtime says, until it says nothing any more.
fn obey(group: Pid, to_input: &Sender<Frame>) {
    let mut control = io::stdin().lock();
    loop {
        match read_frame(&mut control) {
            // A connector that has closed its input is not told anything more.
            Ok(Some(frame @ (Frame::Input(_) | Frame::CloseInput))) => drop(to_input.send(frame)),
            Ok(Some(Frame::Stop)) => signal_group(group, Signal::TERM),
            Ok(Some(Frame::Kill)) => kill_everything(),
            Ok(None) | Err(_) => {
                signal_group(group, Signal::TERM);
                thread::sleep(ALONE_GRACE);
                return kill_everything();
            }
        }
    }
}

fn write_input(input: Option<ChildStdin>, frames: &Receiver<Frame>) {
    let Some(mut input) = input else { return };
    while let Ok(Frame::Input(bytes)) = frames.recv() {
        if input.write_all(&bytes).is_err() {
            return;
        }
    }
    // Dropping it closes it.
}

fn signal_group(group: Pid, signal: Signal) {
    // It may be gone already.
    let _ = kill_process_group(group, signal);
}

/// Everything that came out of us, in whatever group it is, until there is nothing.
fn kill_everything() {
    /// Enough for a tree that grows while it is felled; what is left after that cannot be killed.
    const ROUNDS: u32 = 100;
    for _ in 0..ROUNDS {
        let tree = process_tree::descendants();
        if tree.is_empty() {
            return;
        }
        for pid in tree {
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// What a connector that has ended left behind: it holds the output open and does nobody good.
fn end_leftovers() {
    if wait_for_none(FAREWELL_GRACE) {
        return;
    }
    for pid in process_tree::descendants() {
        let _ = kill_process(pid, Signal::TERM);
    }
    if !wait_for_none(LEFTOVER_GRACE) {
        kill_everything();
    }
}

/// Waits until nothing is left, and says whether that came in time.
fn wait_for_none(within: Duration) -> bool {
    let mut waited = Duration::ZERO;
    loop {
        process_tree::reap();
        if process_tree::descendants().is_empty() {
            return true;
        }
        if waited >= within {
            return false;
        }
        thread::sleep(LOOK_AGAIN);
        waited += LOOK_AGAIN;
    }
}

/// Ends as the connector did, so that whoever waits for us sees it.
fn end_alike(status: ExitStatus) -> i32 {
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        // Twice: Rust handles a SIGSEGV once, and is killed by the next.
        let _ = kill_process(rustix::process::getpid(), signal);
        let _ = kill_process(rustix::process::getpid(), signal);
        // A signal that does not kill us, because it is ignored: as shells say it.
        return 128 + status.signal().unwrap_or(0);
    }
    status.code().unwrap_or(CANNOT_START)
}
