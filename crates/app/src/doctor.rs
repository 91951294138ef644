//! Looks at everything that a run depends on. It makes nothing and repairs nothing, and never shows a secret.
//!
//! Each check has a name, a verdict, what was seen, and what to do if it is not well. Checks that need the
//! store are left out when there is none, instead of failing once more for the same reason.

mod connections;
mod folder;
mod machine;
mod store;

use crate::app::App;
use CheckVerdict as Verdict;
use serde::Serialize;

/// How something that was looked at is, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckVerdict {
    /// As it should be.
    #[serde(rename = "ok")]
    Well,
    /// It works, and should be looked at.
    Warning,
    /// It does not work.
    Failed,
}

impl CheckVerdict {
    /// For programs and people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What it is.
    pub name: &'static str,
    /// How it is.
    pub verdict: CheckVerdict,
    /// What was seen.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
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

impl App {
    /// Looks at everything that a run depends on, in the order in which one depends on another.
    #[must_use]
    pub fn doctor(&self) -> Vec<Check> {
        let mut checks = vec![folder::data_root(self), config_file(self)];
        checks.extend(folder::checks(self));
        let reader = store::open(self, &mut checks);
        if let Some(reader) = &reader {
            checks.extend(store::checks(reader, self));
            checks.extend(connections::checks(reader, self));
        }
        checks.extend(machine::checks(reader.and_then(|reader| reader.newest_date().ok()?)));
        checks
    }
}

fn config_file(app: &App) -> Check {
    const NAME: &str = "settings";
    let path = app.config_path();
    match (app.program.check_config)(&path) {
        Ok(()) if path.exists() => well(NAME, format!("{} is right", path.display())),
        Ok(()) => well(NAME, "there is no config.toml; defaults and the environment hold"),
        Err(error) => failed(NAME, error.message, error.hint),
    }
}
