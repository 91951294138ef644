//! The connector's process, with the test in the place of the runtime: START in, messages out, questions answered.

use gleaner_test_support::site::{Asked, Site};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// Longer than anything here takes on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(90);
/// From the issue: so long after a run nothing of its browser is left.
const GONE_AFTER: Duration = Duration::from_secs(5);

/// A data root, and what a run is started with.
pub(crate) struct Setting {
    pub(crate) folder: TempDir,
    pub(crate) profile: String,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) streams: Vec<&'static str>,
    pub(crate) state: Value,
    pub(crate) gaps: Vec<Value>,
    pub(crate) can_ask: bool,
}

impl Setting {
    pub(crate) fn new(site: &Site) -> Self {
        let variables = [
            ("PDPP_CHATGPT_BASE_URL", site.url()),
            ("PDPP_BROWSER_WINDOW", "headless".to_owned()),
            ("PDPP_BROWSER_ENGINE", "pipe".to_owned()),
            // What is not about the pace does not wait for it.
            ("PDPP_CHATGPT_PACING_MIN_INTERVAL_MS", "20".to_owned()),
        ];
        Self {
            folder: tempfile::tempdir().unwrap(),
            profile: "chatgpt".to_owned(),
            variables: variables.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            streams: vec!["conversations", "messages"],
            // Most tests are not about the pace: an earlier run has found one.
            state: json!({"messages": paced(60, Duration::ZERO)}),
            gaps: Vec::new(),
            can_ask: true,
        }
    }

    /// With name and password in the environment, so that nobody is asked for them.
    pub(crate) fn knowing_the_password(site: &Site) -> Self {
        let owner = site.world().owner.clone();
        Self::new(site).with("CHATGPT_USERNAME", &owner.email).with("CHATGPT_PASSWORD", &owner.password)
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Where its browser puts downloads.
    pub(crate) fn downloads(&self) -> PathBuf {
        self.root().join("profiles").join(&self.profile).join("Gleaner Downloads")
    }

    /// The files of the run, by name.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let folder = self.root().join("runs/run_1");
        let mut files =
            fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        files.sort();
        files
    }

    pub(crate) fn start(&self) -> Hand {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
        command.args(["connector", "chatgpt"]).env_clear();
        command.envs(["PATH", "TMPDIR"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.env("HOME", self.folder.path()).envs(self.variables.iter().map(|(name, value)| (name, value)));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to_test, heard) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let message = serde_json::from_str::<Value>(&line).unwrap();
                if to_test.send((Instant::now(), message)).is_err() {
                    return;
                }
            }
        });
        let mut bindings = json!({
            "network": {},
            "browser": {"profile_name": self.profile, "profiles_path": self.root().join("profiles")},
        });
        if self.can_ask {
            bindings["interactive"] = json!({});
        }
        let streams = self.streams.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>();
        let start = json!({
            "type": "START", "run_id": "run_1", "collection_mode": "incremental", "scope": {"streams": streams},
            "state": self.state, "bindings": bindings, "detail_gaps": self.gaps,
        });
        let profile = self.root().join("profiles").join(&self.profile);
        let mut hand =
            Hand { input: child.stdin.take(), child, heard, said: Vec::new(), began: Instant::now(), profile };
        hand.send(&start);
        hand
    }
}

/// A cursor on which an earlier run has left its pace, so long ago.
pub(crate) fn paced(interval_ms: u64, ago: Duration) -> Value {
    let recorded = (SystemTime::now() - ago).duration_since(UNIX_EPOCH).unwrap().as_millis();
    json!({"pacing_interval_ms": interval_ms, "pacing_recorded_at_ms": u64::try_from(recorded).unwrap()})
}

/// A run in the hands of a test.
pub(crate) struct Hand {
    child: Child,
    input: Option<ChildStdin>,
    heard: Receiver<(Instant, Value)>,
    /// Everything that was said, with its time.
    pub(crate) said: Vec<(Instant, Value)>,
    pub(crate) began: Instant,
    profile: PathBuf,
}

impl Hand {
    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Waits for a message of a type. Pages of gaps are answered meanwhile: there are no more.
    pub(crate) fn until(&mut self, kind: &str) -> Value {
        let ends = Instant::now() + PATIENCE;
        loop {
            let left = ends.saturating_duration_since(Instant::now());
            let Ok((at, message)) = self.heard.recv_timeout(left) else {
                panic!("no {kind} came; what did: {:#?}", self.progress());
            };
            self.said.push((at, message.clone()));
            if message["type"] == "DETAIL_GAPS_PAGE_REQUEST" {
                let (kind, id) = ("DETAIL_GAPS_PAGE_RESPONSE", &message["request_id"]);
                self.send(&json!({"type": kind, "request_id": id, "reference_only": true, "detail_gaps": []}));
            }
            if message["type"] == kind {
                return message;
            }
            assert_ne!(message["type"], "DONE", "it ended before any {kind}: {message}");
        }
    }

    pub(crate) fn answer(&mut self, question: &Value, data: &Value) {
        let id = &question["request_id"];
        self.send(&json!({"type": "INTERACTION_RESPONSE", "request_id": id, "status": "success", "data": data}));
    }

    pub(crate) fn decline(&mut self, question: &Value) {
        let id = &question["request_id"];
        self.send(&json!({"type": "INTERACTION_RESPONSE", "request_id": id, "status": "cancelled"}));
    }

    /// The last message, after which nothing of the browser is left.
    pub(crate) fn done(&mut self) -> Value {
        let done = self.until("DONE");
        drop(self.input.take());
        let succeeded = done["status"] == "succeeded";
        assert_eq!(self.child.wait().unwrap().success(), succeeded, "{done}");
        self.assert_nothing_is_left();
        done
    }

    /// The run is over, and so is every process that has this profile in its arguments.
    pub(crate) fn assert_nothing_is_left(&self) {
        let ends = Instant::now() + GONE_AFTER;
        while !processes_with(&self.profile).is_empty() {
            assert!(Instant::now() < ends, "still there: {:?}", processes_with(&self.profile));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends the browser as the kernel does when memory is short.
    pub(crate) fn kill_browser(&self) {
        for (pid, _) in processes_with(&self.profile) {
            drop(Command::new("kill").args(["-KILL", &pid]).status());
        }
    }

    /// Whether a browser with the profile of this run is there. The negative control of the line above.
    pub(crate) fn has_browser(&self) -> bool {
        !processes_with(&self.profile).is_empty()
    }

    pub(crate) fn of_type(&self, kind: &str) -> Vec<&Value> {
        self.said.iter().map(|(_, message)| message).filter(|message| message["type"] == kind).collect()
    }

    pub(crate) fn progress(&self) -> Vec<String> {
        let texts = self.of_type("PROGRESS").into_iter().map(|message| message["message"].as_str().unwrap_or_default());
        texts.map(ToOwned::to_owned).collect()
    }

    /// The phases that were reached, in their order.
    pub(crate) fn phases(&self) -> Vec<String> {
        let progress = self.progress();
        progress.iter().filter_map(|text| text.strip_prefix("session: ")).map(ToOwned::to_owned).collect()
    }

    /// The keys of the records of a stream.
    pub(crate) fn keys(&self, stream: &str) -> Vec<String> {
        let records = self.of_type("RECORD").into_iter().filter(|record| record["stream"] == stream);
        records.map(|record| record["key"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind: a browser ends with the program that holds its pipe.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Processes that have this path in their arguments, by their ids.
fn processes_with(path: &Path) -> Vec<(String, String)> {
    let path = path.to_str().unwrap();
    let arguments = |entry: fs::DirEntry| {
        let bytes = fs::read(entry.path().join("cmdline")).ok()?;
        Some((entry.file_name().into_string().ok()?, String::from_utf8_lossy(&bytes).replace('\0', " ")))
    };
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(arguments);
    all.filter(|(_, line)| line.contains(path)).collect()
}

/// A page's clock is told to a tenth of a millisecond, twice for each request.
const CLOCK: Duration = Duration::from_millis(1);

/// Gaps between two requests, as the site saw them, that are below the ceiling. What the browser took to send is known
/// with each answer, so there is none: not on average, and not for a machine that is busy.
pub(crate) fn below_ceiling(asked: &[Asked], ceiling: Duration) -> Vec<Duration> {
    let gaps = asked.windows(2).map(|two| two[1].at - two[0].at);
    gaps.filter(|gap| *gap + CLOCK < ceiling).collect()
}

#[test]
fn a_gap_below_the_ceiling_is_seen() {
    let at = |ms: u64| Asked {
        at: Duration::from_millis(ms),
        method: String::new(),
        path: String::new(),
        query: Vec::new(),
        session: None,
        status: 200,
    };
    let ceiling = Duration::from_millis(250);
    assert_eq!(below_ceiling(&[at(0), at(250), at(500)], ceiling), Vec::<Duration>::new());
    assert_eq!(below_ceiling(&[at(0), at(247), at(500)], ceiling), [Duration::from_millis(247)]);
}

/// Full size with `scripts/test --all`.
pub(crate) fn is_full_size() -> bool {
    std::env::var_os("GLEANER_TEST_ALL").is_some()
}
