//! What happened, as facts for the engine's invariants, read from the store wherever it can be.
//!
//! Commits and the fate of gaps come out of the file, not out of the model: a store that does
//! something else than it was asked leaves a fact that some promise forbids.

use super::expected::{Said, fields_of};
use super::gaps::GapName;
use gleaner_engine::testing::promises::Fact;
use gleaner_engine::{CommitSeq, Epoch, GapId, LeaseId, RunId};
use gleaner_store::{GapFilter, GapSummary, PAGE_ROWS_MAX, Reader};
use rusqlite::Connection;
use std::collections::BTreeMap;

pub(crate) const CONNECTION: &str = "c";

#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) facts: Vec<Fact>,
    /// Reports and details count within one run.
    pub(crate) of_run: Vec<Fact>,
    /// The name of each gap, from when it was first seen: its locator may change later.
    names: BTreeMap<String, GapName>,
    /// The id and state of each gap as the store last had it.
    rows: BTreeMap<GapName, (GapId, String)>,
    last_commit: i64,
}

impl Trace {
    /// Reads the gaps again. Answers what was there before.
    fn refresh(&mut self, reader: &Reader) -> BTreeMap<GapName, (GapId, String)> {
        let rows = read_gaps(reader).into_iter().map(|row| {
            let name = self.names.entry(row.gap_id.clone()).or_insert_with(|| name_of(&row)).clone();
            (name, (GapId::new(row.gap_id), row.state))
        });
        let rows = rows.collect();
        std::mem::replace(&mut self.rows, rows)
    }

    /// The name of a gap that a page served.
    pub(crate) fn name(&mut self, reader: &Reader, id: &str) -> GapName {
        if !self.names.contains_key(id) {
            self.refresh(reader);
        }
        self.names[id].clone()
    }

    /// A run wrote gaps besides its slices.
    pub(crate) fn gaps_written(&mut self, reader: &Reader, run: &str, names: &[GapName]) {
        self.refresh(reader);
        for name in names {
            self.gap_written(run, name);
        }
    }

    fn gap_written(&mut self, run: &str, name: &GapName) {
        let gap = self.rows.get(name).unwrap_or_else(|| panic!("{name:?} was not written")).0.clone();
        self.facts.push(Fact::GapWritten { run: RunId::new(run), gap, lease: LeaseId::new(run) });
    }

    /// A slice of this run is durable.
    pub(crate) fn slice_written(&mut self, reader: &Reader, run: &str, slice: &[Said]) {
        let touches = |said: &Said| matches!(said, Said::Gap { .. } | Said::Recover { .. });
        let before = if slice.iter().any(touches) { self.refresh(reader) } else { self.rows.clone() };
        let is_recovered = |rows: &BTreeMap<GapName, (GapId, String)>, name: &GapName| {
            rows.get(name).is_some_and(|(_, state)| state == "recovered")
        };
        for (at, said) in slice.iter().enumerate() {
            let is_said_again = |name: &GapName| {
                slice[at + 1..].iter().any(|later| matches!(later, Said::Recover { name: again, .. } if again == name))
            };
            match said {
                Said::Record { place: (stream, key), body } => {
                    let fields = body.as_deref().map(fields_of).unwrap_or_default();
                    self.facts.push(Fact::Stored { stream: stream.clone(), key: key.clone(), fields });
                }
                Said::Gap { name, .. } => self.gap_written(run, name),
                Said::Recover { name, lease, stream }
                    // Of several words about one gap in a slice, the last one may be the true one.
                    if !is_said_again(name) && !is_recovered(&before, name) && is_recovered(&self.rows, name) =>
                {
                    // Of several who say so, the one that could have been right is meant.
                    let (of, stream) = (name.clone(), stream.clone());
                    let ours = Said::Recover { name: of, lease: run.to_owned(), stream };
                    let lease = LeaseId::new(if slice.contains(&ours) { run } else { lease });
                    let fact = Fact::GapSettled { gap: self.rows[name].0.clone(), lease };
                    if self.facts.last() != Some(&fact) {
                        self.facts.push(fact);
                    }
                }
                _ => {}
            }
        }
    }

    /// Takes note of commits that the store has and that were not noted yet.
    pub(crate) fn read_commits(&mut self, watcher: &Connection) {
        let sql = "SELECT m.id, s.name, m.track, m.seq, m.epoch FROM commits m JOIN streams s ON s.id = m.stream
                   JOIN connections c ON c.id = s.connection WHERE c.name = ?1 AND m.id > ?2 ORDER BY m.id";
        let mut statement = watcher.prepare_cached(sql).unwrap();
        let mut rows = statement.query((CONNECTION, self.last_commit)).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let text = |at: usize| row.get::<_, String>(at).unwrap();
            let number = |at: usize| u64::try_from(row.get::<_, i64>(at).unwrap()).unwrap();
            self.last_commit = row.get(0).unwrap();
            // Each track counts by itself.
            let stream = format!("{} {}", text(2), text(1));
            let (seq, epoch) = (CommitSeq::new(number(3)), Epoch::new(number(4)));
            self.facts.push(Fact::Committed { stream, seq, epoch });
        }
    }

    pub(crate) fn ended(&mut self, run: &str, superseded: bool) {
        self.facts.push(Fact::Ended { run: RunId::new(run), superseded });
    }
}

pub(crate) fn read_gaps(reader: &Reader) -> Vec<GapSummary> {
    let filter = GapFilter { stream: None, closed_too: true };
    reader.gaps(CONNECTION, filter, 0, PAGE_ROWS_MAX).unwrap()
}

fn name_of(row: &GapSummary) -> GapName {
    let subject = match (&row.record_key, &row.locator) {
        (Some(key), _) => format!("key:{key}"),
        (None, locator) => format!("loc:{}", locator.as_deref().unwrap_or("null")),
    };
    (row.stream.clone(), row.parent_stream.clone(), subject)
}

impl Trace {
    pub(crate) fn known_name(&self, id: &str) -> GapName {
        self.names.get(id).cloned().unwrap_or_default()
    }
}
