//! A run without a runtime: takes a connector's lines and carries out what the engine wants, in one
//! process that tests may kill and benches may measure. Says `saved N` after each sync, with the
//! number of record lines that are durable, and nothing before it.
//!
//! ```text
//! store-driver collect STORE --ids N --slice N [--rate PER_SECOND] [--cursor-first]
//! store-driver ingest STORE MANIFEST < lines
//! ```
//!
//! `collect` is a connector for a provider with N ids: it goes on at the stored cursor, `fetched K`
//! says which id it fetches. `--cursor-first` breaks the store on purpose: the negative control.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for tests, its output is its interface")]

mod collect;
mod drive;

use std::path::Path;
use std::process::ExitCode;

pub(crate) type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let words = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    let done = match words[..] {
        ["collect", store, ref options @ ..] => collect::collect(Path::new(store), options),
        ["ingest", store, manifest] => drive::ingest(Path::new(store), Path::new(manifest)),
        _ => Err("usage: store-driver collect STORE --ids N --slice N … | ingest STORE MANIFEST".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
