//! A data root of its own, connectors in Python beside it, and the program run against them.

use crate::support::Answer;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// One stream of numbered items, which signs in with a token.
pub(crate) const SHOP: &str = r#"{"connector_id":"shop","connector_key":"shop","version":"1","display_name":"Shop",
    "streams":[{"name":"orders","semantics":"mutable_state","primary_key":"id",
     "schema":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}}],
    "capabilities":{"auth":{"kind":"env","required":["SHOP_TOKEN"]}}}"#;

/// What every small connector here begins with: it has read its START.
pub(crate) const PRELUDE: &str = r#"
import sys, json, os, time, signal
def say(**m): sys.stdout.write(json.dumps(m) + "\n"); sys.stdout.flush()
def record(n, **more): say(type="RECORD", stream="orders", key=str(n), data={"id": n, **more}, emitted_at="2031-01-01T00:00:00Z")
def gap(key, **more): say(type="DETAIL_GAP", reference_only=True, status="pending", stream="orders", record_key=key, **{"reason": "temporary_unavailable", **more})
def slice(n): say(type="STATE", stream="orders", cursor={"next": n}, slice=True)
def done(n, status="succeeded", **more): say(type="DONE", status=status, records_emitted=n, **more)
def end(code=0): sys.stdin.read(); sys.exit(code)
start = json.loads(sys.stdin.readline())
"#;

/// Full size with `scripts/test --all`.
pub(crate) fn is_full_size() -> bool {
    std::env::var_os("GLEANER_TEST_ALL").is_some()
}

/// The interpreter itself. What is called python3 may be a script that takes longer than a whole run.
pub(crate) fn python() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    })
}

/// A folder with a data root in it. Removed at the end.
#[derive(Debug)]
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    /// With the manifest of [`SHOP`].
    pub(crate) fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.write("manifest.json", SHOP);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// A connector that goes on after [`PRELUDE`].
    pub(crate) fn script(&self, script: &str) {
        self.write("connector.py", &format!("{PRELUDE}{script}"));
    }

    /// The program, without a terminal.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
        command.args(arguments).env("GLEANER_HOME", self.home()).env_remove("SHOP_TOKEN");
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn gleaner(&self, arguments: &[&str]) -> Answer {
        answer(&mut self.command(arguments))
    }

    /// `run` of the connector in `connector.py`, with these options.
    pub(crate) fn run_command(&self, options: &[&str]) -> Command {
        let mut arguments = vec!["run", "--manifest", "manifest.json"];
        arguments.extend(options);
        arguments.extend(["--", python(), "-Su", "connector.py"]);
        self.command(&arguments)
    }

    /// Runs a connector to its end.
    pub(crate) fn run(&self, script: &str, options: &[&str]) -> Answer {
        self.script(script);
        answer(&mut self.run_command(options))
    }

    /// Starts a connector and listens to what the program prints.
    pub(crate) fn start(&self, script: &str, options: &[&str]) -> Running {
        self.script(script);
        let mut options = options.to_vec();
        options.push("--json");
        Running::of(self.run_command(&options))
    }
}

/// Runs a command to its end.
pub(crate) fn answer(command: &mut Command) -> Answer {
    let output = command.output().unwrap();
    Answer {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The object in the last line that was printed.
pub(crate) fn last_line(stdout: &str) -> Value {
    serde_json::from_str(stdout.lines().last().unwrap_or_default()).unwrap_or_default()
}

/// A program that goes on.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits until it says that something is saved.
    pub(crate) fn wait_for_saved(&mut self) {
        self.wait_for("saved");
    }

    /// Waits for a line of this kind.
    pub(crate) fn wait_for(&mut self, message_type: &str) {
        let found =
            self.lines.by_ref().map_while(Result::ok).any(|line| last_line(&line)["message_type"] == message_type);
        assert!(found, "it ended without a line {message_type:?}");
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child.id().to_string(), name);
    }

    /// The last line and the exit code.
    pub(crate) fn end(mut self) -> (Value, Option<i32>) {
        let last = self.lines.by_ref().map_while(Result::ok).last().unwrap_or_default();
        (last_line(&last), self.child.wait().unwrap().code())
    }
}

/// A test that failed leaves nobody behind.
impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends a signal to a process, or with a minus before its number to a group.
pub(crate) fn signal(process: &str, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), "--", process]).status().unwrap().success());
}

/// Whether a process is there and has not ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

/// Which of these are still there after this long.
pub(crate) fn left_after(limit: Duration, pids: &[u32]) -> Vec<u32> {
    let began = Instant::now();
    loop {
        let left = pids.iter().copied().filter(|&pid| is_alive(pid)).collect::<Vec<_>>();
        if left.is_empty() || began.elapsed() > limit {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Every file below a folder.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}
