//! A run as a program, without the rest of Gleaner: what the tests of this crate start, watch and kill.
//!
//! ```text
//! runtime-driver run STORE MANIFEST [--interactive] [--control] [--max-ms N] -- COMMAND…
//! ```
//!
//! Prints `saved N` after each slice, and at the end the reason, the counts and the connector's last
//! words. A line on its input is an order: `cancel`, `now`, or `answer REQUEST_ID JSON`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for tests, its output is its interface")]

use gleaner_engine::{RunScope, WallTime};
use gleaner_protocol::{
    Answer, Interaction, InteractionResponse, InteractionStatus, Manifest, ManifestOrigin, RawJson, RunBudget, Scope,
    StreamScope,
};
use gleaner_runtime::{Control, Environment, Launch, Observer, Redactor, RunReport, RunRequest, Saved};
use gleaner_store::Store;
use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1).collect::<Vec<_>>();
    let code = match words.split_first() {
        Some((word, rest)) if word == "guard" => gleaner_runtime::guard_main(rest),
        Some((word, rest)) if word == "exec" => gleaner_runtime::exec_main(rest),
        Some((word, rest)) if word == "run" => match run(rest) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("error: {error}");
                1
            }
        },
        _ => 2,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn run(words: &[OsString]) -> Fallible<()> {
    let split = words.iter().position(|word| word == "--").ok_or("no command")?;
    let (options, command) = (&words[..split], &words[split + 1..]);
    let [path, manifest, flags @ ..] = options else { return Err("STORE MANIFEST".into()) };
    let text = std::fs::read_to_string(manifest)?;
    let manifest = Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).map_err(|error| format!("{error:?}"))?;
    let mut store = Store::open(Path::new(path))?;
    store.register("c", &text, &manifest, WallTime::default())?;
    let (orders, control) = channel();
    std::thread::spawn(move || read_orders(&orders));
    let mut request = request(manifest, command, flags)?;
    if flags.iter().any(|flag| flag == "--control") {
        request.control = Path::new(path).parent().map(|folder| folder.join("run"));
    }
    let report = gleaner_runtime::run(&mut store, request, control, &mut Printer)?;
    print_report(&report);
    Ok(())
}

fn request(manifest: Manifest, command: &[OsString], flags: &[OsString]) -> Fallible<RunRequest> {
    let ourselves = std::env::current_exe()?.into_os_string();
    let mut environment = Environment::for_connector(std::env::vars_os(), &manifest.environment_variables);
    environment.set("TEST_SECRET", "s3cr3t-value");
    let streams = manifest.streams.iter().map(|stream| StreamScope::all_of(&stream.name)).collect();
    let mut names = vec!["network", "filesystem"];
    names.extend(flags.iter().any(|flag| flag == "--interactive").then_some("interactive"));
    let empty = || RawJson::new("{}").map_err(|fault| fault.to_string());
    let bindings = names.into_iter().map(|name| Ok((name.to_owned(), empty()?))).collect::<Result<_, String>>()?;
    // `--max-ms N`, as the last option.
    let max_duration_ms = flags.last().and_then(|ms| ms.to_str()).and_then(|ms| ms.parse().ok());
    let budget = max_duration_ms.map(|ms| RunBudget { max_requests: None, max_duration_ms: Some(ms) });
    let launch = Launch {
        command: command.to_vec(),
        environment,
        folder: None,
        guard: vec![ourselves.clone(), "guard".into()],
        exec: vec![ourselves, "exec".into()],
    };
    let scope = RunScope::ordinary(Scope::new(streams)?);
    Ok(RunRequest {
        bindings,
        budget,
        overrun: std::time::Duration::from_millis(300),
        redactor: Redactor::new(["s3cr3t-value".to_owned()]),
        ..RunRequest::new("c", Arc::new(manifest), scope, launch)
    })
}

fn read_orders(orders: &Sender<Control>) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let order = match line.split(' ').collect::<Vec<_>>()[..] {
            ["cancel"] => Control::Cancel,
            ["now"] => Control::CancelNow,
            ["answer", request_id, data] => Control::Answer(InteractionResponse {
                request_id: request_id.to_owned(),
                status: InteractionStatus::Success,
                data: RawJson::new(data.to_owned()).ok().map(Answer::new),
            }),
            _ => continue,
        };
        if orders.send(order).is_err() {
            return;
        }
    }
}

struct Printer;

impl Observer for Printer {
    fn saved(&mut self, saved: Saved) {
        let written = writeln!(std::io::stdout(), "saved {}", saved.counts.collected());
        drop(written);
    }

    fn asked(&mut self, question: &Interaction, _id: i64) {
        println!("asked {} {}", question.request_id, question.message);
    }
}

fn print_report(report: &RunReport) {
    let outcome = &report.outcome;
    println!("reason {}", outcome.reason);
    println!("collected {}", outcome.counts.collected());
    println!("interrupted {}", report.interrupted_before);
    if let Some(violation) = &outcome.violation {
        println!("violation {violation}");
    }
    if let Some(error) = &report.store_error {
        println!("store {error}");
    }
    println!("errors {:?}", report.errors);
}
