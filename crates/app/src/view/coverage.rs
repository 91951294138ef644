//! How complete each stream of a connection is, against what its connector means to collect.

use super::connection_view::Look;
use gleaner_protocol::CoveragePolicy;
use gleaner_store::{Reader, Share, StoreError, StreamCoverage};

/// A stream, and how much of it is meant to be collected.
#[derive(Clone, Debug)]
pub struct CoveredStream {
    pub coverage: StreamCoverage,
    /// Absent where the manifest no longer declares it.
    pub policy: Option<CoveragePolicy>,
}

impl CoveredStream {
    /// How much of it is here. A stream that is no longer declared was collected once.
    #[must_use]
    pub fn share(&self) -> Share {
        self.coverage.share(self.policy.unwrap_or(CoveragePolicy::Collect))
    }
}

impl Look {
    /// All streams of a connection.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or the store cannot be read.
    pub fn coverage(&mut self, reader: &Reader, name: &str) -> Result<Vec<CoveredStream>, StoreError> {
        // A manifest that an older version accepted may be refused by this one; the rest is still true.
        let manifest = self.manifest(name, reader.manifest_text(name)?);
        let declared = |name: &str| manifest.as_ref()?.stream(name).map(|stream| stream.coverage_policy);
        let streams = reader.coverage(name)?.into_iter();
        Ok(streams.map(|coverage| CoveredStream { policy: declared(&coverage.summary.name), coverage }).collect())
    }
}
