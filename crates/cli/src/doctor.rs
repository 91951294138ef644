//! Looks at everything that a run depends on. It changes nothing, and never shows a secret.
//!
//! Each check has a name, a verdict, what was seen, and what to do if it is not well. Checks that need the
//! store are left out when there is none, instead of failing once more for the same reason.

mod connections;
mod folder;
mod machine;
mod store;

use crate::args::collect::HomeArgs;
use crate::config::Config;
use crate::error::CliError;
use crate::home::Home;
use gleaner_store::Reader;

/// How a check ended, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Well,
    Warning,
    Failed,
}

impl Verdict {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

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
pub(crate) fn look(args: &HomeArgs) -> Result<Vec<Check>, CliError> {
    let home = Home::find(args)?;
    let mut checks = vec![folder::data_root(&home), config_file(&home)];
    checks.extend(folder::checks(&home));
    let reader = store::open(&home, &mut checks);
    if let Some(reader) = &reader {
        checks.extend(store::checks(reader, &home));
        checks.extend(connections::checks(reader, &home));
    }
    checks.extend(machine::checks(reader.as_ref().and_then(newest_date)));
    Ok(checks)
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
