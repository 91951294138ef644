//! What can be typed to look at what was collected.

use super::collect::{HomeArgs, PrintArgs};
use clap::{Args, Subcommand, ValueEnum, value_parser};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct CoverageArgs {
    /// The connection [default: all].
    pub(crate) connection: Option<String>,
    /// Prints one JSON object per line and stream.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct GapsArgs {
    #[command(subcommand)]
    pub(crate) what: Option<GapsCommand>,
    /// The connection.
    #[arg(required = true)]
    pub(crate) connection: Option<String>,
    /// Only of this stream.
    #[arg(long, value_name = "STREAM")]
    pub(crate) stream: Option<String>,
    /// Also those that were recovered.
    #[arg(long)]
    pub(crate) recovered: bool,
    /// At most so many [default: 20; with --json all].
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

/// What can be said about one gap.
#[derive(Subcommand, Debug)]
pub(crate) enum GapsCommand {
    /// Does without a gap: it stays on record as missing, and nobody tries it.
    Ignore(IgnoreArgs),
    /// Wants a gap after all that is ignored; the next run tries it.
    TakeBack(OneGapArgs),
    /// Retries gaps with the next run, also those that were given up or wait for their time.
    Retry(RetryArgs),
}

#[derive(Args, Debug)]
pub(crate) struct IgnoreArgs {
    /// Why you do without it, for you in a year.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: String,
    #[command(flatten)]
    pub(crate) gap: OneGapArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RetryArgs {
    /// The connection whose gaps are retried, or the id of one gap (or its beginning).
    #[arg(value_name = "CONNECTION|ID", required_unless_present = "all")]
    pub(crate) what: Option<String>,
    /// Retries the gaps of all connections.
    #[arg(long, conflicts_with = "what")]
    pub(crate) all: bool,
    /// Only of this stream.
    #[arg(long, value_name = "STREAM")]
    pub(crate) stream: Option<String>,
    /// Only what is missing, or was given up, for this reason, as `gleaner gaps --json` prints it.
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct OneGapArgs {
    /// The gap's id, or its beginning, as `gleaner gaps` lists it.
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RecordsArgs {
    /// The stream, as CONNECTION.STREAM or as STREAM where only one connection has it.
    pub(crate) stream: String,
    /// Only stored records whose time could not be read by a run with a time range (--since, --catch-up).
    #[arg(long, conflicts_with_all = ["since", "follow"])]
    pub(crate) time_unreadable: bool,
    /// The changes after this number instead, each version and each deletion, in the order in which they
    /// were stored; 0 is from the beginning.
    #[arg(long, value_name = "SEQ")]
    pub(crate) since: Option<u64>,
    /// Goes on printing changes as they come, until Ctrl-C.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Prints one JSON object per line with `key`, `data` and `deleted`, changes also with `seq`; data is as it
    /// came.
    #[arg(long)]
    pub(crate) json: bool,
    /// At most so many lines.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// What: a connection, or one stream as CONNECTION.STREAM.
    #[arg(value_name = "CONNECTION[.STREAM]")]
    pub(crate) what: String,
    /// One JSON object per line with the record as it came, or a table with a column per property of the
    /// stream's schema.
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,
    /// The file, replaced as a whole and readable by you alone; - is standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Deleted records, too.
    #[arg(long)]
    pub(crate) tombstones: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Jsonl,
    /// Values stand as they are. A spreadsheet may take one that begins with = + - or @ for a formula: import
    /// the columns as text.
    Csv,
}

#[derive(Args, Debug)]
pub(crate) struct QueryArgs {
    /// One statement that reads, for example 'SELECT count(*) FROM "shop.orders"'.
    pub(crate) sql: String,
    /// Prints one JSON object per line and row; bytes as {"blob": HEX}.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// The connection.
    pub(crate) connection: String,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}
