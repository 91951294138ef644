//! The rule for connectors of our own: whoever declares streams holds each record against its schema before it
//! leaves, or is on a list with a reason.
//!
//! Who is in the table of the program, or links the SDK, cannot do otherwise. Any other is judged by what it
//! does: it is run as it is, and again with schemas that none of its records fits. Whoever validates sends
//! nothing then. Nobody's source is read for it.

use super::all;
use gleaner_app::parse_manifest;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Connectors of ours that let records out without looking at them. It only ever gets shorter.
const SCHEMALESS: [Exempt; 0] = [];

/// One that may send what it likes for now.
#[derive(Clone, Copy)]
struct Exempt {
    name: &'static str,
    /// Why it does not validate yet.
    because: &'static str,
    /// What will change that.
    remedy: &'static str,
}

/// A connector of ours.
#[derive(Debug, PartialEq, Eq)]
struct Subject {
    name: String,
    streams: usize,
    validates: bool,
}

/// A field that no record has.
const UNHEARD_OF: &str = "gleaner:no-record-has-this";

/// All of ours: those in the program, and each of the templates, which are connectors, too.
fn ours() -> Vec<Subject> {
    let in_program = all().map(|known| {
        let streams = parse_manifest(known.manifest).unwrap().streams.len();
        Subject { name: known.name.to_owned(), streams, validates: true }
    });
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let folders = fs::read_dir(templates).unwrap().map(|entry| entry.unwrap().path());
    in_program.chain(folders.map(|folder| of_folder(&folder))).collect()
}

fn of_folder(folder: &Path) -> Subject {
    let manifest = fs::read_to_string(folder.join("manifest.json")).unwrap();
    let name = format!("template {}", folder.file_name().unwrap().to_string_lossy());
    let streams = parse_manifest(&manifest).unwrap().streams.len();
    let validates = streams > 0 && (links_the_sdk(folder) || validates(folder, &manifest));
    Subject { name, streams, validates }
}

/// Whether it is a crate on the SDK, which has no way around a schema.
fn links_the_sdk(folder: &Path) -> bool {
    let crate_text = fs::read_to_string(folder.join("Cargo.toml.template")).unwrap_or_default();
    let parsed = crate_text.parse::<toml::Table>().unwrap_or_default();
    parsed.get("dependencies").is_some_and(|all| all.get("gleaner-sdk").is_some())
}

/// Whether a program sends records that fit and none that do not. One that sends nothing at all has shown nothing.
fn validates(folder: &Path, manifest: &str) -> bool {
    let mut unfit = serde_json::from_str::<Value>(manifest).unwrap();
    for stream in unfit["streams"].as_array_mut().unwrap() {
        stream["schema"]["required"] = json!([UNHEARD_OF]);
    }
    records_sent(folder, manifest) > 0 && records_sent(folder, &unfit.to_string()) == 0
}

/// How many records a program sends when this is its manifest.
fn records_sent(folder: &Path, manifest: &str) -> usize {
    let place = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let from = entry.unwrap().path();
        if from.is_file() {
            fs::copy(&from, place.path().join(from.file_name().unwrap())).unwrap();
        }
    }
    fs::write(place.path().join("manifest.json"), manifest).unwrap();
    let parsed = parse_manifest(manifest).unwrap();
    let streams = parsed.streams.iter().map(|stream| json!({"name": stream.name})).collect::<Vec<_>>();
    let start = json!({
        "type": "START", "run_id": "r", "collection_mode": "full_refresh", "state": null, "detail_gaps": [],
        "scope": {"streams": streams}, "bindings": {"network": {}},
    });
    let mut command = Command::new("python3");
    command.arg("connector.py").current_dir(place.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let credentials = parsed.auth.iter().flat_map(|auth| &auth.required).flatten();
    command.envs(credentials.map(|name| (name, "anything")));
    let mut child = command.spawn().unwrap();
    // The end of its input comes with the end of this line.
    writeln!(child.stdin.take().unwrap(), "{start}").unwrap();
    let output = child.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let is_record = |line: &&str| serde_json::from_str::<Value>(line).is_ok_and(|line| line["type"] == "RECORD");
    lines.lines().filter(is_record).count()
}

/// What is wrong with these, and with the list. Nothing, if all is well.
fn faults(subjects: &[Subject], list: &[Exempt]) -> Vec<String> {
    let mut faults = Vec::new();
    for Subject { name, streams, validates } in subjects {
        let exempt = list.iter().find(|exempt| exempt.name == name);
        match (*streams > 0 && !validates, exempt) {
            (false, None) => {}
            (false, Some(_)) => faults.push(format!("{name} needs no entry in SCHEMALESS any more; remove it")),
            (true, None) => faults.push(format!(
                "{name} sends records without holding them against their schemas: write it with gleaner_sdk, \
                 or add it to SCHEMALESS with a reason"
            )),
            (true, Some(Exempt { because, remedy, .. })) if because.trim().is_empty() || remedy.trim().is_empty() => {
                faults
                    .push(format!("the entry of {name} must say why it does not validate, and what will change that"));
            }
            (true, Some(_)) => {}
        }
    }
    let is_known = |exempt: &&Exempt| subjects.iter().any(|subject| subject.name == exempt.name);
    let unknown = list.iter().filter(|exempt| !is_known(exempt));
    faults.extend(unknown.map(|exempt| format!("SCHEMALESS names {}, which is no connector of ours", exempt.name)));
    faults
}

#[test]
fn every_connector_of_ours_validates_what_it_sends_or_is_on_the_list_with_a_reason() {
    let ours = ours();
    assert_eq!(faults(&ours, &SCHEMALESS), Vec::<String>::new());
    let names = ours.iter().map(|subject| subject.name.as_str()).collect::<Vec<_>>();
    assert!(["demo", "template python", "template rust"].iter().all(|name| names.contains(name)), "{names:?}");
}

/// A program that sends a record, if this says so.
fn program(streams: &str, sends: &str) -> Subject {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("theirs");
    fs::create_dir(&folder).unwrap();
    let manifest = format!(r#"{{"connector_id":"t","connector_key":"t","version":"1","streams":{streams}}}"#);
    fs::write(folder.join("manifest.json"), manifest).unwrap();
    let program = format!(
        "import json, sys\nsys.stdin.readline()\nschema = json.load(open('manifest.json'))['streams'][0]['schema']\n\
         note = {{'id': 'a'}}\nif {sends}: print(json.dumps({{'type': 'RECORD', 'stream': 'notes', 'key': 'a', 'data': note}}))"
    );
    fs::write(folder.join("connector.py"), program).unwrap();
    of_folder(&folder)
}

const NOTES: &str = r#"[{"name":"notes","semantics":"append_only","schema":{"type":"object","required":["id"]}}]"#;
const LOOKS: &str = "all(name in note for name in schema['required'])";
const ENTRY: Exempt =
    Exempt { name: "template theirs", because: "its service has no fixed fields", remedy: "a schema per account" };

#[test]
fn a_connector_declares_manifest_streams_and_wires_validation() {
    let careful = program(NOTES, LOOKS);
    assert_eq!(careful, Subject { name: "template theirs".to_owned(), streams: 1, validates: true });
    assert_eq!(faults(&[careful], &[]), Vec::<String>::new());
}

#[test]
fn a_new_connector_declares_streams_but_omits_validation() {
    // One that looks at nothing, and one of which nothing was seen.
    for sends in ["True", "False"] {
        let careless = program(NOTES, sends);
        assert!(!careless.validates);
        let faults = faults(&[careless], &[]);
        assert_eq!(faults.len(), 1);
        for part in ["template theirs", "gleaner_sdk", "SCHEMALESS"] {
            assert!(faults[0].contains(part), "{faults:?}");
        }
    }
}

#[test]
fn an_allowlisted_connector_adds_validation_later() {
    assert_eq!(faults(&[program(NOTES, "True")], &[ENTRY]), Vec::<String>::new(), "as long as it does not");
    let now = faults(&[program(NOTES, LOOKS)], &[ENTRY]);
    assert!(now.len() == 1 && now[0].contains("template theirs needs no entry"), "{now:?}");
    let gone = faults(&[], &[ENTRY]);
    assert!(gone.len() == 1 && gone[0].contains("no connector of ours"), "{gone:?}");
}

#[test]
fn a_connector_declares_no_streams() {
    let empty = || Subject { name: "template theirs".to_owned(), streams: 0, validates: false };
    assert_eq!(faults(&[empty()], &[]), Vec::<String>::new());
    assert_eq!(faults(&[empty()], &[ENTRY]).len(), 1, "it must not be on the list either");
}

#[test]
fn the_schemaless_allowlist_carries_justifications() {
    for entry in [Exempt { because: " ", ..ENTRY }, Exempt { remedy: "", ..ENTRY }] {
        let faults = faults(&[program(NOTES, "True")], &[entry]);
        assert!(faults.len() == 1 && faults[0].contains("must say why"), "{faults:?}");
    }
}
