//! Looks at everything that a run depends on. It makes nothing and repairs nothing, and never shows a secret.
//!
//! Each check has a name, a verdict, what was seen, and what to do if it is not well. Checks that need the
//! store are left out when there is none, instead of failing once more for the same reason.

mod connections;
mod folder;
mod machine;
mod store;

use crate::config::Config;
use crate::error::CliError;
use crate::home::Home;
pub(crate) use gleaner_app::{Check, CheckVerdict as Verdict};
use gleaner_store::Reader;

fn well(name: &'static str, what: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Well, what: what.into(), hint: None }
}

fn warning(name: &'static str, what: impl Into<String>, hint: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Warning, what: what.into(), hint: Some(hint.into()) }
}

fn failed(name: &'static str, what: impl Into<String>, hint: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Failed, what: what.into(), hint: Some(hint.into()) }
}

/// What is wrong, if anything is: all of it in one check.
fn all_well(name: &'static str, faults: &[String], good: impl Into<String>, hint: &str) -> Check {
    if faults.is_empty() { well(name, good) } else { failed(name, faults.join("; "), hint) }
}

/// Every check, in the order in which one depends on another.
pub(crate) fn look(home: &Home) -> Vec<Check> {
    let mut checks = vec![folder::data_root(home), config_file(home)];
    checks.extend(folder::checks(home));
    let reader = store::open(home, &mut checks);
    if let Some(reader) = &reader {
        checks.extend(store::checks(reader, home));
        checks.extend(connections::checks(reader, home));
    }
    checks.extend(machine::checks(reader.as_ref().and_then(newest_date)));
    checks
}

fn newest_date(reader: &Reader) -> Option<gleaner_engine::WallTime> {
    reader.newest_date().ok().flatten()
}

fn config_file(home: &Home) -> Check {
    const NAME: &str = "settings";
    match Config::load(home) {
        Ok(_) if home.config_path().exists() => well(NAME, format!("{} is right", home.config_path().display())),
        Ok(_) => well(NAME, "there is no config.toml; defaults and the environment hold"),
        Err(CliError::Usage { message, hint }) => failed(NAME, message, hint),
        Err(other) => failed(NAME, format!("{other:?}"), "see docs/configuration.md"),
    }
}
