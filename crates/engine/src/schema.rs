//! Whether the body of a record fits the schema of its stream.
//!
//! Why it is made once per run: a schema is compiled when the manifest is read, and a run has millions
//! of records. Compiling refuses by name what could hang, overflow the stack or need the network.
//! Checking goes two ways. Most schemas become a plan (`schema/plan.rs`), which is walked along the raw
//! text and allocates nothing; when a body fits it, that is the end. Everything else is asked of a
//! library (`schema/library.rs`), which has the last word and knows where the fault is.
//!
//! A body is never changed and never kept. An error has a JSON pointer and the rule that is broken, and no value.

mod bounds;
mod library;
mod node;
mod number;
mod plan;
mod properties;
mod survey;
mod text;
mod value;
mod walk;

use crate::scope::{Misfit, Validate};
use gleaner_protocol::{Manifest, RawJson};
use library::Library;
use plan::Plan;
use std::collections::BTreeMap;
use std::fmt;

/// The schemas of a connector's streams, compiled.
///
/// ```
/// use gleaner_engine::{Misfit, Schemas, Validate};
/// use gleaner_protocol::{Manifest, ManifestOrigin, RawJson};
///
/// let manifest = r#"{"connector_id":"c","connector_key":"c","version":"1","streams":[
///     {"name":"trips","semantics":"append_only","schema":{"properties":{"km":{"type":"number"}}}}]}"#;
/// let manifest = Manifest::parse(manifest.as_bytes(), ManifestOrigin::Foreign).unwrap();
/// let schemas = Schemas::new(&manifest).unwrap();
///
/// assert_eq!(schemas.check("trips", &RawJson::new(r#"{"km":1e400}"#).unwrap()), Ok(()));
/// assert_eq!(schemas.check("trips", &RawJson::new(r#"{"km":"far"}"#).unwrap()), Err(Misfit {
///     pointer: "/km".to_owned(),
///     reason: "it is not of type \"number\"".to_owned(),
/// }));
/// ```
#[derive(Debug)]
pub struct Schemas {
    /// Streams without a schema are not in it: everything fits them.
    streams: BTreeMap<String, StreamSchema>,
}

#[derive(Debug)]
struct StreamSchema {
    plan: Option<Plan>,
    library: Library,
}

impl Schemas {
    /// Compiles the schema of every stream.
    ///
    /// # Errors
    ///
    /// The first schema that cannot be used: its stream, the place in it, and what to do.
    pub fn new(manifest: &Manifest) -> Result<Self, SchemaFault> {
        let with_schema =
            || manifest.streams.iter().filter_map(|stream| Some((&stream.name, stream.schema.as_ref()?.as_str())));
        let fault = |stream: &String| {
            let stream = stream.clone();
            |(code, path)| SchemaFault { code, stream, path: shortened(path) }
        };
        // All are looked over before the first is compiled: they share what patterns may take.
        let mut patterns = 0;
        let mut surveys = Vec::new();
        for (stream, text) in with_schema() {
            let surveyed = read(text).and_then(|schema| survey::survey(&schema)).map_err(fault(stream))?;
            patterns += surveyed.patterns;
            if patterns > bounds::PATTERNS_MAX {
                return Err(fault(stream)((SchemaFaultCode::TooManyPatterns, String::new())));
            }
            surveys.push(surveyed);
        }
        let pattern_bytes = bounds::pattern_compiled_bytes(patterns);
        let mut streams = BTreeMap::new();
        for ((stream, text), surveyed) in with_schema().zip(surveys) {
            let compiled = StreamSchema::new(text, surveyed, pattern_bytes).map_err(fault(stream))?;
            streams.insert(stream.clone(), compiled);
        }
        Ok(Self { streams })
    }
}

/// A schema as values.
fn read(text: &str) -> Result<serde_json::Value, survey::Fault> {
    if text.len() > bounds::SCHEMA_BYTES_MAX {
        return Err((SchemaFaultCode::TooLarge, String::new()));
    }
    value::read(text).ok_or_else(|| (SchemaFaultCode::NotASchema, String::new()))
}

impl Validate for Schemas {
    fn check(&self, stream: &str, body: &RawJson<'_>) -> Result<(), Misfit> {
        self.streams.get(stream).map_or(Ok(()), |schema| schema.check(body.as_str()))
    }
}

impl StreamSchema {
    fn new(text: &str, surveyed: survey::Surveyed, pattern_bytes: usize) -> Result<Self, survey::Fault> {
        let schema = read(text)?;
        let library = Library::new(schema.clone(), surveyed.can_be_located, pattern_bytes)?;
        let plan = library.beside_ref().and_then(|beside_ref| Plan::new(&schema, beside_ref));
        Ok(Self { plan, library })
    }

    #[inline]
    fn check(&self, body: &str) -> Result<(), Misfit> {
        match &self.plan {
            Some(plan) if plan.fits(body) => Ok(()),
            _ => self.ask_library(body),
        }
    }

    /// The last word, and the place of the fault.
    #[cold]
    fn ask_library(&self, body: &str) -> Result<(), Misfit> {
        // A body is always readable; one that were not could not be shown to fit.
        let body = value::read(body).ok_or_else(Misfit::default)?;
        self.library.check(&body).map_err(|misfit| Misfit { pointer: shortened(misfit.pointer), ..misfit })
    }
}

/// The same place or one around it, within the bound.
fn shortened(mut pointer: String) -> String {
    while pointer.len() > bounds::POINTER_BYTES_MAX {
        pointer.truncate(pointer.rfind('/').unwrap_or(0));
    }
    pointer
}

/// A schema in a manifest that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SchemaFault {
    /// Why.
    pub code: SchemaFaultCode,
    /// The stream whose schema it is.
    pub stream: String,
    /// The JSON pointer of the place in the schema; empty for the whole.
    pub path: String,
}

impl fmt::Display for SchemaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() { "the top" } else { &self.path };
        write!(f, "the schema of stream {:?} cannot be used, at {place}: {}", self.stream, self.code)
    }
}

/// Why a schema cannot be used, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SchemaFaultCode {
    /// Larger than allowed.
    #[error("it is larger than 512 KiB. Remove descriptions and examples, or split the stream")]
    TooLarge,
    /// The draft does not allow what stands there.
    #[error("JSON Schema does not allow what stands there. Correct it, or remove it")]
    NotASchema,
    /// `$schema` names a draft that is not known.
    #[error(
        "the draft is not known. Use draft 4, 6, 7, 2019-09 or 2020-12, or remove \"$schema\" (then it is 2020-12)"
    )]
    UnknownDraft,
    /// A reference leads out of the document.
    #[error(
        "it refers to something outside of this schema, and nothing is fetched. Copy that under \"$defs\" and refer to it as \"#/$defs/NAME\""
    )]
    RemoteReference,
    /// A reference goes by name, not by path.
    #[error("it refers by name. Refer by path instead: \"$ref\" with \"#/$defs/NAME\", or \"#\" for the whole")]
    NamedReference,
    /// A reference leads to nothing.
    #[error("it refers to a place that does not exist. Correct the path, or add what is missing")]
    NothingThere,
    /// An identifier inside a schema that has references.
    #[error("an identifier inside the schema changes what its references mean. Remove the identifier")]
    NestedIdentifier,
    /// A pattern is longer than allowed.
    #[error("the pattern is longer than 1024 bytes. Shorten it, or remove it")]
    PatternTooLong,
    /// More patterns than allowed.
    #[error("the manifest has more than 256 patterns. Remove those that are not needed")]
    TooManyPatterns,
    /// A pattern that cannot be matched in linear time, or becomes too large.
    #[error(
        "the pattern is not valid, becomes too large, or looks around or back, which has no bound in time. Simplify it, or remove it"
    )]
    PatternRefused,
    /// References and choices are nested so that checking could take for ever.
    #[error(
        "references and choices are nested so that a check could take for ever. Refer to fewer schemas from each other"
    )]
    TooEntangled,
}

#[cfg(test)]
mod tests;
