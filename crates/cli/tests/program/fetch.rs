//! `gleaner fetch` as a user meets it: killed, interrupted, run again, and given nonsense.

use crate::support::{folder, gleaner};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Requests at a time: at most so many are repeated after a kill.
const CONCURRENCY: usize = 64;
const KILLS: usize = 5;
const HOSTS: usize = 40;

fn urls_in_all() -> usize {
    if std::env::var_os("GLEANER_TEST_ALL").is_some() { 20_000 } else { 2_000 }
}

/// Hosts on 127.0.1.x that count who asks for what, and know what a version is.
struct Hosts {
    /// Its threads serve.
    _runtime: Runtime,
    addresses: Vec<SocketAddr>,
    asked: Arc<Mutex<HashMap<String, usize>>>,
}

impl Hosts {
    fn start(count: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let asked = Arc::default();
        let listen = async |number: usize| {
            let ip = [127, 0, 1, u8::try_from(number + 1).unwrap()];
            TcpListener::bind(SocketAddr::from((ip, 0))).await.unwrap()
        };
        let mut addresses = Vec::new();
        for number in 0..count {
            let listener = runtime.block_on(listen(number));
            addresses.push(listener.local_addr().unwrap());
            let asked = Arc::clone(&asked);
            runtime.spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, Arc::clone(&asked)));
                }
            });
        }
        Self { _runtime: runtime, addresses, asked }
    }

    fn urls(&self, count: usize) -> Vec<String> {
        (0..count).map(|page| format!("http://{}/{page}", self.addresses[page % self.addresses.len()])).collect()
    }

    /// How often pages were asked for; robots.txt is not counted.
    fn requests(&self) -> usize {
        self.asked.lock().unwrap().values().sum()
    }
}

async fn serve(stream: TcpStream, asked: Arc<Mutex<HashMap<String, usize>>>) -> Option<()> {
    let address = stream.local_addr().ok()?;
    let mut stream = BufReader::new(stream);
    loop {
        let (mut path, mut version) = (String::new(), None);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if path.is_empty() {
                path = line.split(' ').nth(1)?.to_owned();
            } else if let Some((name, value)) = line.split_once(": ")
                && name.eq_ignore_ascii_case("if-none-match")
            {
                version = Some(value.to_owned());
            }
        }
        let answer = if path == "/robots.txt" {
            "HTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n".to_owned()
        } else {
            *asked.lock().unwrap().entry(format!("http://{address}{path}")).or_default() += 1;
            let tag = format!("\"{path}\"");
            if version.as_ref() == Some(&tag) {
                format!("HTTP/1.1 304 x\r\netag: {tag}\r\n\r\n")
            } else {
                let body = format!("page {path} of {address}");
                format!("HTTP/1.1 200 x\r\netag: {tag}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            }
        };
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
}

/// A list in a folder of its own, and where its results go.
fn list(test: &str, urls: &[String]) -> (PathBuf, PathBuf) {
    let place = folder(test);
    let out = place.join("out");
    if out.exists() {
        fs::remove_dir_all(&out).unwrap();
    }
    let list = place.join("urls.txt");
    fs::write(&list, urls.join("\n")).unwrap();
    (list, out)
}

fn start(list: &Path, out: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    command.arg("fetch").arg(list).arg("--out").arg(out).arg("-q");
    command.args(["--concurrency", &CONCURRENCY.to_string()]).stdout(Stdio::null()).spawn().unwrap()
}

fn lines_of(file: &Path) -> usize {
    fs::read(file).map_or(0, |bytes| bytes.iter().filter(|&&byte| byte == b'\n').count())
}

/// Waits until so many lines are there, or the program has ended.
fn wait_for_lines(child: &mut Child, file: &Path, lines: usize) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while lines_of(file) < lines && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "{} lines after five minutes", lines_of(file));
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the end; the exit code and the most memory that it used, in KiB.
fn finish(mut child: Child) -> (i32, u64) {
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok());
        most = most.max(peak.unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            return (status.code().unwrap(), most);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn results(out: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(out.join("results.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_fetch_that_is_killed_five_times_stores_each_url_once_and_the_next_one_finds_nothing_new() {
    let (total, hosts) = (urls_in_all(), Hosts::start(HOSTS));
    let urls = hosts.urls(total);
    let (list, out) = list("fetch_killed", &urls);
    let journal = out.join("unfinished.jsonl");
    for kill in 1..=KILLS {
        let mut child = start(&list, &out);
        wait_for_lines(&mut child, &journal, total * kill / (KILLS + 1));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().code(), None, "it was killed, and had not ended before");
    }
    let before_last = lines_of(&journal);
    let started = Instant::now();
    let (code, memory) = finish(start(&list, &out));
    assert_eq!(code, 0);
    let results_found = results(&out);
    let found: HashSet<&str> = results_found.iter().map(|line| line["url"].as_str().unwrap()).collect();
    assert_eq!((results_found.len(), found.len()), (total, total), "each once");
    for line in results_found.iter().step_by(97) {
        let body = fs::read_to_string(out.join(line["path"].as_str().unwrap())).unwrap();
        let url = line["url"].as_str().unwrap().trim_start_matches("http://");
        let (host, page) = url.split_once('/').unwrap();
        assert_eq!(body, format!("page /{page} of {host}"));
    }
    let repeated = hosts.requests() - total;
    assert!(repeated <= KILLS * CONCURRENCY, "{repeated} requests were repeated after {KILLS} kills");
    println!(
        "{total} URLs over {HOSTS} hosts, {KILLS} kills: {repeated} requests repeated, {before_last} done before the \
         last run, which took {:.1} s; {} MB at most",
        started.elapsed().as_secs_f64(),
        memory / 1024
    );
    let first = hosts.requests();
    let (code, memory_again) = finish(start(&list, &out));
    assert_eq!((code, hosts.requests() - first), (0, total));
    let unchanged = results(&out).iter().filter(|line| line["status"] == 304 && line["path"].is_string()).count();
    println!("second pass: {unchanged} of {total} unchanged; {} MB at most", memory_again / 1024);
    assert!(unchanged * 100 >= total * 95, "{unchanged} of {total}");
    assert!(memory.max(memory_again) < 150 * 1024, "{memory} and {memory_again} KiB");
}

#[test]
fn ctrl_c_ends_a_fetch_soon_and_the_same_command_goes_on() {
    let hosts = Hosts::start(4);
    let urls = hosts.urls(40);
    let (list, out) = list("fetch_interrupted", &urls);
    let mut child = start(&list, &out);
    wait_for_lines(&mut child, &out.join("unfinished.jsonl"), 4);
    let pressed = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let (code, _) = finish(child);
    assert_eq!(code, 130);
    assert!(pressed.elapsed() < Duration::from_secs(10));
    let done = lines_of(&out.join("unfinished.jsonl"));
    assert!((4..40).contains(&done), "{done}");
    let (code, _) = finish(start(&list, &out));
    assert_eq!((code, results(&out).len()), (0, 40));
}

#[test]
fn what_a_fetch_says_and_how_it_ends() {
    let hosts = Hosts::start(1);
    let mut urls = hosts.urls(2);
    urls.push("http://me:secret@127.0.0.1/".to_owned());
    let (list, out) = list("fetch_says", &urls);
    let (list, out) = (list.to_str().unwrap(), out.to_str().unwrap());
    let answer = gleaner(&["fetch", list, "--out", out]);
    assert_eq!((answer.code, answer.stdout.lines().count()), (3, 3), "{answer:?}");
    assert!(answer.stderr.contains("2 fetched, 1 failed"), "{}", answer.stderr);
    assert!(!(answer.stdout + &answer.stderr).contains("secret"));
    for wrong in [
        vec!["fetch", "/nowhere/urls.txt", "--out", out],
        vec!["fetch", list, "--out", out, "--max-rate", "NaN"],
        vec!["fetch", list, "--out", out, "--max-body", "0"],
        vec!["fetch", list, "--out", out, "--group", "a..b"],
        vec!["fetch", list, "--out", out, "--user-agent", "a\nb"],
    ] {
        let answer = gleaner(&wrong);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{wrong:?}: {answer:?}");
    }
    let lock = fs::File::open(Path::new(out).join("lock")).unwrap();
    lock.lock().unwrap();
    let busy = gleaner(&["fetch", list, "--out", out]);
    assert_eq!(busy.code, 11, "{busy:?}");
}

/// A value of the metrics by the beginning of its line.
fn metric(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[test]
fn the_state_of_the_hosts_is_written_as_json_and_for_prometheus() {
    let hosts = Hosts::start(2);
    let (list, out) = list("fetch_status", &hosts.urls(6));
    let (status, metrics) = (out.with_file_name("status.json"), out.with_file_name("metrics.prom"));
    for file in [&status, &metrics] {
        let _nothing_there = fs::remove_file(file);
    }
    let fetch = |more: &[&str]| {
        let mut words = vec!["fetch", list.to_str().unwrap(), "--out", out.to_str().unwrap(), "-q", "--no-robots"];
        words.extend(more);
        gleaner(&words)
    };
    assert_eq!(fetch(&[]).code, 0);
    assert!(!status.exists() && !metrics.exists(), "nobody asked for them");
    let files = ["--status", status.to_str().unwrap(), "--metrics", metrics.to_str().unwrap()];
    let answer = fetch(&[&files[..], &["--set", "snapshot_keys_max=1"]].concat());
    assert_eq!(answer.code, 0, "{answer:?}");
    let shown: serde_json::Value = serde_json::from_slice(&fs::read(&status).unwrap()).unwrap();
    for (field, expected) in [("granted", 6), ("known", 2), ("denied", 0), ("circuits_open", 0)] {
        assert_eq!(shown[field], expected, "{field} in {shown:#}");
    }
    let host = &shown["hosts"][0];
    assert_eq!(shown["hosts"].as_array().unwrap().len(), 1, "as many as are allowed: {shown:#}");
    for field in ["domain", "rate_per_s", "tokens", "latency_mean_ms", "latency_p95_ms", "error_rate", "circuit"] {
        assert!(!host[field].is_null(), "{field} in {host:#}");
    }
    assert_eq!((host["circuit"].as_str(), host["failures_in_row"].as_u64()), (Some("closed"), Some(0)));
    let text = fs::read_to_string(&metrics).unwrap();
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert_eq!(metric(&text, "gleaner_domains_granted_total"), Some(6.0), "{text}");
    assert_eq!(metric(&text, "gleaner_domains_known"), Some(2.0), "{text}");
    let label = format!("gleaner_domains_circuit{{domain=\"{}\"}}", host["domain"].as_str().unwrap());
    assert_eq!(metric(&text, &label), Some(0.0), "{text}");
    let nowhere = fetch(&["--status", "/nowhere/status.json"]);
    assert!(nowhere.code == 1 && nowhere.stderr.contains("--status /nowhere/status.json"), "{nowhere:?}");
}

#[test]
fn a_host_that_fails_is_seen_in_its_state() {
    // Nobody listens there.
    let urls = (0..6).map(|page| format!("http://127.0.1.250:1/{page}")).collect::<Vec<_>>();
    let (list, out) = list("fetch_status_of_a_dead_host", &urls);
    let status = out.with_file_name("status.json");
    let (list, out) = (list.to_str().unwrap(), out.to_str().unwrap());
    let fast = ["--set", "failures_in_row=2", "--set", "retry_base=1ms", "--max-wait", "1", "--no-robots", "-q"];
    let words = [&["fetch", list, "--out", out, "--status", status.to_str().unwrap()], &fast[..]].concat();
    assert_eq!(gleaner(&words).code, 3);
    let shown: serde_json::Value = serde_json::from_slice(&fs::read(&status).unwrap()).unwrap();
    assert_eq!((&shown["circuits_open"], &shown["hosts"][0]["circuit"]), (&1.into(), &"open".into()), "{shown:#}");
}

#[test]
fn hosts_are_governed_as_the_file_says_and_the_command_line_says_more() {
    let hosts = Hosts::start(1);
    let (list, out) = list("fetch_settings", &hosts.urls(4));
    let home = out.with_file_name("home");
    fs::create_dir_all(&home).unwrap();
    let status = out.with_file_name("status.json");
    let rate = |file: &str, more: &[&str]| {
        fs::write(home.join("config.toml"), file).unwrap();
        // Without the paces that the run before has learned.
        let _nothing_there = fs::remove_dir_all(&out);
        let paths = ["--out", out.to_str().unwrap(), "--home", home.to_str().unwrap()];
        let words = ["--status", status.to_str().unwrap(), "--no-robots", "-q"];
        let answer = gleaner(&[&["fetch", list.to_str().unwrap()], &paths[..], &words, more].concat());
        if answer.code != 0 {
            return Err(answer);
        }
        let shown: serde_json::Value = serde_json::from_slice(&fs::read(&status).unwrap()).unwrap();
        Ok(shown["hosts"][0]["rate_per_s"].as_f64().unwrap())
    };
    let fixed = "[fetch]\nstrategy = \"fixed\"\ninitial_per_s = 12.5\n";
    assert_eq!(rate(fixed, &[]).unwrap(), 12.5);
    assert_eq!(rate(fixed, &["--set", "initial_per_s=25"]).unwrap(), 25.0);
    for (file, part) in [
        ("[fetch]\ninitial_per_s = \"fast\"\n", "fetch.initial_per_s: invalid value 'initial_per_s=fast'"),
        ("[fetch]\nspeed = 1\n", "there is no option fetch.speed"),
        ("[fetch]\nmin_per_s = 60\n", "slowest_interval is shorter than ceiling_interval"),
    ] {
        let answer = rate(file, &[]).unwrap_err();
        assert!(answer.code == 2 && answer.stderr.contains(part), "{file}: {answer:?}");
    }
    fs::write(home.join("config.toml"), fixed).unwrap();
    let shown = gleaner(&["config", "show", "--home", home.to_str().unwrap()]).stdout;
    let line = shown.lines().find(|line| line.starts_with("fetch.initial_per_s")).unwrap_or_default();
    assert!(line.contains("12.5") && line.contains("config.toml line 3"), "{shown}");
    let line = shown.lines().find(|line| line.starts_with("fetch.max_per_s")).unwrap_or_default();
    assert!(line.contains("50") && line.ends_with("default"), "{shown}");
}
