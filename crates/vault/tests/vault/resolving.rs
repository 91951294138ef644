//! Where credentials are looked for, in which order, and what is an error.

use crate::support::{open, sealed_file, secret};
use gleaner_protocol::Auth;
use gleaner_vault::{FileFault, Resolution, ResolveError, Source, ValueFault, Vault, resolve};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

struct Place {
    root: TempDir,
    vault: Vault,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let vault = open(root.path()).unwrap();
        Self { root, vault }
    }

    fn resolve(&self, required: &[&[&str]], environment: &[(&str, &str)]) -> Result<Resolution, ResolveError> {
        let lookup =
            |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        resolve(&auth(required), "mail", &self.vault, &lookup)
    }

    /// The only credential that is found.
    fn one(&self, required: &[&[&str]], environment: &[(&str, &str)]) -> (String, String, Source) {
        let mut found = self.resolve(required, environment).unwrap().found;
        assert_eq!(found.len(), 1);
        let found = found.remove(0);
        (found.name, found.secret.expose().to_owned(), found.source)
    }

    fn file(&self, content: &[u8], mode: u32) -> String {
        let path = self.root.path().join("credential");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn auth(required: &[&[&str]]) -> Auth {
    let group = |group: &&[&str]| group.iter().map(|&name| name.to_owned()).collect();
    Auth { required: required.iter().map(group).collect(), optional: Vec::new() }
}

const TOKEN: &[&[&str]] = &[&["TOKEN"]];

#[test]
fn the_environment_comes_before_files_before_commands_before_the_vault() {
    let place = Place::new();
    let path = place.file(b"of file", 0o600);
    place.vault.set("mail", "TOKEN", secret("of vault")).unwrap();
    place.vault.set("other", "TOKEN", secret("of another connection")).unwrap();
    let variable = ("TOKEN", "of variable");
    let file = ("TOKEN_FILE", path.as_str());
    let command = ("TOKEN_COMMAND", "echo of command");
    let of_file = Source::File { variable: "TOKEN_FILE".to_owned(), path: Path::new(&path).to_owned(), exposed: false };
    let of_command = Source::Command { variable: "TOKEN_COMMAND".to_owned() };
    let (no_variable, no_file, no_command) = (("TOKEN", ""), ("TOKEN_FILE", ""), ("TOKEN_COMMAND", ""));
    for (environment, value, source) in [
        (vec![command, file, variable], "of variable", &Source::Environment),
        (vec![command, file], "of file", &of_file),
        (vec![command], "of command", &of_command),
        (vec![], "of vault", &Source::Vault),
        // An empty value counts as absent.
        (vec![command, file, no_variable], "of file", &of_file),
        (vec![command, no_file, no_variable], "of command", &of_command),
        (vec![no_command, no_file, no_variable], "of vault", &Source::Vault),
        (vec![("TOKEN_FILE", "/dev/null-is-not-read"), variable], "of variable", &Source::Environment),
    ] {
        let expected = ("TOKEN".to_owned(), value.to_owned(), source.clone());
        assert_eq!(place.one(TOKEN, &environment), expected, "{environment:?}");
    }
}

#[test]
fn a_command_is_not_run_for_a_value_that_is_there_already() {
    let place = Place::new();
    let mark = place.root.path().join("was-run");
    let command = format!("touch '{}'; echo of command", mark.display());
    place.one(TOKEN, &[("TOKEN", "value"), ("TOKEN_COMMAND", &command)]);
    assert!(!mark.exists());
    place.one(TOKEN, &[("TOKEN_COMMAND", &command)]);
    assert!(mark.exists());
}

#[test]
fn a_source_that_gives_an_empty_text_is_passed_over() {
    let place = Place::new();
    let file = place.file(b"\n", 0o600);
    let environment = [("TOKEN_FILE", file.as_str()), ("TOKEN_COMMAND", "echo")];
    assert_eq!(place.resolve(TOKEN, &environment).unwrap().missing, [["TOKEN"]]);
    place.vault.set("mail", "TOKEN", secret("of vault")).unwrap();
    assert_eq!(place.one(TOKEN, &environment).2, Source::Vault);
}

#[test]
fn of_several_names_one_is_enough_and_what_is_missing_is_said() {
    let place = Place::new();
    place.vault.set("mail", "A", secret("stored a")).unwrap();
    place.vault.set("mail", "D", secret("stored d")).unwrap();
    let required: &[&[&str]] = &[&["A", "B"], &["C", "D"], &["E", "F"], &["G"], &["D"]];
    let resolution = place.resolve(required, &[("B", "given b"), ("F_COMMAND", "echo given f")]).unwrap();
    let found = resolution.found.iter().map(|found| (found.name.as_str(), found.secret.expose(), &found.source));
    let of_command = Source::Command { variable: "F_COMMAND".to_owned() };
    let expected = [
        // A value for this run comes before a stored one, under either name.
        ("B", "given b", &Source::Environment),
        ("D", "stored d", &Source::Vault),
        ("F", "given f", &of_command),
        ("D", "stored d", &Source::Vault),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(resolution.missing, [["G"]]);
    assert_eq!(place.one(&[&["B", "A"]], &[("A", "first"), ("B", "second")]).0, "B", "in the manifest's order");
}

#[test]
fn a_name_that_the_manifest_declares_is_only_a_name() {
    let place = Place::new();
    let path = place.file(b"content", 0o600);
    let required: &[&[&str]] = &[&["TOKEN"], &["TOKEN_FILE"], &["TOKEN_COMMAND"]];
    let resolution = place.resolve(required, &[("TOKEN_FILE", &path), ("TOKEN_COMMAND", "echo no")]).unwrap();
    assert_eq!(resolution.missing, [["TOKEN"]]);
    assert_eq!(resolution.found[0].secret.expose(), path);
    assert_eq!(resolution.found[1].secret.expose(), "echo no");
}

#[test]
fn one_line_end_of_a_file_is_no_part_of_the_secret() {
    let place = Place::new();
    for (content, expected) in [
        ("value", "value"),
        ("value\n", "value"),
        ("value\r\n", "value"),
        ("value\n\n", "value\n"),
        ("value\r", "value\r"),
        (" a\nb ", " a\nb "),
    ] {
        let file = place.file(content.as_bytes(), 0o600);
        assert_eq!(place.one(TOKEN, &[("TOKEN_FILE", &file)]).1, expected, "{content:?}");
    }
    let most = "x".repeat(64 * 1024);
    let file = place.file(format!("{most}\n").as_bytes(), 0o600);
    assert_eq!(place.one(TOKEN, &[("TOKEN_FILE", &file)]).1, most);
}

#[test]
fn a_file_that_others_may_read_is_used_and_warned_about() {
    let place = Place::new();
    for (mode, exposed) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true), (0o444, true)] {
        let file = place.file(b"value", mode);
        let (_, value, source) = place.one(TOKEN, &[("TOKEN_FILE", &file)]);
        assert_eq!(value, "value");
        assert_eq!(source.warning().is_some(), exposed, "{mode:o}");
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_file_that_gives_no_secret_is_an_error_even_if_one_is_stored() {
    let place = Place::new();
    place.vault.set("mail", "TOKEN", secret("of vault")).unwrap();
    let fault = |path: &str| match place.resolve(TOKEN, &[("TOKEN_FILE", path)]) {
        Err(ResolveError::File { variable, fault }) if variable == "TOKEN_FILE" => fault,
        other => panic!("{other:?}"),
    };
    let value_of = |content: &[u8]| match fault(&place.file(content, 0o600)) {
        FileFault::Value { fault, .. } => fault,
        other => panic!("{other:?}"),
    };
    assert_eq!(value_of(&[b'x'; 64 * 1024 + 1]), ValueFault::TooLong);
    assert_eq!(value_of(&[b'x'; 10_000_000]), ValueFault::TooLong);
    assert_eq!(value_of(b"\xff"), ValueFault::NotText);
    assert_eq!(value_of(b"a\0b"), ValueFault::HoldsNul);
    assert!(matches!(fault(place.root.path().to_str().unwrap()), FileFault::NotAFile { .. }));
    assert!(matches!(fault("/dev/zero"), FileFault::NotAFile { .. }));
    let pipe = place.root.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(matches!(fault(pipe.to_str().unwrap()), FileFault::NotAFile { .. }));
    // Somebody put the secret where its file belongs.
    for mistaken in ["hunter2-itself", &"hunter2".repeat(1000)] {
        let missing = fault(mistaken);
        assert!(matches!(missing, FileFault::Missing), "{missing}");
        assert!(!format!("{missing} {missing:?}").contains("hunter2"));
    }
}

#[test]
fn a_command_that_fails_is_an_error_even_if_a_secret_is_stored() {
    let place = Place::new();
    place.vault.set("mail", "TOKEN", secret("stored-secret")).unwrap();
    let required: &[&[&str]] = &[&["FIRST"], &["TOKEN"]];
    let fail = |command: &str| {
        let environment = [("FIRST", "first-secret"), ("TOKEN_COMMAND", command)];
        let error = place.resolve(required, &environment).unwrap_err();
        format!("{error} {error:?}")
    };
    assert!(fail("echo is locked >&2; exit 2").contains("is locked"));
    for known in ["stored-secret", "first-secret"] {
        let error = fail(&format!("echo bad {known} >&2; exit 2"));
        assert!(error.contains("exit code 2") && !error.contains(known), "{error}");
    }
    assert!(fail("no-such-program-here").contains("127"));
    assert!(!fail("echo printed-value; exit 1").contains("printed-value"));
    assert!(fail("head -c 1000000000 /dev/zero").contains("64 KiB"));
    assert!(fail("printf '\\377'").contains("UTF-8"));
}

#[test]
fn a_variable_that_is_no_text_is_an_error() {
    let place = Place::new();
    let lookup = |name: &str| (name == "TOKEN").then(|| OsString::from_vec(vec![b'a', 0xff]));
    let error = resolve(&auth(TOKEN), "mail", &place.vault, &lookup).unwrap_err();
    assert!(matches!(error, ResolveError::Value { fault: ValueFault::NotText, .. }), "{error}");
}

#[test]
fn a_vault_that_cannot_be_read_matters_only_if_it_is_needed() {
    let place = Place::new();
    place.vault.set("mail", "TOKEN", secret("of vault")).unwrap();
    fs::write(sealed_file(place.root.path()), "damaged").unwrap();
    assert_eq!(place.one(TOKEN, &[("TOKEN", "given")]).1, "given");
    assert!(matches!(place.resolve(TOKEN, &[]), Err(ResolveError::Vault(_))));
}

#[test]
fn what_a_connector_can_do_without_is_found_where_it_is_and_never_missing() {
    let place = Place::new();
    let auth = Auth { required: Vec::new(), optional: vec!["PIN".to_owned(), "PHRASE".to_owned()] };
    place.vault.set("mail", "PIN", secret("of vault")).unwrap();
    let found = |environment: &[(&str, &str)]| {
        let lookup =
            |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        let resolution = resolve(&auth, "mail", &place.vault, &lookup).unwrap();
        assert_eq!(resolution.missing, Vec::<Vec<String>>::new());
        resolution.found.iter().map(|found| format!("{}={}", found.name, found.secret.expose())).collect::<Vec<_>>()
    };
    assert_eq!(found(&[]), ["PIN=of vault"]);
    assert_eq!(
        found(&[("PIN", "of variable"), ("PHRASE_COMMAND", "echo of command")]),
        ["PIN=of variable", "PHRASE=of command",]
    );
}
