//! The program under test: `store-driver collect`, alone or under strace, and what it said.
//!
//! Its output goes to a file, not to a pipe: a pipe that nobody empties would stop it, and what was
//! written to a file before a kill is there after it.

use super::disk::Image;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What the driver is asked to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) ids: u64,
    pub(crate) slice: u64,
    pub(crate) rate: Option<u64>,
    pub(crate) cursor_first: bool,
}

/// A folder with one store in it, gone with the value. In memory where there is such a place: the tests
/// are about what is asked of the disk, and not about the disk.
#[derive(Debug)]
pub(crate) struct Place {
    folder: TempDir,
}

/// A process that ended, or was ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) said: Said,
    pub(crate) took: Duration,
}

/// The lines of one process.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Ids in the order in which they were fetched.
    pub(crate) fetched: Vec<u64>,
    /// How many of them are durable, as it says.
    pub(crate) saved: usize,
    pub(crate) done: bool,
}

impl Said {
    pub(crate) fn line(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("fetched", id)) => self.fetched.push(id.parse().unwrap()),
            Some(("saved", count)) => self.saved = count.parse().unwrap(),
            Some(("done", reason)) => self.done = reason == "succeeded",
            Some(_) | None => panic!("the driver said {line:?}"),
        }
    }

    /// The ids that are durable, as it says.
    pub(crate) fn acknowledged(&self) -> &[u64] {
        &self.fetched[..self.saved]
    }

    fn read(path: &Path) -> Self {
        let mut said = Self::default();
        fs::read_to_string(path).unwrap().lines().for_each(|line| said.line(line));
        said
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Self { folder: tempfile::Builder::new().prefix("gleaner-crash-").tempdir_in(parent).unwrap() }
    }

    /// As the kernel names it, so that it can be found in a log of system calls.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder().join("store.db")
    }

    /// Beside the store, but none of its files.
    fn output(&self) -> PathBuf {
        self.folder().join("output")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder().join("log")
    }

    /// The files of the store as they are now, without the index in shared memory.
    pub(crate) fn image(&self) -> Image {
        let files = fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap().path());
        let named = files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path));
        let ours = named.filter(|(name, _)| name.starts_with("store.db") && !name.ends_with("-shm"));
        ours.map(|(name, path)| (name, fs::read(path).unwrap())).collect()
    }

    /// Runs the driver to its end.
    pub(crate) fn run(&self, work: Work) -> Ended {
        self.end(Command::new(driver()), work)
    }

    /// Runs the driver to its end, or to what strace does to it.
    pub(crate) fn run_under_strace(&self, options: &[&str], work: Work) -> Ended {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq"]).args(options).arg("--").arg(driver());
        self.end(command, work)
    }

    /// Starts the driver.
    pub(crate) fn start(&self, work: Work) -> Running<'_> {
        Running { child: self.spawn(Command::new(driver()), work), place: self }
    }

    #[allow(clippy::disallowed_methods, reason = "how long a restart takes is what is tested")]
    fn end(&self, command: Command, work: Work) -> Ended {
        let began = Instant::now();
        let status = self.spawn(command, work).wait().unwrap();
        Ended { status, said: Said::read(&self.output()), took: began.elapsed() }
    }

    fn spawn(&self, mut command: Command, work: Work) -> Child {
        command.arg("collect").arg(self.store());
        command.args(["--ids", &work.ids.to_string(), "--slice", &work.slice.to_string()]);
        if let Some(rate) = work.rate {
            command.args(["--rate", &rate.to_string()]);
        }
        if work.cursor_first {
            command.arg("--cursor-first");
        }
        command.stdin(Stdio::null()).stdout(File::create(self.output()).unwrap());
        let name = command.get_program().to_owned();
        command.spawn().unwrap_or_else(|error| panic!("{name:?}: {error}. If it is missing: apt-get install strace"))
    }
}

/// A driver that works.
#[derive(Debug)]
pub(crate) struct Running<'p> {
    child: Child,
    place: &'p Place,
}

impl Running<'_> {
    /// Waits until it fetched something, or ended, or the time is over; how long that took.
    #[allow(clippy::disallowed_methods, reason = "how long a restart takes is what is tested")]
    pub(crate) fn wait_for_first_word(&mut self, longest: Duration) -> Duration {
        let began = Instant::now();
        let is_silent = || fs::metadata(self.place.output()).unwrap().len() == 0;
        while is_silent() && self.child.try_wait().unwrap().is_none() && began.elapsed() < longest {
            std::thread::sleep(Duration::from_millis(1));
        }
        began.elapsed()
    }

    /// Waits for its end.
    #[allow(clippy::disallowed_methods, reason = "how long a restart takes is what is tested")]
    pub(crate) fn end(mut self) -> Ended {
        let began = Instant::now();
        let status = self.child.wait().unwrap();
        Ended { status, said: Said::read(&self.place.output()), took: began.elapsed() }
    }

    /// `kill -9` after this time. Whether it was still working then, and what it had said.
    #[allow(clippy::disallowed_methods, reason = "a time to die")]
    pub(crate) fn kill_after(mut self, time: Duration) -> (bool, Said) {
        std::thread::sleep(time);
        let was_working = self.child.try_wait().unwrap().is_none();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        (was_working, Said::read(&self.place.output()))
    }
}

const fn driver() -> &'static str {
    env!("CARGO_BIN_EXE_store-driver")
}
