//! Bindings that a connector needs from its runtime: a network, files, a browser, somebody to ask.
//!
//! Two vocabularies exist for the same things, and both are read. Unknown names are kept: if such a binding is
//! required, the run is refused before it starts, with its name.

use super::fault::{Faults, ManifestFaultCode};
use super::node::Node;

/// One declared binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The name, as in START.
    pub name: String,
    /// Its meaning.
    pub kind: BindingKind,
    /// Whether the connector cannot run without it.
    pub required: bool,
}

/// Meaning of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingKind {
    /// It may use the network.
    Network,
    /// It reads local files.
    Filesystem,
    /// It drives a browser.
    Browser,
    /// It keeps a browser profile.
    BrowserProfile,
    /// It may ask the owner.
    Interactive,
    /// It listens on a local port.
    LoopbackListen,
    /// A namespaced name.
    Namespaced,
    /// Not known.
    Unknown,
}

impl BindingKind {
    /// The meaning of a name in either vocabulary.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        match name {
            "network" => Self::Network,
            "filesystem" => Self::Filesystem,
            "browser" | "browser_automation" => Self::Browser,
            "browser_profile" => Self::BrowserProfile,
            "interactive" => Self::Interactive,
            "loopback_listen" => Self::LoopbackListen,
            name if name.contains([':', '/', '.']) => Self::Namespaced,
            _ => Self::Unknown,
        }
    }
}

/// Known names, for the warning about others.
const KNOWN: &str = "network, filesystem, browser, browser_automation, browser_profile, interactive, loopback_listen, or a namespaced name";

pub(super) fn read(requirements: Option<&Node<'_>>, faults: &mut Faults) -> Vec<Binding> {
    let Some(node) = requirements.and_then(|node| node.child("bindings")) else { return Vec::new() };
    let mut bindings = Vec::new();
    for (name, node) in node.children(faults) {
        let kind = BindingKind::of_name(&name);
        if kind == BindingKind::Unknown {
            faults.warning_at(ManifestFaultCode::NotAllowed, node.path(), &name, KNOWN);
        }
        if !node.view().is_object() {
            node.wrong_type("an object such as {\"required\": true}", faults);
            continue;
        }
        bindings.push(Binding { kind, required: node.flag("required", false, faults), name });
    }
    bindings
}
