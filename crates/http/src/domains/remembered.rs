//! Learned state of many hosts in one file: one line per host, the last line counts.
//!
//! Why not one file per host, as for single keys: there may be a million. A refusal appends a line at once, so that a
//! crash cannot lose a gate; everything else is saved when the whole file is replaced, periodically and at the end. A
//! line that is cut off or invalid is dropped.

use crate::memory::MemoryError;
use gleaner_base::atomic::AtomicFile;
use gleaner_base::private;
use gleaner_governor::Learned;
use gleaner_governor::keyed::Domain;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// First line; the number is the version.
const HEADER: &str = "gleaner-domains-1";
/// Maximum line length: the longest name and the longest text of a governor.
const LINE_MAX: u64 = 253 + 6 + 1 + 4096;
/// Interval of file replacement with few hosts.
const SAVE_EVERY: Duration = Duration::from_secs(10);
/// Hosts per further interval: one line per millisecond, 200 KB a second.
const SAVE_HOSTS: u32 = 10_000;

#[derive(Debug)]
pub(crate) struct Remembered {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Open for appending.
    file: File,
    saved_at: Instant,
}

type All = HashMap<Domain, Learned>;

impl Remembered {
    /// Opens or creates the file, and reads at most `hosts_max` hosts.
    pub(crate) fn open(path: &Path, hosts_max: usize) -> Result<(Self, All), MemoryError> {
        let fail = |source| MemoryError { path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            private::make_folders(folder).map_err(fail)?;
        }
        let all = match File::open(path) {
            Ok(file) => read(path, file, hosts_max).map_err(fail)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => All::new(),
            Err(error) => return Err(fail(error)),
        };
        // Rewritten, so that a cut-off line does not stay in the middle.
        let file = replace(path, |keep| all.iter().try_for_each(|(domain, learned)| keep(domain.as_str(), learned)))
            .map_err(fail)?;
        let state = Mutex::new(State { file, saved_at: Instant::now() });
        Ok((Self { path: path.to_owned(), state }, all))
    }

    /// Appends a line for one host. `learned` is called with the file locked: of two writers the later one writes the
    /// newer state.
    pub(crate) fn add(&self, domain: &str, learned: impl FnOnce() -> Option<Learned>) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match learned() {
            Some(learned) => state.file.write_all(format!("{domain} {learned}\n").as_bytes()),
            None => Ok(()),
        }
    }

    /// Whether the file should be replaced, with this number of hosts.
    pub(crate) fn is_due(&self, hosts: usize) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let factor = u32::try_from(hosts).unwrap_or(u32::MAX) / SAVE_HOSTS + 1;
        state.saved_at.elapsed() >= SAVE_EVERY.saturating_mul(factor)
    }

    /// Replaces the file with the lines that `write` passes on.
    pub(crate) fn save(&self, write: impl FnOnce(&mut Keep<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.saved_at = Instant::now();
        state.file = replace(&self.path, write)?;
        Ok(())
    }
}

/// Takes a host and its learned state.
pub(crate) type Keep<'a> = dyn FnMut(&str, &Learned) -> io::Result<()> + 'a;

/// Replaces the old file; a crash leaves either. Returns the new one, open for appending.
fn replace(path: &Path, write: impl FnOnce(&mut Keep<'_>) -> io::Result<()>) -> io::Result<File> {
    let mut new = AtomicFile::begin(path)?;
    let mut out = BufWriter::new(new.file());
    writeln!(out, "{HEADER}")?;
    write(&mut |domain, learned| writeln!(out, "{domain} {learned}"))?;
    out.flush()?;
    drop(out);
    new.replace()?;
    private::options().append(true).open(path)
}

fn read(path: &Path, file: File, hosts_max: usize) -> io::Result<All> {
    let mut lines = BufReader::new(file);
    let (mut all, mut bad, mut line) = (All::new(), 0_u64, Vec::new());
    let mut is_first = true;
    while next_line(&mut lines, &mut line)? {
        if std::mem::take(&mut is_first) {
            if line != HEADER.as_bytes() {
                tracing::warn!(file = %path.display(), "not a file of learned rates; starting without it");
                return Ok(All::new());
            }
            continue;
        }
        match parse(&line) {
            // A known host may always be updated.
            Some((domain, learned)) if all.len() < hosts_max || all.contains_key(&domain) => {
                all.insert(domain, learned);
            }
            _ => bad += 1,
        }
    }
    if bad > 0 {
        tracing::warn!(file = %path.display(), lines = bad, "dropped lines that are invalid or beyond the host limit");
    }
    Ok(all)
}

/// The next line without its end; a line that is too long comes in pieces, none of which is valid.
fn next_line(lines: &mut BufReader<File>, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = lines.by_ref().take(LINE_MAX).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else {
        // Cut off: a number may lack its last digits.
        line.clear();
    }
    Ok(read > 0)
}

fn parse(line: &[u8]) -> Option<(Domain, Learned)> {
    let (name, learned) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let domain = Domain::parse(name).ok().filter(|domain| domain.as_str() == name)?;
    Some((domain, Learned::decode(learned.as_bytes())?))
}
