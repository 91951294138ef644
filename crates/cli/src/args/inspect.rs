//! The options of commands that print records, gaps and state.

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
    /// Lists only this stream.
    #[arg(long, value_name = "STREAM")]
    pub(crate) stream: Option<String>,
    /// Lists recovered gaps, too.
    #[arg(long)]
    pub(crate) recovered: bool,
    /// The largest number of gaps [default: 20; with --json all].
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

/// Decisions about gaps.
#[derive(Subcommand, Debug)]
pub(crate) enum GapsCommand {
    /// Ignores a gap: it stays listed as missing, and is not retried.
    Ignore(IgnoreArgs),
    /// Un-ignores a gap; the next run retries it.
    TakeBack(OneGapArgs),
    /// Retries gaps in the next run, also those that were given up or are waiting.
    Retry(RetryArgs),
}

#[derive(Args, Debug)]
pub(crate) struct IgnoreArgs {
    /// The reason, for your own records.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: String,
    #[command(flatten)]
    pub(crate) gap: OneGapArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RetryArgs {
    /// A connection, or the id of one gap (or the beginning of the id).
    #[arg(value_name = "CONNECTION|ID", required_unless_present = "all")]
    pub(crate) what: Option<String>,
    /// Retries the gaps of all connections.
    #[arg(long, conflicts_with = "what")]
    pub(crate) all: bool,
    /// Retries only this stream.
    #[arg(long, value_name = "STREAM")]
    pub(crate) stream: Option<String>,
    /// Retries only gaps with this reason, as `gleaner gaps --json` prints it.
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct OneGapArgs {
    /// The id of the gap, or its beginning; `gleaner gaps` lists it.
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RecordsArgs {
    /// The stream: CONNECTION.STREAM, or STREAM if only one connection has it.
    pub(crate) stream: String,
    /// Prints only records whose time a run with --since or --catch-up could not read.
    #[arg(long, conflicts_with_all = ["since", "follow"])]
    pub(crate) time_unreadable: bool,
    /// Prints changes instead: each version and deletion after this sequence number, in the order in which they were
    /// stored; 0 is the beginning.
    #[arg(long, value_name = "SEQ")]
    pub(crate) since: Option<u64>,
    /// Waits for new changes and prints them, until Ctrl-C.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Prints one JSON object per line with `key`, `data` and `deleted`; changes have `seq`, too. `data` is exactly as
    /// the connector sent it.
    #[arg(long)]
    pub(crate) json: bool,
    /// The largest number of lines.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// A connection, or one stream as CONNECTION.STREAM.
    #[arg(value_name = "CONNECTION[.STREAM]")]
    pub(crate) what: String,
    /// JSON lines with the records as the connector sent them, or CSV with a column per property of the schema. CSV
    /// needs a single stream.
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,
    /// The file; - is standard output. An existing file is replaced as a whole. Only you can read it.
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Includes deleted records.
    #[arg(long)]
    pub(crate) tombstones: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Jsonl,
    /// A spreadsheet may take a value that begins with = + - or @ for a formula: import the columns as text.
    Csv,
}

#[derive(Args, Debug)]
pub(crate) struct QueryArgs {
    /// One SELECT statement, for example 'SELECT count(*) FROM "shop.orders"'.
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
