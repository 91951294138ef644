//! One stream of a manifest: its records, and its coverage.

use super::ManifestOrigin;
use super::checkpoint::Checkpoint;
use super::fault::{Faults, ManifestFaultCode};
use super::node::Node;
use crate::json::raw_json::RawJson;
use crate::words::vocabulary::wire_words;

/// A stream of a connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamManifest {
    /// The name.
    pub name: String,
    /// Whether the connector is incomplete without it.
    pub required: bool,
    /// Whether records change.
    pub semantics: Semantics,
    /// A JSON Schema of a record, as written.
    pub schema: Option<RawJson<'static>>,
    /// The fields that identify a record.
    pub primary_key: Vec<String>,
    /// The field that orders records for the cursor.
    pub cursor_field: Option<String>,
    /// The time field by which the owner may limit the grant.
    pub consent_time_field: Option<String>,
    /// Whether a run can resume from a cursor.
    pub incremental: bool,
    /// Ways in which the owner may limit the grant.
    pub selection: Selection,
    /// The part of it that is collected.
    pub coverage_policy: CoveragePolicy,
    /// The method that shows completeness, in the author's vocabulary.
    pub coverage_strategy: Option<String>,
    /// The checkpoint that it depends on.
    pub checkpoint: Checkpoint,
}

/// Ways in which the owner may limit the grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// By fields.
    pub fields: bool,
    /// By records.
    pub resources: bool,
}

wire_words! {
    /// Whether records of a stream change.
    pub enum Semantics {
        /// Records are added and never change. Nothing is deleted.
        AppendOnly = "append_only";
        /// Records change and may be deleted.
        MutableState = "mutable_state";
    }
}

wire_words! {
    /// The part of a stream that is collected.
    pub enum CoveragePolicy {
        /// All of it. The default.
        Collect = "collect";
        /// All of it, later.
        Deferred = "deferred";
        /// Only a list of its records, not their content.
        InventoryOnly = "inventory_only";
        /// Nothing: the provider does not offer it to this account.
        Unavailable = "unavailable";
        /// Nothing: the connector does not support it.
        Unsupported = "unsupported";
    }
}

impl CoveragePolicy {
    /// Whether nothing of the stream will ever be collected.
    #[must_use]
    pub const fn collects_nothing(self) -> bool {
        matches!(self, Self::Unavailable | Self::Unsupported)
    }
}

/// Maximum length of a stream name.
const NAME_BYTES_MAX: usize = 200;

impl StreamManifest {
    /// Whether the manifest contradicts itself: it requires a stream that it does not collect. Such a stream degrades
    /// health.
    #[must_use]
    pub const fn requires_what_it_cannot_collect(&self) -> bool {
        self.required && self.coverage_policy.collects_nothing()
    }

    pub(super) fn read(node: &Node<'_>, origin: ManifestOrigin, faults: &mut Faults) -> Option<Self> {
        if !node.view().is_object() {
            node.wrong_type("an object", faults);
            return None;
        }
        let name = read_name(node, faults);
        let semantics = read_semantics(node, faults);
        let coverage_policy = match node.child("coverage_policy") {
            Some(_) => node.word("coverage_policy", CoveragePolicy::ALL, CoveragePolicy::code, faults),
            None => Some(CoveragePolicy::Collect),
        };
        let stream = Self {
            required: node.flag("required", true, faults),
            schema: read_schema(node, faults),
            primary_key: read_primary_key(node, faults),
            cursor_field: node.optional_text("cursor_field", faults),
            consent_time_field: node.optional_text("consent_time_field", faults),
            incremental: node.flag("incremental", false, faults),
            selection: read_selection(node, faults),
            coverage_strategy: node.optional_text("coverage_strategy", faults),
            checkpoint: Checkpoint::read(node, faults),
            name: name?,
            semantics: semantics?,
            coverage_policy: coverage_policy?,
        };
        stream.check_policy(node, origin, faults);
        Some(stream)
    }

    /// A required stream that collects nothing is a warning in others' manifests and a fault in ours.
    fn check_policy(&self, node: &Node<'_>, origin: ManifestOrigin, faults: &mut Faults) {
        if !self.requires_what_it_cannot_collect() {
            return;
        }
        let path = format!("{}.required", node.path());
        let value = node.child("required").map_or("true (by default)", |child| child.text());
        let allowed = format!("false, because coverage_policy is {}", self.coverage_policy.code());
        match origin {
            ManifestOrigin::FirstParty => faults.error_at(ManifestFaultCode::Conflict, &path, value, &allowed),
            ManifestOrigin::Foreign => faults.warning_at(ManifestFaultCode::Conflict, &path, value, &allowed),
        }
    }
}

fn read_name(node: &Node<'_>, faults: &mut Faults) -> Option<String> {
    let name = node.required_text("name", faults)?;
    if name.len() <= NAME_BYTES_MAX && !name.contains('*') && !name.contains(char::is_control) {
        return Some(name);
    }
    let allowed = "at most 200 bytes, without `*` and control characters";
    faults.error(ManifestFaultCode::NotAllowed, node.child("name").as_ref(), node, allowed);
    None
}

/// Two words, and an alias of the first.
fn read_semantics(node: &Node<'_>, faults: &mut Faults) -> Option<Semantics> {
    let child = node.required("semantics", faults)?;
    if child.view().name().as_deref() == Some("append") {
        return Some(Semantics::AppendOnly);
    }
    node.word("semantics", Semantics::ALL, Semantics::code, faults)
}

fn read_schema(node: &Node<'_>, faults: &mut Faults) -> Option<RawJson<'static>> {
    let schema = node.child("schema")?;
    if schema.view().is_object() {
        return Some(schema.view().raw().into_owned());
    }
    schema.wrong_type("an object", faults);
    None
}

/// One field, or a list of them.
fn read_primary_key(node: &Node<'_>, faults: &mut Faults) -> Vec<String> {
    match node.child("primary_key") {
        None => Vec::new(),
        Some(child) if child.view().is_string() => child.as_text(faults).into_iter().collect(),
        Some(child) => {
            let fields = node.texts("primary_key", faults);
            if fields.is_empty() {
                child.wrong_type("a field, or a list of fields that is not empty", faults);
            }
            fields
        }
    }
}

fn read_selection(node: &Node<'_>, faults: &mut Faults) -> Selection {
    let Some(child) = node.child("selection") else { return Selection::default() };
    Selection { fields: child.flag("fields", false, faults), resources: child.flag("resources", false, faults) }
}
