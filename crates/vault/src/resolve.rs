//! Looks up a connector's credentials: environment, file, command, or vault.
//!
//! A variable set for one run is intended, so the environment comes before the vault. A named source without a usable
//! value is an error, not a reason to try the next: a run with old credentials is worse than none. An empty text
//! counts as absent.

use crate::error::VaultError;
use crate::secret::{Secret, ValueFault};
use crate::secret_command::{self, CommandFault};
use crate::secret_file::{self, FileFault};
use crate::vault::Vault;
use gleaner_protocol::Auth;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::slice;

/// Credentials of a connector: found and missing.
#[derive(Debug, Default)]
pub struct Resolution {
    /// One per group of alternative names, in the manifest's order.
    pub found: Vec<FoundCredential>,
    /// The groups without a value. Ask for the first name of each.
    pub missing: Vec<Vec<String>>,
}

/// A credential.
#[derive(Debug)]
pub struct FoundCredential {
    /// The variable that the connector reads.
    pub name: String,
    /// Its value.
    pub secret: Secret,
    /// Its source.
    pub source: Source,
}

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The variable itself.
    Environment,
    /// A file.
    File {
        /// The variable that names it.
        variable: String,
        /// Its path.
        path: PathBuf,
        /// Whether other users may read it.
        exposed: bool,
    },
    /// The output of the command in this variable.
    Command {
        /// The variable.
        variable: String,
    },
    /// Stored for the connection.
    Vault,
}

impl Source {
    /// A warning for the owner.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::File { path, exposed: true, .. } => {
                Some(format!("{} can be read by other users; `chmod 600` it if it is yours", path.display()))
            }
            Self::File { .. } | Self::Environment | Self::Command { .. } | Self::Vault => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("the environment"),
            Self::File { variable, path, .. } => write!(f, "the file {} ({variable})", path.display()),
            Self::Command { variable } => write!(f, "the command in {variable}"),
            Self::Vault => f.write_str("the vault"),
        }
    }
}

/// Why credentials could not be looked up. Never holds one.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// A variable holds an invalid secret.
    #[error("the variable {variable} holds no usable secret: {fault}")]
    Value {
        /// The variable.
        variable: String,
        /// Why.
        fault: ValueFault,
    },
    /// A file holds no usable secret.
    #[error("{variable}: {fault}")]
    File {
        /// The variable that names it.
        variable: String,
        /// Why.
        #[source]
        fault: FileFault,
    },
    /// A command returns no usable secret.
    #[error("{variable}: {fault}")]
    Command {
        /// The variable that holds it.
        variable: String,
        /// Why.
        #[source]
        fault: CommandFault,
    },
    /// The vault cannot be read.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// Looks up the credentials of a connector: for each name of a group `NAME`, `NAME_FILE` and `NAME_COMMAND` in the
/// environment, then for each name the connection's vault.
///
/// A declared name is never a helper variable: `TOKEN_FILE` is not read for `TOKEN` if the connector asks for
/// `TOKEN_FILE` itself.
pub fn resolve(
    auth: &Auth,
    connection: &str,
    vault: &Vault,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Resolution, ResolveError> {
    let is_declared = |name: &str| auth.names().any(|declared| declared == name);
    let helper =
        |name: &str| if is_declared(name) { None } else { environment(name).filter(|value| !value.is_empty()) };
    let mut resolution = Resolution::default();
    let optional = auth.optional.iter().map(|name| (slice::from_ref(name), false));
    let groups = auth.required.iter().map(|group| (group.as_slice(), true)).chain(optional);
    for (group, is_required) in groups {
        match look_in_environment(group, environment, &helper) {
            Ok(Some(found)) => resolution.found.push(found),
            Ok(None) => match look_in_vault(group, connection, vault)? {
                Some(found) => resolution.found.push(found),
                None if is_required => resolution.missing.push(group.to_vec()),
                None => {}
            },
            Err(error) => return Err(withhold_known(error, &resolution, connection, vault)),
        }
    }
    Ok(resolution)
}

type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;
type Way = fn(&str, Lookup<'_>) -> Look;
type Look = Result<Option<(Secret, Source)>, ResolveError>;

fn look_in_environment(
    group: &[String],
    environment: Lookup<'_>,
    helper: Lookup<'_>,
) -> Result<Option<FoundCredential>, ResolveError> {
    for name in group {
        // One after the other: no command runs for a value that is already found.
        let ways: [(Way, Lookup<'_>); 3] = [(of_variable, environment), (of_file, helper), (of_command, helper)];
        for (way, lookup) in ways {
            if let Some((secret, source)) = way(name, lookup)?.filter(|(secret, _)| !secret.is_empty()) {
                return Ok(Some(FoundCredential { name: name.clone(), secret, source }));
            }
        }
    }
    Ok(None)
}

fn of_variable(name: &str, lookup: Lookup<'_>) -> Look {
    let Some(value) = lookup(name) else { return Ok(None) };
    match Secret::from_bytes(value.into_vec()) {
        Ok(secret) => Ok(Some((secret, Source::Environment))),
        Err(fault) => Err(ResolveError::Value { variable: name.to_owned(), fault }),
    }
}

fn of_file(name: &str, lookup: Lookup<'_>) -> Look {
    let variable = format!("{name}_FILE");
    let Some(path) = lookup(&variable).map(PathBuf::from) else { return Ok(None) };
    match secret_file::read(&path) {
        Ok((secret, exposed)) => Ok(Some((secret, Source::File { variable, path, exposed }))),
        Err(fault) => Err(ResolveError::File { variable, fault }),
    }
}

fn of_command(name: &str, lookup: Lookup<'_>) -> Look {
    let variable = format!("{name}_COMMAND");
    let Some(command) = lookup(&variable) else { return Ok(None) };
    match secret_command::run(&command, secret_command::LIMIT) {
        Ok(secret) => Ok(Some((secret, Source::Command { variable }))),
        Err(fault) => Err(ResolveError::Command { variable, fault }),
    }
}

fn look_in_vault(group: &[String], connection: &str, vault: &Vault) -> Result<Option<FoundCredential>, VaultError> {
    let stored = vault.get(connection)?;
    let first = group.iter().find_map(|name| stored.iter().find(|(stored, _)| stored == name));
    Ok(first.map(|(name, secret)| FoundCredential { name: name.clone(), secret: secret.copy(), source: Source::Vault }))
}

/// Removes a command's message if it contains a known secret.
fn withhold_known(mut error: ResolveError, so_far: &Resolution, connection: &str, vault: &Vault) -> ResolveError {
    if let ResolveError::Command { fault, .. } = &mut error {
        // If the vault cannot be read, no stored secrets are known; that is not the error here.
        let stored = vault.get(connection).unwrap_or_default();
        let stored = stored.iter().map(|(_, secret)| secret.expose());
        let known = so_far.found.iter().map(|found| found.secret.expose()).chain(stored).collect::<Vec<_>>();
        fault.withhold(&known);
    }
    error
}
