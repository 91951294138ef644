//! The controlled process, a browser or its driver: started with two private pipes, and gone when we are.
//!
//! There are three ways it ends. It exits normally, with its state saved, when its pipe closes, so also when we are
//! killed. A keeper, a shell in its group that waits for our end, kills that group and everything that has the
//! profile open, if they still run. And dropping this kills everything at once.

pub(crate) mod arguments;
pub(crate) mod footprint;
pub(crate) mod program;
mod tree;

use crate::error::BrowserError;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Variable set for all processes of a browser. It is the crash dump folder, inside the profile, and so identifies
/// the browser of a process.
pub(crate) const MARK: &str = "BREAKPAD_DUMP_LOCATION";
/// Variable that identifies one start of a browser. The keeper uses it: when it acts, the next run may already use
/// the profile.
const START: &str = "GLEANER_BROWSER_START";
/// Waits for the end of its input, which is ours; lets the browser exit; and kills the rest. A browser started by a
/// driver is in its own group and found by its arguments. The keeper's own group is last: while the keeper lives, its
/// group id cannot be reused. The system sends SIGHUP to a group that loses its last outside parent while a member is
/// stopped: that must not end the keeper.
const KEEP: &str = r#"trap '' HUP; read -r nothing; sleep 2
for variables in $(grep -lsxzF -e "$2" /proc/[0-9]*/environ); do
    pid=${variables#/proc/}; pid=${pid%/environ}
    [ "$pid" = "$1" ] || kill -s KILL -- "-$pid" || kill -s KILL -- "$pid"
done
kill -s KILL -- "-$1""#;
/// Timeout of killing: a process writing to a slow disk takes a while.
const KILL_MAX: Duration = Duration::from_secs(3);
/// Bytes of stderr that are kept: the end.
const ERRORS_BYTES_MAX: usize = 4096;
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A running browser.
#[derive(Debug)]
pub(crate) struct BrowserProcess {
    leader: Pid,
    child: Mutex<Option<Child>>,
    keeper: Mutex<Option<(Child, PipeWriter)>>,
    profile: PathBuf,
    errors: Arc<Mutex<Vec<u8>>>,
}

impl BrowserProcess {
    /// Starts it, and returns its output and input pipes. `program` is for messages.
    pub(crate) fn start(
        program: &Path,
        mut command: Command,
        profile: &Path,
    ) -> Result<(Self, PipeReader, PipeWriter), BrowserError> {
        let cannot = |error: io::Error| BrowserError::Start { program: program.to_owned(), why: error.to_string() };
        let (its_input, to_it) = io::pipe().map_err(cannot)?;
        let (from_it, its_output) = io::pipe().map_err(cannot)?;
        let which = which_start();
        let mut child = command
            .env(MARK, profile.join("Crash Reports"))
            .env(START, &which)
            .stdin(its_input)
            .stdout(its_output)
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        // It holds ends of the pipes too: otherwise we would never see the end.
        drop(command);
        let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let leader = leader.ok_or_else(|| cannot(io::Error::other("it has no number")))?;
        let errors = Arc::new(Mutex::new(Vec::new()));
        if let Some(stderr) = child.stderr.take() {
            let kept = Arc::clone(&errors);
            thread::spawn(move || keep_tail(stderr, &kept));
        }
        let process = Self {
            leader,
            child: Mutex::new(Some(child)),
            keeper: Mutex::new(None),
            profile: profile.to_owned(),
            errors,
        };
        // Without a keeper there is no browser: dropping `process` ends it.
        let keeper = start_keeper(leader, &which).map_err(cannot)?;
        if let Ok(mut place) = process.keeper.lock() {
            *place = Some(keeper);
        }
        Ok((process, from_it, to_it))
    }

    /// Its exit status, if it ended. It is not reaped, so that the rest of its group can be killed.
    pub(crate) fn ended(&self) -> Option<String> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(self.leader), options) {
            Ok(Some(status)) => Some(match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => format!("its process ended with code {code}"),
                (None, Some(signal)) => format!("its process was ended by signal {signal}"),
                (None, None) => "its process ended".to_owned(),
            }),
            Ok(None) => None,
            Err(_) => Some("its process ended".to_owned()),
        }
    }

    /// Waits until it has exited.
    pub(crate) fn wait(&self, within: Duration) -> bool {
        is_over_within(within, || self.ended().is_some())
    }

    /// Waits until the driven browser has exited.
    #[cfg(feature = "patchright")]
    pub(crate) fn wait_for_browser(&self, within: Duration) -> bool {
        is_over_within(within, || !tree::browser_runs(&self.profile))
    }

    /// Why it does not answer, with its stderr. An exit status says more than a closed pipe.
    pub(crate) fn why_silent(&self, error: &BrowserError) -> String {
        self.wait(Duration::from_millis(200));
        let why = self.ended().unwrap_or_else(|| error.to_string());
        let said = self.last_words();
        if said.is_empty() { why } else { format!("{why}; it said: {said}") }
    }

    /// The last line of its stderr that is not about D-Bus.
    fn last_words(&self) -> String {
        let text = self.errors.lock().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.contains("dbus"));
        lines.next_back().unwrap_or_default().chars().take(300).collect()
    }

    /// Memory of all its processes.
    pub(crate) fn memory(&self) -> u64 {
        tree::memory(self.leader, &self.profile)
    }

    /// Kills all its processes, at once.
    pub(crate) fn kill(&self) {
        let Ok(mut child) = self.child.lock() else { return };
        let Some(mut child) = child.take() else { return };
        // First the whole group at once; then processes that left it.
        let _ = kill_process_group(self.leader, Signal::KILL);
        tree::kill(self.leader, &self.profile, KILL_MAX);
        // Both are dead: this only reaps them.
        drop(child.wait());
        if let Ok(mut keeper) = self.keeper.lock()
            && let Some((mut keeper, input)) = keeper.take()
        {
            drop(keeper.kill());
            drop(input);
            drop(keeper.wait());
        }
    }
}

impl Drop for BrowserProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Polls for the end of a process.
fn is_over_within(within: Duration, is_over: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !is_over() {
        if began.elapsed() >= within {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
    true
}

/// A unique word per start of a browser on this machine.
fn which_start() -> String {
    static STARTS: AtomicU64 = AtomicU64::new(0);
    let since_1970 = gleaner_base::clock::since_epoch();
    format!("{}-{}-{}", std::process::id(), STARTS.fetch_add(1, Ordering::Relaxed), since_1970.as_nanos())
}

fn start_keeper(group: Pid, which: &str) -> io::Result<(Child, PipeWriter)> {
    let (its_input, ours) = io::pipe()?;
    let group = group.as_raw_nonzero().get();
    let keeper = Command::new("/bin/sh")
        .args(["-c", KEEP, "gleaner-browser-keeper", &group.to_string()])
        .arg(format!("{START}={which}"))
        .stdin(its_input)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(group)
        .spawn()?;
    Ok((keeper, ours))
}

fn keep_tail(stderr: std::process::ChildStderr, kept: &Mutex<Vec<u8>>) {
    let mut stderr = File::from(std::os::fd::OwnedFd::from(stderr));
    let mut part = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut part) {
        let Ok(mut kept) = kept.lock() else { return };
        kept.extend_from_slice(&part[..count]);
        let surplus = kept.len().saturating_sub(ERRORS_BYTES_MAX);
        kept.drain(..surplus);
    }
}
