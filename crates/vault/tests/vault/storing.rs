//! Storing and reading back: what comes out is what went in, after restarts, crashes and other writers.

use crate::support::{files, open, pairs, sealed_file, secret, stored};
use gleaner_vault::VaultError;
#[cfg(not(feature = "keyring"))]
use gleaner_vault::{KeyPlace, Vault};
use proptest::prelude::*;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[test]
fn what_was_stored_is_there_after_a_restart() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().join("made/on/demand");
    let vault = open(&root).unwrap();
    assert!(vault.get("mail").unwrap().is_empty());
    assert!(!vault.remove("mail").unwrap());
    vault.set("mail", "PASSWORD", secret("one")).unwrap();
    vault.set("mail", "PASSWORD", secret("two")).unwrap();
    vault.set("mail", "ACCOUNT", secret("a@b")).unwrap();
    vault.set("other", "PASSWORD", secret("three")).unwrap();
    for vault in [vault, open(&root).unwrap()] {
        assert_eq!(stored(&vault, "mail"), pairs(&[("ACCOUNT", "a@b"), ("PASSWORD", "two")]));
        assert_eq!(vault.names("mail").unwrap(), ["ACCOUNT", "PASSWORD"]);
        assert_eq!(stored(&vault, "other"), pairs(&[("PASSWORD", "three")]));
        assert_eq!(stored(&vault, "Mail"), []);
    }
    let vault = open(&root).unwrap();
    assert!(vault.remove("mail").unwrap());
    assert!(!vault.remove("mail").unwrap());
    assert!(vault.get("mail").unwrap().is_empty());
    assert_eq!(files(&root, ".sealed").len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_text_and_any_connection_come_back(
        connections in proptest::collection::btree_set(".{0,300}", 1..4),
        values in proptest::collection::btree_map("[A-Za-z_][A-Za-z0-9_]{0,20}", "[^\0]{1,200}", 1..5),
    ) {
        let root = tempfile::tempdir().unwrap();
        let vault = open(root.path()).unwrap();
        let expected = |connection: &str| {
            values.iter().map(|(name, value)| (name.clone(), format!("{value}{connection}"))).collect::<Vec<_>>()
        };
        let connections = connections.iter().filter(|connection| !connection.contains('\0')).collect::<Vec<_>>();
        for connection in &connections {
            for (name, value) in expected(connection) {
                vault.set(connection, &name, secret(&value)).unwrap();
            }
        }
        let vault = open(root.path()).unwrap();
        for connection in &connections {
            prop_assert_eq!(stored(&vault, connection), expected(connection));
        }
    }
}

#[test]
fn names_and_values_that_no_variable_can_have_are_refused_and_not_repeated() {
    let root = tempfile::tempdir().unwrap();
    let vault = open(root.path()).unwrap();
    let long = "N".repeat(256);
    for name in ["", "1A", "hunter2-in-the-wrong-place", "A B", "A=B", "Ä", "A\0", "A\n", &long] {
        let error = vault.set("c", name, secret("value")).unwrap_err();
        assert!(matches!(error, VaultError::BadName), "{name:?}");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
    for value in ["", "a\0b", &"x".repeat(64 * 1024 + 1)] {
        let error = vault.set("c", "NAME", secret(value)).unwrap_err();
        assert!(matches!(error, VaultError::BadValue { .. }), "{error}");
    }
    assert!(vault.get("c").unwrap().is_empty());
    vault.set("c", "NAME", secret(&"x".repeat(64 * 1024))).unwrap();
}

/// Does nothing unless it is started by another test: a process of its own that writes.
#[test]
fn helper_that_writes() {
    let Ok(root) = env::var("VAULT_TEST_ROOT") else { return };
    let writer = env::var("VAULT_TEST_WRITER").unwrap();
    let rounds = env::var("VAULT_TEST_ROUNDS").unwrap().parse::<u32>().unwrap();
    let vault = open(Path::new(&root)).unwrap();
    for round in 0..rounds {
        vault.set("shared", &format!("{writer}_{}", round % 25), secret(&format!("{writer}{round}"))).unwrap();
    }
}

fn start_writer(root: &Path, writer: &str, rounds: u32) -> Child {
    let mut command = Command::new("sh");
    // With nothing masked: what is private must be so by itself.
    command.args(["-c", "umask 0; exec \"$0\" --exact storing::helper_that_writes"]).arg(env::current_exe().unwrap());
    command.env("VAULT_TEST_ROOT", root).env("VAULT_TEST_WRITER", writer);
    command.env("VAULT_TEST_ROUNDS", rounds.to_string()).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn processes_that_store_different_names_at_once_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    // The first thing that they fight about is who makes the key.
    let mut writers = ["A", "B", "C"].map(|writer| start_writer(root.path(), writer, 25));
    for writer in &mut writers {
        assert!(writer.wait().unwrap().success());
    }
    let vault = open(root.path()).unwrap();
    assert_eq!(vault.names("shared").unwrap().len(), 75);
    assert!(files(root.path(), ".new").is_empty());
}

#[test]
fn threads_that_store_different_names_at_once_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let vault = open(root.path()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let vault = &vault;
            scope.spawn(move || {
                for n in 0..10 {
                    vault.set("shared", &format!("T{thread}_{n}"), secret("value")).unwrap();
                    assert!(!vault.names("shared").unwrap().is_empty(), "readers see whole files");
                }
            });
        }
    });
    assert_eq!(vault.names("shared").unwrap().len(), 40);
}

#[test]
fn a_writer_that_is_killed_leaves_the_old_or_the_new() {
    let root = tempfile::tempdir().unwrap();
    let vault = open(root.path()).unwrap();
    vault.set("shared", "KEPT", secret("kept")).unwrap();
    for round in 0..20 {
        let before = fs::read(sealed_file(root.path())).unwrap();
        let mut writer = start_writer(root.path(), "W", 100_000);
        while fs::read(sealed_file(root.path())).unwrap() == before {
            assert!(writer.try_wait().unwrap().is_none(), "it writes until it is killed");
        }
        std::thread::sleep(Duration::from_micros(700 * round));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let vault = open(root.path()).unwrap();
        let now = stored(&vault, "shared");
        assert!(now.contains(&("KEPT".to_owned(), "kept".to_owned())), "round {round}");
        assert!(files(root.path(), ".new").is_empty(), "round {round}");
    }
}

/// Does nothing unless it is started by another test, which lets it write nothing.
#[test]
fn helper_that_cannot_write() {
    let Ok(root) = env::var("VAULT_TEST_FULL_ROOT") else { return };
    let error = open(Path::new(&root)).unwrap().set("mail", "PASSWORD", secret("new")).unwrap_err();
    assert!(matches!(error, VaultError::Io { doing: "write", .. }), "{error}");
}

#[test]
fn a_write_that_fails_is_an_error_and_leaves_the_old_content() {
    let root = tempfile::tempdir().unwrap();
    let vault = open(root.path()).unwrap();
    vault.set("mail", "PASSWORD", secret("old")).unwrap();
    let mut command = Command::new("sh");
    // As on a full disk: files can be made, and hold nothing.
    let limit = "trap '' XFSZ; ulimit -f 0; exec \"$0\" --exact storing::helper_that_cannot_write";
    command.args(["-c", limit]).arg(env::current_exe().unwrap()).env("VAULT_TEST_FULL_ROOT", root.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    assert_eq!(stored(&vault, "mail"), pairs(&[("PASSWORD", "old")]));
    assert!(files(root.path(), ".new").is_empty());
}

#[test]
fn what_a_crash_left_before_the_rename_is_cleared_and_the_old_content_stays() {
    let root = tempfile::tempdir().unwrap();
    let vault = open(root.path()).unwrap();
    vault.set("mail", "PASSWORD", secret("old")).unwrap();
    let file = sealed_file(root.path());
    let beside = |ending: &str| format!("{}{ending}", file.display());
    let leave = || {
        fs::write(beside(".new"), "half of a fi").unwrap();
        fs::write(beside(".old"), "being removed").unwrap();
        fs::write(root.path().join("secrets/key.new"), "half of a key").unwrap();
    };
    leave();
    let vault = open(root.path()).unwrap();
    assert_eq!(stored(&vault, "mail"), pairs(&[("PASSWORD", "old")]));
    assert!(files(root.path(), ".new").is_empty() && files(root.path(), ".old").is_empty());
    // A vault that is open meanwhile is not in its own way.
    leave();
    vault.set("mail", "PASSWORD", secret("new")).unwrap();
    assert_eq!(stored(&vault, "mail"), pairs(&[("PASSWORD", "new")]));
}

#[test]
fn the_hash_of_credentials_is_stable_and_tells_accounts_apart() {
    let root = tempfile::tempdir().unwrap();
    let vault = open(root.path()).unwrap();
    let [a, b, ab, empty] = ["a", "b", "ab", ""].map(secret);
    let hash = vault.credential_hash("github", [&a, &b]);
    assert_eq!(hash.len(), 32);
    assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(hash, vault.credential_hash("github", [&b, &a]), "in any order");
    assert_eq!(hash, open(root.path()).unwrap().credential_hash("github", [&a, &b]), "after a restart");
    let others = [
        vault.credential_hash("gitlab", [&a, &b]),
        vault.credential_hash("github", [&a]),
        vault.credential_hash("github", [&ab]),
        vault.credential_hash("github", [&ab, &empty]),
        vault.credential_hash("githuba", [&b]),
        open(tempfile::tempdir().unwrap().path()).unwrap().credential_hash("github", [&a, &b]),
    ];
    for other in &others {
        assert_ne!(&hash, other);
    }
    assert_eq!(others.iter().collect::<std::collections::BTreeSet<_>>().len(), others.len());
}

#[test]
#[cfg(not(feature = "keyring"))]
fn without_a_keyring_the_key_is_in_a_file_and_that_is_said() {
    let root = tempfile::tempdir().unwrap();
    let vault = Vault::open(root.path()).unwrap();
    let file = root.path().join("secrets/key");
    assert_eq!(vault.key_place(), &KeyPlace::File(file.clone()));
    assert!(vault.key_place().to_string().contains(file.to_str().unwrap()));
    assert!(file.is_file());
}
