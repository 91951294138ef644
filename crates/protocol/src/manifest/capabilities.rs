//! Credentials of a connector, and the questions that it may ask.

use super::fault::{Faults, ManifestFaultCode};
use super::node::Node;

/// Environment variables with a connector's credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Auth {
    /// Required: groups of alternatives, of which one is enough. Ask for the first name of each.
    pub required: Vec<Vec<String>>,
    /// Optional, but still secret.
    pub optional: Vec<String>,
}

impl Auth {
    pub(super) fn read(capabilities: Option<&Node<'_>>, faults: &mut Faults) -> Option<Self> {
        let node = capabilities?.child("auth")?;
        let kind = node.required_text("kind", faults)?;
        if kind != "env" {
            // Other kinds exist, which we cannot provide.
            faults.warning_at(ManifestFaultCode::NotAllowed, node.path(), &kind, "env");
            return None;
        }
        let groups = node.child("required").and_then(|list| list.elements(faults)).unwrap_or_default();
        let required = groups.iter().filter_map(|group| read_group(group, faults)).collect();
        // Other manifests may use this key differently: invalid names are dropped.
        let mut other = Faults::default();
        let names = node.child("optional").and_then(|list| list.elements(&mut other)).unwrap_or_default();
        let optional = names.iter().filter_map(|name| super::command::read_variable(name, &mut other)).collect();
        Some(Self { required, optional })
    }

    /// Every variable that is a secret.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.required.iter().flatten().chain(&self.optional).map(String::as_str)
    }
}

/// One name, or several alternatives.
fn read_group(node: &Node<'_>, faults: &mut Faults) -> Option<Vec<String>> {
    let names = if node.view().is_string() { vec![node.clone()] } else { node.elements(faults)? };
    if names.is_empty() {
        node.wrong_type("a name, or a list of names that is not empty", faults);
        return None;
    }
    let names = names.iter().filter_map(|name| super::command::read_variable(name, faults)).collect::<Vec<_>>();
    (!names.is_empty()).then_some(names)
}

pub(super) fn read_human_interaction(capabilities: Option<&Node<'_>>, faults: &mut Faults) -> Vec<String> {
    capabilities.map(|node| node.texts("human_interaction", faults)).unwrap_or_default()
}
