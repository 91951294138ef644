//! What whoever writes a connector can add to `gleaner run`.

use clap::{Args, value_parser};
use std::path::PathBuf;

const HEADING: &str = "For authors of connectors";

#[derive(Args, Debug, Default)]
pub(crate) struct AuthorArgs {
    /// Shows what was asked, what came back and which records came out of it, and stops after N records. Begins at the
    /// beginning, stores nothing and moves no cursor.
    #[arg(long, value_name = "N", help_heading = HEADING, value_parser = value_parser!(u32).range(1..=10_000))]
    #[arg(conflicts_with_all = ["catch_up", "interact"])]
    pub(crate) limit: Option<u32>,
    /// Writes every HTTP exchange into a new file, without credentials. What the service said is in it: look at it
    /// before you give it away.
    #[arg(long, value_name = "FILE", help_heading = HEADING, conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Answers the connector from such a file: no network, no credentials, no waiting. Stores nothing, and takes no
    /// notice of other runs and rests.
    #[arg(long, value_name = "FILE", help_heading = HEADING, conflicts_with_all = ["catch_up", "interact"])]
    pub(crate) replay: Option<PathBuf>,
}

impl AuthorArgs {
    /// Whether nothing of the run is kept.
    pub(crate) const fn is_rehearsal(&self) -> bool {
        self.limit.is_some() || self.replay.is_some()
    }
}
