//! What a connector finds in its environment: a short list, and nothing else of ours.
//!
//! A connector is somebody else's program. It gets what any program needs to run, what its manifest
//! declares, and the secrets of its own connection; never the runtime's whole environment, in which
//! other connections' secrets may be. A manifest cannot ask for what would change how programs are
//! loaded.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// What any program may need: where programs, files and certificates are, language and time, a display.
const ALWAYS: [&str; 18] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// What decides which code a program loads. Whoever may set it may do anything.
fn changes_what_is_loaded(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "BASH_ENV",
        "ENV",
        "IFS",
        "NODE_OPTIONS",
        "PERL5LIB",
        "PERL5OPT",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
    ];
    name.starts_with("LD_") || name.starts_with("DYLD_") || name.starts_with("GLEANER_") || NAMES.contains(&name)
}

/// An environment to start a connector with. Prints names, never values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

impl Environment {
    /// What is left of `ours` for a connector whose manifest declares these names.
    pub fn for_connector(ours: impl IntoIterator<Item = (OsString, OsString)>, declared: &[String]) -> Self {
        let allowed = |name: &OsStr| {
            name.to_str().is_some_and(|name| {
                let declared = declared.iter().any(|known| known == name);
                ALWAYS.contains(&name) || name.starts_with("LC_") || (declared && !changes_what_is_loaded(name))
            })
        };
        Self { variables: ours.into_iter().filter(|(name, _)| allowed(name)).collect() }
    }

    /// Adds a value of the connection's own: a setting, a secret, a budget.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.variables.insert(name.into(), value.into());
    }

    /// The value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// All of it.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connector_gets_what_it_declares_and_nothing_else_of_ours() {
        let ours = ["PATH", "LC_ALL", "GITHUB_TOKEN", "OTHER_TOKEN", "LD_PRELOAD", "NODE_OPTIONS", "GLEANER_HOME"];
        let ours = ours.map(|name| (OsString::from(name), OsString::from("secret-value")));
        let declared = ["GITHUB_TOKEN", "LD_PRELOAD", "NODE_OPTIONS", "GLEANER_HOME", "ABSENT"].map(str::to_owned);
        let environment = Environment::for_connector(ours, &declared);
        let names = environment.iter().map(|(name, _)| name.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(names, ["GITHUB_TOKEN", "LC_ALL", "PATH"]);
        assert!(!format!("{environment:?}").contains("secret-value"));
    }
}
