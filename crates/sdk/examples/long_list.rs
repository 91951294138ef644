//! A connector with a long list: a lane of `LIST_KEYS` items, of which `LIST_TIES` share a time. It asks nobody.
//!
//! The tests run it as a process and read from its errors how much memory it took. With the word `guard` or `exec`
//! it is the program that the runtime starts a connector through.

use gleaner_sdk::lane::{Detail, ListAt, ListItem, ListPage, Target};
use gleaner_sdk::{Collect, Connector, FetchError, Stop, run_connector};
use serde_json::json;
use std::process::ExitCode;

const MANIFEST: &str = r#"{
    "connector_id": "org.example.long_list", "connector_key": "long_list", "version": "1", "display_name": "Long list",
    "runtime_requirements": {"environment_variables": ["LIST_KEYS", "LIST_TIES"]},
    "streams": [
        {"name": "items", "semantics": "mutable_state", "primary_key": "id"},
        {"name": "details", "semantics": "mutable_state", "primary_key": "id", "parent_streams": ["items"],
         "coverage_strategy": "parent_detail_accounting",
         "schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}]}"#;
/// How many items are on a page.
const PAGE: u64 = 500;

struct LongList {
    keys: u64,
    ties: u64,
}

impl LongList {
    /// Numbers count down from the newest.
    fn list(&self, at: &ListAt) -> Result<ListPage, FetchError> {
        let no_number = |_| FetchError::unexpected("a place in this list is a number");
        let newest =
            at.at_or_older_than.as_ref().map(|at| at.as_str().parse::<u64>()).transpose().map_err(no_number)?;
        let from_time = newest.map_or(0, |newest| (self.keys / self.ties).saturating_sub(newest) * self.ties);
        let first = at.page.as_ref().map(|page| page.parse::<u64>()).transpose().map_err(no_number)?;
        let first = first.unwrap_or(from_time);
        let last = (first + PAGE).min(self.keys);
        let time = |number: u64| self.keys / self.ties - number / self.ties;
        let item = |number: u64| ListItem::new(format!("{:020}", number * 7919 % self.keys), time(number));
        let next = (last < self.keys).then(|| last.to_string());
        Ok(ListPage { items: (first..last).map(item).collect(), next, left: Some(self.keys - last) })
    }
}

/// One in ten has a record: this is about the list.
fn detail(target: &Target) -> Result<Detail, FetchError> {
    let (detail, key) = (Detail::new(), target.key.as_str());
    Ok(if key.ends_with('0') { detail.record(key, &json!({ "id": key })) } else { detail })
}

impl Connector for LongList {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        run.lane("items", "details").slice_of(10_000).collect(|at| self.list(at), detail).map(drop)
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The most memory that this process had.
#[expect(clippy::print_stderr, reason = "what the test reads")]
fn report_memory() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    eprintln!("connector peak {}", peak.map_or("unknown", str::trim));
}

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1).collect::<Vec<_>>();
    let code = match words.split_first() {
        Some((word, rest)) if word == "guard" => gleaner_runtime::guard_main(rest),
        Some((word, rest)) if word == "exec" => gleaner_runtime::exec_main(rest),
        _ => {
            let list = LongList { keys: setting("LIST_KEYS", 1000), ties: setting("LIST_TIES", 1).max(1) };
            let code = run_connector(MANIFEST, &list);
            report_memory();
            return code;
        }
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
