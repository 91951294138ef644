//! Credentials of a person: encrypted under the data root, and looked up for a run.
//!
//! **It never prompts or prints.** Prompts, checks with a provider and messages are the caller's; so is masking the
//! output of connectors. This crate has files, a key, and the lookup rules.
//!
//! | for | see |
//! |---|---|
//! | storing and removing | [`Vault`] |
//! | location of the key | [`KeyPlace`], [`KeyStore`] |
//! | credentials for a connector, and their source | [`resolve()`], [`FoundCredential`], [`Source`] |
//! | a value that is never shown | [`Secret`] |
//!
//! ```
//! use gleaner_vault::{Secret, Vault};
//!
//! let data_root = tempfile::tempdir()?;
//! let vault = Vault::open_with(data_root.path(), None)?;
//! vault.set("github", "GITHUB_TOKEN", Secret::new("ghp_example".to_owned()))?;
//! assert_eq!(vault.names("github")?, ["GITHUB_TOKEN"]);
//! println!("stored; {}", vault.key_place());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Files on disk
//!
//! ```text
//! <data root>/secrets/            0700
//!     key                         0600  the key, or the name of its entry in the keyring
//!     lock                        0600  held while a process writes
//!     <name>-<hash>.sealed        0600  the secrets of one connection
//! ```
//!
//! # Threat model
//!
//! Without the feature `keyring` the key is beside the secrets, readable by its owner only. That protects secrets
//! from searches, logs, copies of single files and other users, but not from anyone with the whole folder.
//! [`KeyPlace`] tells the owner which case applies. In either case a program that runs as the owner has the owner's
//! access.
//!
//! # Deliberately absent
//!
//! - An empty result where something could not be read.
//! - A second key. The key is created once; without it, credentials must be entered again.
//! - A password on the vault: runs start unattended.
//! - Protection against rollback: an older copy of a file still opens.
//!
//! # Files
//!
//! - `vault.rs`, `error.rs`: the vault, and its errors
//! - `sealed.rs`: one encrypted file per connection
//! - `folder.rs`: owner-only, locked, no links
//! - `key.rs`, `os_keyring.rs`: the key and its storage
//! - `resolve.rs`, `secret_file.rs`, `secret_command.rs`: sources of a value
//! - `secret.rs`: a value that is never shown

mod error;
mod folder;
mod key;
#[cfg(feature = "keyring")]
mod os_keyring;
mod resolve;
mod sealed;
mod secret;
mod secret_command;
mod secret_file;
mod vault;

pub use error::VaultError;
pub use key::{KeyPlace, KeyStore, KeyStoreError};
#[cfg(feature = "keyring")]
pub use os_keyring::OsKeyring;
pub use resolve::{FoundCredential, Resolution, ResolveError, Source, resolve};
pub use secret::{Secret, ValueFault};
pub use secret_command::CommandFault;
pub use secret_file::FileFault;
pub use vault::Vault;
