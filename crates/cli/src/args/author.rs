//! The options of `gleaner run` for authors of connectors.

use clap::{Args, value_parser};
use std::path::PathBuf;

const HEADING: &str = "For authors of connectors";

#[derive(Args, Debug, Default)]
pub(crate) struct AuthorArgs {
    /// Shows each request, its response and the records made of it, and stops after N records. Collects from the
    /// beginning and stores nothing.
    #[arg(long, value_name = "N", help_heading = HEADING, value_parser = value_parser!(u32).range(1..=10_000))]
    #[arg(conflicts_with_all = ["catch_up", "interact"])]
    pub(crate) limit: Option<u32>,
    /// Writes every HTTP exchange to a new file, without credentials. The file has the provider's responses: read it
    /// before you share it.
    #[arg(long, value_name = "FILE", help_heading = HEADING, conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Answers the connector from such a file, without network, credentials or waiting. Stores nothing, and ignores
    /// other runs and cooldowns.
    #[arg(long, value_name = "FILE", help_heading = HEADING, conflicts_with_all = ["catch_up", "interact"])]
    pub(crate) replay: Option<PathBuf>,
}

impl AuthorArgs {
    /// Whether nothing of the run is kept.
    pub(crate) const fn is_rehearsal(&self) -> bool {
        self.limit.is_some() || self.replay.is_some()
    }
}
