//! The manifest: a connector's description of itself, read before it is started.
//!
//! Why it is parsed by hand and not derived: its author needs all faults at once, each with its position and the
//! allowed values. Unknown keys are ignored, because manifests for other runtimes have many. Nothing here reads a
//! file: the caller passes the bytes.

mod bindings;
mod capabilities;
mod checkpoint;
mod command;
mod fault;
mod node;
mod refresh_policy;
mod stream;

pub use bindings::{Binding, BindingKind};
pub use capabilities::Auth;
pub use checkpoint::Checkpoint;
pub use command::VariableText;
pub use fault::{ManifestFault, ManifestFaultCode, ManifestRejected};
pub use refresh_policy::{InteractionPosture, RecommendedMode, RefreshPolicy, Sensitivity};
pub use stream::{CoveragePolicy, Selection, Semantics, StreamManifest};

use fault::Faults;
use node::Node;

/// Maximum size of a manifest. The largest known has 60 KB.
pub const MANIFEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of streams. The most known are 30.
pub const STREAMS_MAX: usize = 1000;

/// Origin of a manifest: some warnings for others are faults in ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestOrigin {
    /// Part of this project.
    FirstParty,
    /// From another author.
    Foreign,
}

/// A valid manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Unique id of the connector.
    pub connector_id: String,
    /// A short name for file names.
    pub connector_key: String,
    /// Its version, chosen by its author.
    pub version: String,
    /// Its name for people.
    pub display_name: String,
    /// The command that starts it, if given: a program and its arguments.
    pub command: Option<Vec<String>>,
    /// The provider whose budget it shares, if given.
    pub provider: Option<String>,
    /// Bindings that it needs or can use.
    pub bindings: Vec<Binding>,
    /// The environment variables it may read.
    pub environment_variables: Vec<String>,
    /// Labels and descriptions of some of these.
    pub variable_texts: Vec<VariableText>,
    /// Questions that it may ask, in its own words.
    pub human_interaction: Vec<String>,
    /// Credentials that it needs.
    pub auth: Option<Auth>,
    /// Recommendations for the schedule.
    pub refresh_policy: Option<RefreshPolicy>,
    /// Its streams.
    pub streams: Vec<StreamManifest>,
    /// Warnings about allowed values.
    pub warnings: Vec<ManifestFault>,
}

impl Manifest {
    /// Reads and checks a manifest.
    ///
    /// # Errors
    ///
    /// All faults, each with its path, its value and the allowed values.
    pub fn parse(bytes: &[u8], origin: ManifestOrigin) -> Result<Self, ManifestRejected> {
        let mut faults = Faults::default();
        let manifest = Node::root(bytes, &mut faults).and_then(|root| Self::read(&root, origin, &mut faults));
        match (manifest, faults.into_parts()) {
            (Some(manifest), (errors, warnings)) if errors.is_empty() => Ok(Self { warnings, ..manifest }),
            (_, (faults, _)) => Err(ManifestRejected { faults }),
        }
    }

    /// The stream of this name.
    #[must_use]
    pub fn stream(&self, name: &str) -> Option<&StreamManifest> {
        self.streams.iter().find(|stream| stream.name == name)
    }

    fn read(root: &Node<'_>, origin: ManifestOrigin, faults: &mut Faults) -> Option<Self> {
        let connector_id = root.required_text("connector_id", faults);
        let connector_key = read_key(root, faults);
        let version = root.required_text("version", faults);
        let display_name = root.optional_text("display_name", faults);
        let requirements = root.child("runtime_requirements");
        let capabilities = root.child("capabilities");
        let command = command::read(root, faults);
        let provider = root.optional_text("provider", faults);
        let bindings = bindings::read(requirements.as_ref(), faults);
        let (environment_variables, variable_texts) = command::read_environment(requirements.as_ref(), faults);
        let human_interaction = capabilities::read_human_interaction(capabilities.as_ref(), faults);
        let auth = Auth::read(capabilities.as_ref(), faults);
        let refresh_policy = RefreshPolicy::read(capabilities.as_ref(), faults);
        let streams = read_streams(root, origin, faults);
        let connector_key = connector_key?;
        Some(Self {
            connector_id: connector_id?,
            display_name: display_name.unwrap_or_else(|| connector_key.clone()),
            connector_key,
            version: version?,
            command,
            provider,
            bindings,
            environment_variables,
            variable_texts,
            human_interaction,
            auth,
            refresh_policy,
            streams: streams?,
            warnings: Vec::new(),
        })
    }
}

/// Maximum length of a connector key: it becomes part of file names.
const KEY_BYTES_MAX: usize = 64;

/// The key becomes part of file names, so its characters are limited.
fn read_key(root: &Node<'_>, faults: &mut Faults) -> Option<String> {
    let key = root.required_text("connector_key", faults)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if key.len() <= KEY_BYTES_MAX && key.bytes().all(plain) && key.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Some(key);
    }
    let allowed = "at most 64 letters, digits, `_`, `-` or `.`, beginning with a letter or digit";
    faults.error(ManifestFaultCode::NotAllowed, root.child("connector_key").as_ref(), root, allowed);
    None
}

fn read_streams(root: &Node<'_>, origin: ManifestOrigin, faults: &mut Faults) -> Option<Vec<StreamManifest>> {
    let node = root.required("streams", faults)?;
    let nodes = node.elements(faults)?;
    if nodes.len() > STREAMS_MAX {
        faults.error(ManifestFaultCode::TooMany, Some(&node), root, "at most 1000 streams");
        return None;
    }
    let streams = nodes.iter().filter_map(|node| StreamManifest::read(node, origin, faults)).collect::<Vec<_>>();
    let complete = streams.len() == nodes.len();
    check_names(&streams, &nodes, faults);
    if complete {
        checkpoint::check_graph(&streams, &nodes, faults);
    }
    complete.then_some(streams)
}

fn check_names(streams: &[StreamManifest], nodes: &[Node<'_>], faults: &mut Faults) {
    let mut names = std::collections::BTreeSet::new();
    for (stream, node) in streams.iter().zip(nodes) {
        if !names.insert(stream.name.as_str()) {
            faults.error(
                ManifestFaultCode::Duplicate,
                node.child("name").as_ref(),
                node,
                "a name that no other stream has",
            );
        }
    }
}
