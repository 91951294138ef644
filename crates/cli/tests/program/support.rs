//! Runs the real program and takes its answer apart.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program did.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `gleaner` with `arguments`.
pub(crate) fn gleaner(arguments: &[&str]) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_gleaner")).args(arguments).output().expect("the program starts");
    Answer {
        code: output.status.code().expect("the program is not killed"),
        stdout: String::from_utf8(output.stdout).expect("stdout is text"),
        stderr: String::from_utf8(output.stderr).expect("stderr is text"),
    }
}

/// A folder of its own for a test, in the build folder.
pub(crate) fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&path).expect("the build folder can be written");
    path
}

/// A scenario file of ten minutes with `extra` in place of its last lines.
pub(crate) fn scenario_file(test: &str, limit: &str, extra: &str) -> String {
    let text = format!("name = \"{test}\"\nhorizon_s = 600\nworkers = 2\n[[limit]]\n{limit}\n{extra}\n");
    let path = folder(test).join("scenario.toml");
    std::fs::write(&path, text).expect("the build folder can be written");
    path.to_str().expect("the path is text").to_owned()
}

pub(crate) const BUCKET: &str = "kind = \"token_bucket\"\nrate_per_s = 5\nburst = 5";
