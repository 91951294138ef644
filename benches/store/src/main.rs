//! What the store costs: CPU time of `store-driver ingest` next to that of the smallest program that
//! keeps the same lines, side by side in one run, and the peak memory of both.
//!
//! `store_cost STORE_DRIVER [records] [rounds]`. Lines come through a pipe. Why CPU time: both
//! programs are one thread, and what a neighbour on the machine does to the wall clock is no property
//! of ours. Rounds alternate, and the median of their ratios counts. Exit 1 when a bound is broken.

use nix::sys::resource::{UsageWho, getrusage};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// CPU time that the whole account may cost, next to the smallest program whose table has the same key.
const RATIO_MAX: f64 = 1.5;
/// Peak memory in KiB.
const PEAK_MAX: u64 = 50 * 1000;
/// How much more memory ten times the records may take.
const PEAK_GROWTH_MAX: f64 = 1.2;

const MANIFEST: &str = r#"{"connector_id":"bench","connector_key":"bench","version":"1","streams":[
 {"name":"messages","semantics":"mutable_state","primary_key":"id","schema":{"type":"object",
  "required":["id","subject","sent_at","from"],
  "properties":{"id":{"type":"string"},"subject":{"type":"string"},"sent_at":{"type":"string"},
   "from":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"mail":{"type":["string","null"]}}},
   "size":{"type":"integer","minimum":0},"read":{"type":"boolean"},"score":{"type":"number"},
   "labels":{"type":"array","items":{"type":"string"}},"thread":{"type":["string","null"]},
   "kind":{"type":"string","enum":["mail","note","chat"]},"text":{"type":"string"}}}}]}"#;

struct Measured {
    cpu: Duration,
    peak_kib: u64,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let driver = PathBuf::from(arguments.first().ok_or("usage: store_cost STORE_DRIVER [records] [rounds]")?);
    let records = arguments.get(1).map_or(Ok(200_000), |text| text.parse::<u64>())?;
    let rounds = arguments.get(2).map_or(Ok(5), |text| text.parse::<u64>())?;
    let minimal = std::env::current_exe()?.with_file_name("minimal");
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("manifest.json"), MANIFEST)?;

    println!("{records} records of {} bytes per line, {rounds} rounds", line(0, Keys::Ordered).len());
    println!(
        "{:<9} {:>5}  {:>9} {:>9} {:>9}  {:>8} {:>8}",
        "keys", "round", "heap", "keyed", "gleaner", "of keyed", "of heap"
    );
    let (mut worst, mut peak) = (0.0_f64, 0);
    for keys in [Keys::Ordered, Keys::Scattered] {
        let (mut of_keyed, mut of_heap) = (Vec::new(), Vec::new());
        for round in 1..=rounds {
            let heap = measure(&minimal, &folder, &[], records, keys)?;
            let keyed = measure(&minimal, &folder, &["keyed"], records, keys)?;
            let ours = measure(&driver, &folder, &["ingest"], records, keys)?;
            let ratio = |base: &Measured| ours.cpu.as_secs_f64() / base.cpu.as_secs_f64();
            println!(
                "{:<9} {round:>5}  {:>7.2} s {:>7.2} s {:>7.2} s  {:>7.2}× {:>7.2}×",
                keys.name(),
                heap.cpu.as_secs_f64(),
                keyed.cpu.as_secs_f64(),
                ours.cpu.as_secs_f64(),
                ratio(&keyed),
                ratio(&heap)
            );
            of_keyed.push(ratio(&keyed));
            of_heap.push(ratio(&heap));
            peak = peak.max(ours.peak_kib);
        }
        let (of_keyed, of_heap) = (median(of_keyed), median(of_heap));
        println!(
            "{:<9} cpu {of_keyed:.2}× of the smallest program with a key (bound {RATIO_MAX}), {of_heap:.2}× of one without",
            keys.name()
        );
        worst = worst.max(of_keyed);
    }
    let large = measure(&driver, &folder, &["ingest"], records * 10, Keys::Scattered)?;
    let growth = large.peak_kib as f64 / peak as f64;
    println!(
        "memory    {:.1} MB at {records}, {:.1} MB at {} records: {growth:.2}× (bounds {} MB, {PEAK_GROWTH_MAX}×)",
        peak as f64 / 1000.0,
        large.peak_kib as f64 / 1000.0,
        records * 10,
        PEAK_MAX / 1000
    );
    Ok(worst <= RATIO_MAX && peak.max(large.peak_kib) < PEAK_MAX && growth <= PEAK_GROWTH_MAX)
}

/// In which order the provider lists its keys: that decides what an index costs.
#[derive(Clone, Copy)]
enum Keys {
    /// Counted up, as a log does. The index costs little, so everything else weighs more.
    Ordered,
    /// In no order, as random ids are.
    Scattered,
}

impl Keys {
    const fn name(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Scattered => "scattered",
        }
    }
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// Feeds a program and counts what it used.
fn measure(
    program: &Path,
    folder: &tempfile::TempDir,
    words: &[&str],
    records: u64,
    keys: Keys,
) -> Result<Measured, Box<dyn std::error::Error>> {
    let store = tempfile::tempdir_in(folder.path())?;
    let mut command = Command::new(program);
    if words == ["ingest"] {
        command.arg("ingest").arg(store.path().join("store.db")).arg(folder.path().join("manifest.json"));
    } else {
        command.arg(store.path().join("store.db")).args(words);
    }
    let before = cpu_of_children()?;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let mut pipe = child.stdin.take().ok_or("no pipe")?;
    let mut peak_kib = 0;
    let mut block = String::new();
    for number in 0..records {
        block.push_str(&line(number, keys));
        if block.len() > 60_000 || number + 1 == records {
            pipe.write_all(block.as_bytes())?;
            block.clear();
            peak_kib = peak_kib.max(peak_of(child.id()));
        }
    }
    writeln!(pipe, r#"{{"type":"STATE","stream":"messages","cursor":{{"next":{records}}}}}"#)?;
    writeln!(pipe, r#"{{"type":"DONE","status":"succeeded","records_emitted":{records}}}"#)?;
    drop(pipe);
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("{} failed", program.display()).into());
    }
    Ok(Measured { cpu: cpu_of_children()? - before, peak_kib })
}

fn cpu_of_children() -> Result<Duration, Box<dyn std::error::Error>> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = |time: nix::sys::time::TimeVal| {
        Duration::from_micros(u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or(0))
    };
    Ok(time(usage.user_time()) + time(usage.system_time()))
}

fn peak_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// One message, some 456 bytes as a line.
fn line(number: u64, keys: Keys) -> String {
    let scrambled = match keys {
        Keys::Ordered => number,
        Keys::Scattered => number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
    };
    let mut line = String::with_capacity(512);
    let _ = writeln!(
        line,
        r#"{{"type":"RECORD","stream":"messages","key":"m{scrambled:016x}","data":{{"id":"m{scrambled:016x}","subject":"About the {number}th thing \u2013 again","sent_at":"2031-01-{:02}T12:00:00Z","from":{{"name":"Somebody","mail":null}},"size":{},"read":{},"score":{}.5,"labels":["inbox","work","later"],"thread":"t{:08x}","kind":"mail","text":"Dear all, this is a text of the length that mails at least have, and not one word more."}},"emitted_at":"2031-02-01T00:00:00Z"}}"#,
        number % 28 + 1,
        number % 100_000,
        number % 2 == 0,
        number % 97,
        scrambled >> 40,
    );
    line
}
