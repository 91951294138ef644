//! What was learned about many hosts, in one file: a line per host, of which the last one counts.
//!
//! Why not a file per host, as for single keys: a million of them. A refusal adds a line at once, so that a crash
//! cannot forget a gate; everything else is written when the whole file is replaced, from time to time and at the
//! end. A line that was cut off or cannot be read is nobody's memory, and is dropped.

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
/// Longest line that is read: the longest name and the longest text of a governor.
const LINE_MAX: u64 = 253 + 6 + 1 + 4096;
/// The whole file is replaced this often while there are few hosts ...
const SAVE_EVERY: Duration = Duration::from_secs(10);
/// ... and so much more rarely with more of them: a line per millisecond, 200 KB a second.
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
    /// Opens the file, makes it if it is not there, and reads what it remembers of at most `hosts_max` hosts.
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
        // Written anew, so that what was cut off does not stand in the middle.
        let file = replace(path, |keep| all.iter().try_for_each(|(domain, learned)| keep(domain.as_str(), learned)))
            .map_err(fail)?;
        let state = Mutex::new(State { file, saved_at: Instant::now() });
        Ok((Self { path: path.to_owned(), state }, all))
    }

    /// Adds a line about one host. `learned` is asked with the file held: of two writers the later writes the newer.
    pub(crate) fn add(&self, domain: &str, learned: impl FnOnce() -> Option<Learned>) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match learned() {
            Some(learned) => state.file.write_all(format!("{domain} {learned}\n").as_bytes()),
            None => Ok(()),
        }
    }

    /// Whether it is time to replace the file, with so many hosts.
    pub(crate) fn is_due(&self, hosts: usize) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let factor = u32::try_from(hosts).unwrap_or(u32::MAX) / SAVE_HOSTS + 1;
        state.saved_at.elapsed() >= SAVE_EVERY.saturating_mul(factor)
    }

    /// Replaces the file with what `write` hands over.
    pub(crate) fn save(&self, write: impl FnOnce(&mut Keep<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.saved_at = Instant::now();
        state.file = replace(&self.path, write)?;
        Ok(())
    }
}

/// Takes a host and what was learned about it.
pub(crate) type Keep<'a> = dyn FnMut(&str, &Learned) -> io::Result<()> + 'a;

/// Puts a new file in the place of the old one; a crash leaves either. Returns it, open for appending.
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
            // A host that is there already may always be brought up to date.
            Some((domain, learned)) if all.len() < hosts_max || all.contains_key(&domain) => {
                all.insert(domain, learned);
            }
            _ => bad += 1,
        }
    }
    if bad > 0 {
        tracing::warn!(file = %path.display(), lines = bad, "lines that cannot be read, or are too many, are dropped");
    }
    Ok(all)
}

/// The next line without its end; one that is too long comes in pieces, none of which can be read.
fn next_line(lines: &mut BufReader<File>, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = lines.by_ref().take(LINE_MAX).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else {
        // Cut off: what is there may be a number with its end missing.
        line.clear();
    }
    Ok(read > 0)
}

fn parse(line: &[u8]) -> Option<(Domain, Learned)> {
    let (name, learned) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let domain = Domain::parse(name).ok().filter(|domain| domain.as_str() == name)?;
    Some((domain, Learned::decode(learned.as_bytes())?))
}
