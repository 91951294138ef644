//! The options of commands that maintain the data root, and of those about the program itself.

use super::collect::{HomeArgs, PrintArgs};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// When output is colored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Lists every setting with its value and its source.
    #[command(after_help = super::EXIT_CODES_ELSEWHERE)]
    Show(PrintArgs),
}

#[derive(Args, Debug)]
pub(crate) struct BackupArgs {
    /// The file to write. It must not exist.
    pub(crate) file: PathBuf,
    /// Prints one JSON object instead of a sentence.
    #[arg(long)]
    pub(crate) json: bool,
    /// Shows no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// The backup.
    #[arg(required_unless_present = "accept")]
    pub(crate) file: Option<PathBuf>,
    /// Accepts a store that you replaced yourself, although it is older than the one before.
    #[arg(long, conflicts_with = "file")]
    pub(crate) accept: bool,
    /// Prints one JSON object instead of sentences.
    #[arg(long)]
    pub(crate) json: bool,
    /// Shows no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Writes gleaner.1 and a page per command into this folder [default: prints gleaner.1].
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
