//! A connector in Python, run by a runtime that is a process of its own, and what both say.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) const MANIFEST: &str = r#"{"connector_id":"t","connector_key":"t","version":"1","streams":[
    {"name":"ids","semantics":"mutable_state","primary_key":"id"}],
    "runtime_requirements":{"bindings":{"filesystem":{"required":true}},"environment_variables":["DECLARED"]}}"#;

/// What every connector here begins with.
const PRELUDE: &str = r#"
import sys, json, os, time, signal, subprocess
def say(**m): sys.stdout.write(json.dumps(m) + "\n"); sys.stdout.flush()
def record(n): say(type="RECORD", stream="ids", key=str(n), data={"id": n}, emitted_at="2031-01-01T00:00:00Z")
def slice(n): say(type="STATE", stream="ids", cursor={"next": n}, slice=True)
def done(n, status="succeeded", **more): say(type="DONE", status=status, records_emitted=n, **more)
def wait_for_end(): sys.stdin.read()
start = json.loads(sys.stdin.readline())
"#;

pub(crate) struct Running {
    pub(crate) child: Child,
    /// What the runtime's driver is told.
    pub(crate) orders: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// With the store, the manifest and the program in this folder.
    pub(crate) fn start(folder: &Path, script: &str, flags: &[&str]) -> Self {
        fs::write(folder.join("manifest.json"), MANIFEST).unwrap();
        let program = folder.join("connector.py");
        fs::write(&program, format!("{PRELUDE}{script}")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_runtime-driver"));
        command.arg("run").arg(folder.join("store.db")).arg(folder.join("manifest.json")).args(flags);
        command.args(["--", "python3", "-u"]).arg(program);
        command.env("DECLARED", "yes").env("NOT_DECLARED", "no");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (orders, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, orders, output }
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn rest(mut self) -> String {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        self.child.wait().unwrap();
        text
    }
}

/// A test that fails leaves nobody behind who waits for an answer.
impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
