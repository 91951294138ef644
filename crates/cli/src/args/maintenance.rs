//! What can be typed to take care of the data root and of the program itself.

use super::collect::{HomeArgs, PrintArgs};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// When text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Every option with its value and where that comes from.
    #[command(after_help = super::COLLECT_EXIT_CODES)]
    Show(PrintArgs),
}

#[derive(Args, Debug)]
pub(crate) struct BackupArgs {
    /// The file to write. It must not be there yet.
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
    /// Goes on with a store that was put there by other means, although it is older than what was here.
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
