//! `gleaner demo`: the whole thing in a minute, with no account anywhere.
//!
//! Starts a provider with a limit that nobody tells, collects from it with a real connector process, kills
//! itself half-way, goes on, and ends with a plain account. Everything goes through `gleaner run`, started
//! as a program: nothing here is faked.

use crate::args::collect::DemoArgs;
use crate::demo::{self, LOST, MANIFEST, NOTES, provider};
use crate::error::CliError;
use crate::terminal::output::{Output, Tone};
use gleaner_base::live_line::LiveLine;
use gleaner_base::outside::one_line;
use gleaner_base::private;
use gleaner_lab::builtin;
use gleaner_lab::oracle;
use gleaner_lab::scenario::Scenario;
use gleaner_store::{GapFilter, PAGE_ROWS_MAX};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The provider: ten a second, twenty at once, and it says nothing but 429.
const SCENARIO: &str = "bucket-bare";
/// The rate is drawn over this many columns.
const COLUMNS: usize = 60;
/// Names that a process before us with our number may have left.
const FOLDERS_TRIED: u32 = 100;
/// No part of it takes longer than this.
const PART_MAX: Duration = Duration::from_secs(90);

/// What is shown while it goes on.
struct Shown {
    live: LiveLine,
    json: bool,
    began: Instant,
    records: u64,
    /// Requests per second, as the connector reports them.
    rates: Vec<f64>,
}

pub(crate) fn run(args: &DemoArgs, out: &mut Output) -> Result<(), CliError> {
    let scenario = scenario()?;
    let provider = provider::start(&scenario).map_err(|error| failed("cannot listen on 127.0.0.1", &error))?;
    let folder = make_folder()?;
    let url = format!("http://{}", provider.address);
    if !args.json {
        out.line(&format!("A provider is running at {url}. It has {NOTES} notes and an undocumented rate limit."))?;
        out.line("")?;
    }
    let ended = collect(args, &folder, &url, out).and_then(|(shown, before_the_kill)| {
        let account = Account::new(&folder, &provider, &scenario, &shown, before_the_kill)?;
        account.check(&folder)?;
        Ok(account)
    });
    match ended {
        Ok(account) if args.json => out.line(&account.as_json().to_string())?,
        Ok(account) => account.print(out)?,
        Err(error) => {
            if args.json {
                out.line(&json!({"message_type": "demo_failed", "error": error.message()}).to_string())?;
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Both runs. Answers how many notes were saved when the first one was killed.
fn collect(args: &DemoArgs, folder: &Path, url: &str, out: &mut Output) -> Result<(Shown, u64), CliError> {
    let mut shown = Shown::new(args.json);
    let ended = part(folder, url, &mut shown, Some(NOTES / 2));
    shown.live.clear();
    ended?;
    let before_the_kill = shown.records;
    if !args.json {
        out.line(&format!("Half-way: the run was killed with {before_the_kill} notes saved. Starting it again."))?;
    }
    let ended = part(folder, url, &mut shown, None);
    shown.live.clear();
    ended?;
    Ok((shown, before_the_kill))
}

fn scenario() -> Result<Scenario, CliError> {
    let missing = || CliError::usage(format!("there is no scenario {SCENARIO}"), "this is a bug; please report it");
    builtin::find(SCENARIO).transpose()?.ok_or_else(missing)
}

/// A data root of its own, which is left for a look. Never a folder that was there: it might be somebody's
/// who waits for us to write into it.
fn make_folder() -> Result<PathBuf, CliError> {
    let name = |turn: u32| std::env::temp_dir().join(format!("gleaner-demo-{}-{turn}", std::process::id()));
    let make = |turn| (name(turn), private::make_folder(&name(turn)));
    let made = (0..FOLDERS_TRIED).map(make).find(|(_, made)| !matches!(made, Ok(false)));
    let (folder, made) = made.unwrap_or_else(|| (name(0), Err(ErrorKind::AlreadyExists.into())));
    made.and_then(|_| fs::write(folder.join("manifest.json"), MANIFEST))
        .map_err(|error| failed(&folder.display().to_string(), &error))?;
    Ok(folder)
}

fn failed(what: &str, error: &io::Error) -> CliError {
    CliError::failed(format!("{what}: {error}"), "free some space or ports, then try again")
}

/// One run, killed once so many notes are saved; without such a number it must succeed.
fn part(folder: &Path, url: &str, shown: &mut Shown, kill_at: Option<u64>) -> Result<(), CliError> {
    let mut child = start(folder, url)?;
    let output = child.stdout.take().map(BufReader::new);
    let before = shown.records;
    let began = Instant::now();
    let (mut is_half_way, mut is_slow, mut succeeded) = (false, false, false);
    for line in output.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        shown.take(&message, before);
        is_half_way = kill_at.is_some_and(|notes| shown.records >= notes);
        is_slow = began.elapsed() > PART_MAX;
        if is_half_way || is_slow {
            // Not asked to stop: killed, as a crash would.
            child.kill().map_err(|error| failed("cannot end the run", &error))?;
            break;
        }
        succeeded = message["message_type"] == "run_finished" && message["status"] == "succeeded";
    }
    let status = child.wait().map_err(|error| failed("cannot wait for the run", &error))?;
    if is_half_way || (kill_at.is_none() && succeeded) {
        return Ok(());
    }
    let slow = is_slow.then(|| format!("the run did not finish within {} s", PART_MAX.as_secs()));
    let cause = slow.or_else(|| cause_of(folder)).unwrap_or_else(|| format!("the run ended with {status}"));
    Err(not_as_expected(folder, &cause, shown.records))
}

/// Why the last run ended, in the connector's own words where there are any.
fn cause_of(folder: &Path) -> Option<String> {
    let reader = gleaner_store::Reader::open(&folder.join("home").join("store.db")).ok()?;
    let run = reader.runs("demo", 1).ok()?.into_iter().next()?;
    run.ended().map(|ended| ended.cause())
}

fn not_as_expected(folder: &Path, cause: &str, saved: u64) -> CliError {
    let home = one_line(&folder.join("home").display().to_string());
    CliError::failed(
        format!("the demo failed: {}; {saved} of {} notes are saved", one_line(cause), NOTES - LOST.len() as u64),
        format!("`gleaner runs demo --home {home}` shows its runs"),
    )
}

fn start(folder: &Path, url: &str) -> Result<Child, CliError> {
    let ourselves = std::env::current_exe().map_err(|error| failed("cannot find this program", &error))?;
    let mut command = Command::new(&ourselves);
    command.arg("run").arg("--manifest").arg(folder.join("manifest.json")).args(["--json", "--interact", "none"]);
    command.arg("--home").arg(folder.join("home")).arg("--").arg(&ourselves).args(["connector", "demo"]);
    command.env(demo::URL, url).stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().map_err(|error| failed("cannot start the run", &error))
}

impl Shown {
    fn new(json: bool) -> Self {
        Self { live: LiveLine::new(!json), json, began: Instant::now(), records: 0, rates: Vec::new() }
    }

    fn take(&mut self, message: &Value, before: u64) {
        match message["message_type"].as_str() {
            Some("saved") => self.records = before + message["records_accepted"].as_u64().unwrap_or(0),
            Some("progress") => self.rates.extend(message["rate_per_min"].as_f64().map(|rate| rate / 60.0)),
            _ => {}
        }
        if self.json && message["message_type"] == "saved" {
            let line = json!({"message_type": "demo_progress", "records": self.records, "seconds": self.seconds()});
            let _written = writeln!(io::stdout(), "{line}");
        }
        self.draw();
    }

    fn seconds(&self) -> f64 {
        (self.began.elapsed().as_secs_f64() * 10.0).round() / 10.0
    }

    fn draw(&self) {
        let rate = self.rates.last().copied().unwrap_or(0.0);
        self.live.show(|| {
            let (seconds, records, bars) = (self.seconds(), self.records, sparkline(&self.rates, 30));
            format!("{seconds:>5.1} s  {records:>3} notes saved  {rate:>4.1} requests/s  {bars}")
        });
    }
}

/// Values as a row of small bars, the newest at the right.
fn sparkline(values: &[f64], columns: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bar = |value: f64| BARS[((value / most * 7.0).round().clamp(0.0, 7.0)) as usize];
    let columns = columns.min(values.len());
    (0..columns).map(|column| bar(values[column * values.len() / columns])).collect()
}

/// What came of it.
struct Account {
    records: u64,
    /// The keys of what is missing and known to be.
    missing: BTreeSet<String>,
    requests: u64,
    rejected: u64,
    refetched: u64,
    seconds: f64,
    oracle_seconds: f64,
    before_the_kill: u64,
    rate: f64,
    /// What nobody told.
    limit: f64,
    sparkline: String,
    store: PathBuf,
    home: PathBuf,
}

impl Account {
    fn new(
        folder: &Path,
        provider: &provider::Running,
        scenario: &Scenario,
        shown: &Shown,
        before_the_kill: u64,
    ) -> Result<Self, CliError> {
        let home = folder.join("home");
        let reader = gleaner_store::Reader::open(&home.join("store.db"))?;
        let records = reader.streams("demo")?.iter().map(|stream| stream.records).sum();
        let gaps = reader.gaps("demo", GapFilter::default(), 0, PAGE_ROWS_MAX)?;
        let missing = gaps.into_iter().map(|gap| gap.record_key.unwrap_or_default()).collect();
        let seen = provider.seen();
        // What everyone has to ask for: the pages of the list, and each note.
        let needed = NOTES.div_ceil(demo::PAGE) + NOTES;
        let best = oracle::best(&Scenario { backlog: needed, ..scenario.with_workers(demo::CONCURRENCY) }, 1);
        Ok(Self {
            records,
            missing,
            requests: seen.requests,
            rejected: seen.rejected,
            refetched: (seen.requests - seen.rejected).saturating_sub(needed),
            seconds: shown.seconds(),
            oracle_seconds: best.completion_s,
            before_the_kill,
            rate: shown.rates.last().copied().unwrap_or(0.0),
            limit: scenario.limits.iter().filter_map(|limit| limit.rate_per_s).fold(f64::INFINITY, f64::min),
            sparkline: sparkline(&shown.rates, COLUMNS),
            store: home.join("store.db"),
            home,
        })
    }

    /// What the provider has must be what the store has: every note that is there, and a gap for each that is not.
    fn check(&self, folder: &Path) -> Result<(), CliError> {
        let lost = LOST.iter().map(u64::to_string).collect::<BTreeSet<_>>();
        let (stored, there) = (self.records, NOTES - lost.len() as u64);
        if stored == there && self.missing == lost {
            return Ok(());
        }
        let keys = |keys: &BTreeSet<String>| keys.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let (missing, lost) = (keys(&self.missing), keys(&lost));
        let cause = format!(
            "the account is wrong: {stored} of {there} notes are stored, and the gaps are [{missing}], not [{lost}]"
        );
        Err(not_as_expected(folder, &cause, stored))
    }

    fn print(&self, out: &mut Output) -> Result<(), CliError> {
        let Self { records, requests, rejected, refetched, seconds, oracle_seconds, .. } = self;
        let gaps = self.missing.len();
        let share = *rejected as f64 * 100.0 / (*requests).max(1) as f64;
        out.line("")?;
        out.line(
            &out.paint(Tone::Strong, &format!("{records} notes are stored, {gaps} are missing and known to be.")),
        )?;
        out.line(&format!("  requests   {requests}, of which {rejected} were refused ({share:.1} %)"))?;
        let (found, limit) = (self.rate, self.limit);
        out.line(&format!("  pace       {found:.1} per second were found; the hidden limit is {limit}"))?;
        out.line(&format!("  over time  {}", out.paint(Tone::Accepted, &self.sparkline)))?;
        out.line(&format!("  time       {seconds:.1} s; best possible time: {oracle_seconds:.1} s"))?;
        let twice = if *refetched == 1 { "request was" } else { "requests were" };
        let kill = format!("after {} notes were saved; {refetched} {twice} made twice", self.before_the_kill);
        out.line(&format!("  the kill   {kill}"))?;
        out.line(&format!("  the store  {}", one_line(&self.store.display().to_string())))?;
        out.line("")?;
        out.line("Look at it:")?;
        let home = one_line(&self.home.display().to_string());
        out.line(&format!("  gleaner status --home {home}"))?;
        out.line(&format!("  gleaner gaps demo --home {home}"))?;
        out.line(&format!(
            "  sqlite3 {} 'SELECT id, title FROM \"demo.notes\" LIMIT 5'",
            one_line(&self.store.display().to_string())
        ))?;
        Ok(())
    }

    fn as_json(&self) -> Value {
        json!({
            "message_type": "demo_finished", "records": self.records, "gaps_open": self.missing.len(),
            "requests": self.requests, "rejected": self.rejected, "requests_made_twice": self.refetched,
            "saved_before_the_kill": self.before_the_kill, "rate_per_s": self.rate, "limit_per_s": self.limit, "seconds": self.seconds,
            "oracle_seconds": self.oracle_seconds, "store": self.store.display().to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::sparkline;

    #[test]
    fn a_sparkline_has_as_many_bars_as_fit() {
        assert_eq!(sparkline(&[0.0, 5.0, 10.0], 10), "▁▅█");
        assert_eq!(sparkline(&[1.0; 100], 4).chars().count(), 4);
        assert_eq!(sparkline(&[], 4), "");
    }
}
