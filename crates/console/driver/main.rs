//! The console and a run as programs, without the rest of Gleaner: what the tests start, ask and kill.
//!
//! ```text
//! console-driver serve ROOT LISTEN [BASE]
//! console-driver run ROOT CONNECTION MANIFEST -- COMMAND…
//! ```
//!
//! `serve` prints its address, and ends with its input. `run` is one run of a connector, which can be answered and
//! stopped by other processes.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for tests, its output is its interface")]

use gleaner_app::{App, Program, Purpose, RunOf, RunSpec};
use gleaner_console::{BasePath, BindPolicy, Console, Settings};
use gleaner_runtime::Unobserved;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::channel;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1).collect::<Vec<_>>();
    let done = match words.split_first() {
        Some((word, rest)) if word == "guard" => return code(gleaner_runtime::guard_main(rest)),
        Some((word, rest)) if word == "guard-exec" => return code(gleaner_runtime::exec_main(rest)),
        Some((word, rest)) if word == "run" => run(rest),
        Some((word, rest)) if word == "serve" => serve(rest),
        _ => Err("serve or run".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn app(root: &Path) -> App {
    App::new(root.to_owned(), Program { executable: std::env::current_exe().ok(), check_config: |_| Ok(()) })
}

fn serve(words: &[OsString]) -> Fallible<()> {
    let (root, listen, base) = match words {
        [root, listen] => (root, listen, ""),
        [root, listen, base] => (root, listen, base.to_str().ok_or("no path")?),
        _ => return Err("serve ROOT LISTEN [BASE]".into()),
    };
    let policy = BindPolicy { base: BasePath::new(base).ok_or("no base path")?, ..BindPolicy::default() };
    let listen = listen.to_str().ok_or("no address")?.parse()?;
    let console = Console::start(Settings { listen, names: Vec::new(), policy }, app(Path::new(root)))?;
    println!("{}", console.address());
    println!("{}", console.new_link()?);
    let _bytes = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?;
    console.stop();
    Ok(())
}

fn run(words: &[OsString]) -> Fallible<()> {
    let split = words.iter().position(|word| word == "--").ok_or("no command")?;
    let [root, connection, manifest] = &words[..split] else { return Err("run ROOT CONNECTION MANIFEST".into()) };
    let connection = connection.to_str().ok_or("no name")?;
    let spec = RunSpec {
        connection: RunOf::Described { manifest: manifest.into(), name: Some(connection.to_owned()) },
        command: words[split + 1..].to_vec(),
        interactive: true,
        ..RunSpec::new(connection, Purpose::OwnerNow)
    };
    let (_orders, control) = channel();
    let ended = app(Path::new(root)).prepare(&spec)?.run(control, &mut Unobserved)?;
    println!("{}", ended.report.outcome.reason);
    Ok(())
}
