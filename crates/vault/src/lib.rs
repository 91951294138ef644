//! A person's credentials: stored sealed under the data root, and found again for a run.
//!
//! **It asks nobody and prints nothing.** Prompts, checks with a provider and messages are the caller's;
//! so is masking what connectors print. This crate has files, a key, and the rules of where to look.
//!
//! | for | see |
//! |---|---|
//! | storing and removing | [`Vault`] |
//! | where the key is | [`KeyPlace`], [`KeyStore`] |
//! | what a connector gets, and where it comes from | [`resolve()`], [`Found`], [`Source`] |
//! | a value that nothing shows | [`Secret`] |
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
//! # Where things are
//!
//! ```text
//! <data root>/secrets/            0700
//!     key                         0600  the key, or the name of its entry in the keyring
//!     lock                        0600  held while somebody writes
//!     <name>-<hash>.sealed        0600  the secrets of one connection
//! ```
//!
//! # What it protects from, and what not
//!
//! Without the feature `keyring` the key lies beside what it opens, readable by its owner alone. That
//! keeps secrets out of searches, logs, copies of single files and other users' sight; it does not keep
//! them from whoever has the whole folder. [`KeyPlace`] says which of the two it is, in words for the
//! owner. In either case a program that runs as the owner can do what the owner can.
//!
//! # What is deliberately absent
//!
//! - An empty answer where something could not be read.
//! - A second key. It is made once; without it, credentials are entered again.
//! - A password on the vault: runs start without anybody there to type it.
//! - A memory of older versions: a copy of a file that is put back opens.
//!
//! # Files
//!
//! - `vault.rs`, `error.rs`: the vault, and what can go wrong with it
//! - `sealed.rs`: one encrypted file per connection
//! - `folder.rs`: owner-only, locked, no links
//! - `key.rs`, `os_keyring.rs`: where the key is
//! - `resolve.rs`, `secret_file.rs`, `secret_command.rs`: where a value comes from
//! - `secret.rs`: a value that nothing shows

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
pub use resolve::{Found, Resolution, ResolveError, Source, resolve};
pub use secret::{Secret, ValueFault};
pub use secret_command::CommandFault;
pub use secret_file::FileFault;
pub use vault::Vault;
