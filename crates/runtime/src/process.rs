//! A connector's process, seen from the runtime: what it says arrives as events, in order and bounded.
//!
//! Three threads move bytes and decide nothing: one reads output into a queue that blocks when it is
//! full, so that a connector which is faster than the store is slowed down by its own pipe; one keeps
//! the tail of its errors; one waits for its end. Orders go to the guard and never block for long.

use crate::environment::Environment;
use crate::frames::{Frame, write_frame};
use crate::stderr_tail::StderrTail;
use gleaner_engine::Exit;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, SyncSender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What a pipe gives at a time.
const READ_BYTES: usize = 64 * 1024;

/// How long the last words of a process are waited for.
const LAST_WORDS_MAX: Duration = Duration::from_millis(500);
/// How often it is looked whether they are there.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// How to start a connector.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Its environment, all of it.
    pub environment: Environment,
    /// Where it runs.
    pub folder: Option<PathBuf>,
    /// How to start this program as a guard: see [`guard_main`](crate::guard_main).
    pub guard: Vec<OsString>,
    /// How to start it as what becomes the connector: see [`exec_main`](crate::exec_main).
    pub exec: Vec<OsString>,
}

/// What a process does.
#[derive(Debug)]
pub(crate) enum ProcessEvent {
    /// It wrote something.
    Output(Vec<u8>),
    /// Its output is closed.
    OutputClosed,
    /// It has ended.
    Exited(Exit),
}

/// Why a connector was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There is no command.
    #[error("there is no command to start; give one after `--`, or put `command` into the manifest")]
    NoCommand,
    /// The program is not there.
    #[error("the connector's program {0:?} was not found; check the command, or the PATH")]
    NotFound(String),
    /// The system refused.
    #[error("the connector could not be started: {0}")]
    Spawn(#[source] io::Error),
    /// There is no thread to listen to it with.
    #[error("the connector could not be started: the system gives no thread: {0}")]
    Thread(#[source] io::Error),
}

/// A running connector.
#[derive(Debug)]
pub(crate) struct Process {
    orders: Sender<Frame>,
    errors: Arc<Mutex<StderrTail>>,
    reads_errors: Option<thread::JoinHandle<()>>,
}

impl Process {
    /// Starts a connector. What it does arrives at `events`, wrapped by `wrap`.
    pub(crate) fn start<E: Send + 'static>(
        launch: &Launch,
        tail: StderrTail,
        events: &SyncSender<E>,
        wrap: fn(ProcessEvent) -> E,
    ) -> Result<Self, LaunchError> {
        let mut child = spawn(launch)?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (orders, frames) = channel();
        let kept = Arc::new(Mutex::new(tail));
        let begin = || {
            if let Some(input) = input {
                start_thread("orders", move || write_orders(input, &frames))?;
            }
            if let Some(output) = output {
                let events = events.clone();
                start_thread("output", move || read_output(output, &events, wrap))?;
            }
            let kept = Arc::clone(&kept);
            errors.map(|errors| start_thread("errors", move || read_errors(errors, &kept))).transpose()
        };
        // The child is handed over last: until then it can be ended here.
        let waits_for = Arc::new(Mutex::new(Some(child)));
        let begun = begin().and_then(|reads_errors| {
            let (events, waits_for) = (events.clone(), Arc::clone(&waits_for));
            start_thread("wait", move || {
                let child = waits_for.lock().ok().and_then(|mut child| child.take());
                if let Some(child) = child {
                    wait(child, &events, wrap);
                }
            })?;
            Ok(reads_errors)
        });
        match begun {
            Ok(reads_errors) => Ok(Self { orders, errors: kept, reads_errors }),
            Err(error) => {
                // Nobody would hear it. Its guard takes the connector along.
                if let Some(mut child) = waits_for.lock().ok().and_then(|mut child| child.take()) {
                    drop(child.kill().and_then(|()| child.wait()));
                }
                Err(LaunchError::Thread(error))
            }
        }
    }

    /// Tells its guard what to do. Bytes for its input wait in memory until it reads; the engine bounds how many.
    pub(crate) fn order(&self, frame: Frame) {
        // Nobody is there any more: its end is on the way as an event.
        drop(self.orders.send(frame));
    }

    /// The end of what it wrote to its errors. For a process that has ended: its last words may still
    /// be on their way through the pipe.
    pub(crate) fn errors(&self) -> String {
        let is_read = || self.reads_errors.as_ref().is_none_or(thread::JoinHandle::is_finished);
        let mut waited = Duration::ZERO;
        while !is_read() && waited < LAST_WORDS_MAX {
            thread::sleep(LOOK_AGAIN);
            waited += LOOK_AGAIN;
        }
        self.errors.lock().map(|tail| tail.text()).unwrap_or_default()
    }
}

/// Starts a thread. `thread::spawn` panics where the system gives none; a run says so and ends.
pub(crate) fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

fn spawn(launch: &Launch) -> Result<Child, LaunchError> {
    let program = launch.command.first().ok_or(LaunchError::NoCommand)?;
    let path = launch.environment.get("PATH").map(OsString::from).unwrap_or_default();
    if !is_there(Path::new(program), launch.folder.as_deref(), &path) {
        return Err(LaunchError::NotFound(program.to_string_lossy().into_owned()));
    }
    let (guard, arguments) = launch.guard.split_first().ok_or(LaunchError::NoCommand)?;
    let mut command = Command::new(guard);
    command
        .args(arguments)
        .args(&launch.exec)
        .args(&launch.command)
        .env_clear()
        .envs(launch.environment.iter())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(folder) = &launch.folder {
        command.current_dir(folder);
    }
    // Away from the terminal's group: Ctrl-C is for the runtime, which ends the run in order.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map_err(LaunchError::Spawn)
}

/// Whether there is such a program: asked before the guard, whose answer would be an exit code.
fn is_there(program: &Path, folder: Option<&Path>, path: &std::ffi::OsStr) -> bool {
    if program.components().count() > 1 {
        return folder.map_or_else(|| program.to_owned(), |folder| folder.join(program)).is_file();
    }
    std::env::split_paths(path).any(|folder| folder.join(program).is_file())
}

fn read_output<E>(mut output: ChildStdout, events: &SyncSender<E>, wrap: fn(ProcessEvent) -> E) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                if events.send(wrap(ProcessEvent::Output(buffer[..read].to_vec()))).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    drop(events.send(wrap(ProcessEvent::OutputClosed)));
}

fn read_errors(mut errors: ChildStderr, kept: &Mutex<StderrTail>) {
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(read @ 1..) = errors.read(&mut buffer) {
        let Ok(mut tail) = kept.lock() else { return };
        tail.push(&buffer[..read]);
    }
}

fn write_orders(mut input: ChildStdin, frames: &std::sync::mpsc::Receiver<Frame>) {
    while let Ok(frame) = frames.recv() {
        if write_frame(&mut input, &frame).is_err() {
            return;
        }
    }
    // The runtime has let go of the process: closing the pipe tells the guard.
}

fn wait<E>(mut child: Child, events: &SyncSender<E>, wrap: fn(ProcessEvent) -> E) {
    let exit = child.wait().map_or(Exit::Code(-1), exit_of);
    drop(events.send(wrap(ProcessEvent::Exited(exit))));
}

fn exit_of(status: ExitStatus) -> Exit {
    status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or(0)), Exit::Code)
}
