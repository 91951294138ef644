//! What an owner calls a setting, and which environment variable of the connector that is.
//!
//! A connector is told everything through its environment, where names are long and carry its own in front:
//! `ICAL_IMPORT_DIR`. On the command line the connector is known already, so `import_dir` says the same. One rule for
//! all connectors: a variable that the manifest declares and that begins with the connector's key in capitals may be
//! called by the rest of its name in lower case. Anything else is the name of a variable as it is.

use crate::error::{AppError, nearest};
use gleaner_protocol::{Auth, Manifest};
use std::collections::BTreeMap;

/// The settings of a connector: what each is called, and its variable. Credentials are not among them: those are asked for
/// and kept elsewhere.
#[must_use]
pub fn setting_names(manifest: &Manifest) -> Vec<(String, String)> {
    let credentials = manifest.auth.iter().flat_map(Auth::names).collect::<Vec<_>>();
    let declared = manifest.environment_variables.iter().filter(|name| !credentials.contains(&name.as_str()));
    declared.map(|variable| (key(variable, manifest), variable.clone())).collect()
}

/// What variables of a connector begin with: its key in capitals.
pub(super) fn prefix(manifest: &Manifest) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    manifest.connector_key.chars().map(plain).chain(['_']).collect()
}

/// What an owner calls a variable.
fn key(variable: &str, manifest: &Manifest) -> String {
    let rest = variable.strip_prefix(&prefix(manifest)).filter(|rest| !rest.is_empty());
    rest.map_or_else(|| variable.to_owned(), str::to_ascii_lowercase)
}

/// What was typed, with the names of variables. Who sets something that a connector of ours does not know has mistyped it.
/// A credential is refused: settings are stored as they are, and a command line is seen by every program of the machine.
pub(crate) fn resolve(
    typed: BTreeMap<String, String>,
    manifest: &Manifest,
    is_ours: bool,
) -> Result<BTreeMap<String, String>, AppError> {
    let settings = setting_names(manifest);
    let caps = gleaner_sdk::variable_names(&manifest.connector_key);
    let mut resolved = BTreeMap::new();
    for (typed, value) in typed {
        let secrets = || manifest.auth.iter().flat_map(Auth::names);
        if let Some(variable) = secrets().find(|&variable| variable == typed || key(variable, manifest) == typed) {
            let message = format!("{variable} is a secret, and a command line is seen by others");
            let hint =
                format!("leave it out and use `gleaner check NAME --sign-in`, {variable}_FILE or {variable}_COMMAND");
            return Err(AppError::usage(message, hint));
        }
        let known = settings.iter().find(|(key, variable)| *key == typed || *variable == typed);
        let name = match known {
            Some((_, variable)) => variable.clone(),
            None if is_ours && !caps.contains(&typed) => return Err(unknown(&typed, &settings, manifest)),
            None => typed.clone(),
        };
        if resolved.insert(name.clone(), value).is_some() {
            let hint = "one of the two is enough";
            return Err(AppError::usage(format!("--set {typed} and another --set both say {name}"), hint));
        }
    }
    Ok(resolved)
}

fn unknown(typed: &str, settings: &[(String, String)], manifest: &Manifest) -> AppError {
    let keys = || settings.iter().map(|(key, _)| key.as_str());
    let hint = match nearest(typed, keys()) {
        Some(near) => format!("did you mean {near}?"),
        None if settings.is_empty() => "leave it out".to_owned(),
        None => format!("it has {}", keys().collect::<Vec<_>>().join(", ")),
    };
    AppError::usage(format!("{} has no setting {typed:?}", manifest.connector_key), hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::settings::parse_manifest;

    fn manifest() -> Manifest {
        let text = r#"{"connector_id":"x","connector_key":"my-cal","version":"1","streams":[],
            "runtime_requirements":{"environment_variables":["MY_CAL_IMPORT_DIR","MY_CAL_TOKEN","OTHER_DIR","MY_CAL_"]},
            "capabilities":{"auth":{"kind":"env","required":["MY_CAL_TOKEN"],"optional":["MY_CAL_PIN"]}}}"#;
        parse_manifest(text).unwrap()
    }

    fn resolve(typed: &[&str], is_ours: bool) -> Result<Vec<String>, String> {
        let typed = typed.iter().map(|&key| (key.to_owned(), "v".to_owned())).collect();
        let resolved = super::resolve(typed, &manifest(), is_ours);
        resolved.map(|names| names.into_keys().collect()).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn a_setting_is_called_by_its_variable_or_by_the_rest_of_it_in_lower_case() {
        assert_eq!(
            resolve(&["import_dir", "OTHER_DIR"], true),
            Ok(vec!["MY_CAL_IMPORT_DIR".into(), "OTHER_DIR".into()])
        );
        assert_eq!(resolve(&["MY_CAL_IMPORT_DIR"], true), Ok(vec!["MY_CAL_IMPORT_DIR".into()]));
        assert!(
            resolve(&["import_dir", "MY_CAL_IMPORT_DIR"], true).unwrap_err().contains("both say MY_CAL_IMPORT_DIR")
        );
        let shown = setting_names(&manifest()).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(shown, ["import_dir", "OTHER_DIR", "MY_CAL_"], "a credential is no setting");
    }

    #[test]
    fn a_secret_is_not_taken_from_a_command_line_by_any_of_its_names() {
        for (typed, is_ours) in [("token", true), ("MY_CAL_TOKEN", true), ("MY_CAL_TOKEN", false), ("MY_CAL_PIN", true)]
        {
            assert!(resolve(&[typed], is_ours).unwrap_err().contains("is a secret"), "{typed}");
        }
    }

    #[test]
    fn a_name_that_nobody_knows_is_a_mistake_only_where_all_names_are_known() {
        assert!(resolve(&["import_dri"], true).unwrap_err().contains("did you mean import_dir?"));
        assert_eq!(resolve(&["PDPP_MY_CAL_MAX_RUN_WALL_CLOCK_MS"], true).map(|all| all.len()), Ok(1));
        assert_eq!(
            resolve(&["verbose"], false),
            Ok(vec!["verbose".into()]),
            "somebody else's connector reads what it likes"
        );
    }
}
