//! The documents are true: every command, option, environment variable, exit code, connector and file that they name
//! exists, and each of the first five that exists is documented.
//!
//! What exists comes from the program itself (`--help`), from string literals in the source, and from the manifests of
//! the connectors. `docs/commands.md` is written by this test: `GLEANER_WRITE_DOCS=1` writes it anew. To check another kind
//! of name (keys of the configuration, metrics, paths of the API), add a function to [`CHECKS`].

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod exists;
mod named;
mod words;

use exists::Exists;
use named::Named;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A page, and what it says.
#[derive(Debug)]
struct Page {
    name: String,
    text: String,
}

/// What is wrong, as one line each.
type Faults = Vec<String>;

/// Each compares what pages name with what exists.
const CHECKS: [fn(&[Page], &Exists) -> Faults; 6] = [commands, options, variables, exit_codes, connectors, paths];

/// Options of other programs that pages show.
const OTHER_OPTIONS: [(&str, &str); 16] = [
    ("--release", "of cargo"),
    ("--path", "of cargo"),
    ("--workspace", "of cargo"),
    ("--all-features", "of cargo"),
    ("--all-targets", "of cargo"),
    ("--check", "of cargo"),
    ("--test", "of cargo"),
    ("--locked", "of cargo"),
    ("--all", "of scripts/test"),
    ("--from", "of install.sh"),
    ("--prefix", "of install.sh"),
    ("--uninstall", "of install.sh"),
    ("--now", "of systemctl"),
    ("--user", "of systemctl and journalctl"),
    ("--stop-timeout", "of podman"),
    ("--help", "of every command; it does not list itself"),
];

/// Names that are in the source and are nobody's to set.
const UNDOCUMENTED_VARIABLES: [(&str, &str); 1] = [("GLEANER_BROWSER_START", "between two processes of ours")];

/// Connections in examples: names that an owner gave, and words that stand for one.
const EXAMPLE_CONNECTIONS: [&str; 9] =
    ["git", "shop", "mail", "notes", "my-notes", "my-shop", "NAME", "bank", "example"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<Page> {
    let mut paths = Vec::new();
    for folder in ["", "docs", "docs/connectors", "docs/decisions"] {
        let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        paths.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    // A changelog tells of what is gone.
    paths.retain(|path| !path.ends_with("CHANGELOG.md"));
    paths.sort();
    let page = |path: &PathBuf| {
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        Page { name, text: fs::read_to_string(path).unwrap() }
    };
    paths.iter().map(page).collect()
}

fn all_faults(pages: &[Page], exists: &Exists) -> Faults {
    CHECKS.iter().flat_map(|check| check(pages, exists)).collect()
}

/// `gleaner WORD …` names a command, with options that it has; and each command is named.
fn commands(pages: &[Page], exists: &Exists) -> Faults {
    let (mut faults, mut seen) = (Faults::new(), BTreeSet::new());
    for page in pages {
        for named in Named::commands(&page.text) {
            let Some(path) = exists.command(&named.words) else {
                faults.push(format!("{}: there is no command `gleaner {}`", page.name, named.words.join(" ")));
                continue;
            };
            for option in &named.options {
                if !exists.has_option(&path, option) {
                    faults.push(format!("{}: `gleaner {path}` has no option {option}", page.name));
                }
            }
            seen.insert(path);
        }
    }
    let unseen = exists.paths().filter(|path| !seen.contains(*path));
    faults.extend(unseen.map(|path| format!("no page names `gleaner {path}`")));
    faults
}

/// An option that stands alone is one of some command; and each option is named.
fn options(pages: &[Page], exists: &Exists) -> Faults {
    let (mut faults, mut seen) = (Faults::new(), BTreeSet::new());
    let is_other = |option: &str| OTHER_OPTIONS.iter().any(|(name, _)| *name == option);
    for page in pages {
        for option in Named::options(&page.text) {
            if !exists.has_option_anywhere(&option) && !is_other(&option) {
                faults.push(format!("{}: no command has an option {option}", page.name));
            }
            seen.insert(option);
        }
    }
    let unseen = exists.options().filter(|option| !seen.contains(*option));
    faults.extend(unseen.map(|option| format!("no page names the option {option}")));
    faults
}

/// Variables of ours are in the source, or in the manifest of a connector; and each of them is named.
fn variables(pages: &[Page], exists: &Exists) -> Faults {
    let (mut faults, mut seen) = (Faults::new(), BTreeSet::new());
    for page in pages {
        for name in Named::variables(&page.text) {
            if !exists.has_variable(&name) {
                faults.push(format!("{}: nothing reads the variable {name}", page.name));
            }
            seen.insert(name);
        }
    }
    let is_excused = |name: &str| UNDOCUMENTED_VARIABLES.iter().any(|(known, _)| *known == name);
    let unseen = exists.variables.iter().filter(|name| !seen.contains(*name) && !is_excused(name));
    faults.extend(unseen.map(|name| format!("no page names the variable {name}")));
    let texts = pages.iter().map(|page| page.text.as_str()).collect::<Vec<_>>();
    let unseen = exists.settings.iter().filter(|name| !texts.iter().any(|text| text.contains(*name)));
    faults.extend(unseen.map(|name| format!("no page names the setting {name} of a connector")));
    faults
}

/// "exit 3" is a code of the program's; and each code is explained.
fn exit_codes(pages: &[Page], exists: &Exists) -> Faults {
    let mut faults = Faults::new();
    for page in pages {
        for code in Named::exit_codes(&page.text).into_iter().filter(|code| !exists.exit_codes.contains_key(code)) {
            faults.push(format!("{}: no command exits with {code}", page.name));
        }
    }
    let table = pages.iter().find(|page| page.name == "docs/commands.md").map_or("", |page| &page.text);
    let unseen = exists.exit_codes.keys().filter(|code| !table.contains(&format!("\n| {code} | ")));
    faults.extend(unseen.map(|code| format!("docs/commands.md does not explain exit code {code}")));
    let unsaid = exists.exit_codes.iter().filter(|(_, what)| what.is_empty());
    faults.extend(unsaid.map(|(code, _)| format!("`gleaner help exit-codes` does not explain exit code {code}")));
    faults
}

/// A connector that is added or run in an example comes with the program; and each has a page.
fn connectors(pages: &[Page], exists: &Exists) -> Faults {
    let mut faults = Faults::new();
    for page in pages {
        for named in Named::commands(&page.text) {
            let [command, rest @ ..] = named.words.as_slice() else { continue };
            let is_one = matches!(command.as_str(), "add" | "run" | "connector");
            let Some(name) = rest.first().filter(|_| is_one) else { continue };
            let is_known = exists.connectors.contains(name) || EXAMPLE_CONNECTIONS.contains(&name.as_str());
            // The path of a manifest is no name.
            if !is_known && !name.contains(['/', '.']) {
                faults.push(format!("{}: there is no connector {name:?}", page.name));
            }
        }
        let file = page.name.strip_prefix("docs/connectors/").and_then(|name| name.strip_suffix(".md"));
        if file.is_some_and(|name| name != "README" && !exists.connectors.contains(name)) {
            faults.push(format!("{}: there is no such connector", page.name));
        }
    }
    let has_page = |name: &&String| !pages.iter().any(|page| page.name == format!("docs/connectors/{name}.md"));
    faults.extend(exists.connectors.iter().filter(has_page).map(|name| format!("no page explains {name}")));
    faults
}

/// A link leads to a file, and so does a path of the tree in code.
fn paths(pages: &[Page], _exists: &Exists) -> Faults {
    let mut faults = Faults::new();
    for page in pages {
        let folder = root().join(&page.name).parent().unwrap().to_path_buf();
        let links = Named::links(&page.text).into_iter().map(|link| (folder.join(&link), link));
        let named = Named::paths(&page.text).into_iter().map(|path| (root().join(&path), path));
        let absent = links.chain(named).filter(|(path, _)| !path.exists());
        faults.extend(absent.map(|(_, named)| format!("{}: there is no file {named}", page.name)));
    }
    faults
}

#[test]
fn the_documents_name_what_exists_and_what_exists_is_documented() {
    let faults = all_faults(&pages(), &Exists::look());
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// The map of a crate's files: what its `lib.rs` (or `main.rs`) lists under `# Files` exists, and everything that lies
/// directly in `src` is on it.
fn map_faults(source: &Path) -> Faults {
    let root_file = ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|path| path.exists()).unwrap();
    let text = fs::read_to_string(&root_file).unwrap();
    let list = text.split("//! # Files\n").nth(1).unwrap_or_default();
    let lines =
        list.lines().take_while(|line| line.starts_with("//!")).map(|line| line.trim_start_matches("//!").trim());
    let items = lines.collect::<Vec<_>>().join(" ");
    let heads = items.split("- `").skip(1).filter_map(|item| item.split("`: ").next());
    let named = heads.flat_map(|head| head.split("`, `")).collect::<Vec<_>>();
    let absent = named.iter().filter(|name| !source.join(name).exists());
    let mut faults = absent.map(|name| format!("{}: there is no {name}", root_file.display())).collect::<Faults>();
    let entries = fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path());
    let stems = entries.filter(|path| *path != root_file).map(|path| path.file_stem().unwrap().to_owned());
    for stem in stems.map(|stem| stem.to_string_lossy().into_owned()).collect::<BTreeSet<_>>() {
        let is_named = named.iter().any(|name| name.split(['/', '.']).next() == Some(&stem));
        if !is_named && !stem.ends_with("tests") {
            faults.push(format!("{}: the map of files lacks {stem}", root_file.display()));
        }
    }
    faults
}

#[test]
fn each_crate_has_a_map_of_its_files() {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let faults = crates.flat_map(|source| map_faults(&source)).collect::<Faults>();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_map_that_is_wrong_is_caught() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("lib.rs", "//! # Files\n//!\n//! - `a.rs`, `gone.rs`: both\n"), ("a.rs", ""), ("b.rs", "")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let faults = map_faults(folder.path()).join("\n");
    assert!(
        faults.contains("there is no gone.rs") && faults.contains("lacks b") && !faults.contains("lacks a"),
        "{faults}"
    );
}

#[test]
fn the_list_of_commands_is_what_the_program_says() {
    let (path, text) = (root().join("docs/commands.md"), Exists::look().reference());
    if std::env::var_os("GLEANER_WRITE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let differs = text.lines().zip(written.lines()).find(|(one, other)| one != other);
    assert!(
        written == text,
        "docs/commands.md is not what `--help` says; write it with GLEANER_WRITE_DOCS=1\n{differs:?}"
    );
}

/// Negative controls: each kind of invention is caught, and what exists is not.
#[test]
fn an_invention_is_caught() {
    let (exists, real) = (Exists::look(), pages());
    let with = |text: &str| {
        let page = Page { name: "docs/new.md".to_owned(), text: text.to_owned() };
        CHECKS.iter().flat_map(|check| check(std::slice::from_ref(&page), &exists)).collect::<Faults>()
    };
    let own =
        |text: &str| with(text).into_iter().filter(|fault| fault.starts_with("docs/new.md: ")).collect::<Faults>();
    for (text, expected) in [
        ("`gleaner frobnicate`", "there is no command `gleaner frobnicate`"),
        ("```sh\ngleaner gaps mend X\n```", "there is no command `gleaner gaps mend X`"),
        ("`gleaner run shop --faster`", "`gleaner run` has no option --faster"),
        ("set `--faster`", "no command has an option --faster"),
        ("`GLEANER_SPEED` says how fast", "nothing reads the variable GLEANER_SPEED"),
        ("`PDPP_NOTES_MAX_SPEED`", "nothing reads the variable PDPP_NOTES_MAX_SPEED"),
        ("it ends with exit code 77", "no command exits with 77"),
        ("`gleaner add github`", "there is no connector \"github\""),
        ("see [this](nowhere.md#top)", "there is no file nowhere.md"),
        ("in `crates/nowhere/src/lib.rs`", "there is no file crates/nowhere/src/lib.rs"),
    ] {
        assert!(own(text).iter().any(|fault| fault.ends_with(expected)), "{text}: {:?}", own(text));
    }
    let fine = "`gleaner run shop --max-requests 5`, `gleaner gaps retry ID`, `GLEANER_HOME`, exit 3, `gleaner add ical`, \
        `PDPP_NOTES_MAX_RUN_WALL_CLOCK_MS`, `--json`, [lab](lab.md#laws), `scripts/test --all`";
    assert_eq!(own(fine), Faults::new());
    // And what is left out: without one page, something is not documented any more.
    for name in ["docs/commands.md", "docs/connectors/ical.md"] {
        let rest = real.iter().filter(|page| page.name != name);
        let rest = rest.map(|page| Page { name: page.name.clone(), text: page.text.clone() }).collect::<Vec<_>>();
        assert!(!all_faults(&rest, &exists).is_empty(), "without {name}");
    }
}
