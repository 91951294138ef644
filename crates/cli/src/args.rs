//! What can be typed, declared once: names, ranges, defaults and help.

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

const COLLECT_EXIT_CODES: &str = "Exit codes:
    0  complete
    1  failed
    2  usage: an option, a file or a name is wrong
    3  finished, with gaps or rejected records; `gleaner gaps` lists them
    4  needs you: an answer, a credential or your permission is missing, or you hold it back
    5  the service pushed back; the connection rests, try later
   10  there is no store yet
   11  another run is at work
   12  the credentials were refused
  130  interrupted; what was saved is saved";

const DOCTOR_EXIT_CODES: &str = "Exit codes:
  0  everything is well, or there are warnings
  1  a check failed; its hint says what to do
  2  usage: an option is wrong";

const PROXY_HELP: &str = "Of a request:
  Gleaner-Max-Wait: SECONDS    answer 429 instead of waiting longer than this [default: 120]
Of an answer:
  Gleaner-Reason, Gleaner-Attempts      why it is not the upstream's, or why it was not repeated
  Gleaner-Answered-By: sidecar          the upstream did not say this
Pages:
  /.gleaner/status   what was learned, as JSON
  /.gleaner/metrics  the same for Prometheus

Exit codes:
    0  ended by SIGTERM, after what was under way
    1  failed: the address is taken, or a file cannot be written
    2  usage: an option is wrong; the message says which, `hint:` what to do
  130  ended by Ctrl-C, after what was under way";

/// Collects your data from services that you do not control: every record, as fast as is safe, and honest about
/// what is missing.
#[derive(Debug, Parser)]
#[command(name = "gleaner", version, about, after_help = COLLECT_EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When text is coloured: auto, always or never [default: auto].
    #[arg(long, alias = "color", value_enum, value_name = "WHEN", global = true, hide_possible_values = true)]
    pub(crate) colour: Option<maintenance::Colour>,
}

/// What can be typed. A command ends with the codes of a run unless it says otherwise.
pub(crate) fn command() -> clap::Command {
    Cli::command().mut_subcommands(|command| match command.get_after_help() {
        None if !command.is_hide_set() => command.after_help(COLLECT_EXIT_CODES),
        _ => command,
    })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The laboratory: rate laws against simulated providers.
    #[command(subcommand, after_help = EXIT_CODES)]
    Lab(LabCommand),
    /// Shows the whole thing in a minute: a provider with a limit that nobody tells, a connector, a kill, an account.
    Demo(collect::DemoArgs),
    /// Adds a connection: a connector with one account.
    Add(collect::AddArgs),
    /// Runs a connector, stores what it collects, and says what is missing.
    ///
    /// Ctrl-C finishes the slice that is under way; twice ends at once. The next run goes on where this one
    /// stopped.
    Run(collect::CollectArgs),
    /// Keeps every connection as fresh as its plan says, until it is told to stop.
    ///
    /// Ctrl-C lets runs finish the slice that is under way; twice ends at once. The next service goes on where this
    /// one stopped.
    Serve(serve::ServeArgs),
    /// When connections run by themselves, what comes next and why; and the way to set it.
    Schedule(serve::ScheduleArgs),
    /// Lets the system run `gleaner serve` for you.
    #[command(subcommand)]
    Service(serve::ServiceCommand),
    /// All connections: what is stored, what is missing, how the last run went.
    Status(collect::PrintArgs),
    /// The last runs of a connection.
    Runs(collect::OfConnectionArgs),
    /// What is known and not here, and why.
    Gaps(inspect::GapsArgs),
    /// How complete each stream is: listed, stored, missing, left out.
    Coverage(inspect::CoverageArgs),
    /// The records of a stream, or its changes.
    Records(inspect::RecordsArgs),
    /// Writes records to a file or to standard output, all as they were at one moment.
    Export(inspect::ExportArgs),
    /// Asks the store a question in SQL; docs/store.md lists the tables, and each stream has a view.
    Query(inspect::QueryArgs),
    /// Why a connection is not running, not faster, not complete, and what comes next.
    Why(inspect::WhyArgs),
    /// Whether a connection works: its manifest, its credentials, and one call to its service. Stores nothing.
    Check(manage::CheckArgs),
    /// Lists the questions that wait for you, or answers one.
    Answer(manage::AnswerArgs),
    /// Holds a connection back: it runs no more until it is resumed.
    Pause(manage::PauseArgs),
    /// Lets a connection run again.
    Resume(manage::ResumeArgs),
    /// Stops the run of a connection, after the slice that is under way.
    Cancel(manage::CancelArgs),
    /// Removes a connection and its credentials. What it collected stays, unless you say --purge.
    Remove(manage::RemoveArgs),
    /// Checks any connector program against the protocol, kills included, and says what to mend.
    #[command(after_help = EXIT_CODES)]
    Conformance(collect::ConformanceArgs),
    /// Begins something of your own: a connector.
    #[command(subcommand, after_help = EXIT_CODES)]
    New(new::NewCommand),
    /// Checks every page, row and counter of the store, and names what is damaged or in doubt.
    Verify(collect::PrintArgs),
    /// Lists a connection again and brings back what an earlier version of Gleaner may have lost.
    ///
    /// `gleaner verify` names what is in doubt: cursors that a run with a narrower scope may have moved past records,
    /// and gaps that were closed without their record. Nothing is deleted; unchanged records are not stored again.
    Repair(collect::RepairArgs),
    /// Makes the data root, the store and a file of settings; leaves alone what is there.
    Init(collect::HomeArgs),
    /// The connectors that can be added by name: what they collect and what they need.
    Connectors(collect::PrintArgs),
    /// Settings that outlive a command.
    #[command(subcommand)]
    Config(maintenance::ConfigCommand),
    /// Writes the store into one file, also while a run goes on, and reads it back.
    ///
    /// Credentials are not in it.
    Backup(maintenance::BackupArgs),
    /// Puts a backup in the place of the store, which is kept under another name.
    Restore(maintenance::RestoreArgs),
    /// Looks at everything that a run depends on, and says what to do about what is not well.
    #[command(after_help = DOCTOR_EXIT_CODES)]
    Doctor(collect::PrintArgs),
    /// Prints what a shell needs to complete our commands.
    #[command(after_help = EXIT_CODES)]
    Completions(maintenance::CompletionsArgs),
    /// Prints the manual, or writes a page per command.
    #[command(after_help = EXIT_CODES)]
    Man(maintenance::ManArgs),
    /// A connector that comes with the program, as a process of its own; started by `run`.
    #[command(hide = true)]
    Connector {
        #[arg(value_parser = PossibleValuesParser::new(first_party::all().map(|known| known.name)))]
        name: String,
    },
    /// One run of the service's; started by `serve`.
    #[command(hide = true)]
    ScheduledRun(serve::ScheduledRunArgs),
    /// Between a run and its connector; started by `run`.
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
    /// Fetches a list of URLs politely: each host at its own pace, resumable, one JSON line per URL.
    #[command(after_help = fetch::FETCH_HELP)]
    Fetch(fetch::FetchArgs),
    /// The sidecar: stands for an API, and keeps programs in any language just under its limit.
    ///
    /// Make the address where it listens the base URL of your program. Requests wait here for their turn,
    /// what the API refuses is repeated if that does nothing twice, and what was learned outlives a restart.
    #[command(after_help = PROXY_HELP)]
    Proxy(ProxyArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Runs laws on scenarios and prints how close each comes to the limit, and how often over it.
    ///
    /// Without FILE: the built-in scenarios, each with its own number of workers and with one. With
    /// the same seeds, two runs print the same bytes.
    #[command(after_help = EXIT_CODES)]
    Run(RunArgs),
    /// Lists the built-in scenarios and the laws.
    #[command(after_help = EXIT_CODES)]
    List(ListArgs),
    /// Shows one run in the terminal: accepted rate against the limit over time, refusals marked.
    #[command(after_help = EXIT_CODES)]
    Show(ShowArgs),
    /// Lists every number of the law gleaner: value, unit, range and reason.
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
    /// Draws N scenarios at random instead, and prints how the figures are spread.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=100_000), conflicts_with_all = ["scenarios", "html"])]
    pub(crate) random: Option<u64>,
    /// Which scenarios --random draws [default: 1].
    #[arg(long, value_name = "S", requires = "random")]
    pub(crate) seed: Option<u64>,
    /// Prints one JSON object per line and run instead of a table; with --sweep, per value.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also writes a page with charts of all runs.
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,
    /// Sets a number of the law gleaner, repeatable; `gleaner lab tuning` lists them.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Runs the law gleaner with each value of one number, and prints a row per value.
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
    /// Prints one JSON object per line and number.
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
    /// Sets a number of the law gleaner, repeatable; `gleaner lab tuning` lists them.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ProxyArgs {
    /// The API, for example https://api.example.com/v2.
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: String,
    /// Where programs on this machine reach it [default: 127.0.0.1:8717].
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Never send faster than one request in N milliseconds [default: 20].
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=3_600_000))]
    pub(crate) ceiling_interval_ms: Option<u64>,
    /// Gives each Authorization header a limit of its own; only a keyed hash of it is kept.
    #[arg(long)]
    pub(crate) per_authorization: bool,
    /// Requests that may be under way at a time [default: 16].
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) max_in_flight: Option<u16>,
    /// Requests that may wait for their turn; one more is answered with 503 [default: 10000].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) max_waiting: Option<u32>,
    /// Forwards in plain text to another machine, where everyone on the way can read it.
    #[arg(long)]
    pub(crate) allow_insecure_upstream: bool,
    #[command(flatten)]
    pub(crate) home: collect::HomeArgs,
    /// Prints nothing but warnings and errors.
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Prints a line for every request; never a path, a header or a credential.
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
