//! START: what the runtime asks a connector to do.
//!
//! The scope is checked when it is made: a run without a stream, or with a wildcard, cannot be
//! written down. Connectors ignore keys they do not know, which is how `run_budget` can be there.

use crate::fields::{Fault, Fields};
use crate::gap::ServedGap;
use crate::line_writer::LineWriter;
use crate::raw_json::RawJson;
use crate::view::View;
use crate::vocabulary::wire_words;

/// The first message to a connector, sent once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The run.
    pub run_id: String,
    /// From the beginning, or from where the last run ended.
    pub collection_mode: CollectionMode,
    /// What to collect.
    pub scope: Scope,
    /// The cursor of each stream that has one.
    pub state: Option<Vec<(String, RawJson<'static>)>>,
    /// What the connector may use. `interactive` is there only if somebody can answer.
    pub bindings: Vec<(String, RawJson<'static>)>,
    /// The first page of gaps to recover. May be empty.
    pub detail_gaps: Vec<ServedGap>,
    /// Recover gaps, and do not walk forward.
    pub recovery_only: bool,
    /// How much this run may do, if it is bounded.
    pub run_budget: Option<RunBudget>,
}

wire_words! {
    /// Where a run begins.
    pub enum CollectionMode {
        /// At the beginning.
        FullRefresh = "full_refresh";
        /// At the cursors.
        Incremental = "incremental";
    }
}

/// The bounds of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunBudget {
    /// How many requests.
    pub max_requests: Option<u64>,
    /// How long.
    pub max_duration_ms: Option<u64>,
}

/// What to collect: at least one stream, each by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    streams: Vec<StreamScope>,
}

/// What to collect of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamScope {
    /// The stream.
    pub name: String,
    /// Only these records; empty means all. Keys of several parts are written as minified JSON.
    pub resources: Vec<String>,
    /// Only this time.
    pub time_range: Option<TimeRange>,
    /// Only these fields; empty means all.
    pub fields: Vec<String>,
}

/// `since ≤ t < until`; an end that is absent is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first time that belongs to it.
    pub since: Option<String>,
    /// The first time after it.
    pub until: Option<String>,
}

/// Why a scope is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeFault {
    /// Nothing to collect.
    #[error("the scope names no stream; name at least one")]
    Empty,
    /// Not the name of one stream.
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
    /// When there is none, one has no name or a wildcard in it, or one is there twice.
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

    /// What to collect of this stream, if it is in the scope.
    #[must_use]
    pub fn stream(&self, name: &str) -> Option<&StreamScope> {
        self.streams.iter().find(|stream| stream.name == name)
    }

    fn read(view: View<'_>) -> Result<Self, Fault> {
        let malformed = Fault::malformed("scope", view);
        let members = view.members().ok_or(malformed)?;
        let streams = Fields::nested(&members).required("streams")?.elements().ok_or(malformed)?;
        let streams = streams.into_iter().map(StreamScope::read).collect::<Result<_, _>>()?;
        Self::new(streams).map_err(|_| malformed)
    }
}

impl StreamScope {
    /// All of one stream.
    #[must_use]
    pub fn all_of(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    fn read(view: View<'_>) -> Result<Self, Fault> {
        let members = view.members().ok_or_else(|| Fault::malformed("scope", view))?;
        let fields = Fields::nested(&members);
        Ok(Self {
            name: fields.required_name("name")?.into(),
            resources: fields.names("resources")?,
            time_range: fields.optional("time_range").map(TimeRange::read).transpose()?,
            fields: fields.names("fields")?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = LineWriter::object(out).text("name", &self.name).optional_texts("resources", &self.resources);
        if let Some(range) = &self.time_range {
            object = object.value("time_range", |out| range.write(out));
        }
        object.optional_texts("fields", &self.fields).close();
    }
}

impl TimeRange {
    pub(crate) fn read(view: View<'_>) -> Result<Self, Fault> {
        let members = view.members().ok_or_else(|| Fault::malformed("time_range", view))?;
        let fields = Fields::nested(&members);
        Ok(Self {
            since: fields.optional_name("since")?.map(Into::into),
            until: fields.optional_name("until")?.map(Into::into),
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        LineWriter::object(out)
            .optional_text("since", self.since.as_deref())
            .optional_text("until", self.until.as_deref())
            .close();
    }
}

impl Start {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        Ok(Self {
            run_id: fields.required_name("run_id")?.into(),
            collection_mode: fields.required_word("collection_mode", CollectionMode::from_code)?,
            scope: Scope::read(fields.required("scope")?)?,
            state: fields.optional("state").map(|view| read_map("state", view)).transpose()?,
            bindings: read_map("bindings", fields.required("bindings")?)?,
            detail_gaps: read_gaps(fields)?,
            recovery_only: fields.optional_flag("recovery_only")?.unwrap_or(false),
            run_budget: fields.optional("run_budget").map(RunBudget::read).transpose()?,
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let line = LineWriter::message(out, "START")
            .text("run_id", &self.run_id)
            .text("collection_mode", self.collection_mode.code())
            .value("scope", |out| {
                LineWriter::object(out).list("streams", self.scope.streams(), |out, stream| stream.write(out)).close();
            });
        let line = match &self.state {
            Some(state) => line.value("state", |out| write_map(out, state)),
            None => line.null("state"),
        };
        let mut line = line
            .value("bindings", |out| write_map(out, &self.bindings))
            .list("detail_gaps", &self.detail_gaps, |out, gap| gap.write(out))
            .optional_flag("recovery_only", self.recovery_only.then_some(true));
        if let Some(budget) = self.run_budget {
            line = line.value("run_budget", |out| budget.write(out));
        }
        line.end();
    }
}

impl RunBudget {
    fn read(view: View<'_>) -> Result<Self, Fault> {
        let members = view.members().ok_or_else(|| Fault::malformed("run_budget", view))?;
        let fields = Fields::nested(&members);
        Ok(Self {
            max_requests: fields.optional_count("max_requests")?,
            max_duration_ms: fields.optional_count("max_duration_ms")?,
        })
    }

    fn write(self, out: &mut Vec<u8>) {
        LineWriter::object(out)
            .optional_number("max_requests", self.max_requests)
            .optional_number("max_duration_ms", self.max_duration_ms)
            .close();
    }
}

/// The next page of gaps to recover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapsPageResponse {
    /// Of which request.
    pub request_id: String,
    /// The page. Empty means that there are no more.
    pub detail_gaps: Vec<ServedGap>,
}

impl GapsPageResponse {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        crate::gap::check_reference_only(fields)?;
        Ok(Self { request_id: fields.required_name("request_id")?.into(), detail_gaps: read_gaps(fields)? })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        LineWriter::message(out, "DETAIL_GAPS_PAGE_RESPONSE")
            .text("request_id", &self.request_id)
            .flag("reference_only", true)
            .list("detail_gaps", &self.detail_gaps, |out, gap| gap.write(out))
            .end();
    }
}

fn read_gaps(fields: Fields<'_, '_>) -> Result<Vec<ServedGap>, Fault> {
    let view = fields.required("detail_gaps")?;
    let gaps = view.elements().ok_or_else(|| Fault::malformed("detail_gaps", view))?;
    gaps.into_iter().map(ServedGap::read).collect()
}

fn read_map(field: &'static str, view: View<'_>) -> Result<Vec<(String, RawJson<'static>)>, Fault> {
    let members = view.members().ok_or_else(|| Fault::malformed(field, view))?;
    Ok(members.into_iter().map(|(name, value)| (name.into_owned(), value.raw().into_owned())).collect())
}

fn write_map(out: &mut Vec<u8>, map: &[(String, RawJson<'static>)]) {
    map.iter().fold(LineWriter::object(out), |object, (name, value)| object.raw(name, value)).close();
}

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
