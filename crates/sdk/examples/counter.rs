//! The smallest connector: it counts, without asking anybody. The tests run it as a process.
//!
//! `COUNT_TO` says how far, `COUNT_PAGE` how many at a time, `COUNT_PAD` how long each record is. With `COUNT_URL` it asks
//! there before each page.
//! With the word `guard` or `exec` it is the program that the runtime starts a connector through.

use gleaner_sdk::{Collect, Connector, Page, Stop, run_connector};
use serde_json::json;
use std::process::ExitCode;

const MANIFEST: &str = r#"{
    "connector_id": "org.example.counter", "connector_key": "counter", "version": "1", "display_name": "Counter",
    "runtime_requirements": {"environment_variables": ["COUNT_TO", "COUNT_PAGE", "COUNT_PAD", "COUNT_PANIC", "COUNT_PRINT",
        "COUNT_URL"]},
    "streams": [{"name": "numbers", "semantics": "append_only", "incremental": true, "schema": {
        "type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}, "pad": {"type": "string"}}}}]}"#;

struct Counter;

impl Connector for Counter {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        let (to, size) = (setting("COUNT_TO", 10), setting("COUNT_PAGE", 100));
        let pad = "x".repeat(usize::try_from(setting("COUNT_PAD", 0)).unwrap_or(0));
        let url = std::env::var("COUNT_URL").ok();
        let api = url.as_ref().map(|_| run.client()).transpose()?;
        run.pages("numbers", |at| {
            if let (Some(api), Some(url)) = (&api, &url) {
                api.get(url.as_str()).send()?.error_for_status()?;
            }
            let from = at.and_then(|at| at["next"].as_u64()).unwrap_or(0);
            let next = (from + size).min(to);
            assert!(next <= setting("COUNT_PANIC", u64::MAX), "this text stays on standard error");
            print_by_mistake();
            let cursor = json!({ "next": next });
            let page = if next == to { Page::last(cursor) } else { Page::then(cursor) };
            Ok((from..next).fold(page, |page, n| page.record(n.to_string(), &json!({"n": n, "pad": pad}))))
        })
        .map(drop)
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1).collect::<Vec<_>>();
    let code = match words.split_first() {
        Some((word, rest)) if word == "guard" => gleaner_runtime::guard_main(rest),
        Some((word, rest)) if word == "exec" => gleaner_runtime::exec_main(rest),
        _ => return run_connector(MANIFEST, &Counter),
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// Simulates a library that prints.
#[expect(clippy::print_stdout, reason = "to show that it does no harm")]
fn print_by_mistake() {
    if std::env::var_os("COUNT_PRINT").is_some() {
        println!("a library prints this");
    }
}
