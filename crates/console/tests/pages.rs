//! The pages in a real Chromium, on a real console with a real store and real runs: a day with it, texts that want to be
//! more than texts, faults of accessibility, pictures of every page, and how long the overview takes.
//!
//! The browser is driven by scripts in `browser/`, which say what went wrong; this file starts things and waits. What
//! they need is installed by `scripts/test`.

#![allow(clippy::print_stdout, reason = "tests say their figures")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DRIVER: &str = env!("CARGO_BIN_EXE_console-driver");

fn full_size() -> bool {
    std::env::var_os("GLEANER_TEST_ALL").is_some()
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser")
}

/// A data root that others may look into is not used.
fn private_folder() -> tempfile::TempDir {
    let private = fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(private).tempdir().expect("a folder")
}

/// A console on a data root of its own, gone at the end.
struct Console {
    root: tempfile::TempDir,
    process: Child,
    address: String,
    link: String,
}

impl Console {
    fn start() -> Self {
        let root = private_folder();
        drop(gleaner_store::Store::open(&root.path().join("store.db")).expect("a store"));
        Self::start_on(root)
    }

    fn start_on(root: tempfile::TempDir) -> Self {
        Self::start_below(root, "")
    }

    fn start_below(root: tempfile::TempDir, base: &str) -> Self {
        let mut process = Command::new(DRIVER)
            .arg("serve")
            .arg(root.path())
            .args(["127.0.0.1:0", base])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the driver");
        let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let mut line = || lines.next().expect("a line").expect("text");
        let (address, link) = (format!("http://{}{base}", line()), line());
        Self { root, process, address, link }
    }

    fn token(&self) -> String {
        fs::read_to_string(self.root.path().join("console/token")).expect("a token").trim().to_owned()
    }

    /// One run of the connector of these tests, to its end.
    fn run(&self, connection: &str, scenario: &str) {
        self.run_with(connection, &[scenario]);
    }

    /// Answers how it ended.
    fn run_with(&self, connection: &str, words: &[&str]) -> String {
        let run = Command::new(DRIVER)
            .args(["run".as_ref(), self.root.path().as_os_str(), connection.as_ref()])
            .arg(scripts().join("manifest.json"))
            .args(["--", "python3"])
            .arg(scripts().join("connector.py"))
            .args(words)
            .output()
            .expect("the driver");
        assert!(run.status.success(), "{run:?}");
        String::from_utf8_lossy(&run.stdout).trim().to_owned()
    }

    /// Runs a script against it, which must succeed.
    fn browse(&self, script: &str, argument: &str) -> String {
        let settings = serde_json::json!({
            "address": self.address, "link": self.link, "token": self.token(), "driver": DRIVER,
            "root": self.root.path(), "chromium": chromium(), "artefacts": artefacts(),
            "paint": if full_size() { 300 } else { 2000 },
        });
        let output = Command::new("node")
            .arg(scripts().join(script))
            .arg(argument)
            .env("CONSOLE_TEST", settings.to_string())
            .output()
            .expect("node");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        said
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

fn chromium() -> String {
    std::env::var("CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".to_owned())
}

/// Pictures stay here, for whoever wants to look.
fn artefacts() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("console-pictures")
}

#[test]
fn a_day_with_the_console() {
    let said = Console::start().browse("walk.mjs", "");
    print!("{said}");
    assert_eq!(said.matches("ok ").count(), 12, "{said}");
}

#[test]
fn texts_that_want_to_be_more_than_texts_stay_texts() {
    let payloads = payloads();
    let said = Console::start().browse("faults.mjs", &serde_json::to_string(&payloads).expect("texts"));
    assert_eq!(said.matches("ok ").count(), payloads.len() + 1, "{said}");
}

/// Some at once by default, each by itself at full size.
fn payloads() -> Vec<String> {
    const ALL: [&str; 14] = [
        "<script>window.pwned=1</script>",
        "<img src=x onerror=window.pwned=1>",
        "\"><svg onload=window.pwned=1>",
        "'-window.pwned=1-'",
        "</textarea></title></pre></details><script>window.pwned=1</script>",
        "<a href=\"javascript:window.pwned=1\" autofocus onfocus=window.pwned=1>x</a>",
        "[a link](javascript:window.pwned=1) ![](http://evil.test/x.png)",
        "<div hx-get=/api/v1/status hx-trigger=load hx-on::load=window.pwned=1>x</div>",
        "{{7*7}}${7*7}#{7*7}<%= 7*7 %>",
        "<iframe src=http://evil.test></iframe><object data=http://evil.test></object>",
        "<style>*{background:url(http://evil.test)}</style><link rel=stylesheet href=http://evil.test>",
        "\u{1b}[31mred\u{1b}]8;;http://evil.test\u{7}link\u{1b}]8;;\u{7}\u{9b}2J\u{1b}]52;c;eA==\u{7}",
        "abc\u{202e}txt.exe\u{2066}\u{200f}",
        "&lt;script&gt;&#60;script&#62;window.pwned=1&amp;",
    ];
    if full_size() {
        return ALL.map(str::to_owned).into();
    }
    vec![ALL[..6].concat(), ALL[6..].concat()]
}

#[test]
fn every_page_is_accessible_in_light_in_dark_and_on_a_phone() {
    let console = Console::start();
    for scenario in ["first", "second"] {
        console.run("letters", scenario);
    }
    console.run("mail", "fails");
    let pages = serde_json::json!({
        "overview": "/", "connection": "/connections/letters", "run": "/runs/letters-1", "failed-run": "/runs/mail-1",
        "gaps": "/gaps", "gap-list": "/connections/letters/gaps", "inbox": "/inbox", "data": "/data",
        "stream": "/data/letters/threads", "record": "/data/letters/threads/record?key=thread-0002",
        "sql": "/data/sql?q=SELECT+name,+records+FROM+streams", "settings": "/settings", "nothing": "/connections/none",
    });
    let said = console.browse("pictures.mjs", &pages.to_string());
    assert_eq!(said.lines().count(), 3 * 13, "{said}");
}

#[test]
fn what_an_owner_does_below_a_base_path() {
    let root = private_folder();
    drop(gleaner_store::Store::open(&root.path().join("store.db")).expect("a store"));
    let said = Console::start_below(root, "/my/gleaner").browse("owner.mjs", "");
    assert_eq!(said.matches("ok ").count(), 6, "{said}");
}

/// With a great many records and gaps, lists and figures come from indexes and counters.
#[test]
fn the_overview_is_fast_with_a_great_many_records_and_gaps() {
    let (records, gaps) = if full_size() { (1_000_000, 10_000) } else { (10_000, 1_500) };
    let console = Console::start();
    for connection in ["letters", "mail", "photos"] {
        console.run(connection, "first");
    }
    let ended = console.run_with("letters", &["many", &records.to_string(), &gaps.to_string()]);
    assert_eq!(ended, "succeeded");
    let token = console.token();
    for (path, limit) in [
        ("/", 100),
        ("/connections/letters", 100),
        ("/gaps", 100),
        ("/connections/letters/gaps?after=1000", 100),
        ("/data/letters/threads?after=m", 100),
    ] {
        let mut times = (0..100).map(|_| time(&console.address, path, &token)).collect::<Vec<_>>();
        times.sort_unstable();
        let (median, p99) = (times[50], times[98]);
        println!("{path}: median {median:?}, p99 {p99:?}, with {records} records and {gaps} gaps");
        // Neighbours on the machine make single answers late; the median tells what the page itself takes.
        let limit = Duration::from_millis(if full_size() { limit } else { 10 * limit });
        assert!(p99 < limit, "{path}: p99 {p99:?}");
    }
}

fn time(address: &str, path: &str, token: &str) -> Duration {
    use std::io::{Read, Write};
    let address = address.trim_start_matches("http://");
    let begin = Instant::now();
    let mut socket = std::net::TcpStream::connect(address).expect("it listens");
    write!(
        socket,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    )
    .expect("sent");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..answer.len().min(500)]));
    begin.elapsed()
}
