//! START: the runtime's request to a connector.
//!
//! The scope is checked when it is created: one without a stream, or with a wildcard, cannot exist. Connectors ignore
//! unknown keys, which allows `run_budget`.

use crate::json::raw_json::RawJson;
use crate::json::view::View;
use crate::messages::fields::{Fault, Fields};
use crate::messages::gap::ServedGap;
use crate::messages::line_writer::LineWriter;
use crate::messages::wire::{
    Flag, Holds, List, Nullable, Optional, OptionalList, Required, Value, wire_fields, wire_object,
};
use crate::words::vocabulary::wire_words;

/// The first message to a connector, sent once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The run.
    pub run_id: String,
    /// Full or incremental.
    pub collection_mode: CollectionMode,
    /// The requested data.
    pub scope: Scope,
    /// The cursor of each stream that has one.
    pub state: Option<Vec<(String, RawJson<'static>)>>,
    /// Bindings that the connector may use. `interactive` is present only if somebody can answer.
    pub bindings: Vec<(String, RawJson<'static>)>,
    /// The first page of gaps to recover. May be empty.
    pub detail_gaps: Vec<ServedGap>,
    /// Recover gaps only, without a forward walk.
    pub recovery_only: bool,
    /// Limits of this run, if any.
    pub run_budget: Option<RunBudget>,
}

wire_words! {
    /// Start of a run.
    pub enum CollectionMode {
        /// From the beginning.
        FullRefresh = "full_refresh";
        /// From the cursors.
        Incremental = "incremental";
    }
}

/// Limits of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunBudget {
    /// Maximum of requests.
    pub max_requests: Option<u64>,
    /// Maximum time.
    pub max_duration_ms: Option<u64>,
}

/// The requested data: at least one stream, each by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    streams: Vec<StreamScope>,
}

/// The requested part of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamScope {
    /// The stream.
    pub name: String,
    /// Only these records; empty means all. Compound keys are minified JSON.
    pub resources: Vec<String>,
    /// Only this time range.
    pub time_range: Option<TimeRange>,
    /// Only these fields; empty means all.
    pub fields: Vec<String>,
}

/// `since ≤ t < until`; an absent end is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first time that belongs to it.
    pub since: Option<String>,
    /// The first time after it.
    pub until: Option<String>,
}

/// Why a scope is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeFault {
    /// Nothing to collect.
    #[error("the scope names no stream; name at least one")]
    Empty,
    /// A wildcard or an empty name.
    #[error("the scope names {0:?}; wildcards and empty names are not allowed, name each stream")]
    Wildcard(String),
    /// Named twice.
    #[error("the scope names stream {0:?} twice")]
    Duplicate(String),
}

impl Scope {
    /// A scope of these streams.
    ///
    /// # Errors
    ///
    /// There is no stream, a name is empty or a wildcard, or one occurs twice.
    pub fn new(streams: Vec<StreamScope>) -> Result<Self, ScopeFault> {
        if streams.is_empty() {
            return Err(ScopeFault::Empty);
        }
        for (index, stream) in streams.iter().enumerate() {
            if stream.name.trim().is_empty() || stream.name.contains('*') {
                return Err(ScopeFault::Wildcard(stream.name.clone()));
            }
            if streams[..index].iter().any(|other| other.name == stream.name) {
                return Err(ScopeFault::Duplicate(stream.name.clone()));
            }
        }
        Ok(Self { streams })
    }

    /// The streams, at least one.
    #[must_use]
    pub fn streams(&self) -> &[StreamScope] {
        &self.streams
    }

    /// The requested part of this stream, if it is in the scope.
    #[must_use]
    pub fn stream(&self, name: &str) -> Option<&StreamScope> {
        self.streams.iter().find(|stream| stream.name == name)
    }
}

impl Value for Scope {
    fn read(field: &'static str, view: View<'_>) -> Result<Self, Fault> {
        let malformed = Fault::malformed(field, view);
        let members = view.members().ok_or(malformed)?;
        Self::new(List::read(Fields::nested(&members), "streams")?).map_err(|_| malformed)
    }

    fn write(&self, out: &mut Vec<u8>) {
        List::write(&self.streams, LineWriter::object(out), "streams").close();
    }
}

impl StreamScope {
    /// All of one stream.
    #[must_use]
    pub fn all_of(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

wire_object!(StreamScope { name: Required, resources: OptionalList, time_range: Optional, fields: OptionalList });
wire_object!(TimeRange { since: Optional, until: Optional });
wire_object!(RunBudget { max_requests: Optional, max_duration_ms: Optional });
wire_fields! {
    Start {
        run_id: Required,
        collection_mode: Required,
        scope: Required,
        state: Nullable,
        bindings: Required,
        detail_gaps: List,
        recovery_only: Flag,
        run_budget: Optional,
    }
}

/// The next page of gaps to recover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapsPageResponse {
    /// The request.
    pub request_id: String,
    /// The page. Empty means that there are no more.
    pub detail_gaps: Vec<ServedGap>,
}

wire_fields!(GapsPageResponse { request_id: Required, [reference_only = true] detail_gaps: List, });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_names_at_least_one_stream_and_each_once() {
        let scope = |names: &[&str]| Scope::new(names.iter().copied().map(StreamScope::all_of).collect());
        assert!(scope(&["mail", "contacts"]).is_ok_and(|scope| scope.stream("mail").is_some()));
        assert_eq!(scope(&[]), Err(ScopeFault::Empty));
        assert_eq!(scope(&["*"]), Err(ScopeFault::Wildcard("*".to_owned())));
        assert_eq!(scope(&["mail*"]), Err(ScopeFault::Wildcard("mail*".to_owned())));
        assert_eq!(scope(&[" "]), Err(ScopeFault::Wildcard(" ".to_owned())));
        assert_eq!(scope(&["a", "a"]), Err(ScopeFault::Duplicate("a".to_owned())));
    }
}
