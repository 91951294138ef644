//! A connector's process as the checks need it: read fast or slowly, killed at a line, asked to end,
//! and searched for what it left behind.
//!
//! Why not through the runtime's guard: the guard cleans up after a connector, and here it must be
//! seen whether it does so itself. It is tied to our life all the same (`exec`), and whatever carries
//! its mark in the environment is killed when a run is over.

use crate::subject::Subject;
use gleaner_engine::Exit;
use gleaner_runtime::Environment;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What a pipe gives at a time.
const READ_BYTES: usize = 64 * 1024;
/// Pieces of output that wait.
const WAITING_MAX: usize = 4;
/// What is kept of its errors: enough to find a secret in.
const ERRORS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A pipe that is full soon.
const SLOW_PIPE_BYTES: usize = 4096;
/// Some 1 KB per second: what a slow reader takes, and when it takes again.
const SLOW_BYTES: usize = 64;
const SLOW_EVERY: Duration = Duration::from_millis(60);
/// How long a killed process may take to be gone.
const KILL_MAX: Duration = Duration::from_secs(3);
/// The variable by which a process is known as one of a run.
const MARK: &str = "CONNECTOR_CONFORMANCE_RUN";

/// What came of waiting for output.
pub(crate) enum Output {
    Bytes(Vec<u8>),
    Closed,
    Nothing,
}

/// A running connector.
pub(crate) struct Child {
    process: std::process::Child,
    group: Pid,
    input: Option<Sender<Vec<u8>>>,
    output: Receiver<Vec<u8>>,
    errors: Arc<Mutex<Vec<u8>>>,
    reads_errors: Option<thread::JoinHandle<()>>,
    mark: String,
    exit: Option<Exit>,
}

impl Child {
    /// Starts it. `mark` is this run's own word.
    pub(crate) fn start(
        subject: &Subject,
        environment: &Environment,
        mark: String,
        slow: Option<Duration>,
    ) -> Result<Self, String> {
        let words = subject.exec.iter().chain(&subject.command).collect::<Vec<&OsString>>();
        let (program, arguments) = words.split_first().ok_or("there is no command to start")?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(environment.iter()).env(MARK, &mark).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = &subject.folder {
            command.current_dir(folder);
        }
        let mut process = command.spawn().map_err(|error| format!("it could not be started: {error}"))?;
        let group = Pid::from_child(&process);
        let (input, messages) = channel();
        if let Some(pipe) = process.stdin.take() {
            thread::spawn(move || write_input(pipe, &messages));
        }
        let (pieces, output) = sync_channel(WAITING_MAX);
        if let Some(pipe) = process.stdout.take() {
            if slow.is_some() {
                narrow(&pipe);
            }
            thread::spawn(move || read_output(pipe, &pieces, slow));
        }
        let errors = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&errors);
        let reads_errors = process.stderr.take().map(|pipe| thread::spawn(move || read_errors(pipe, &kept)));
        Ok(Self { process, group, input: Some(input), output, errors, reads_errors, mark, exit: None })
    }

    /// Sends bytes to its input, without waiting for it to read them.
    pub(crate) fn send(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            // Whoever has closed its input is not told anything more.
            drop(input.send(bytes));
        }
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// The next piece of its output.
    pub(crate) fn output(&self, wait: Duration) -> Output {
        match self.output.recv_timeout(wait) {
            Ok(bytes) => Output::Bytes(bytes),
            Err(RecvTimeoutError::Timeout) => Output::Nothing,
            Err(RecvTimeoutError::Disconnected) => Output::Closed,
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if self.exit.is_none() {
            // It may be gone already.
            let _ = kill_process_group(self.group, signal);
        }
    }

    /// How it ended, if it has.
    pub(crate) fn exit(&mut self) -> Option<Exit> {
        if self.exit.is_none()
            && let Ok(Some(status)) = self.process.try_wait()
        {
            self.exit = Some(status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or(0)), Exit::Code));
        }
        self.exit
    }

    /// Kills it and waits for that, but not for ever: what hangs in the kernel cannot be killed.
    pub(crate) fn kill(&mut self) -> Exit {
        let until = Instant::now() + KILL_MAX;
        loop {
            if let Some(exit) = self.exit() {
                return exit;
            }
            if Instant::now() > until {
                return Exit::Signal(Signal::KILL.as_raw());
            }
            self.signal(Signal::KILL);
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// What of it still lives although it has ended, after a moment to end too. All of it is killed.
    pub(crate) fn end_leftovers(&self, grace: Duration) -> Vec<String> {
        let until = Instant::now() + grace;
        let mut left = marked(&self.mark);
        while !left.is_empty() && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
            left = marked(&self.mark);
        }
        for (pid, _) in &left {
            let _ = kill_process(*pid, Signal::KILL);
        }
        left.into_iter().map(|(_, name)| name).collect()
    }

    /// What it wrote to its errors, for one that has ended.
    pub(crate) fn errors(&mut self, wait: Duration) -> Vec<u8> {
        let until = Instant::now() + wait;
        while self.reads_errors.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        self.errors.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        self.end_leftovers(Duration::ZERO);
    }
}

fn write_input(mut pipe: ChildStdin, messages: &Receiver<Vec<u8>>) {
    while let Ok(bytes) = messages.recv() {
        if pipe.write_all(&bytes).is_err() {
            return;
        }
    }
    // Dropping it closes it.
}

/// Makes a pipe small, before anything is in it. Where that is refused, it is as large as everywhere.
fn narrow(pipe: &ChildStdout) {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, SLOW_PIPE_BYTES);
    #[cfg(not(target_os = "linux"))]
    let _ = (pipe, SLOW_PIPE_BYTES);
}

fn read_output(mut pipe: ChildStdout, pieces: &SyncSender<Vec<u8>>, slow: Option<Duration>) {
    let slow_until = slow.map(|slow| Instant::now() + slow);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let slowly = slow_until.is_some_and(|until| Instant::now() < until);
        if slowly {
            thread::sleep(SLOW_EVERY);
        }
        let size = if slowly { SLOW_BYTES } else { READ_BYTES };
        match pipe.read(&mut buffer[..size]) {
            Ok(read @ 1..) if pieces.send(buffer[..read].to_vec()).is_ok() => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

fn read_errors(mut pipe: ChildStderr, kept: &Mutex<Vec<u8>>) {
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(read @ 1..) = pipe.read(&mut buffer) {
        let Ok(mut kept) = kept.lock() else { return };
        let room = ERRORS_BYTES_MAX.saturating_sub(kept.len());
        kept.extend_from_slice(&buffer[..read.min(room)]);
    }
}

/// Every process that has the mark, with its name. Children inherit the environment, so one that left
/// group and parent is found too. Where there is no `/proc`, none is.
fn marked(mark: &str) -> Vec<(Pid, String)> {
    let wanted = format!("{MARK}={mark}");
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|&byte| byte == 0).find(|variable| *variable == wanted.as_bytes())?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Some((Pid::from_raw(pid)?, name.trim().to_owned()))
    })
    .collect()
}
