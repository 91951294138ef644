//! The credentials of a connection: where each comes from, and what is missing. Values reach the
//! connector's environment and the redactor, and nothing else.

use crate::app::App;
use crate::error::AppError;
use gleaner_protocol::Manifest;
use gleaner_runtime::Environment;
use gleaner_vault::{Secret, Vault};

/// What a connector signs in with.
#[derive(Debug, Default)]
pub struct Credentials {
    pub known: Vec<Credential>,
    /// What the owner should know about where they come from.
    pub warnings: Vec<String>,
    /// Groups of names of which one is enough, and none is there.
    pub(crate) missing: Vec<Vec<String>>,
}

/// Asks the owner for a value that is not shown; `None` when nobody answers.
pub type AskSecret<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

/// One of them.
#[derive(Debug)]
pub struct Credential {
    /// The variable in which the connector expects it.
    pub name: String,
    secret: Secret,
    /// Where it comes from, in words.
    pub source: String,
    is_new: bool,
}

impl Credentials {
    /// Looks for what the manifest wants.
    pub(crate) fn find(manifest: &Manifest, app: &App, name: &str) -> Result<Self, AppError> {
        let Some(auth) = &manifest.auth else { return Ok(Self::default()) };
        let vault = Vault::open(app.root())?;
        let resolution = gleaner_vault::resolve(auth, name, &vault, &|name| std::env::var_os(name))?;
        let warnings = resolution.found.iter().filter_map(|found| found.source.warning()).collect();
        let known = resolution.found.into_iter().map(|found| {
            let source = found.source.to_string();
            Credential { name: found.name, secret: found.secret, source, is_new: false }
        });
        Ok(Self { known: known.collect(), warnings, missing: resolution.missing })
    }

    /// Asks for what is missing.
    pub fn ask_for_missing(&mut self, ask: AskSecret<'_>) {
        self.missing.retain(|group| {
            let typed = group.first().and_then(|name| Some((name, ask(name)?)));
            self.known.extend(typed.map(|(name, value)| Credential::typed(name, value)));
            typed_is_missing(group, &self.known)
        });
    }

    /// Asks for all that the manifest wants, and for what the connector can do without.
    pub(crate) fn ask_for_all(manifest: &Manifest, ask: AskSecret<'_>) -> Self {
        let Some(auth) = manifest.auth.clone() else { return Self::default() };
        let optional = auth.optional.into_iter().map(|name| vec![name]).collect();
        let mut credentials = Self { missing: optional, ..Self::default() };
        credentials.ask_for_missing(ask);
        credentials.missing = auth.required;
        credentials.ask_for_missing(ask);
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
    pub(crate) fn store_new(&self, app: &App, name: &str) -> Result<Option<String>, AppError> {
        if !self.known.iter().any(|credential| credential.is_new) {
            return Ok(None);
        }
        let vault = Vault::open(app.root())?;
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
    pub(crate) fn account(&self, manifest: &Manifest, app: &App) -> Result<Option<(String, String)>, AppError> {
        if self.known.is_empty() {
            return Ok(None);
        }
        let provider = manifest.provider.clone().unwrap_or_else(|| manifest.connector_id.clone());
        let secrets = self.known.iter().map(|credential| &credential.secret);
        let hash = Vault::open(app.root())?.credential_hash(&provider, secrets);
        Ok(Some((provider, hash)))
    }

    /// The names to ask for.
    #[must_use]
    pub fn missing_names(&self) -> Vec<String> {
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

/// How an owner gives what is missing.
#[must_use]
pub fn how_to_give(connection: &str, missing: &[String]) -> String {
    let variable = missing.first().map_or("the variable", String::as_str);
    format!(
        "`gleaner check {connection} --sign-in` asks for it and stores it; or set {variable}, {variable}_FILE or {variable}_COMMAND"
    )
}
