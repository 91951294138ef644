//! `gleaner serve` as a process: it runs what is due, goes on after a kill, ends in order, and tells its owner once.
//!
//! Connectors are scripts that write down what they fetch, as a provider would. Connections have names whose first moment
//! is a fraction of a second after they were added: others wait up to half a minute, so that many do not begin at once.

mod adding;
mod console;
mod killed;
mod owner;
mod stops;

use crate::place::{Place, python, signal};
use serde_json::Value;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Names that begin at once.
const NAMES: [&str; 4] = ["shop-483", "shop-1849", "shop-1886", "shop-1036"];
/// For a machine with other work.
const PATIENCE: Duration = Duration::from_secs(60);
/// Runs by itself, once an hour.
const MANIFEST: &str = r#"{"connector_id":"shop","connector_key":"shop","version":"VERSION","display_name":"Shop",
    "streams":[{"name":"orders","semantics":"mutable_state","primary_key":"id",
     "schema":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}}],
    "capabilities":{"human_interaction":["otp"],"refresh_policy":{"recommended_mode":"automatic","rationale":"a test",
     "recommended_interval_seconds":3600}}}"#;

/// A data root that is served.
struct Served {
    place: Place,
    service: Option<Child>,
}

impl Served {
    fn new() -> Self {
        let place = Place::new();
        place.write("manifest.json", &MANIFEST.replace("VERSION", "1"));
        Self { place, service: None }
    }

    /// A connection whose connector goes on like this after the prelude.
    fn add(&self, name: &str, script: &str) {
        let file = format!("{name}.py");
        self.place.write(&file, &format!("{}{script}", crate::place::PRELUDE));
        let words = ["add", "--manifest", "manifest.json", "--name", name, "--", python(), "-Su", &file];
        let answer = self.place.gleaner(&words);
        assert_eq!(answer.code, 0, "{answer:?}");
    }

    fn serve(&mut self, options: &[&str]) {
        // Each has a console of its own, unless it is told where.
        let told = options.iter().any(|option| option.starts_with("--listen"));
        let listen = (!told).then_some("--listen=127.0.0.1:0");
        let words = ["serve", "--notify-desktop=no"].into_iter().chain(listen).chain(options.iter().copied());
        let mut command = self.place.command(&words.collect::<Vec<_>>());
        self.service = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    }

    fn pid(&self) -> u32 {
        self.service.as_ref().unwrap().id()
    }

    /// Ends the service the hard way.
    fn kill(&mut self) {
        let mut service = self.service.take().unwrap();
        service.kill().unwrap();
        service.wait().unwrap();
    }

    /// Asks it to end, and says how long it took.
    fn stop(&mut self) -> Duration {
        let mut service = self.service.take().unwrap();
        let began = Instant::now();
        signal(&service.id().to_string(), "TERM");
        assert_eq!(service.wait().unwrap().code(), Some(0), "{}", self.log());
        began.elapsed()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place.home().join("logs/serve.log")).unwrap_or_default()
    }

    /// What is said about the next run of a connection.
    fn next(&self, name: &str) -> Value {
        crate::place::last_line(&self.place.gleaner(&["schedule", name, "--json"]).stdout)
    }

    /// Why the runs of a connection ended, the newest first.
    fn reasons(&self, name: &str) -> Vec<String> {
        let answer = self.place.gleaner(&["runs", name, "--json"]);
        let lines = answer.stdout.lines().map(crate::place::last_line);
        lines.map(|line| line["reason"].as_str().unwrap_or("open").to_owned()).collect()
    }

    /// Waits until something is so.
    fn wait(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < PATIENCE, "{what}\n{}", self.log());
            thread::sleep(Duration::from_millis(30));
        }
    }

    /// Every process that has to do with this data root, but for the service.
    fn processes(&self) -> Vec<u32> {
        let mark = self.place.path("").to_string_lossy().trim_end_matches('/').to_owned();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_ours = |pid: &u32| {
            let is_here = |link: &str| {
                fs::read_link(format!("/proc/{pid}/{link}")).is_ok_and(|at| at.to_string_lossy().contains(&mark))
            };
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let is_named = String::from_utf8_lossy(&words).contains(&mark);
            (is_here("cwd") || is_named) && crate::place::is_alive(*pid)
        };
        let service = self.service.as_ref().map(Child::id);
        pids.filter(is_ours).filter(|pid| Some(*pid) != service && *pid != std::process::id()).collect()
    }
}

/// A test that failed leaves nobody behind.
impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut service) = self.service.take() {
            drop(service.kill());
            drop(service.wait());
        }
    }
}

const TWO: &str = "record(0); slice(1); record(1); slice(2); done(2); end()";

#[test]
fn what_is_added_while_it_serves_is_run_and_what_comes_next_is_said() {
    let mut served = Served::new();
    served.add(NAMES[0], TWO);
    served.serve(&[]);
    served.wait("a run of the first", || served.reasons(NAMES[0]) == ["succeeded"]);
    served.add(NAMES[1], TWO);
    served.wait("a run of what came later", || served.reasons(NAMES[1]) == ["succeeded"]);
    let next = served.next(NAMES[0]);
    assert_eq!((&next["code"], &next["kind"]), (&"cadence".into(), &"full".into()), "{next}");
    assert!(next["next_at"].as_str().is_some_and(|at| at.starts_with("20")), "{next}");
    let pid = served.pid().to_string();
    for words in [&["schedule"][..], &["service", "status"]] {
        let answer = served.place.gleaner(words);
        assert!(answer.stdout.contains(&format!("process {pid} serves")), "{answer:?}");
    }
    let status = served.place.gleaner(&["status"]).stdout;
    assert!(status.contains("  next: 20") && status.contains("it is time by then"), "{status}");
    let why = served.place.gleaner(&["why", NAMES[0]]).stdout;
    assert!(why.contains("The service runs it at 20"), "{why}");
    // A pause is noticed, and said.
    assert_eq!(served.place.gleaner(&["pause", NAMES[0]]).code, 0);
    assert_eq!(served.next(NAMES[0])["code"], "paused");
}

#[test]
fn a_second_service_is_refused_and_told_of_the_first() {
    let mut served = Served::new();
    served.add(NAMES[0], TWO);
    served.serve(&[]);
    served.wait("a run", || served.reasons(NAMES[0]) == ["succeeded"]);
    let second = served.place.gleaner(&["serve"]);
    assert_eq!(second.code, 11, "{second:?}");
    assert!(second.stderr.contains(&format!("process {} serves this data root since 20", served.pid())), "{second:?}");
    // Another data root is nobody's business.
    let mut other = Served::new();
    other.add(NAMES[0], TWO);
    other.serve(&[]);
    other.wait("a run", || other.reasons(NAMES[0]) == ["succeeded"]);
}

#[test]
fn a_run_that_stops_at_its_budget_is_gone_on_with_and_does_not_rest() {
    let served = Served::new();
    let budget = r#"
for n in range(3): record(n)
gap("rest", reason="retry_exhausted", last_error={"class": "run_cap_deferred"})
slice(3); done(3); end()"#;
    served.add(NAMES[0], budget);
    assert_eq!(served.place.gleaner(&["run", NAMES[0], "--quiet"]).code, 3);
    assert_eq!(served.next(NAMES[0])["code"], "remainder");
    let rests = served.place.gleaner(&["query", "SELECT count(*) AS n FROM cooldowns", "--json"]);
    assert_eq!(crate::place::last_line(&rests.stdout)["n"], 0, "{rests:?}");
    // The same without getting on: not again every minute.
    assert_eq!(served.place.gleaner(&["run", NAMES[0], "--quiet"]).code, 3);
    assert_eq!(served.next(NAMES[0])["code"], "cadence", "the records were the same");
    // Pressure does arm a rest.
    served.add(NAMES[1], r#"gap("k", reason="rate_limited"); slice(0); done(0); end()"#);
    assert_eq!(served.place.gleaner(&["run", NAMES[1], "--quiet"]).code, 3);
    assert_eq!(served.next(NAMES[1])["code"], "probe_while_resting");
}

#[test]
fn a_schedule_is_set_shown_and_refused_as_a_whole() {
    let served = Served::new();
    served.add(NAMES[0], TWO);
    let set = |words: &[&str]| served.place.gleaner(&[&["schedule", NAMES[0]], words].concat());
    let answer = set(&["--every", "6h", "--quiet", "22:00-07:00", "--zone", "Europe/Berlin"]);
    assert!(answer.stdout.contains("every 6 h, not 22:00-07:00 (Europe/Berlin)"), "{answer:?}");
    for wrong in [&["--cron", "soon"][..], &["--zone", "Mars/Base"], &["--every", "1s"], &["--quiet", "22"]] {
        let answer = set(wrong);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains("nothing was changed"), "{answer:?}");
    }
    assert_eq!(served.next(NAMES[0])["set"]["every_seconds"], 21_600);
    assert_eq!(set(&["--cron", "0 3 * * *", "--quiet", "default"]).code, 0);
    let next = served.next(NAMES[0]);
    assert_eq!((&next["set"]["every_seconds"], &next["set"]["quiet"]), (&Value::Null, &Value::Null), "{next}");
    assert_eq!(set(&["--mode", "manual"]).code, 0);
    assert_eq!(served.next(NAMES[0])["code"], "manual_by_owner");
    assert_eq!(set(&["--mode", "default"]).code, 0);
    assert_eq!(served.next(NAMES[0])["code"], "first_run");
    let unknown = served.place.gleaner(&["schedule", "nobody"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
}

/// CPU time of a process so far, over all its threads.
fn cpu(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let nanos = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

fn resident_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_service_of_fifty_connections_that_has_nothing_to_do_costs_next_to_nothing() {
    use gleaner_engine::WallTime;
    use gleaner_protocol::{Manifest, ManifestOrigin};
    let mut served = Served::new();
    served.add(NAMES[0], TWO);
    let text = MANIFEST.replace("VERSION", "1").replace("automatic", "manual");
    let manifest = Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).unwrap();
    let mut store = gleaner_store::Store::open(&served.place.home().join("store.db")).unwrap();
    for number in 0..49 {
        store.register(&format!("c{number}"), &text, &manifest, WallTime::default()).unwrap();
    }
    drop(store);
    served.serve(&[]);
    served.wait("a run", || served.reasons(NAMES[0]) == ["succeeded"]);
    thread::sleep(Duration::from_secs(5));
    let lasts = Duration::from_secs(if crate::place::is_full_size() { 60 } else { 6 });
    let before = cpu(served.pid());
    thread::sleep(lasts);
    let (used, memory) = (cpu(served.pid()) - before, resident_kb(served.pid()));
    let share = used.as_secs_f64() / lasts.as_secs_f64();
    println!("50 connections, nothing to do: {:.3} % of a core, at most {} MB", share * 100.0, memory / 1024);
    assert!(share < 0.001, "{:.3} %", share * 100.0);
    assert!(memory < 40 * 1024, "{memory} KB");
}

#[test]
fn the_unit_that_is_printed_starts_this_program_on_this_data_root() {
    let served = Served::new();
    let answer = served.place.gleaner(&["service", "install", "--print"]);
    let home = served.place.home();
    let line = format!("ExecStart=\"{}\" serve --quiet --home \"{}\"", env!("CARGO_BIN_EXE_gleaner"), home.display());
    assert!(answer.stdout.lines().any(|known| known == line), "{answer:?}");
    // A unit that somebody else wrote is left alone.
    let folder = served.place.path("config/systemd/user");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("gleaner.service"), "[Service]\nExecStart=/bin/true\n").unwrap();
    for words in [&["service", "install", "--no-start"][..], &["service", "uninstall"]] {
        let mut command: Command = served.place.command(words);
        let answer = crate::place::answer(command.env("XDG_CONFIG_HOME", served.place.path("config")));
        assert_eq!(answer.code, 2, "{answer:?}");
    }
    fs::remove_file(folder.join("gleaner.service")).unwrap();
    let mut command = served.place.command(&["service", "install", "--no-start"]);
    let answer = crate::place::answer(command.env("XDG_CONFIG_HOME", served.place.path("config")));
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(fs::read_to_string(folder.join("gleaner.service")).unwrap().contains("Type=notify"));
}
