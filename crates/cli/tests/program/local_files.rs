//! The connectors for the owner's own files, through the real program: what each of them promises, asked once of all.
//!
//! A connector is described by a [`Kind`]: which setting names its files, how some and how many of them are made, and what
//! changes. The promises are functions over it; each connector has a file here that calls them and adds what is odd about its
//! own format. To add one: a `Kind`, and `promises!` with it.

mod claude_code;
mod codex;
mod ical;
mod imessage;
mod whatsapp;

use crate::place::{Place, Running, answer, last_line, signal};
use crate::support::Answer;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A connector and its files.
pub(crate) struct Kind {
    /// What is typed to add it.
    pub(crate) connector: &'static str,
    /// The environment variable that names where its files are, and what it is called for `--set`.
    pub(crate) variable: &'static str,
    pub(crate) setting: &'static str,
    /// Makes a few files beneath the folder that the variable names.
    pub(crate) fill: fn(&Path),
    /// How many records of each stream are in those.
    pub(crate) first: &'static [(&'static str, usize)],
    /// Changes them: something grows, something is written anew, something is removed.
    pub(crate) change: fn(&Path),
    /// The keys that are deleted by that, by stream.
    pub(crate) deleted: &'static [(&'static str, &'static str)],
    /// Makes so much that it takes several slices.
    pub(crate) fill_many: fn(&Path),
    /// One of the files of `fill`, for being made unreadable.
    pub(crate) one_file: &'static str,
    /// What must be there; without it there is nothing to collect.
    pub(crate) needed: &'static str,
}

/// A data root with one such connector in it, and a folder for its files.
pub(crate) struct Rig {
    pub(crate) place: Place,
    pub(crate) kind: &'static Kind,
    /// Not ours: a run is started as somebody who may not read everything.
    user: Option<u32>,
}

/// A line of `gleaner records`. Not everything that is stored can be read as a value: half a character cannot.
#[derive(serde::Deserialize)]
struct Line<'a> {
    key: String,
    #[serde(borrow)]
    data: &'a RawValue,
    deleted: bool,
}

/// Everything that is stored, by stream and key: the text of it, and whether it is deleted.
pub(crate) type Records = BTreeMap<(String, String), (String, bool)>;

impl Rig {
    pub(crate) fn new(kind: &'static Kind) -> Self {
        let rig = Self { place: Place::new(), kind, user: None };
        fs::create_dir_all(rig.source()).unwrap();
        rig
    }

    /// With files, and added.
    pub(crate) fn filled(kind: &'static Kind, fill: fn(&Path)) -> Self {
        let rig = Self::new(kind);
        fill(&rig.source());
        rig.add();
        rig
    }

    /// The folder that the setting names.
    pub(crate) fn source(&self) -> PathBuf {
        self.place.path("source")
    }

    pub(crate) fn add(&self) {
        let set = format!("{}={}", self.kind.setting, self.source().display());
        let added = self.gleaner(&["add", self.kind.connector, "--set", &set]);
        assert_eq!(added.code, 0, "{added:?}");
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command.env_remove(self.kind.variable).env("HOME", self.place.path("nobody"));
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    pub(crate) fn gleaner(&self, arguments: &[&str]) -> Answer {
        answer(&mut self.command(arguments))
    }

    /// Runs it; the exit code and the last line.
    pub(crate) fn run(&self, options: &[&str]) -> (i32, Value) {
        // The owner asks for every gap at once: one that failed waits a minute for its next try.
        self.gleaner(&["gaps", "retry", self.kind.connector]);
        let mut arguments = vec!["run", self.kind.connector, "--json"];
        arguments.extend(options);
        let answer = self.gleaner(&arguments);
        (answer.code, last_line(&answer.stdout))
    }

    /// Runs it to its end, which must be a good one; how many records came in.
    pub(crate) fn run_well(&self) -> u64 {
        let (code, end) = self.run(&[]);
        assert_eq!((code, end["status"].as_str()), (0, Some("succeeded")), "{end}");
        end["records_accepted"].as_u64().unwrap()
    }

    /// Runs it to an end that is honest about what is missing: exit 3, each open gap with its reason and its place.
    /// Answers the gaps, by reason.
    pub(crate) fn run_incomplete(&self) -> BTreeMap<String, Vec<Value>> {
        let (code, end) = self.run(&[]);
        assert_eq!((code, end["status"].as_str()), (3, Some("succeeded")), "{end}");
        let mut gaps = BTreeMap::<String, Vec<Value>>::new();
        for line in self.gleaner(&["gaps", self.kind.connector, "--json"]).stdout.lines() {
            let gap = serde_json::from_str::<Value>(line).unwrap();
            if gap["kind"] == "gap" {
                assert!(gap["locator"].is_object() && gap["last_error"]["message"].is_string(), "{gap}");
                gaps.entry(gap["class"].as_str().unwrap().to_owned()).or_default().push(gap["locator"].clone());
            }
        }
        assert_eq!(
            end["gaps_open"].as_u64(),
            Some(gaps.values().map(Vec::len).sum::<usize>() as u64),
            "{end} {gaps:?}"
        );
        gaps
    }

    /// Runs it to a good end; how many records came in, and the most memory that the connector had, in KiB.
    pub(crate) fn run_watched(&self) -> (u64, u64) {
        let mut run = self.command(&["run", self.kind.connector, "--json"]);
        let mut run = run.stdout(Stdio::piped()).spawn().unwrap();
        let mut peak = 0;
        while run.try_wait().unwrap().is_none() {
            peak = peak.max(self.connector_peak());
            std::thread::sleep(Duration::from_millis(25));
        }
        let output = run.wait_with_output().unwrap();
        let end = last_line(&String::from_utf8(output.stdout).unwrap());
        assert!(output.status.success(), "{end}");
        (end["records_accepted"].as_u64().unwrap(), peak)
    }

    /// Of the connector that is at work on our files, which its environment names.
    fn connector_peak(&self) -> u64 {
        let ours = self.source().to_string_lossy().into_owned();
        let read = |path: PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let is_ours = |at: &PathBuf| {
            read(at.join("cmdline")).split('\0').nth(1) == Some("connector") && read(at.join("environ")).contains(&ours)
        };
        let peak = |at: PathBuf| {
            let status = read(at.join("status"));
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.trim().trim_end_matches(" kB").parse::<u64>().ok()
        };
        processes.filter(is_ours).filter_map(peak).max().unwrap_or(0)
    }

    /// Everything that is stored.
    pub(crate) fn records(&self) -> Records {
        let mut records = Records::new();
        for stream in self.streams() {
            let name = format!("{}.{stream}", self.kind.connector);
            let printed = self.gleaner(&["records", &name, "--json"]);
            assert_eq!(printed.code, 0, "{printed:?}");
            for line in printed.stdout.lines().map(|line| serde_json::from_str::<Line<'_>>(line).unwrap()) {
                records.insert((stream.clone(), line.key), (line.data.get().to_owned(), line.deleted));
            }
        }
        records
    }

    pub(crate) fn streams(&self) -> Vec<String> {
        let listed = self.gleaner(&["connectors", "--json"]).stdout;
        let ours = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let ours = ours.into_iter().find(|line| line["connector"] == self.kind.connector).unwrap();
        ours["streams"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    /// How many versions of records there are; everything that is stored is sound.
    pub(crate) fn versions(&self) -> u64 {
        let verify = self.gleaner(&["verify"]);
        assert_eq!(verify.code, 0, "{verify:?}");
        let text = verify.stdout.strip_prefix("the store is whole: ").unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }

    /// What a run from the beginning finds in the same files.
    pub(crate) fn fresh(&self) -> Records {
        let fresh = Self::new(self.kind);
        fs::remove_dir(fresh.source()).unwrap();
        std::os::unix::fs::symlink(self.source(), fresh.source()).unwrap();
        fresh.add();
        fresh.run_well();
        fresh.records()
    }
}

/// What is there now must be stored as a first run would store it.
fn assert_holds_all_of(records: &Records, fresh: &Records) {
    for (key, record) in fresh {
        assert_eq!(records.get(key), Some(record), "{key:?}");
    }
}

pub(crate) fn a_first_run_collects_all_and_the_second_nothing(kind: &'static Kind) {
    let rig = Rig::filled(kind, kind.fill);
    assert!(rig.run_well() > 0);
    let records = rig.records();
    for (stream, expected) in kind.first {
        let found = records.keys().filter(|(of, _)| of == stream).count();
        assert_eq!(found, *expected, "{stream}: {records:#?}");
    }
    assert!(records.values().all(|(_, deleted)| !deleted));
    let versions = rig.versions();
    assert_eq!(rig.run_well(), 0, "nothing is sent twice");
    assert_eq!((rig.records(), rig.versions()), (records, versions));
}

pub(crate) fn a_run_after_changes_brings_what_changed_and_nothing_else(kind: &'static Kind) {
    let rig = Rig::filled(kind, kind.fill);
    let first = rig.run_well();
    (kind.change)(&rig.source());
    let (code, end) = rig.run(&[]);
    assert_eq!(code, 0, "{end}");
    let (came, deleted) = (end["records_accepted"].as_u64().unwrap(), end["records_deleted"].as_u64().unwrap());
    assert!(came > 0 && came < first, "{came} after {first}");
    assert_eq!(deleted, kind.deleted.len() as u64, "{end}");
    let records = rig.records();
    for &(stream, key) in kind.deleted {
        let found = records.get(&(stream.to_owned(), key.to_owned()));
        assert!(found.is_some_and(|(_, deleted)| *deleted), "{stream} {key}: {found:?}");
    }
    assert_holds_all_of(&records, &rig.fresh());
    let versions = rig.versions();
    assert_eq!((rig.run_well(), rig.versions()), (0, versions));
}

pub(crate) fn a_cap_leaves_the_rest_to_the_next_run(kind: &'static Kind) {
    let rig = Rig::filled(kind, kind.fill_many);
    let (code, end) = rig.run(&["--max-requests", "1"]);
    assert_eq!((code, end["gaps_open"].as_u64()), (3, Some(1)), "{end}");
    let fresh = rig.fresh();
    let stored = rig.records().len();
    assert!(stored > 0 && stored < fresh.len(), "{stored} of {}", fresh.len());
    let (mut runs, mut code) = (0, 3);
    while code == 3 && runs < 50 {
        code = rig.run(&["--max-requests", "2"]).0;
        runs += 1;
    }
    assert_eq!((code, rig.records()), (0, fresh), "after {runs} runs");
    assert!(runs > 1, "a cap that stops nothing shows nothing");
    // A file that was read in parts has no other record than one that was read at once.
    let per_record = rig.versions() as f64 / rig.records().len() as f64;
    assert!(per_record < 1.01, "{per_record} versions for each record");
}

pub(crate) fn a_killed_run_is_gone_on_with(kind: &'static Kind) {
    let rig = Rig::filled(kind, kind.fill_many);
    let mut running = Running::of(rig.command(&["run", kind.connector, "--json"]));
    // Two slices were sent, so the first one counts when the next part is saved.
    running.wait_for("progress");
    running.wait_for("progress");
    running.wait_for_saved();
    signal(&running.child.id().to_string(), "KILL");
    running.child.wait().unwrap();
    let stored = rig.records().len();
    let came = rig.run_well();
    let fresh = rig.fresh();
    assert!(stored > 0 && stored < fresh.len(), "{stored} of {}: it was not killed half-way", fresh.len());
    assert!((came as usize) < fresh.len(), "{came} of {} came again", fresh.len());
    assert_eq!(rig.records(), fresh);
}

pub(crate) fn a_source_that_is_missing_is_told_with_what_to_do(kind: &'static Kind) {
    let rig = Rig::new(kind);
    rig.add();
    let missing = rig.gleaner(&["run", kind.connector]);
    assert_eq!(missing.code, 1, "{missing:?}");
    for part in [kind.variable, "is not there", &rig.source().join(kind.needed).to_string_lossy()] {
        assert!(missing.stdout.contains(part), "{part}: {missing:?}");
    }
    fs::remove_dir(rig.source()).unwrap();
    fs::write(rig.source(), "a file").unwrap();
    let file = rig.gleaner(&["run", kind.connector]);
    assert!(file.code == 1 && file.stdout.contains(kind.variable), "{file:?}");
}

/// As somebody else where everything may be read, which is how tests often run.
pub(crate) fn a_file_that_may_not_be_read_is_a_gap_until_it_may(kind: &'static Kind) {
    let mut rig = Rig::new(kind);
    (kind.fill)(&rig.source());
    let file = rig.source().join(kind.one_file);
    if rustix::process::geteuid().is_root() {
        const NOBODY: u32 = 65_534;
        let root = rig.place.path("");
        chown(&root, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        rig.user = Some(NOBODY);
    }
    rig.add();
    let readable = fs::metadata(&file).unwrap().permissions();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    let (code, end) = rig.run(&[]);
    assert_eq!((code, end["gaps_open"].as_u64()), (3, Some(1)), "{end}");
    let gaps = rig.gleaner(&["gaps", kind.connector]).stdout;
    assert!(gaps.contains(Path::new(kind.one_file).file_name().unwrap().to_str().unwrap()), "{gaps}");
    let stored = rig.records().len();
    fs::set_permissions(&file, readable).unwrap();
    assert!(rig.run_well() > 0, "and the gap is closed");
    assert!(rig.records().len() > stored);
}

pub(crate) fn conformance_passes(kind: &'static Kind) {
    let rig = Rig::new(kind);
    (kind.fill)(&rig.source());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../connectors/src").join(kind.connector);
    let manifest = folder.join("manifest.json").to_string_lossy().into_owned();
    let program = env!("CARGO_BIN_EXE_gleaner");
    let arguments = ["conformance", "--manifest", &manifest, "--", program, "connector", kind.connector];
    let report = answer(rig.command(&arguments).env(kind.variable, rig.source()));
    assert_eq!(report.code, 0, "{report:?}");
}

/// Each promise as a test of its own.
macro_rules! promises {
    ($kind:expr => $($promise:ident),* $(,)?) => {
        $(#[test]
        fn $promise() {
            crate::local_files::$promise(&$kind);
        })*
    };
}
pub(crate) use promises;

/// How many gaps there are of each reason.
pub(crate) fn counts(gaps: &BTreeMap<String, Vec<Value>>) -> Vec<(&str, usize)> {
    gaps.iter().map(|(reason, locators)| (reason.as_str(), locators.len())).collect()
}

/// Appends to a file, making its folders.
pub(crate) fn append(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
}
