//! A secret that is easy to recognise goes through everything and is then looked for everywhere: in
//! every file under the data root, and in what every type and error says of itself.

use crate::support::{files, open, sealed_file, secret};
use base64::Engine as _;
use gleaner_protocol::Auth;
use gleaner_vault::resolve;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Holds what each encoding writes differently.
const CANARY: &str = "c4nary \"s/ecret\"+ü-0123456789";

/// The canary as programs write it. Of base64 what does not depend on where it begins.
fn forms() -> Vec<Vec<u8>> {
    let bytes = CANARY.as_bytes();
    let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let url = bytes
        .iter()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(*byte).to_string() } else { format!("%{byte:02X}") });
    let json = CANARY.replace('"', "\\\"");
    let mut forms = vec![CANARY.to_owned(), hex.clone(), hex.to_uppercase(), url.collect(), json];
    forms.extend((0..3).map(|lead| base64(&[&vec![0; lead], bytes].concat())[4..36].to_owned()));
    // Also a part gives it away.
    forms.extend(["c4nary".to_owned(), "0123456789".to_owned()]);
    let utf16 = CANARY.encode_utf16().flat_map(u16::to_le_bytes).collect();
    forms.into_iter().map(String::into_bytes).chain([utf16]).collect()
}

fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn reveals(bytes: &[u8]) -> bool {
    forms().iter().any(|form| bytes.windows(form.len()).any(|window| window == form))
}

fn check_tree(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(!reveals(path.to_str().unwrap().as_bytes()), "{}", path.display());
        if path.is_dir() {
            check_tree(&path);
        } else {
            assert!(!reveals(&fs::read(&path).unwrap()), "{}", path.display());
        }
    }
}

#[test]
fn the_search_finds_what_it_looks_for() {
    assert_eq!(base64(b"foob"), "Zm9vYg==");
    for form in forms() {
        assert!(reveals(&[b"before ".as_slice(), &form, b" after"].concat()));
    }
    for lead in ["", "u", "us", "user:"] {
        assert!(reveals(base64(format!("{lead}{CANARY} and more").as_bytes()).as_bytes()), "{lead}");
    }
    assert!(!reveals(b"nothing of it"));
}

#[test]
fn a_secret_is_in_no_file_and_in_no_text() {
    let root = tempfile::tempdir().unwrap();
    let vault = open(root.path()).unwrap();
    let mut said = Vec::new();
    for connection in ["one", "two"] {
        vault.set(connection, "TOKEN", secret(CANARY)).unwrap();
        vault.set(connection, "OTHER", secret(&format!("x{CANARY}x"))).unwrap();
        check_tree(root.path());
    }
    said.push(format!("{:?} {:?} {:?}", vault, vault.get("one").unwrap(), vault.names("one").unwrap()));
    said.push(format!("{} {0:?}", vault.key_place()));
    said.push(vault.credential_hash("p", [&secret(CANARY)]));

    // Every way of going wrong that has the secret at hand.
    said.push(format!("{0} {0:?}", vault.set("one", CANARY, secret(CANARY)).unwrap_err()));
    said.push(format!("{0} {0:?}", vault.set("one", "TOKEN", secret(&format!("{CANARY}\0"))).unwrap_err()));
    said.push(format!("{0} {0:?}", vault.set("one", "T", secret(&CANARY.repeat(4000))).unwrap_err()));
    let auth = Auth { required: vec![vec!["TOKEN".to_owned()]], optional: Vec::new() };
    let failing = format!("echo '{CANARY}'; echo '{CANARY}' >&2; exit 1");
    let binary = format!("echo '{CANARY}'; printf '\\377'");
    for (variable, value) in
        [("TOKEN_FILE", CANARY), ("TOKEN_COMMAND", failing.as_str()), ("TOKEN_COMMAND", binary.as_str())]
    {
        let lookup = |name: &str| (name == variable).then(|| OsString::from(value));
        let error = resolve(&auth, "none", &vault, &lookup).unwrap_err();
        said.push(format!("{error} {error:?}"));
    }
    let found = resolve(&auth, "one", &vault, &|_| None).unwrap();
    assert_eq!(found.found[0].secret.expose(), CANARY);
    said.push(format!("{found:?} {}", found.found[0].source));
    let given = resolve(&auth, "one", &vault, &|name| (name == "TOKEN").then(|| OsString::from(CANARY))).unwrap();
    said.push(format!("{given:?} {}", given.found[0].source));

    let key = fs::read_to_string(root.path().join("secrets/key")).unwrap();
    let key = key.trim().rsplit(' ').next().unwrap();
    vault.remove("two").unwrap();
    let mut bytes = fs::read(sealed_file(root.path())).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(sealed_file(root.path()), &bytes).unwrap();
    said.push(format!("{0} {0:?}", vault.get("one").unwrap_err()));
    check_tree(root.path());
    assert!(files(root.path(), ".new").is_empty());
    for said in said {
        assert!(!reveals(said.as_bytes()), "{said}");
        assert!(!said.contains(key), "{said}");
    }
}
