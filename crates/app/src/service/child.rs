//! One run as a process of its own: started, listened to, asked to stop, ended.
//!
//! Why a process and not a thread: a run that hangs, panics or eats memory must not take the service along, and what ends
//! a run is the same as on the command line. The child ties its life to ours, so that nothing goes on when we are
//! killed; that tie is to the thread that starts it, so children are started by the thread of the loop and no other. A
//! child that has ended is not reaped before the loop says so: until then its number belongs to nobody else.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Instant;

/// Of a line that a run writes to its errors, so much is kept.
const LINE_BYTES_MAX: u64 = 2 * 1024;
/// Lines of one run that are kept: a run that talks all the time fills the log with itself.
const LINES_MAX: usize = 200;

/// A run that goes on.
#[derive(Debug)]
pub(crate) struct Run {
    child: Child,
    pub(crate) since: Instant,
    /// The newest run of the connection before this one, by which it is seen whether one came of it.
    pub(crate) before: Option<String>,
    /// How often nobody was found at work although it should be.
    pub(crate) strikes: u32,
    pub(crate) was_asked_to_stop: bool,
}

impl Run {
    /// Starts a command that reads this text. `ended` is called from another thread when it has.
    pub(crate) fn start(
        command: &mut Command,
        input: &str,
        name: &str,
        before: Option<String>,
        ended: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C is for the service, which then tells its runs.
            .process_group(0)
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A child that has ended meanwhile is reaped like any other.
            let _read = stdin.write_all(input.as_bytes());
        }
        let (errors, name) = (child.stderr.take(), name.to_owned());
        thread::Builder::new().name("errors".to_owned()).spawn(move || listen(errors, &name))?;
        let pid = pid_of(&child);
        thread::Builder::new().name("wait".to_owned()).spawn(move || {
            wait(pid);
            ended();
        })?;
        Ok(Self { child, since: Instant::now(), before, strikes: 0, was_asked_to_stop: false })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop: once to finish its slice, twice to stop at once.
    pub(crate) fn stop(&mut self) {
        self.was_asked_to_stop = true;
        self.signal(Signal::TERM);
    }

    /// Ends it. Its guard ends the connector.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // It may have ended meanwhile; it is not reaped, so nobody else is meant.
        if let Some(pid) = pid_of(&self.child) {
            let _told = kill_process(pid, signal);
        }
    }

    /// How it ended. Only once it has.
    pub(crate) fn reap(mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// Waits for its end and leaves it to be reaped.
fn wait(pid: Option<Pid>) {
    let Some(pid) = pid else { return };
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {}
}

/// What a run says about itself goes to the log, in lines that cannot look like ours.
fn listen(errors: Option<ChildStderr>, name: &str) {
    let Some(errors) = errors else { return };
    let mut errors = BufReader::new(errors);
    let mut lines = 0;
    loop {
        let mut line = Vec::new();
        match errors.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        lines += 1;
        let text = String::from_utf8_lossy(&line);
        match lines {
            ..=LINES_MAX => tracing::info!("{name:?}: {}", text.trim_end().escape_debug()),
            _ if lines == LINES_MAX + 1 => tracing::info!("{name:?}: more was said, which is left out"),
            _ => {}
        }
    }
}
