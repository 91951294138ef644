//! The command line, declared once: names, ranges, defaults and help.

pub(crate) mod author;
pub(crate) mod collect;
pub(crate) mod fetch;
pub(crate) mod inspect;
pub(crate) mod maintenance;
pub(crate) mod manage;
pub(crate) mod new;
pub(crate) mod serve;

use crate::first_party;
use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory, Parser, Subcommand, value_parser};
use std::net::SocketAddr;
use std::path::PathBuf;

const EXIT_CODES: &str = "Exit codes:
  0  complete
  1  failed: an [expect] of a scenario was missed, or something could not be written
  2  usage: an option, a file or a name is wrong; the message says which, `hint:` what to do";

pub(crate) const COLLECT_EXIT_CODES: &str = "Exit codes:
    0  complete
    1  failed
    2  usage: an option, a file or a name is wrong
    3  finished, with gaps or rejected records; `gleaner gaps` lists them
    4  waits for you: an answer, a credential or a permission is missing, or it is paused
    5  the provider rate-limited us; the connection is in a cooldown, run it later
   10  there is no store yet
   11  another run of this connection is in progress
   12  the provider refused the credentials
  130  interrupted; saved records stay saved";

pub(crate) const EXIT_CODES_ELSEWHERE: &str = "`gleaner help exit-codes` explains the exit codes.";

/// Commands by what they are for. A test compares them with those that there are.
const OVERVIEW: &str = "\
Collects your data from services you do not control: every record, as fast as is
safe, and honest about what is missing.

Usage: gleaner <COMMAND> [OPTIONS]

Collect:
  demo              Shows a whole collection in a minute, on this machine alone
  connectors        Lists the built-in connectors
  add               Adds a connection: a connector with one account
  check             Tests a connection; stores nothing
  run               Runs a connection once and reports what is missing
  answer            Answers a question of a connector
  cancel            Stops a run after its current slice
Run automatically:
  serve             Runs connections on schedule and serves the web console
  schedule          Shows or sets when connections run
  pause, resume     Pauses and resumes a connection
  service           Installs `gleaner serve` as a systemd service
Look:
  status            Lists connections: stored, missing, last run
  why               Explains why a connection is waiting, slow or incomplete
  runs              Lists the last runs of a connection
  gaps              Lists records that could not be collected, and why
  coverage          Shows how complete each stream is
Use the data:
  records           Prints the records of a stream, or its changes
  export            Writes records as JSON lines or CSV
  query             Runs an SQL query on the store
Maintain:
  init, config      Creates the data root; shows the settings
  doctor            Checks everything that a run depends on
  verify, repair    Finds damage in the store; collects again what is in doubt
  backup, restore   Copies the store to a file, and back
  remove            Removes a connection, and with --purge its data
  completions, man  Prints shell completions and manual pages
Rate limits and connectors:
  fetch             Fetches a list of URLs, each host at its own pace
  proxy             Keeps any program just under the rate limit of an API
  lab               Simulates rate limits
  new               Creates a connector from a template
  conformance       Tests a connector against the protocol

Options:
      --color <WHEN>  Colors the output: auto, always or never [default: auto]
  -V, --version       Prints the version
`gleaner COMMAND --help` has the options and an example; `gleaner help exit-codes`
explains the exit codes.";

/// An example for each command.
const EXAMPLES: [(&str, &str); 36] = [
    ("add", "gleaner add ical --set subscription_url=https://example.com/calendar.ics"),
    ("answer", "gleaner answer 7"),
    ("backup", "gleaner backup ~/gleaner.backup"),
    ("cancel", "gleaner cancel ical"),
    ("check", "gleaner check ical"),
    ("completions", "gleaner completions bash"),
    ("config", "gleaner config show"),
    ("conformance", "gleaner conformance --manifest manifest.json -- python3 connector.py"),
    ("connectors", "gleaner connectors"),
    ("coverage", "gleaner coverage ical"),
    ("demo", "gleaner demo"),
    ("doctor", "gleaner doctor"),
    ("exit-codes", "gleaner help exit-codes"),
    ("export", "gleaner export ical.events --format csv --output events.csv"),
    ("fetch", "gleaner fetch urls.txt --out pages"),
    ("gaps", "gleaner gaps ical"),
    ("init", "gleaner init"),
    ("lab", "gleaner lab show bucket-bare"),
    ("man", "gleaner man"),
    ("new", "gleaner new connector shop"),
    ("pause", "gleaner pause ical"),
    ("proxy", "gleaner proxy --upstream https://api.example.com/v2"),
    ("query", "gleaner query 'SELECT count(*) FROM \"ical.events\"'"),
    ("records", "gleaner records ical.events --limit 10"),
    ("remove", "gleaner remove ical"),
    ("repair", "gleaner repair ical"),
    ("restore", "gleaner restore ~/gleaner.backup"),
    ("resume", "gleaner resume ical"),
    ("run", "gleaner run ical"),
    ("runs", "gleaner runs ical"),
    ("schedule", "gleaner schedule ical --every 6h"),
    ("serve", "gleaner serve"),
    ("service", "gleaner service install"),
    ("status", "gleaner status"),
    ("verify", "gleaner verify"),
    ("why", "gleaner why ical"),
];

const DOCTOR_EXIT_CODES: &str = "Exit codes:
  0  every check passed, or there are only warnings
  1  a check failed; its hint says what to do
  2  usage: an option is wrong";

const PROXY_HELP: &str = "Request header:
  Gleaner-Max-Wait: SECONDS    answer 429 instead of waiting longer than this [default: 120]
Response headers:
  Gleaner-Reason, Gleaner-Attempts      why the proxy answered itself, or why it did not retry
  Gleaner-Answered-By: sidecar          the proxy answered, not the upstream
Pages:
  /.gleaner/status   the learned rate limits, as JSON
  /.gleaner/metrics  the same for Prometheus

Exit codes:
    0  ended by SIGTERM, after the requests in flight
    1  failed: the address is taken, or a file cannot be written
    2  usage: an option is wrong; the message says which, `hint:` what to do
  130  ended by Ctrl-C, after the requests in flight";

/// Collects your data from services that you do not control: every record, as fast as is safe, and honest about
/// what is missing.
#[derive(Debug, Parser)]
#[command(name = "gleaner", version, about, override_help = OVERVIEW, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Colors the output: auto, always or never [default: auto].
    #[arg(
        long = "color",
        alias = "colour",
        value_enum,
        value_name = "WHEN",
        global = true,
        hide_possible_values = true
    )]
    pub(crate) colour: Option<maintenance::Colour>,
}

/// The command line with an example for each command. The exit codes of a command are those of a run unless it has its
/// own.
pub(crate) fn command() -> clap::Command {
    Cli::command().mut_subcommands(|command| {
        let Some((_, example)) = EXAMPLES.iter().find(|(name, _)| *name == command.get_name()) else { return command };
        let own = command.get_after_help().map(ToString::to_string);
        let codes = own.unwrap_or_else(|| EXIT_CODES_ELSEWHERE.to_owned());
        command.after_help(format!("Example:\n  {example}\n\n{codes}"))
    })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulates rate limits, and measures how close a control law comes to them.
    #[command(subcommand, after_help = EXIT_CODES)]
    Lab(LabCommand),
    /// Shows a whole collection in a minute: a provider with an undocumented rate limit, a connector, and a kill.
    Demo(collect::DemoArgs),
    /// Adds a connection: a connector with one account.
    Add(collect::AddArgs),
    /// Runs a connection once, stores its records, and reports what is missing.
    ///
    /// Ctrl-C stops the run after its current slice; Ctrl-C twice stops it at once. The next run resumes.
    Run(collect::CollectArgs),
    /// Runs connections on schedule and serves the web console, until you stop it.
    ///
    /// Ctrl-C stops each run after its current slice; Ctrl-C twice stops at once. The next start resumes.
    Serve(serve::ServeArgs),
    /// Shows or sets when connections run.
    Schedule(serve::ScheduleArgs),
    /// Installs `gleaner serve` as a systemd service.
    #[command(subcommand)]
    Service(serve::ServiceCommand),
    /// Lists connections: stored records, missing records, and the last run.
    Status(collect::PrintArgs),
    /// Lists the last runs of a connection.
    Runs(collect::OfConnectionArgs),
    /// Lists records that could not be collected, and why.
    Gaps(inspect::GapsArgs),
    /// Shows how complete each stream is: listed, stored, missing and skipped records.
    Coverage(inspect::CoverageArgs),
    /// Prints the records of a stream, or its changes.
    Records(inspect::RecordsArgs),
    /// Writes records as JSON lines or CSV: a snapshot of one moment.
    Export(inspect::ExportArgs),
    /// Runs an SQL query on the store. Each stream has a view; docs/store.md lists the tables.
    Query(inspect::QueryArgs),
    /// Explains why a connection is waiting, slow or incomplete, and what happens next.
    Why(inspect::WhyArgs),
    /// Tests a connection: its manifest, its credentials, and one call to its provider. Stores nothing.
    Check(manage::CheckArgs),
    /// Lists the open questions of connectors, or answers one.
    Answer(manage::AnswerArgs),
    /// Pauses a connection: it does not run until you resume it.
    Pause(manage::PauseArgs),
    /// Resumes a paused connection.
    Resume(manage::ResumeArgs),
    /// Stops the run of a connection after its current slice.
    Cancel(manage::CancelArgs),
    /// Removes a connection and its credentials. Its records stay, unless you add --purge.
    Remove(manage::RemoveArgs),
    /// Tests a connector against the protocol, also by killing it, and reports what to fix.
    #[command(after_help = EXIT_CODES)]
    Conformance(collect::ConformanceArgs),
    /// Creates a connector from a template.
    #[command(subcommand, after_help = EXIT_CODES)]
    New(new::NewCommand),
    /// Checks the store, names damaged rows, and says what it checked.
    Verify(collect::PrintArgs),
    /// Collects a connection again where an earlier version of Gleaner may have lost records.
    ///
    /// `gleaner verify` names these places: cursors that a run with a narrower scope may have moved past records,
    /// and gaps that were closed without their record. Nothing is deleted; unchanged records are not stored again.
    Repair(collect::RepairArgs),
    /// Creates the data root, the store and a settings file. Existing files are not changed.
    Init(collect::HomeArgs),
    /// Lists the built-in connectors: the records they collect and the settings they need.
    Connectors(collect::PrintArgs),
    /// Shows the settings.
    #[command(subcommand)]
    Config(maintenance::ConfigCommand),
    /// Copies the store to a file and checks the copy. Runs need not stop.
    ///
    /// A backup has no credentials.
    Backup(maintenance::BackupArgs),
    /// Replaces the store by a backup, and keeps the old store under another name.
    Restore(maintenance::RestoreArgs),
    /// Checks everything that a run depends on, and reports what to fix.
    #[command(after_help = DOCTOR_EXIT_CODES)]
    Doctor(collect::PrintArgs),
    /// Prints a completion script for a shell.
    #[command(after_help = EXIT_CODES)]
    Completions(maintenance::CompletionsArgs),
    /// Prints the manual page, or writes one per command.
    #[command(after_help = EXIT_CODES)]
    Man(maintenance::ManArgs),
    /// Explains the exit codes.
    #[command(hide = true, after_help = COLLECT_EXIT_CODES)]
    ExitCodes,
    /// Runs a built-in connector in a process of its own; started by `run`.
    #[command(hide = true)]
    Connector {
        #[arg(value_parser = PossibleValuesParser::new(first_party::all().map(|known| known.name)))]
        name: String,
    },
    /// Runs one scheduled run; started by `serve`.
    #[command(hide = true)]
    ScheduledRun(serve::ScheduledRunArgs),
    /// Ends a connector when its run is gone; started by `run`.
    #[command(hide = true)]
    Guard {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Becomes a connector; started by `guard`.
    #[command(hide = true)]
    GuardExec {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Fetches a list of URLs, each host at its own pace. Prints one JSON line per URL; can be resumed.
    #[command(after_help = fetch::FETCH_HELP)]
    Fetch(fetch::FetchArgs),
    /// Forwards requests to an API, and keeps them just under its rate limit.
    ///
    /// Set the address of the proxy as the base URL of your program. The proxy delays requests as needed, retries those
    /// that are safe to repeat, and remembers the learned limit after a restart.
    #[command(after_help = PROXY_HELP)]
    Proxy(ProxyArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Runs control laws on scenarios, and prints how close each comes to the limit and how often it breaks it.
    ///
    /// Without FILE it runs the built-in scenarios, each with its own number of workers and with one. Two runs with the
    /// same seeds print the same bytes.
    #[command(after_help = EXIT_CODES)]
    Run(RunArgs),
    /// Lists the built-in scenarios and the laws.
    #[command(after_help = EXIT_CODES)]
    List(ListArgs),
    /// Draws one run in the terminal: the accepted rate and the limit over time, with refusals.
    #[command(after_help = EXIT_CODES)]
    Show(ShowArgs),
    /// Lists the parameters of the law `gleaner`: value, unit, range and reason.
    #[command(after_help = EXIT_CODES)]
    Tuning(TuningArgs),
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Scenario files, folders of them, or names of built-in scenarios.
    #[arg(value_name = "FILE|DIR")]
    pub(crate) scenarios: Vec<String>,
    /// Laws to run, repeated or separated by commas [default: all; with --random or --set: gleaner].
    #[arg(long = "law", value_name = "NAME", value_delimiter = ',')]
    pub(crate) laws: Vec<String>,
    /// Runs each law with the seeds 1 to N.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
    /// Requests that may be in flight [default: the scenario's own number, and 1].
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
    /// Runs N random scenarios instead, and prints the distribution of the figures.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=100_000), conflicts_with_all = ["scenarios", "html"])]
    pub(crate) random: Option<u64>,
    /// The seed of --random [default: 1].
    #[arg(long, value_name = "S", requires = "random")]
    pub(crate) seed: Option<u64>,
    /// Prints one JSON object per line and run instead of a table; with --sweep, per value.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also writes a page with charts of all runs.
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,
    /// Sets a parameter of the law `gleaner`, repeatable; `gleaner lab tuning` lists them.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Runs the law `gleaner` with each value of one parameter, and prints a row per value.
    #[arg(long, value_name = "NAME=A,B,C", conflicts_with_all = ["html", "laws"])]
    pub(crate) sweep: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Prints one JSON object per line and scenario.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TuningArgs {
    /// Prints one JSON object per line and parameter.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The name of a built-in scenario, or a file.
    pub(crate) scenario: String,
    /// The law.
    #[arg(long, value_name = "NAME", default_value = "gleaner")]
    pub(crate) law: String,
    /// Requests that may be in flight [default: the scenario's own number].
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
    /// The seed.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Sets a parameter of the law `gleaner`, repeatable; `gleaner lab tuning` lists them.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ProxyArgs {
    /// The API, for example https://api.example.com/v2.
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: String,
    /// The address that it listens on [default: 127.0.0.1:8717].
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Never send faster than one request in N milliseconds [default: 20].
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=3_600_000))]
    pub(crate) ceiling_interval_ms: Option<u64>,
    /// Learns a rate limit per Authorization header; stores only a keyed hash of the header.
    #[arg(long)]
    pub(crate) per_authorization: bool,
    /// Requests in flight [default: 16].
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) max_in_flight: Option<u16>,
    /// Requests that may wait; the next one is answered with 503 [default: 10000].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) max_waiting: Option<u32>,
    /// Allows an upstream on another machine without TLS: everyone on the way can read the requests.
    #[arg(long)]
    pub(crate) allow_insecure_upstream: bool,
    #[command(flatten)]
    pub(crate) home: collect::HomeArgs,
    /// Prints only warnings and errors.
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Prints a line for each request, without its path, headers and credentials.
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_overview_names_every_command_once_and_fits_a_screen() {
        let listed =
            OVERVIEW.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  ")).map(|(names, _)| names);
        let listed = listed.flat_map(|names| names.trim().split(", ").map(str::to_owned).collect::<Vec<_>>());
        let listed = listed.map(|name| name.split(' ').next().unwrap_or_default().to_owned());
        let listed = listed.filter(|name| !name.starts_with('-') && !name.is_empty()).collect::<Vec<_>>();
        let visible = Cli::command();
        let visible = visible.get_subcommands().filter(|command| !command.is_hide_set());
        let visible = visible.map(|command| command.get_name().to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), visible);
        assert_eq!(listed.len(), visible.len(), "each once");
        assert!(OVERVIEW.lines().count() <= 50 && OVERVIEW.lines().all(|line| line.chars().count() <= 82));
    }

    #[test]
    fn every_command_has_an_example_that_can_be_typed() {
        let command = command();
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let example = EXAMPLES.iter().find(|(name, _)| *name == one.get_name()).map(|(_, example)| example);
            let example = example.unwrap_or_else(|| panic!("{} has no example", one.get_name()));
            let words = example.split('\'').enumerate().flat_map(|(at, part)| match at % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            });
            let typed = command.clone().try_get_matches_from(words);
            assert!(typed.is_ok(), "{example}: {}", typed.unwrap_err());
        }
    }
}
