//! What can be typed to collect and to look at what was collected.

use super::author::AuthorArgs;
use super::manage::expires;
use crate::config::Config;
use clap::{Args, ValueEnum, value_parser};
use gleaner_app::{App, AppError, BudgetSpec, Expires, Program, Purpose, RunOf, RunSpec, ScopeSpec};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where everything of a user's is.
#[derive(Args, Clone, Debug)]
pub(crate) struct HomeArgs {
    /// The data root: store, settings, what was learned [default: $GLEANER_HOME, or ~/.pdpp].
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
    /// A connector that `gleaner connectors` lists.
    #[arg(value_name = "CONNECTOR", required_unless_present = "manifest")]
    pub(crate) connector: Option<String>,
    /// Any other connector: its manifest.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// What to call the connection [default: the connector's own short name]. Two accounts of one service
    /// need two names.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Sets an environment variable of the connector. Not for secrets: this is stored as it is.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Until when it may be collected: a date, a time in RFC 3339, or never [default: never].
    #[arg(long, value_name = "TIME|never", value_parser = expires)]
    pub(crate) expires: Option<Expires>,
    /// Does not try the credentials before they are stored.
    #[arg(long)]
    pub(crate) no_check: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// How to start the connector [default: what its manifest says].
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct CollectArgs {
    /// The connection, as `gleaner add` named it.
    #[arg(value_name = "CONNECTION", required_unless_present = "manifest", conflicts_with = "manifest")]
    pub(crate) connection: Option<String>,
    /// Runs a connector that was not added before: its manifest.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// With --manifest: what to call the connection [default: the connector's own short name].
    #[arg(long, value_name = "NAME", requires = "manifest")]
    pub(crate) name: Option<String>,
    /// Only these streams, repeated or separated by commas [default: all that can be collected].
    #[arg(long = "stream", value_name = "STREAM", value_delimiter = ',')]
    pub(crate) streams: Vec<String>,
    /// Only these records of a stream, repeated.
    #[arg(long = "resource", value_name = "STREAM=KEY")]
    pub(crate) resources: Vec<String>,
    /// Only what is not older than this: a date, or a time in RFC 3339.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// From the beginning, and not from where the last run ended.
    #[arg(long, conflicts_with = "catch_up")]
    pub(crate) full_refresh: bool,
    /// What is older than the first run, with bookmarks of its own.
    #[arg(long)]
    pub(crate) catch_up: bool,
    /// At most so many requests; the rest is for the next run.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) max_requests: Option<u64>,
    /// At most so long, for example 90s, 10m or 2h; the rest is for the next run.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) max_duration: Option<Duration>,
    /// What happens when the connector asks something [default: prompt on a terminal, none otherwise].
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) interact: Option<Interact>,
    /// Also while the connection rests because its service pushed back, or is paused.
    #[arg(long)]
    pub(crate) now: bool,
    /// Prints one JSON object per line; the last one says how the run ended.
    #[arg(long)]
    pub(crate) json: bool,
    /// Shows no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// How to start the connector [default: as it was added, or what its manifest says].
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

/// What happens to questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Interact {
    /// They are asked here.
    Prompt,
    /// The run waits; `gleaner answer` answers from anywhere.
    Park,
    /// The connector is told that nobody can answer.
    None,
}

#[derive(Args, Debug)]
pub(crate) struct OfConnectionArgs {
    /// The connection.
    pub(crate) connection: String,
    /// At most so many lines.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RepairArgs {
    /// The connection.
    pub(crate) connection: String,
    /// Also during a cooldown, or while the connection is paused.
    #[arg(long)]
    pub(crate) now: bool,
    /// Prints one JSON object per line; the last one says how the run ended.
    #[arg(long)]
    pub(crate) json: bool,
    /// Shows no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// How to start the connector [default: as it was added, or what its manifest says].
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct ConformanceArgs {
    /// The connector's manifest.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// The streams to ask for [default: all of the manifest].
    #[arg(long = "stream", value_name = "STREAM", value_delimiter = ',')]
    pub(crate) streams: Vec<String>,
    /// The variable from which the connector takes its provider's address: a provider on this machine refuses it then.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider_variable: Option<String>,
    /// Chooses the points at which it is killed; the same number chooses the same ones.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Prints one JSON object per line and check.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also names the checks that passed.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// How to start the connector.
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
