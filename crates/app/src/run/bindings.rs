//! What a connector may use: what it asked for and can be had, and what every connector gets.
//!
//! A browser comes with the profile of this connection and no other: its name and its place are in the descriptor, so
//! that a connector needs to know neither our data root nor the names of connections.

use crate::app::App;
use crate::error::AppError;
use gleaner_browser::ProfileName;
use gleaner_protocol::{BindingKind, Manifest, RawJson};
use serde_json::{Value, json};

/// What is offered to a run of this connection. `interactive` only when somebody can answer.
pub(super) fn offered(
    app: &App,
    connection: &str,
    manifest: &Manifest,
    interactive: bool,
) -> Result<Vec<(String, RawJson<'static>)>, AppError> {
    let mut bindings = vec![plain("network"), plain("filesystem")];
    for binding in &manifest.bindings {
        match binding.kind {
            BindingKind::LoopbackListen => bindings.push(plain(&binding.name)),
            BindingKind::Browser | BindingKind::BrowserProfile => {
                bindings.push((binding.name.clone(), browser(app, connection, manifest)?));
            }
            BindingKind::Network
            | BindingKind::Filesystem
            | BindingKind::Interactive
            | BindingKind::Namespaced
            | BindingKind::Unknown => {}
        }
    }
    bindings.extend(interactive.then(|| plain("interactive")));
    let written =
        |(name, descriptor): (String, Value)| (name, RawJson::new(descriptor.to_string()).unwrap_or_default());
    Ok(bindings.into_iter().map(written).collect())
}

fn plain(name: &str) -> (String, Value) {
    (name.to_owned(), json!({}))
}

fn browser(app: &App, connection: &str, manifest: &Manifest) -> Result<Value, AppError> {
    let name = ProfileName::of_connection(&manifest.connector_key, connection)
        .map_err(|error| AppError::usage(error.to_string(), "give the connection a shorter name"))?;
    // A connector may be started in another folder.
    let profiles = std::path::absolute(app.profiles_path()).unwrap_or_else(|_| app.profiles_path());
    Ok(json!({
        "profile_name": name.as_str(),
        "profile_path": profiles.join(name.as_str()),
        "profiles_path": profiles,
    }))
}
