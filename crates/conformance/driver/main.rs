//! The checks as a program, without the rest of Gleaner: what the tests of this crate start as guard,
//! and what one can try a connector with.
//!
//! ```text
//! conformance-driver check MANIFEST -- COMMAND…
//! ```

#![allow(clippy::print_stdout, reason = "a program for tests, its output is its interface")]

use gleaner_conformance::{Limits, Subject};
use gleaner_runtime::Environment;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1).collect::<Vec<_>>();
    let code = match words.split_first() {
        Some((word, rest)) if word == "guard" => gleaner_runtime::guard_main(rest),
        Some((word, rest)) if word == "exec" => gleaner_runtime::exec_main(rest),
        Some((word, rest)) if word == "check" => check(rest).unwrap_or(2),
        _ => 2,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn check(words: &[OsString]) -> Option<i32> {
    let [manifest, dashes, command @ ..] = words else { return None };
    let ourselves = std::env::current_exe().ok()?.into_os_string();
    let subject = Subject {
        command: (dashes == "--").then(|| command.to_vec())?,
        manifest: Some(std::fs::read_to_string(manifest).ok()?),
        streams: Vec::new(),
        environment: {
            let mut environment = Environment::default();
            std::env::vars_os().for_each(|(name, value)| environment.set(name, value));
            environment
        },
        secrets: Vec::new(),
        provider_variable: None,
        folder: None,
        scratch: None,
        guard: vec![ourselves.clone(), "guard".into()],
        exec: vec![ourselves, "exec".into()],
        limits: Limits::default(),
        seed: 1,
    };
    let report = gleaner_conformance::check(&subject, &mut |_| {});
    for result in &report.checks {
        println!("{}", serde_json::to_string(result).unwrap_or_default());
    }
    Some(i32::from(!report.is_clean()))
}
