//! The options of `gleaner new`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum NewCommand {
    /// Creates a connector that runs at once, with a recording instead of a provider.
    Connector(NewConnectorArgs),
}

#[derive(Args, Debug)]
pub(crate) struct NewConnectorArgs {
    /// The name of the connector and of its folder: letters, digits, `-` and `_`.
    pub(crate) name: String,
    /// The language.
    #[arg(long, value_enum, default_value_t = Language::Python)]
    pub(crate) lang: Language,
    /// The folder in which it is created [default: the current one].
    #[arg(long, value_name = "DIR")]
    pub(crate) into: Option<PathBuf>,
}

/// The languages of the templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// Python with its standard library.
    Python,
    /// Rust with the crate `gleaner-sdk`, whose client learns the provider's rate limit.
    Rust,
}
