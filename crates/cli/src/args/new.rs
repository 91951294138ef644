//! What can be typed after `gleaner new`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum NewCommand {
    /// A connector that runs as it is, with a recording in place of a provider.
    Connector(NewConnectorArgs),
}

#[derive(Args, Debug)]
pub(crate) struct NewConnectorArgs {
    /// Its name: letters, digits, `-` and `_`. The folder is called like that.
    pub(crate) name: String,
    /// The language.
    #[arg(long, value_enum, default_value_t = Language::Python)]
    pub(crate) lang: Language,
    /// The folder in which it is made [default: this one].
    #[arg(long, value_name = "DIR")]
    pub(crate) into: Option<PathBuf>,
}

/// The languages there are templates for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// Nothing but the standard library.
    Python,
    /// With the crate `gleaner-sdk`, whose client finds the provider's limit.
    Rust,
}
