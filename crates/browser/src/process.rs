//! The process that is spoken to, a browser or the driver of one: started with two pipes that nobody else can reach, and
//! gone when we are.
//!
//! Three things end it. It ends by itself, with everything saved, when its pipe is closed, and so also when we are
//! killed. A keeper, a shell in its group that waits for our end, kills that group, and whatever has the profile open, if
//! they have not gone by then. And dropping this kills everything at once.

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

/// The variable that everything of a browser is started with. It says where crashes are told, which is where the browser
/// is at home, and so tells whose a process is, whoever started it.
pub(crate) const MARK: &str = "BREAKPAD_DUMP_LOCATION";
/// The variable that says which start of a browser something is of. The keeper goes by it: when it strikes, the profile may
/// already be in the hands of the next run.
const START: &str = "GLEANER_BROWSER_START";
/// Waits for the end of its input, which is ours; lets the browser end by itself; and ends what is left. A browser that a
/// driver started is in a group of its own, and is found by what it was started with. The keeper's own group is last:
/// while the keeper lives, the number of that group is nobody else's. A group that loses its last parent outside while one
/// of it is stopped is hung up on by the system: that must not end the keeper.
const KEEP: &str = r#"trap '' HUP; read -r nothing; sleep 2
for variables in $(grep -lsxzF -e "$2" /proc/[0-9]*/environ); do
    pid=${variables#/proc/}; pid=${pid%/environ}
    [ "$pid" = "$1" ] || kill -s KILL -- "-$pid" || kill -s KILL -- "$pid"
done
kill -s KILL -- "-$1""#;
/// How long killing may take: a kill is at once, a process in the middle of a write to a slow disk is not.
const KILL_MAX: Duration = Duration::from_secs(3);
/// What is kept of the browser's errors: the end.
const ERRORS_BYTES_MAX: usize = 4096;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

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
    /// Starts it, and gives the ends of its pipes: what it says, and what it is told. `program` is for the words.
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
        // It has ends of the pipes, too: with them we would never see that it is gone.
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

    /// How it ended, if it did. Its number stays taken, so that what is left of it can be killed.
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

    /// Waits until it has ended by itself.
    pub(crate) fn wait(&self, within: Duration) -> bool {
        is_over_within(within, || self.ended().is_some())
    }

    /// Waits until the browser that it drives has ended by itself.
    #[cfg(feature = "patchright")]
    pub(crate) fn wait_for_browser(&self, within: Duration) -> bool {
        is_over_within(within, || !tree::browser_runs(&self.profile))
    }

    /// Why it does not answer, and what it said. A process that has ended says more than the pipe that was closed with it.
    pub(crate) fn why_silent(&self, error: &BrowserError) -> String {
        self.wait(Duration::from_millis(200));
        let why = self.ended().unwrap_or_else(|| error.to_string());
        let said = self.last_words();
        if said.is_empty() { why } else { format!("{why}; it said: {said}") }
    }

    /// The last line of what it wrote to its errors that is not about the machine's message bus.
    fn last_words(&self) -> String {
        let text = self.errors.lock().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.contains("dbus"));
        lines.next_back().unwrap_or_default().chars().take(300).collect()
    }

    /// What all its processes take.
    pub(crate) fn memory(&self) -> u64 {
        tree::memory(self.leader, &self.profile)
    }

    /// Ends everything that came out of it, at once.
    pub(crate) fn kill(&self) {
        let Ok(mut child) = self.child.lock() else { return };
        let Some(mut child) = child.take() else { return };
        // First those in the group, all in the same moment; then whoever left it.
        let _ = kill_process_group(self.leader, Signal::KILL);
        tree::kill(self.leader, &self.profile, KILL_MAX);
        // Both are dead: this only takes notice.
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

/// Looks again and again whether something is over.
fn is_over_within(within: Duration, is_over: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !is_over() {
        if began.elapsed() >= within {
            return false;
        }
        thread::sleep(LOOK_AGAIN);
    }
    true
}

/// A word that no other start of a browser has, on this machine.
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
