//! The options of commands that collect, and those that several commands share.

use super::author::AuthorArgs;
use super::manage::expires;
use crate::config::Config;
use clap::{Args, ValueEnum, value_parser};
use gleaner_app::{App, AppError, BudgetSpec, Expires, Program, Purpose, RunOf, RunSpec, ScopeSpec};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The data root.
#[derive(Args, Clone, Debug)]
pub(crate) struct HomeArgs {
    /// The data root: store, settings, learned rate limits [default: $GLEANER_HOME, or ~/.pdpp].
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

impl HomeArgs {
    /// The application on this data root.
    pub(crate) fn app(&self) -> Result<App, AppError> {
        let check_config = |path: &Path| Config::read(path).map(drop);
        App::find(self.home.clone(), Program { executable: std::env::current_exe().ok(), check_config })
    }
}

/// For commands that only print.
#[derive(Args, Debug)]
pub(crate) struct PrintArgs {
    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// A built-in connector; `gleaner connectors` lists them.
    #[arg(value_name = "CONNECTOR", required_unless_present = "manifest")]
    pub(crate) connector: Option<String>,
    /// The manifest of any other connector.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// The name of the connection [default: the connector's own short name]. Two accounts at one provider need two
    /// names.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Sets an environment variable of the connector. Not for secrets: the value is stored in plain text.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// The end of your permission to collect: a date, a time in RFC 3339, or never [default: never].
    #[arg(long, value_name = "TIME|never", value_parser = expires)]
    pub(crate) expires: Option<Expires>,
    /// Stores the credentials without testing them.
    #[arg(long)]
    pub(crate) no_check: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The command that starts the connector [default: from its manifest].
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct CollectArgs {
    /// The name of the connection; `gleaner status` lists them.
    #[arg(value_name = "CONNECTION", required_unless_present = "manifest", conflicts_with = "manifest")]
    pub(crate) connection: Option<String>,
    /// The manifest of a connector that was not added before.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// With --manifest: the name of the connection [default: the connector's own short name].
    #[arg(long, value_name = "NAME", requires = "manifest")]
    pub(crate) name: Option<String>,
    /// Collects only these streams, repeated or separated by commas [default: all].
    #[arg(long = "stream", value_name = "STREAM", value_delimiter = ',')]
    pub(crate) streams: Vec<String>,
    /// Collects only this record, repeatable.
    #[arg(long = "resource", value_name = "STREAM=KEY")]
    pub(crate) resources: Vec<String>,
    /// Collects only records from this time on: a date, or a time in RFC 3339.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Collects from the beginning instead of resuming.
    #[arg(long, conflicts_with = "catch_up")]
    pub(crate) full_refresh: bool,
    /// Collects records that are older than the first run, with cursors of its own.
    #[arg(long)]
    pub(crate) catch_up: bool,
    /// Stops after so many requests; the next run resumes.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) max_requests: Option<u64>,
    /// Stops after so long, for example 90s, 10m or 2h; the next run resumes.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) max_duration: Option<Duration>,
    /// Answers to the connector's questions [default: prompt on a terminal, none otherwise].
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) interact: Option<Interact>,
    /// Runs even during a cooldown, or while the connection is paused.
    #[arg(long)]
    pub(crate) now: bool,
    /// Prints one JSON object per line; the last one has the result of the run.
    #[arg(long)]
    pub(crate) json: bool,
    /// Shows no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The command that starts the connector [default: as added, or from its manifest].
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl CollectArgs {
    /// What is asked of the run.
    pub(crate) fn spec(&self) -> RunSpec {
        let connection = match &self.manifest {
            Some(manifest) => RunOf::Described { manifest: manifest.clone(), name: self.name.clone() },
            None => RunOf::Added(self.connection.clone().unwrap_or_default()),
        };
        RunSpec {
            connection,
            command: self.command.clone(),
            scope: ScopeSpec {
                streams: self.streams.clone(),
                resources: self.resources.clone(),
                since: self.since.clone(),
                history: self.catch_up,
            },
            full_refresh: self.full_refresh,
            budget: BudgetSpec { max_requests: self.max_requests, max_duration: self.max_duration },
            record: self.author.record.clone(),
            replay: self.author.replay.clone(),
            ..RunSpec::new("", if self.now { Purpose::OwnerNow } else { Purpose::Owner })
        }
    }
}

/// Answers to a connector's questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Interact {
    /// Asks here.
    Prompt,
    /// The run waits; `gleaner answer` answers from anywhere.
    Park,
    /// Tells the connector that nobody can answer.
    None,
}

#[derive(Args, Debug)]
pub(crate) struct OfConnectionArgs {
    /// The connection.
    pub(crate) connection: String,
    /// The largest number of lines.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RepairArgs {
    /// The connection.
    pub(crate) connection: String,
    /// Runs even during a cooldown, or while the connection is paused.
    #[arg(long)]
    pub(crate) now: bool,
    /// Prints one JSON object per line; the last one has the result of the run.
    #[arg(long)]
    pub(crate) json: bool,
    /// Shows no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The command that starts the connector [default: as added, or from its manifest].
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct ConformanceArgs {
    /// The connector's manifest.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// The streams to test [default: all of the manifest].
    #[arg(long = "stream", value_name = "STREAM", value_delimiter = ',')]
    pub(crate) streams: Vec<String>,
    /// The environment variable with the provider's address. The test sets it to a local provider that answers 429.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider_variable: Option<String>,
    /// The seed for the points at which the connector is killed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Prints one JSON object per line and check.
    #[arg(long)]
    pub(crate) json: bool,
    /// Lists the checks that passed, too.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// The command that starts the connector.
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `90`, `90s`, `10m`, `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) => (number, &text[number.len()..]),
        None => (text, "s"),
    };
    let factor = match unit {
        "h" => 3600,
        "m" => 60,
        _ => 1,
    };
    let seconds =
        number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).filter(|&seconds| seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(|| "give a number with s, m or h, for example 10m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_are_not_zero() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for text in ["", "0", "s", "-1s", "1d", "99999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
