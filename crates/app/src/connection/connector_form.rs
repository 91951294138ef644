//! The connectors that can be added on a page, each with what there is to fill in.

use super::catalog::{Connector, Origin};
use super::setting_name::prefix;
use crate::app::App;
use gleaner_protocol::{Auth, Manifest};
use serde::Serialize;

/// A connector that can be added.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectorForm {
    /// What it is called.
    pub connector: String,
    /// What identifies it everywhere.
    #[serde(skip)]
    pub connector_id: String,
    /// Its name for people.
    pub display_name: String,
    /// Its version.
    pub version: String,
    /// What it needs, in words.
    pub needs: String,
    /// Whether it comes with the program.
    #[serde(rename = "comes_with_the_program")]
    pub is_ours: bool,
    /// What it collects.
    pub streams: Vec<String>,
    /// What can be set.
    pub settings: Vec<FormField>,
    /// What it signs in with.
    pub credentials: Vec<FormField>,
}

/// Something to fill in.
#[derive(Clone, Debug, Serialize)]
pub struct FormField {
    /// Its name, as it comes back.
    pub name: String,
    /// What stands before it, if its author says so.
    pub label: Option<String>,
    /// What it is for.
    pub description: Option<String>,
}

impl App {
    /// The connectors that can be added on a page.
    #[must_use]
    pub fn connector_forms(&self) -> Vec<ConnectorForm> {
        self.catalog().connectors.iter().map(offer).collect()
    }
}

fn offer(connector: &Connector) -> ConnectorForm {
    let manifest = &connector.manifest;
    let required = manifest.auth.iter().flat_map(|auth| &auth.required).filter_map(|group| group.first());
    let credentials = required.chain(manifest.auth.iter().flat_map(|auth| &auth.optional));
    ConnectorForm {
        connector: manifest.connector_key.clone(),
        connector_id: manifest.connector_id.clone(),
        display_name: manifest.display_name.clone(),
        version: manifest.version.clone(),
        needs: connector.needs(),
        is_ours: matches!(connector.origin, Origin::Program(_)),
        streams: manifest.streams.iter().map(|stream| stream.name.clone()).collect(),
        settings: settable(manifest).map(|name| field(manifest, name)).collect(),
        credentials: credentials.map(|name| field(manifest, name)).collect(),
    }
}

fn field(manifest: &Manifest, name: &str) -> FormField {
    let text = manifest.variable_texts.iter().find(|text| text.name == name);
    FormField {
        name: name.to_owned(),
        label: text.and_then(|text| text.label.clone()),
        description: text.and_then(|text| text.description.clone()),
    }
}

/// The variables that a page may set.
pub(super) fn settable(manifest: &Manifest) -> impl Iterator<Item = &String> {
    let own = prefix(manifest);
    let is_credential = |name: &String| manifest.auth.iter().flat_map(Auth::names).any(|known| known == name);
    manifest.environment_variables.iter().filter(move |name| {
        let rest = name.strip_prefix("PDPP_").unwrap_or(name).strip_prefix(&own);
        rest.is_some_and(|rest| !rest.is_empty() && !is_secret(rest)) && !is_credential(name)
    })
}

/// Settings are stored as they are, so what sounds like a secret is none. A connector asks for it when it needs it.
fn is_secret(name: &str) -> bool {
    ["PASSWORD", "TOKEN", "SECRET", "PASSPHRASE", "API_KEY", "COOKIE"].iter().any(|word| name.contains(word))
}
