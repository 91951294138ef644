//! A secret from a command that a variable holds, as in `GITHUB_TOKEN_COMMAND='pass show github'`.
//!
//! The command is the owner's own and gets the owner's environment. It gets no input, 30 seconds and 64 KiB; then its
//! whole process group is killed, also when it succeeded and left processes behind. Pipes are polled instead of read
//! by threads, so a grandchild outside the group that keeps a pipe open blocks nobody. In its own group a command
//! cannot prompt at the terminal: the system stops it, and it is killed here. Its output is never shown, and its
//! stderr only if it printed nothing, because stderr may contain the secret.

use crate::secret::{Secret, VALUE_BYTES_MAX, ValueFault};
use crate::secret_file::strip_line_end;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Timeout of a command: somebody may have to touch a key.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);
/// Poll interval for the end of the command.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Bytes of stderr that are kept.
const ERRORS_BYTES_MAX: usize = 4 * 1024;
const READ_BYTES: usize = 8 * 1024;
/// Rounds that read the rest of a pipe after the command ended.
const LAST_ROUNDS: usize = 2 * VALUE_BYTES_MAX / READ_BYTES;

/// Why a command returns no secret. Repeats neither the command nor its output.
#[derive(Debug, thiserror::Error)]
pub enum CommandFault {
    /// It could not be started.
    #[error("the command could not be started ({0}); it is run by `sh`")]
    NotStarted(#[source] io::Error),
    /// It did not succeed.
    #[error("the command ended with {ending}{}; run it by hand to see why", said(errors))]
    Failed {
        /// Exit code or signal.
        ending: String,
        /// The end of its stderr. Empty if that may hold a secret.
        errors: String,
    },
    /// It took too long.
    #[error("the command did not end within {} s and was killed{}", limit.as_secs(), said(errors))]
    TimedOut {
        /// The timeout.
        limit: Duration,
        /// The end of its stderr. Empty if that may hold a secret.
        errors: String,
    },
    /// Its output is not a valid secret.
    #[error("the output of the command is not a usable secret: {0}")]
    Value(ValueFault),
}

fn said(errors: &str) -> String {
    if errors.is_empty() { String::new() } else { format!(", saying {errors:?}") }
}

impl CommandFault {
    /// Drops the command's message if it contains one of these.
    pub(crate) fn withhold(&mut self, known: &[&str]) {
        if let Self::Failed { errors, .. } | Self::TimedOut { errors, .. } = self
            && known.iter().any(|known| !known.is_empty() && errors.contains(known))
        {
            errors.clear();
        }
    }
}

/// The output of the command, without one line end.
pub(crate) fn run(command: &OsStr, limit: Duration) -> Result<Secret, CommandFault> {
    let end = Instant::now() + limit;
    let mut running = Running::start(command).map_err(CommandFault::NotStarted)?;
    let mut output = Output::default();
    while !running.has_ended() {
        if Instant::now() >= end {
            return Err(CommandFault::TimedOut { limit, errors: output.errors() });
        }
        running.read(&mut output, POLL_INTERVAL.min(end.saturating_duration_since(Instant::now())));
        if output.is_too_long() {
            return Err(CommandFault::Value(ValueFault::TooLong));
        }
    }
    // The rest of the group must not continue.
    running.kill_group();
    for _ in 0..LAST_ROUNDS {
        if output.is_too_long() || !running.read(&mut output, Duration::ZERO) {
            break;
        }
    }
    let status = running.wait().map_err(CommandFault::NotStarted)?;
    if !status.success() {
        let code = status.code().map(|code| format!("exit code {code}"));
        let ending = code.unwrap_or_else(|| format!("signal {}", status.signal().unwrap_or(0)));
        return Err(CommandFault::Failed { ending, errors: output.errors() });
    }
    let mut value = std::mem::take(&mut *output.value);
    strip_line_end(&mut value);
    Secret::from_bytes(value).map_err(CommandFault::Value)
}

/// Output of a command so far.
struct Output {
    /// Allocated at its maximum: a growing buffer leaves copies behind.
    value: Zeroizing<Vec<u8>>,
    /// The end of its stderr.
    errors: Zeroizing<Vec<u8>>,
}

impl Default for Output {
    fn default() -> Self {
        let room = |bytes| Zeroizing::new(Vec::with_capacity(bytes));
        Self { value: room(VALUE_BYTES_MAX + 3 + READ_BYTES), errors: room(ERRORS_BYTES_MAX + READ_BYTES) }
    }
}

impl Output {
    fn is_too_long(&self) -> bool {
        self.value.len() > VALUE_BYTES_MAX + 2
    }

    fn push_error(&mut self, bytes: &[u8]) {
        self.errors.extend_from_slice(bytes);
        let over = self.errors.len().saturating_sub(ERRORS_BYTES_MAX);
        self.errors.drain(..over);
    }

    /// Stderr for people, only if it cannot hold the value.
    fn errors(&self) -> String {
        let is_silent = self.value.iter().all(u8::is_ascii_whitespace);
        if is_silent { String::from_utf8_lossy(&self.errors).trim().to_owned() } else { String::new() }
    }
}

/// A command and its process group. Dropping it ends all of it.
struct Running {
    child: Child,
    group: Pid,
    /// Its id may be reused after this, so nothing is killed any more.
    is_waited_for: bool,
}

impl Running {
    fn start(command: &OsStr) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = shell.process_group(0).spawn()?;
        Ok(Self { group: Pid::from_child(&child), child, is_waited_for: false })
    }

    /// Checks without reaping: until then its id, and the group's, cannot be reused.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.group), options), Ok(None))
    }

    fn wait(&mut self) -> io::Result<ExitStatus> {
        self.is_waited_for = true;
        self.child.wait()
    }

    fn kill_group(&self) {
        // It may be gone already.
        let _ = kill_process_group(self.group, Signal::KILL);
    }

    /// Reads once from a ready pipe; returns whether one was ready.
    fn read(&mut self, output: &mut Output, wait: Duration) -> bool {
        let mut buffer = Zeroizing::new([0; READ_BYTES]);
        let mut any = false;
        let readable = readable(&self.child, wait);
        if readable.0 {
            let read = read_once(&mut self.child.stdout, &mut *buffer);
            output.value.extend_from_slice(&buffer[..read]);
            any |= read > 0;
        }
        if readable.1 {
            let read = read_once(&mut self.child.stderr, &mut *buffer);
            output.push_error(&buffer[..read]);
            any |= read > 0;
        }
        any
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Also after the shell ended: others of its group may run.
        if !self.is_waited_for {
            self.kill_group();
            drop(self.wait());
        }
    }
}

/// Waits for either pipe; returns which of stdout and stderr can be read.
fn readable(child: &Child, wait: Duration) -> (bool, bool) {
    let pipes = [child.stdout.as_ref().map(AsFd::as_fd), child.stderr.as_ref().map(AsFd::as_fd)];
    let mut asked = pipes.iter().flatten().map(|fd| PollFd::new(fd, PollFlags::IN)).collect::<Vec<_>>();
    if asked.is_empty() {
        // Both are closed, and the command has not ended.
        std::thread::sleep(wait);
        return (false, false);
    }
    let timeout = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
    if poll(&mut asked, Some(&timeout)).is_err() {
        return (false, false);
    }
    let mut answers = asked.iter().map(|fd| !fd.revents().is_empty());
    let mut answer = |pipe: bool| pipe && answers.next().unwrap_or(false);
    (answer(pipes[0].is_some()), answer(pipes[1].is_some()))
}

/// Reads available data. Closes a pipe at its end, so that it is not polled again.
fn read_once(pipe: &mut Option<impl Read>, buffer: &mut [u8]) -> usize {
    let Some(open) = pipe else { return 0 };
    match open.read(buffer) {
        Ok(0) => {
            *pipe = None;
            0
        }
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
        Err(_) => {
            *pipe = None;
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enough for a shell to begin on a busy machine.
    const SHORT: Duration = Duration::from_secs(1);
    /// Much less than what the commands would take.
    const SOON: Duration = Duration::from_secs(15);

    fn run_within(command: &str, limit: Duration) -> (Result<Secret, CommandFault>, Duration) {
        let began = Instant::now();
        (run(OsStr::new(command), limit), began.elapsed())
    }

    /// Whether a process whose number a command left in a file is still there.
    fn lives(file: &std::path::Path) -> bool {
        let pid = std::fs::read_to_string(file).unwrap().trim().to_owned();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // A dead child that nobody has taken notice of does no harm.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    fn dies(file: &std::path::Path) -> bool {
        let end = Instant::now() + Duration::from_secs(5);
        while lives(file) && Instant::now() < end {
            std::thread::sleep(POLL_INTERVAL);
        }
        !lives(file)
    }

    #[test]
    fn what_a_command_prints_is_the_secret() {
        for (command, expected) in
            [("echo value", "value"), ("printf 'a\\n\\n'", "a\n"), ("printf 'a\\r\\n'", "a"), (":", "")]
        {
            assert_eq!(run_within(command, LIMIT).0.unwrap().expose(), expected, "{command}");
        }
        let most = run_within("head -c 65536 /dev/zero | tr '\\0' x", LIMIT).0.unwrap();
        assert_eq!(most.expose().len(), VALUE_BYTES_MAX);
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let command = format!("trap '' TERM; sleep 100 & echo $! > '{}'; echo waiting >&2; wait", file.display());
        let (result, took) = run_within(&command, SHORT);
        let error = result.unwrap_err();
        assert!(matches!(error, CommandFault::TimedOut { .. }), "{error}");
        assert!(error.to_string().contains("waiting"), "{error}");
        assert!(took >= SHORT && took < SOON, "{took:?}");
        assert!(dies(&file));
    }

    #[test]
    fn a_command_that_closes_its_pipes_and_stays_is_killed_too() {
        let (result, took) = run_within("exec >&- 2>&-; sleep 100", SHORT);
        assert!(matches!(result.unwrap_err(), CommandFault::TimedOut { .. }));
        assert!(took < SOON, "{took:?}");
    }

    #[test]
    fn what_a_command_leaves_behind_is_killed_and_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let (result, took) = run_within(&format!("sleep 100 & echo $! > '{}'; echo value", file.display()), LIMIT);
        assert_eq!(result.unwrap().expose(), "value");
        assert!(took < SOON, "{took:?}");
        assert!(dies(&file));
        // One that left the group keeps the pipe open, and is not waited for.
        let (result, took) = run_within("setsid sleep 20 & echo value", LIMIT);
        assert_eq!(result.unwrap().expose(), "value");
        assert!(took < SOON, "{took:?}");
    }

    #[test]
    fn a_command_that_prints_a_gigabyte_is_killed_at_the_first_bytes_too_many() {
        let (result, took) = run_within("head -c 1000000000 /dev/zero", LIMIT);
        assert!(matches!(result.unwrap_err(), CommandFault::Value(ValueFault::TooLong)));
        assert!(took < SOON, "{took:?}");
        let (result, _) = run_within("head -c 20000000 /dev/zero >&2; echo end >&2; exit 1", LIMIT);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("end") && error.len() < 8 * ERRORS_BYTES_MAX, "{}", error.len());
    }

    #[test]
    fn a_command_that_fails_says_why_unless_that_may_hold_the_secret() {
        let error = run_within("echo no such entry >&2; exit 3", LIMIT).0.unwrap_err().to_string();
        assert!(error.contains("exit code 3") && error.contains("no such entry"), "{error}");
        let error = run_within("echo hunter2; echo wrong: hunter2 >&2; exit 3", LIMIT).0.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        let error = run_within("kill -9 $$", LIMIT).0.unwrap_err().to_string();
        assert!(error.contains("signal 9"), "{error}");
        let mut known = run_within("echo wrong: hunter2 >&2; exit 3", LIMIT).0.unwrap_err();
        known.withhold(&["", "hunter2"]);
        assert!(!format!("{known} {known:?}").contains("hunter2"), "{known}");
    }

    #[test]
    fn a_command_has_no_input() {
        assert!(run_within("cat", LIMIT).0.unwrap().is_empty());
    }
}
