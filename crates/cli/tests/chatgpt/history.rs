//! A whole history behind a limit that nobody tells, with everything real: the program, its store, the connector's
//! process, a browser. Killed on the way, and judged by what the site saw and what the store has.
//!
//! By default 60 conversations; with `GLEANER_TEST_ALL` in the environment 500.

use crate::by_hand::{below_ceiling, is_full_size};
use gleaner_test_support::site::{Asked, Limit, Site, World};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIMIT: Limit = Limit { per_second: 2.5, burst: 3.0 };
const CEILING: Duration = Duration::from_millis(250);
/// Whoever is never refused does not know whether there is a limit: one refusal finds it. In a history of less than a
/// hundred requests that is more than one in a hundred.
const REFUSALS_TO_FIND_IT: usize = 1;
/// Full size takes minutes.
const PATIENCE: Duration = Duration::from_secs(900);

/// A data root, and the site that is collected into it.
struct Owned {
    folder: TempDir,
    site: Site,
}

impl Owned {
    fn new(world: World) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let manifest = include_str!("../../../connectors/src/chatgpt/manifest.json");
        std::fs::write(folder.path().join("manifest.json"), manifest).unwrap();
        Self { folder, site: Site::start(world) }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn gleaner(&self, arguments: &[&str]) -> Command {
        let owner = self.site.world().owner.clone();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("GLEANER_HOME", self.home()).env("PDPP_CHATGPT_BASE_URL", self.site.url());
        command.env("CHATGPT_USERNAME", owner.email).env("CHATGPT_PASSWORD", owner.password);
        command.env("PDPP_BROWSER_WINDOW", "headless").env("PDPP_BROWSER_ENGINE", "pipe");
        command
    }

    fn run(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_gleaner");
        self.gleaner(&["run", "--manifest", "manifest.json", "--json", "--", program, "connector", "chatgpt"])
    }

    fn run_to_its_end(&self) -> Value {
        let output = self.run().output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = serde_json::from_str::<Value>(stdout.lines().last().unwrap_or_default()).unwrap_or_default();
        assert!(output.status.success(), "{last} {errors}");
        last
    }

    fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.gleaner(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn stored(&self, stream: &str) -> BTreeSet<String> {
        let records = self.lines(&["records", stream, "--json", "--limit", "1000000"]);
        records.iter().map(|record| record["key"].as_str().unwrap().to_owned()).collect()
    }

    /// Requests that the limit was about.
    fn asked(&self) -> Vec<Asked> {
        self.site.asked("/backend-api/")
    }

    fn wait_for_details(&self, count: usize) {
        let ends = Instant::now() + PATIENCE;
        let details =
            || self.site.asked("/backend-api/conversation/").iter().filter(|asked| asked.status == 200).count();
        while details() < count {
            assert!(Instant::now() < ends, "{} of {count} details", details());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Ends a run without a word, and everything that it has started with it or not.
fn kill(mut child: Child, with_all: bool) {
    let target = if with_all { format!("-{}", child.id()) } else { child.id().to_string() };
    assert!(Command::new("kill").args(["-KILL", "--", &target]).status().unwrap().success());
    child.wait().unwrap();
}

#[test]
fn a_history_behind_a_hidden_limit_is_complete_though_the_run_is_killed_three_times() {
    let count = if is_full_size() { 500 } else { 60 };
    let owned = Owned::new(World { page_max: 28, ..World::with(count) }.limited(LIMIT));
    for (turn, quarter) in (1..4).enumerate() {
        let child = owned.run().stdout(Stdio::null()).process_group(0).spawn().unwrap();
        owned.wait_for_details(count * quarter / 4);
        kill(child, turn % 2 == 0);
    }
    let first = owned.run_to_its_end();
    assert_eq!(owned.stored("chatgpt.conversations").len(), count, "{first}");
    assert_eq!(owned.stored("chatgpt.messages").len(), count * 3);
    assert_eq!(owned.lines(&["gaps", "chatgpt", "--json"]), Vec::<Value>::new());
    assert!(owned.gleaner(&["verify"]).stdout(Stdio::null()).status().unwrap().success());
    let asked = owned.asked();
    let rejected = asked.iter().filter(|asked| asked.status == 429).count();
    let gaps = asked.windows(2).map(|pair| pair[1].at - pair[0].at).collect::<Vec<_>>();
    let least = *gaps.iter().min().unwrap();
    println!("{} requests, {rejected} refused, the shortest gap was {least:?}", asked.len());
    let story =
        asked.windows(2).map(|pair| (pair[1].at.as_millis(), (pair[1].at - pair[0].at).as_millis(), pair[1].status));
    let story = story.collect::<Vec<_>>();
    assert_eq!(below_ceiling(&asked, CEILING), Vec::<Duration>::new(), "{story:?}");
    assert!(
        rejected <= (asked.len() / 100).max(REFUSALS_TO_FIND_IT),
        "{rejected} of {} were refused: {story:?}",
        asked.len()
    );
    let (began, learned) = second_run_starts_at_the_learned_rate(&owned);
    println!("the second run began with a gap of {began:?}; {learned:?} was learned");
}

/// What rides on the cursors.
fn learned_interval(owned: &Owned) -> Duration {
    let rows = owned.lines(&["query", "--json", "SELECT token FROM cursors"]);
    let cursors = rows.iter().map(|row| serde_json::from_str::<Value>(row["token"].as_str().unwrap()).unwrap());
    let newest = cursors.max_by_key(|cursor| cursor["pacing_recorded_at_ms"].as_u64()).unwrap();
    Duration::from_secs_f64(newest["pacing_interval_ms"].as_f64().unwrap() / 1000.0)
}

/// Three conversations are new. Their requests come at what was learned, and not at one in a second.
fn second_run_starts_at_the_learned_rate(owned: &Owned) -> (Duration, Duration) {
    let before = owned.asked().len();
    for number in 0..3 {
        let mut world = owned.site.world();
        let mut new = world.history.conversations[number].clone();
        new.id = format!("11111111-0000-4000-8000-00000000000{number}");
        new.updated += 1_000_000;
        world.history.conversations.push(new);
    }
    let learned = learned_interval(owned);
    owned.run_to_its_end();
    let asked = owned.asked().split_off(before);
    let gaps = asked.windows(2).map(|pair| pair[1].at - pair[0].at).collect::<Vec<_>>();
    assert!(gaps.len() >= 3, "{asked:?}");
    assert!(gaps[0] < learned + Duration::from_millis(400), "{learned:?} was learned: {gaps:?}");
    assert!(learned < Duration::from_secs(1), "and it is faster than a cold start: {learned:?}");
    assert_eq!(below_ceiling(&asked, CEILING), Vec::<Duration>::new(), "{gaps:?}");
    assert!(asked.iter().all(|asked| asked.status == 200), "{asked:?}");
    (gaps[0], learned)
}
