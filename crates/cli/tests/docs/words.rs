//! Rejects phrases of the private dialect that this project used to be written in, so that they do not come back.
//!
//! Two rules: no phrase of [`REJECTED`], and no sentence of a comment, message or page that begins with "What", "Who" or
//! "Whoever" in place of a thing that has a name. Questions are allowed.

use super::{Faults, pages, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that are not rewritten yet. This list may only shrink: remove a crate once its comments and messages are plain.
const NOT_YET: [&str; 8] = ["app", "cli", "conformance", "connectors", "console", "engine", "runtime", "store"];

/// Pages with text of those crates. The same rule: this list may only shrink.
const PAGES_NOT_YET: [&str; 1] = ["docs/commands.md"];

/// Phrases in lower case, with a replacement that says what to write instead.
const REJECTED: [(&str, &str); 30] = [
    ("that nobody tells", "an undocumented rate limit"),
    ("who knew the limit would", "best possible time"),
    ("it goes on where it stopped", "run it again to resume"),
    ("are where we want all of them", "meet the target"),
    ("tried again by themselves", "retried automatically"),
    ("tried again by itself", "retried automatically"),
    ("lies nowhere", "is never stored"),
    ("known and not here", "could not be collected"),
    ("says what to mend", "reports what to fix"),
    ("it is time by then", "scheduled"),
    ("nothing by itself:", "paused"),
    ("the connector gave up", "connector failed, with its message"),
    ("the run was stopped on request", "stopped (Ctrl-C)"),
    ("the connector never reported what there is", "total unknown"),
    ("a run is wanted", "run queued"),
    ("could not be had", "failed; will be retried"),
    ("cannot be had", "cannot be fetched"),
    ("say it otherwise", "the expected input"),
    ("a table is of one stream", "CSV needs a single stream"),
    ("stands for http", "forwarding to"),
    ("gone on with", "resumed"),
    ("to run it by itself", "automatic runs"),
    ("pushed back", "rate-limited us"),
    ("pushes back", "rate-limits us"),
    ("wants a gap after all", "un-ignore a gap"),
    ("can be looked after at a time", "host limit reached"),
    ("have a most each", "each have a limit"),
    ("can afford a box", "box the slow path; keep the hot future small"),
    ("the short way of", "lock-free fast path"),
    ("that is nobody's for", "a run without a lease"),
];

/// Words that may not begin a sentence, unless it is a question.
const HEADLESS: [&str; 4] = ["What ", "Who ", "Whoever ", "Whose "];

/// The sentences of one line of text, without list and heading marks.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.trim_start_matches(['#', '-', '*', '|', ' ']).split(". ").map(|it| it.trim_start_matches(['*', ' ']))
}

fn faults_of_text(place: &str, text: &str) -> Faults {
    let lower = text.to_lowercase();
    let phrases = REJECTED.iter().filter(|(phrase, _)| lower.contains(phrase));
    let mut faults = phrases
        .map(|(phrase, instead)| format!("{place}: {phrase:?}; write for example {instead:?}"))
        .collect::<Faults>();
    let headless = sentences(text).find(|it| HEADLESS.iter().any(|word| it.starts_with(word)) && !it.contains('?'));
    faults.extend(headless.map(|sentence| format!("{place}: name the thing: {sentence:?}")));
    faults
}

/// The texts for people in a line of Rust: its comment, or its string literals.
fn texts_of_rust(line: &str) -> Vec<&str> {
    let line = line.trim_start();
    match line.strip_prefix("//") {
        Some(comment) => vec![comment.trim_start_matches(['/', '!', ' '])],
        // Every other piece between quotes is a literal. An escaped quote at worst makes a piece too short.
        None => line.split('"').skip(1).step_by(2).collect(),
    }
}

fn faults_of_rust(name: &str, source: &str) -> Faults {
    let lines = source.lines().enumerate();
    lines
        .flat_map(|(at, line)| {
            texts_of_rust(line).into_iter().flat_map(move |text| faults_of_text(&format!("{name}:{}", at + 1), text))
        })
        .collect()
}

/// Code blocks are no prose.
fn faults_of_page(name: &str, page: &str) -> Faults {
    let mut is_code = false;
    let prose = page.lines().enumerate().filter(|(_, line)| {
        is_code ^= line.starts_with("```");
        !is_code
    });
    prose.flat_map(|(at, line)| faults_of_text(&format!("{name}:{}", at + 1), line)).collect()
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            rust_files(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
}

#[test]
fn comments_and_messages_use_plain_words() {
    let mut files = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()) {
        if !NOT_YET.iter().any(|name| entry.ends_with(name)) {
            rust_files(&entry, &mut files);
        }
    }
    files.sort();
    let faults = files.iter().flat_map(|file| {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        faults_of_rust(&name, &fs::read_to_string(file).unwrap())
    });
    let faults = faults.collect::<Faults>();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn pages_use_plain_words() {
    let pages = pages();
    let checked = pages.iter().filter(|page| {
        !PAGES_NOT_YET.contains(&page.name.as_str())
            && !page.name.starts_with("docs/decisions")
            && !page.name.starts_with("docs/connectors/")
    });
    let faults = checked.flat_map(|page| faults_of_page(&page.name, &page.text)).collect::<Faults>();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Negative controls: each rule rejects its text, and plain text passes.
#[test]
fn the_old_dialect_is_caught() {
    for (phrase, _) in REJECTED {
        assert_eq!(faults_of_page("new.md", &format!("Here {phrase} it is.")).len(), 1, "{phrase}");
    }
    for source in [
        "/// What is waited for.",
        "    //! Done. Whoever waits is woken.",
        "// Who waits has a number.",
        r#"println!("What was found");"#,
        r#"#[error("the page could not be had")]"#,
    ] {
        assert_eq!(faults_of_rust("new.rs", source).len(), 1, "{source}");
    }
    for page in ["## What it costs", "A wait ends. Who asks again is admitted.", "- **Whose limit it is.**"] {
        assert_eq!(faults_of_page("new.md", page).len(), 1, "{page}");
    }
    for source in ["/// What next? The queue decides.", "/// Waits for the lock.", "let whatever = 1;"] {
        assert_eq!(faults_of_rust("new.rs", source), Faults::new(), "{source}");
    }
    assert_eq!(faults_of_page("new.md", "```text\nWhat a program prints\n```\n"), Faults::new());
}

#[test]
fn the_crates_that_are_not_rewritten_exist() {
    let gone = NOT_YET.iter().filter(|name| !root().join("crates").join(name).exists()).collect::<Vec<_>>();
    assert!(gone.is_empty(), "remove from the list: {gone:?}");
}
