//! Refusals of the vault: files that are not private, incomplete, foreign, or whose key is gone.

use crate::support::{files, open, sealed_file, secret, stored};
use gleaner_vault::{KeyPlace, KeyStore, KeyStoreError, Secret, Vault, VaultError};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A vault with the key in a file, with one secret.
fn filled() -> (TempDir, Vault) {
    let root = tempfile::tempdir().unwrap();
    let vault = open(root.path()).unwrap();
    vault.set("mail", "PASSWORD", secret("value")).unwrap();
    (root, vault)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Does nothing unless it is started by another test.
#[test]
fn helper_that_stores() {
    let Ok(root) = std::env::var("VAULT_TEST_ROOT") else { return };
    open(Path::new(&root)).unwrap().set("mail", "PASSWORD", secret("value")).unwrap();
}

#[test]
fn only_the_owner_may_use_any_of_it_even_if_everything_is_allowed_by_default() {
    let root = tempfile::tempdir().unwrap();
    let data_root = root.path().join("data");
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 0; exec \"$0\" --exact guarding::helper_that_stores"])
        .arg(std::env::current_exe().unwrap());
    assert!(command.env("VAULT_TEST_ROOT", &data_root).output().unwrap().status.success());
    assert_eq!(mode(&data_root), 0o700);
    assert_eq!(mode(&data_root.join("secrets")), 0o700);
    let all = files(&data_root, "");
    assert_eq!(all.len(), 3, "{all:?}");
    for file in all {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn what_others_may_use_is_refused_with_the_command_that_mends_it() {
    let (root, vault) = filled();
    let folder = root.path().join("secrets");
    for (path, wanted) in [
        (folder.clone(), 0o700),
        (folder.join("key"), 0o600),
        (folder.join("lock"), 0o600),
        (sealed_file(root.path()), 0o600),
    ] {
        for extra in [0o040, 0o004, 0o020, 0o002, 0o010, 0o001] {
            set_mode(&path, wanted | extra);
            let error = open(root.path()).and_then(|vault| vault.get("mail")).unwrap_err();
            let expected = format!("chmod {wanted:03o} '{}'", path.display());
            assert!(error.to_string().contains(&expected), "{error}");
        }
        // The message says what helps.
        let status = Command::new("chmod").arg(format!("{wanted:o}")).arg(&path).status().unwrap();
        assert!(status.success());
        assert_eq!(stored(&open(root.path()).unwrap(), "mail").len(), 1);
    }
    set_mode(&sealed_file(root.path()), 0o644);
    assert!(matches!(vault.set("mail", "OTHER", secret("x")), Err(VaultError::Exposed { .. })));
}

#[test]
fn links_are_not_followed() {
    for name in ["", "key", "lock", "sealed"] {
        let (root, _) = filled();
        let folder = root.path().join("secrets");
        let path = match name {
            "" => folder.clone(),
            "sealed" => sealed_file(root.path()),
            other => folder.join(other),
        };
        let elsewhere = root.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        let error = open(root.path()).and_then(|vault| vault.get("mail")).unwrap_err();
        assert!(matches!(&error, VaultError::SymbolicLink(found) if *found == path), "{name}: {error}");
        // Also one that leads nowhere is not taken for nothing.
        fs::remove_file(&path).unwrap();
        symlink("nowhere", &path).unwrap();
        let error = open(root.path()).and_then(|vault| vault.get("mail")).unwrap_err();
        assert!(matches!(error, VaultError::SymbolicLink(_)), "{name}: {error}");
    }
}

#[test]
fn a_link_that_waits_where_a_file_is_written_is_not_written_through() {
    let (root, vault) = filled();
    let target = root.path().join("target");
    fs::write(&target, "untouched").unwrap();
    symlink(&target, format!("{}.new", sealed_file(root.path()).display())).unwrap();
    vault.set("mail", "PASSWORD", secret("new")).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
    assert!(!sealed_file(root.path()).is_symlink());
}

#[test]
fn folders_and_pipes_in_the_place_of_files_are_refused_at_once() {
    for kind in ["mkdir", "mkfifo"] {
        for name in ["key", "lock", "sealed"] {
            let (root, _) = filled();
            let folder = root.path().join("secrets");
            let path = if name == "sealed" { sealed_file(root.path()) } else { folder.join(name) };
            fs::remove_file(&path).unwrap();
            assert!(Command::new(kind).arg("-m").arg("600").arg(&path).status().unwrap().success());
            let error = open(root.path()).and_then(|vault| vault.get("mail")).unwrap_err();
            assert!(matches!(error, VaultError::WrongKind { .. }), "{kind} {name}: {error}");
        }
    }
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("secrets"), "").unwrap();
    assert!(matches!(open(root.path()), Err(VaultError::WrongKind { .. })));
}

#[test]
fn what_belongs_to_somebody_else_is_refused() {
    for name in ["", "key", "sealed"] {
        let (root, _) = filled();
        let folder = root.path().join("secrets");
        let path = match name {
            "" => folder.clone(),
            "sealed" => sealed_file(root.path()),
            other => folder.join(other),
        };
        if chown(&path, Some(12345), None).is_err() {
            // Only root can give files away.
            return;
        }
        let error = open(root.path()).and_then(|vault| vault.get("mail")).unwrap_err();
        assert!(matches!(error, VaultError::WrongOwner { owner: 12345, .. }), "{name}: {error}");
    }
}

#[test]
fn a_changed_byte_anywhere_is_an_error_and_nothing_is_overwritten() {
    let (root, vault) = filled();
    let file = sealed_file(root.path());
    let whole = fs::read(&file).unwrap();
    for at in 0..whole.len() {
        for bits in [0x01, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] ^= bits;
            fs::write(&file, &changed).unwrap();
            let error = vault.get("mail").unwrap_err();
            let is_named = match at {
                8 => matches!(error, VaultError::NewerFormat { .. }),
                9..17 => matches!(error, VaultError::WrongKey(_)),
                _ => matches!(error, VaultError::Damaged(_)),
            };
            assert!(is_named, "byte {at}: {error}");
            vault.names("mail").unwrap_err();
            vault.set("mail", "OTHER", secret("x")).unwrap_err();
            assert_eq!(fs::read(&file).unwrap(), changed, "byte {at}");
        }
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(stored(&vault, "mail").len(), 1);
}

#[test]
fn a_file_that_ends_early_or_late_is_an_error() {
    let (root, vault) = filled();
    let file = sealed_file(root.path());
    let whole = fs::read(&file).unwrap();
    for length in 0..whole.len() {
        fs::write(&file, &whole[..length]).unwrap();
        let error = vault.get("mail").unwrap_err();
        assert!(matches!(error, VaultError::Damaged(_)), "{length}: {error}");
    }
    for more in [1, 100, 2 * 1024 * 1024] {
        let mut longer = whole.clone();
        longer.resize(whole.len() + more, 0);
        fs::write(&file, &longer).unwrap();
        assert!(matches!(vault.get("mail"), Err(VaultError::Damaged(_))));
    }
    // An unreadable secret can be removed and entered again.
    assert!(vault.remove("mail").unwrap());
    vault.set("mail", "PASSWORD", secret("again")).unwrap();
}

#[test]
fn the_file_of_another_connection_or_another_vault_does_not_open() {
    let (root, vault) = filled();
    let file = sealed_file(root.path());
    vault.set("Mail", "PASSWORD", secret("other")).unwrap();
    let other = files(root.path(), ".sealed").into_iter().find(|found| *found != file).unwrap();
    fs::copy(&file, &other).unwrap();
    assert!(matches!(vault.get("Mail"), Err(VaultError::Damaged(_))));
    assert_eq!(stored(&vault, "mail").len(), 1);
    let (elsewhere, stranger) = filled();
    fs::copy(&file, sealed_file(elsewhere.path())).unwrap();
    assert!(matches!(stranger.get("mail"), Err(VaultError::WrongKey(_))));
}

#[test]
fn every_writing_looks_different() {
    let (root, vault) = filled();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..20 {
        vault.set("mail", "PASSWORD", secret("value")).unwrap();
        let bytes = fs::read(sealed_file(root.path())).unwrap();
        assert!(seen.insert(bytes[17..41].to_vec()), "the nonce is new");
    }
}

#[test]
fn secrets_without_their_key_are_an_error_and_no_new_key_is_made() {
    let (root, _) = filled();
    let key = root.path().join("secrets/key");
    let whole = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let error = open(root.path()).unwrap_err();
    assert!(matches!(error, VaultError::KeyMissing { secrets: 1, .. }), "{error}");
    assert!(error.to_string().contains("backup"), "{error}");
    assert!(!key.exists());
    // A damaged one is told from a missing one, and from a damaged secret.
    for at in 0..whole.len() {
        for bits in [0x01, 0x20] {
            let mut changed = whole.clone();
            changed[at] ^= bits;
            fs::write(&key, &changed).unwrap();
            set_mode(&key, 0o600);
            assert!(matches!(open(root.path()), Err(VaultError::KeyDamaged(_))), "byte {at}");
            fs::write(&key, &whole[..at]).unwrap();
            assert!(matches!(open(root.path()), Err(VaultError::KeyDamaged(_))), "{at} bytes");
        }
    }
    let text = String::from_utf8(whole.clone()).unwrap();
    for longer in [text.replace('\n', "00\n"), text.replace('\n', " 00\n"), format!("{text}\n"), text.repeat(100)] {
        fs::write(&key, longer).unwrap();
        assert!(matches!(open(root.path()), Err(VaultError::KeyDamaged(_))));
    }
    fs::write(&key, &whole).unwrap();
    assert_eq!(stored(&open(root.path()).unwrap(), "mail").len(), 1);
    // The key of another vault is a key, and not this one.
    let (other, _) = filled();
    fs::copy(other.path().join("secrets/key"), &key).unwrap();
    let vault = open(root.path()).unwrap();
    assert!(matches!(vault.get("mail"), Err(VaultError::WrongKey(_))));
    assert!(matches!(vault.set("mail", "PASSWORD", secret("x")), Err(VaultError::WrongKey(_))));
}

/// A keyring that does what it is told to.
#[derive(Default)]
struct Keyring {
    entries: RefCell<BTreeMap<String, String>>,
    is_locked: Cell<bool>,
    forgets: bool,
}

impl KeyStore for Keyring {
    fn name(&self) -> &'static str {
        "test keyring"
    }

    fn load(&self, id: &str) -> Result<Option<Secret>, KeyStoreError> {
        if self.is_locked.get() {
            return Err(KeyStoreError("locked".to_owned()));
        }
        Ok(self.entries.borrow().get(id).map(|key| secret(key)))
    }

    fn store(&self, id: &str, key: &Secret) -> Result<(), KeyStoreError> {
        if self.is_locked.get() {
            return Err(KeyStoreError("locked".to_owned()));
        }
        if !self.forgets {
            self.entries.borrow_mut().insert(id.to_owned(), key.expose().to_owned());
        }
        Ok(())
    }
}

#[test]
fn with_a_keyring_the_key_is_there_and_nowhere_under_the_data_root() {
    let root = tempfile::tempdir().unwrap();
    let keyring = Keyring::default();
    let with_keyring = || Vault::open_with(root.path(), Some(&keyring));
    let vault = with_keyring().unwrap();
    assert_eq!(vault.key_place(), &KeyPlace::Keyring("test keyring".to_owned()));
    vault.set("mail", "PASSWORD", secret("value")).unwrap();
    let key = keyring.entries.borrow().values().next().unwrap().clone();
    for file in files(root.path(), "") {
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(key.len()).any(|window| window == key.as_bytes()), "{}", file.display());
    }
    assert_eq!(stored(&with_keyring().unwrap(), "mail").len(), 1);
    // A keyring that does not answer is no reason for another key.
    keyring.is_locked.set(true);
    assert!(matches!(with_keyring(), Err(VaultError::KeyringUnavailable { .. })));
    assert!(matches!(open(root.path()), Err(VaultError::KeyringUnavailable { .. })));
    keyring.is_locked.set(false);
    assert_eq!(stored(&with_keyring().unwrap(), "mail").len(), 1);
    for value in keyring.entries.borrow_mut().values_mut() {
        *value = "0".repeat(64);
    }
    assert!(matches!(with_keyring(), Err(VaultError::KeyringLost { .. })), "another key under its name");
    keyring.entries.borrow_mut().clear();
    assert!(matches!(with_keyring(), Err(VaultError::KeyringLost { .. })));
}

#[test]
fn a_keyring_that_does_not_work_when_the_key_is_made_is_done_without() {
    for keyring in
        [Keyring { is_locked: Cell::new(true), ..Keyring::default() }, Keyring { forgets: true, ..Keyring::default() }]
    {
        let root = tempfile::tempdir().unwrap();
        let vault = Vault::open_with(root.path(), Some(&keyring)).unwrap();
        assert!(matches!(vault.key_place(), KeyPlace::File(_)));
        vault.set("mail", "PASSWORD", secret("value")).unwrap();
        assert_eq!(stored(&Vault::open_with(root.path(), Some(&keyring)).unwrap(), "mail").len(), 1);
    }
}
