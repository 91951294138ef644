//! What exists: asked of the program, and read out of the source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// One command, as its `--help` says it.
#[derive(Clone, Debug, Default)]
struct Help {
    about: String,
    commands: Vec<String>,
    /// Long names with what stands behind them, and what they do.
    options: Vec<(String, String, String)>,
}

/// Everything that a page may name.
#[derive(Clone, Debug)]
pub(crate) struct Exists {
    /// By its words, such as `gaps retry`; the program itself is the empty one.
    commands: BTreeMap<String, Help>,
    /// Variables of ours, by their whole names.
    pub(crate) variables: BTreeSet<String>,
    /// What follows `PDPP_` and a connector's key in names of variables.
    suffixes: Vec<String>,
    /// Variables that manifests of our connectors declare.
    pub(crate) settings: BTreeSet<String>,
    pub(crate) exit_codes: BTreeMap<u8, String>,
    pub(crate) connectors: BTreeSet<String>,
}

/// How deep commands lie in each other.
const DEPTH_MAX: usize = 4;

impl Exists {
    /// Looks, once.
    pub(crate) fn look() -> Self {
        static FOUND: OnceLock<Exists> = OnceLock::new();
        FOUND.get_or_init(Self::look_anew).clone()
    }

    fn look_anew() -> Self {
        let mut commands = BTreeMap::new();
        walk(&mut Vec::new(), &mut commands);
        let (variables, suffixes) = variables();
        let connectors = gleaner(&["connectors", "--json"]);
        let name = |line: &str| {
            let line = serde_json::from_str::<serde_json::Value>(line).unwrap();
            line["connector"].as_str().unwrap().to_owned()
        };
        let connectors = connectors.lines().map(name).collect::<BTreeSet<_>>();
        let settings = connectors.iter().flat_map(|name| settings(name)).collect();
        Self { commands, variables, suffixes, settings, exit_codes: exit_codes(), connectors }
    }

    /// The command that these words begin with; `None` when they begin with none, or its next word should be one.
    pub(crate) fn command(&self, words: &[String]) -> Option<String> {
        let (mut path, mut help) = (String::new(), &self.commands[""]);
        for word in words {
            if !help.commands.contains(word) {
                break;
            }
            path = if path.is_empty() { word.clone() } else { format!("{path} {word}") };
            help = &self.commands[&path];
        }
        let rest = words.len() - path.split_whitespace().count();
        // What only has commands within takes no other word. `gaps NAME` has both.
        let next = words.get(words.len() - rest);
        let is_wrong = next.is_some_and(|next| {
            let is_word = next.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
            !help.commands.is_empty() && is_word && words.len() - path.split_whitespace().count() > 1
        });
        (!path.is_empty() && !is_wrong).then_some(path)
    }

    pub(crate) fn has_option(&self, path: &str, option: &str) -> bool {
        // Those of the commands around it hold for it, too.
        let mut path = path;
        loop {
            let help = &self.commands[path];
            if help.options.iter().any(|(name, ..)| name == option) || matches!(option, "--help" | "--version") {
                return true;
            }
            if path.is_empty() {
                return false;
            }
            path = path.rsplit_once(' ').map_or("", |(before, _)| before);
        }
    }

    pub(crate) fn has_option_anywhere(&self, option: &str) -> bool {
        self.options().any(|name| name == option)
    }

    pub(crate) fn options(&self) -> impl Iterator<Item = &String> {
        self.commands.values().flat_map(|help| help.options.iter().map(|(name, ..)| name))
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &String> {
        self.commands.keys().filter(|path| !path.is_empty())
    }

    pub(crate) fn has_variable(&self, name: &str) -> bool {
        let of_connector = |suffix: &String| {
            name.strip_prefix("PDPP_").and_then(|rest| rest.strip_suffix(suffix)).is_some_and(|key| key.ends_with('_'))
        };
        self.variables.contains(name) || self.settings.contains(name) || self.suffixes.iter().any(of_connector)
    }

    /// The page that lists them all.
    pub(crate) fn reference(&self) -> String {
        let mut text = "# Commands\n\nEvery command with its options, as `--help` says it. A test writes this page \
            (`crates/cli/tests/docs`); `gleaner COMMAND --help` says more.\n\n## Exit codes\n\n| code | means |\n|---|---|\n"
            .to_owned();
        for (code, what) in &self.exit_codes {
            text.push_str(&format!("| {code} | {what} |\n"));
        }
        for (path, help) in &self.commands {
            let title = if path.is_empty() { "For every command".to_owned() } else { format!("`gleaner {path}`") };
            text.push_str(&format!("\n## {title}\n\n"));
            if !path.is_empty() {
                text.push_str(&format!("{}\n", help.about));
            }
            let general = |name: &String| self.commands[""].options.iter().any(|(known, ..)| known == name);
            let own = help.options.iter().filter(|(name, ..)| path.is_empty() || !general(name)).collect::<Vec<_>>();
            if !own.is_empty() {
                text.push_str(if path.is_empty() {
                    "| option | what it does |\n|---|---|\n"
                } else {
                    "\n| option | what it does |\n|---|---|\n"
                });
            }
            for (name, value, what) in own {
                let option = format!("{name} {value}").trim_end().replace('|', "\\|");
                text.push_str(&format!("| `{option}` | {} |\n", what.replace('|', "\\|")));
            }
        }
        text
    }
}

/// Prints what the program says, whatever it is set to.
fn gleaner(arguments: &[&str]) -> String {
    let home = std::env::temp_dir().join("gleaner-docs-nobody");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    command.args(arguments).env("GLEANER_HOME", &home).env("COLUMNS", "100000").env("HOME", &home);
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn walk(path: &mut Vec<String>, into: &mut BTreeMap<String, Help>) {
    let mut arguments = path.iter().map(String::as_str).collect::<Vec<_>>();
    arguments.push("-h");
    let help = read_help(&gleaner(&arguments), path.is_empty());
    let inner = if path.len() < DEPTH_MAX { help.commands.clone() } else { Vec::new() };
    into.insert(path.join(" "), help);
    for command in inner {
        path.push(command);
        walk(path, into);
        path.pop();
    }
}

/// Reads what clap prints: a sentence, then sections whose lines are indented, those that go on further. The overview of all
/// commands has several sections of them.
fn read_help(text: &str, is_overview: bool) -> Help {
    let about = text.lines().take_while(|line| !line.trim().is_empty()).collect::<Vec<_>>().join(" ");
    let mut help = Help { about, ..Help::default() };
    let (mut section, mut section_of_last) = ("", "");
    for line in text.lines() {
        if !line.starts_with(' ') {
            section = line.trim_end_matches(':');
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let words = line.trim();
        if (section == "Commands" || is_overview && section != "Options") && indent == 2 {
            let names = words.split("  ").next().unwrap_or_default().split(", ");
            help.commands.extend(names.filter(|name| *name != "help").map(str::to_owned));
        } else if let Some(at) = words.find("--").filter(|at| indent <= 6 && (*at == 0 || words.starts_with('-'))) {
            let (head, what) = words[at..].split_once("  ").unwrap_or_else(|| (&words[at..], ""));
            let (name, value) = head.split_once(' ').unwrap_or((head, ""));
            if !matches!(name, "--help" | "--version") {
                let name = name.trim_end_matches(',').split('[').next().unwrap_or(name);
                section_of_last = section;
                help.options.push((name.to_owned(), value.to_owned(), what.trim().to_owned()));
            } else {
                section_of_last = "";
            }
        } else if indent > 6 && section == section_of_last {
            // It goes on.
            if let Some((.., what)) = help.options.last_mut() {
                *what = format!("{what} {words}").trim().to_owned();
            }
        }
    }
    help
}

/// Names in string literals of the source, but for tests; and the parts behind a connector's key.
fn variables() -> (BTreeSet<String>, Vec<String>) {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for one in fs::read_dir(crates).unwrap().flatten() {
        read_sources(&one.path().join("src"), &mut sources);
    }
    let is_name =
        |text: &str| text.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_');
    let (mut names, mut suffixes) = (BTreeSet::new(), Vec::new());
    for source in &sources {
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let literals = line.split('"').skip(1).step_by(2).filter(|text| is_name(text));
            names.extend(
                literals
                    .filter(|text| !text.ends_with('_') && (text.starts_with("GLEANER_") || text.starts_with("PDPP_")))
                    .map(str::to_owned),
            );
        }
        if let Some(list) = code.split("const OWN_VARIABLES").nth(1).and_then(|rest| rest.split(';').nth(1)) {
            suffixes.extend(list.split('"').skip(1).step_by(2).map(|suffix| suffix.to_owned()));
        }
    }
    assert!(names.len() > 10 && suffixes.len() == 4, "{names:?} {suffixes:?}");
    (names, suffixes)
}

fn read_sources(folder: &Path, into: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(fs::read_to_string(&path).unwrap());
        }
    }
}

/// The variables that the manifest of one of our connectors declares.
fn settings(connector: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../connectors/src").join(connector).join("manifest.json");
    let manifest = serde_json::from_str::<serde_json::Value>(&fs::read_to_string(path).unwrap()).unwrap();
    let declared = manifest["runtime_requirements"]["environment_variables"].as_array().cloned().unwrap_or_default();
    let name = |one: &serde_json::Value| one.as_str().or_else(|| one["name"].as_str()).map(str::to_owned);
    declared.iter().filter_map(name).collect()
}

/// The codes that the source declares, each with what `--help` says of it; nothing where it does not mention one.
fn exit_codes() -> BTreeMap<u8, String> {
    let source = include_str!("../../src/error.rs");
    let declared = source.lines().filter_map(|line| line.split_once("const EXIT_")?.1.split_once(": u8 = "));
    let declared = declared.map(|(_, number)| number.trim_end_matches(';').parse::<u8>().unwrap());
    let help = gleaner(&["help", "exit-codes"]);
    let said = help.split("Exit codes:").nth(1).unwrap_or_default().lines().filter_map(|line| {
        let (code, what) = line.trim().split_once("  ")?;
        Some((code.parse::<u8>().ok()?, what.trim().to_owned()))
    });
    let mut codes = declared.chain([0]).map(|code| (code, String::new())).collect::<BTreeMap<_, _>>();
    for (code, what) in said {
        let known = codes.get_mut(&code);
        *known.unwrap_or_else(|| panic!("`gleaner help exit-codes` names exit code {code}, which no command has")) =
            what;
    }
    assert!(codes.len() > 5, "{codes:?}");
    codes
}
