//! The credentials of a connection: where each comes from, and what is missing. Values reach the
//! connector's environment and the redactor, and nothing else.

use crate::error::CliError;
use crate::home::Home;
use crate::output::{report_to_stderr, visible};
use crate::prompt;
use gleaner_protocol::Manifest;
use gleaner_runtime::Environment;
use gleaner_vault::{Secret, Vault};

/// What a connector signs in with.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    pub(crate) known: Vec<Credential>,
    /// Groups of names of which one is enough, and none is there.
    pub(crate) missing: Vec<Vec<String>>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Credential {
    /// The variable in which the connector expects it.
    pub(crate) name: String,
    secret: Secret,
    /// Where it comes from, in words.
    pub(crate) source: String,
    is_new: bool,
}

impl Credentials {
    /// Looks for what the manifest wants.
    pub(crate) fn find(manifest: &Manifest, home: &Home, name: &str) -> Result<Self, CliError> {
        let Some(auth) = &manifest.auth else { return Ok(Self::default()) };
        let vault = Vault::open(home.root())?;
        let resolution = gleaner_vault::resolve(auth, name, &vault, &|name| std::env::var_os(name))?;
        let mut known = Vec::new();
        for found in resolution.found {
            if let Some(warning) = found.source.warning() {
                report_to_stderr(&format!("warning: {}", visible(&warning)));
            }
            let source = found.source.to_string();
            known.push(Credential { name: found.name, secret: found.secret, source, is_new: false });
        }
        Ok(Self { known, missing: resolution.missing })
    }

    /// Asks on the terminal for what is missing. Without a terminal nothing is asked.
    pub(crate) fn ask_for_missing(&mut self) {
        self.missing.retain(|group| {
            let typed = group.first().and_then(|name| Some((name, prompt::secret(name)?)));
            self.known.extend(typed.map(|(name, value)| Credential::typed(name, value)));
            typed_is_missing(group, &self.known)
        });
    }

    /// Asks on the terminal for all that the manifest wants, and for what the connector can do without.
    pub(crate) fn ask_for_all(manifest: &Manifest) -> Self {
        let Some(auth) = manifest.auth.clone() else { return Self::default() };
        let optional = auth.optional.into_iter().map(|name| vec![name]).collect();
        let mut credentials = Self { known: Vec::new(), missing: optional };
        credentials.ask_for_missing();
        credentials.missing = auth.required;
        credentials.ask_for_missing();
        credentials
    }

    /// Takes what was filled in elsewhere than on the terminal. It says more than what was found.
    pub(crate) fn take(&mut self, given: Vec<(String, Secret)>) {
        for (name, secret) in given {
            self.known.retain(|credential| credential.name != name);
            self.known.push(Credential { name, secret, source: "what was filled in".to_owned(), is_new: true });
        }
        let known = &self.known;
        self.missing.retain(|group| typed_is_missing(group, known));
    }

    /// Stores what is new, and answers where its key is.
    pub(crate) fn store_new(&self, home: &Home, name: &str) -> Result<Option<String>, CliError> {
        if !self.known.iter().any(|credential| credential.is_new) {
            return Ok(None);
        }
        let vault = Vault::open(home.root())?;
        for credential in self.known.iter().filter(|credential| credential.is_new) {
            vault.set(name, &credential.name, Secret::new(credential.secret.expose().to_owned()))?;
        }
        Ok(Some(vault.key_place().to_string()))
    }

    /// Hands them to a connector.
    pub(crate) fn put_into(&self, environment: &mut Environment) {
        for credential in &self.known {
            environment.set(&credential.name, credential.secret.expose());
        }
    }

    /// The values, for the redactor.
    pub(crate) fn secrets(&self) -> Vec<String> {
        self.known.iter().map(|credential| credential.secret.expose().to_owned()).collect()
    }

    /// Whose limit they share: the provider, and what stands for the account.
    pub(crate) fn account(&self, manifest: &Manifest, home: &Home) -> Result<Option<(String, String)>, CliError> {
        if self.known.is_empty() {
            return Ok(None);
        }
        let provider = manifest.provider.clone().unwrap_or_else(|| manifest.connector_id.clone());
        let secrets = self.known.iter().map(|credential| &credential.secret);
        let hash = Vault::open(home.root())?.credential_hash(&provider, secrets);
        Ok(Some((provider, hash)))
    }

    /// The names to ask for.
    pub(crate) fn missing_names(&self) -> Vec<String> {
        self.missing.iter().filter_map(|group| group.first().cloned()).collect()
    }
}

impl Credential {
    fn typed(name: &str, value: String) -> Self {
        let source = "what was just typed".to_owned();
        Self { name: name.to_owned(), secret: Secret::new(value), source, is_new: true }
    }
}

fn typed_is_missing(group: &[String], known: &[Credential]) -> bool {
    !known.iter().any(|credential| group.contains(&credential.name))
}

/// Says where what was typed is now.
pub(crate) fn say_where(key_place: Option<String>) {
    if let Some(place) = key_place {
        report_to_stderr(&format!("stored encrypted under the data root; {place}"));
    }
}

/// How an owner gives what is missing.
pub(crate) fn how_to_give(connection: &str, missing: &[String]) -> String {
    let variable = missing.first().map_or("the variable", String::as_str);
    format!(
        "`gleaner check {connection} --sign-in` asks for it and stores it; or set {variable}, {variable}_FILE or {variable}_COMMAND"
    )
}
