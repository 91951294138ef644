//! Crates depend downwards, and pure crates do no IO: both are read from `cargo metadata`.
//!
//! Why here: this crate is the lowest one, so the test compiles in seconds. A new crate needs a row in [`LAYERS`].

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Every crate of the workspace, from the bottom up. A crate depends on crates of lower rows only.
const LAYERS: [(&[&str], &str); 12] = [
    (&["gleaner-base"], "what crates with IO share"),
    (&["gleaner-governor", "gleaner-protocol"], "pure: when a request may be sent; what connector and runtime say"),
    (&["gleaner-engine", "gleaner-lab"], "pure: what a run means; simulated providers"),
    (&["gleaner-schedule"], "pure: when which connection runs"),
    (&["gleaner-http", "gleaner-store", "gleaner-vault"], "one kind of IO each"),
    (&["gleaner-runtime", "gleaner-egress", "gleaner-fetch", "gleaner-sdk"], "processes and programs around them"),
    (&["gleaner-browser", "gleaner-conformance"], "what connectors use beside the SDK; what checks connectors"),
    (&["gleaner-connectors"], "the connectors that come with the program"),
    (&["gleaner-app"], "what an owner can do"),
    (&["gleaner-console"], "pages and API over the application"),
    (&["gleaner"], "the program"),
    (&["gleaner-test-support"], "what tests share: nothing that is shipped depends on it"),
];

/// These decide and never act: time, randomness and bytes are arguments. The lab reads scenario files, with `std`.
const PURE: [&str; 5] = ["gleaner-governor", "gleaner-lab", "gleaner-protocol", "gleaner-engine", "gleaner-schedule"];

/// Crates that do IO. One of them below a pure crate, at whatever depth, is a fault. Not listed is `libc`, which
/// `jsonschema` needs for the keys of its hash maps.
const IO: [&str; 21] = [
    "async-std",
    "gleaner-base",
    "hyper",
    "keyring",
    "libsqlite3-sys",
    "memmap2",
    "mio",
    "nix",
    "notify",
    "polling",
    "postgres",
    "reqwest",
    "rusqlite",
    "rustix",
    "rustls",
    "smol",
    "socket2",
    "tempfile",
    "tokio",
    "tokio-postgres",
    "ureq",
];

/// For each crate, the crates that it needs when it is shipped: no edges of tests and build scripts.
type Graph = BTreeMap<String, BTreeSet<String>>;

fn graph() -> Graph {
    let compiler = Command::new("rustc").arg("-vV").output().unwrap();
    let compiler = String::from_utf8(compiler.stdout).unwrap();
    let host = compiler.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let told = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform", host, "--manifest-path", root])
        .output()
        .unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    graph_of(&serde_json::from_slice(&told.stdout).unwrap())
}

fn graph_of(metadata: &Value) -> Graph {
    let list = |value: &Value| value.as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let names: BTreeMap<_, _> =
        list(&metadata["packages"]).iter().map(|p| (text(&p["id"]), text(&p["name"]))).collect();
    let mut graph = Graph::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        // Two versions of one crate are one row: nothing here depends on versions.
        let needs = graph.entry(names[&text(&node["id"])].clone()).or_default();
        for edge in list(&node["deps"]) {
            if list(&edge["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()) {
                needs.insert(names[&text(&edge["pkg"])].clone());
            }
        }
    }
    graph
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|(crates, _)| crates.contains(&name))
}

fn is_ours(name: &str) -> bool {
    name == "gleaner" || name.starts_with("gleaner-")
}

/// Edges that do not lead downwards, and crates without a layer.
fn upward_edges(graph: &Graph) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, needs) in graph.iter().filter(|(name, _)| is_ours(name)) {
        let Some(rank) = layer(name) else {
            faults.push(format!("{name} has no layer"));
            continue;
        };
        let upward = needs.iter().filter(|needed| is_ours(needed) && layer(needed) >= Some(rank));
        faults.extend(upward.map(|needed| format!("{name} depends on {needed}, which is not below it")));
    }
    faults
}

/// IO below pure crates.
fn impure_edges(graph: &Graph) -> Vec<String> {
    let mut faults = Vec::new();
    for name in PURE {
        let mut below = BTreeSet::new();
        let mut next = vec![name];
        while let Some(name) = next.pop() {
            let needs = graph.get(name).into_iter().flatten().map(String::as_str);
            next.extend(needs.filter(|needed| below.insert(*needed)));
        }
        faults.extend(IO.iter().filter(|io| below.contains(*io)).map(|io| format!("{name} is pure and needs {io}")));
    }
    faults
}

#[test]
fn crates_depend_downwards() {
    let graph = graph();
    assert!(graph.len() > 100 && PURE.iter().all(|name| graph.contains_key(*name)), "{} crates", graph.len());
    assert_eq!(upward_edges(&graph), [""; 0]);
}

#[test]
fn pure_crates_do_no_io() {
    assert_eq!(impure_edges(&graph()), [""; 0]);
}

#[test]
fn an_edge_that_is_wrong_is_found() {
    let sound = graph();
    let with = |name: &str, needed: &str| {
        let mut graph = sound.clone();
        graph.entry(name.to_owned()).or_default().insert(needed.to_owned());
        graph
    };
    for (name, needed) in [
        ("gleaner-engine", "gleaner-store"),
        ("gleaner-store", "gleaner-http"),
        ("gleaner-store", "gleaner-test-support"),
        ("gleaner-base", "gleaner-protocol"),
        ("gleaner-console", "gleaner"),
    ] {
        assert_ne!(upward_edges(&with(name, needed)), [""; 0], "{name} -> {needed}");
    }
    assert_eq!(upward_edges(&with("gleaner-new", "gleaner-base")), ["gleaner-new has no layer"]);
    for (name, needed) in [("gleaner-lab", "tokio"), ("gleaner-governor", "gleaner-base"), ("serde_json", "mio")] {
        assert_ne!(impure_edges(&with(name, needed)), [""; 0], "{name} -> {needed}");
    }
}
