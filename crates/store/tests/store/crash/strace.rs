//! Reads a log of strace, written with `-y` and `-xx`: paths of descriptors, and every text in hex.
//!
//! Why hex: then no text holds a blank, a quote or a bracket, and a line can be taken apart by looking
//! for them. A line that is not understood is a panic, never left out.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One system call that was carried out.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    arguments: Vec<String>,
    /// The path of the descriptor that it returned.
    pub(crate) returned_path: Option<PathBuf>,
    pub(crate) result: u64,
    /// strace answered, the kernel never heard of it.
    pub(crate) is_faked: bool,
}

impl Call {
    pub(crate) fn has_flag(&self, flag: &str) -> bool {
        self.arguments.iter().any(|argument| argument.split('|').any(|word| word == flag))
    }

    /// The path of the descriptor that it works on.
    pub(crate) fn path(&self) -> PathBuf {
        path_of(&self.arguments[0]).unwrap_or_else(|| panic!("no path in {self:?}"))
    }

    pub(crate) fn is_to_stdout(&self) -> bool {
        self.arguments[0].starts_with("1<")
    }

    /// An argument that is a text or bytes.
    pub(crate) fn bytes(&self, at: usize) -> Vec<u8> {
        let text = self.arguments[at].strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        unhex(text.unwrap_or_else(|| panic!("{}: not a whole text: {}", self.name, self.arguments[at])))
    }

    pub(crate) fn path_argument(&self, at: usize) -> PathBuf {
        OsString::from_vec(self.bytes(at)).into()
    }

    pub(crate) fn number(&self, at: usize) -> u64 {
        self.arguments[at].parse().unwrap()
    }
}

/// All calls that were carried out with success, in their order.
pub(crate) fn read(log: &Path) -> Vec<Call> {
    std::fs::read_to_string(log).unwrap().lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Call> {
    let (_pid, call) = line.split_once(char::is_whitespace).unwrap_or_else(|| panic!("not understood: {line}"));
    let call = call.trim_start();
    // "--- SIGKILL", "+++ killed"
    if call.starts_with(['-', '+']) {
        return None;
    }
    let (call, result) = call.split_once(") = ").or_else(|| call.split_once(" = ")).unwrap_or((call, "?"));
    // A call during which the process died, or one that failed: nothing happened.
    let number = result.split([' ', '<']).next().unwrap_or("?");
    if number == "?" || number.starts_with('-') {
        return None;
    }
    let (name, arguments) = call.split_once('(').unwrap_or_else(|| panic!("not understood: {call}"));
    Some(Call {
        name: name.to_owned(),
        arguments: arguments.trim_end().trim_end_matches(')').split(", ").map(str::to_owned).collect(),
        returned_path: path_of(result.split(' ').next().unwrap_or_default()),
        result: number.parse().unwrap_or_else(|_| panic!("not understood: {result}")),
        is_faked: result.ends_with("(INJECTED)"),
    })
}

/// `3<\x2f\x74>`
fn path_of(descriptor: &str) -> Option<PathBuf> {
    let (_, rest) = descriptor.split_once('<')?;
    let (path, _) = rest.split_once('>')?;
    Some(OsString::from_vec(unhex(path)).into())
}

/// `\x2f\x74`. Megabytes of it.
fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        other => panic!("not a digit: {other}"),
    };
    assert!(text.len().is_multiple_of(4), "not in hex: {text}");
    text.as_bytes().chunks_exact(4).map(|byte| digit(byte[2]) * 16 + digit(byte[3])).collect()
}
