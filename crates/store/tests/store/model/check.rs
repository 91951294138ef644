//! Whether store and model agree, and whether every promise holds.
//!
//! What the read model shows is read through it; what it does not show (versions of a record, whether a
//! file was changed at all) with SQL of our own. Nothing here changes anything but one thing: asking
//! for a rest is what a schedule does, and may cut one that is too long.

use super::expected::{Booked, Kept, ModelCounts, Place, Resting};
use super::gaps::{ModelGap, State};
use super::live::policy;
use super::trace::{CONNECTION, read_gaps};
use super::world::{STREAMS, World};
use crate::account::Account;
use crate::promise;
use gleaner_engine::testing::promises;
use gleaner_engine::{CatchUp, Cooldown, Counts, EVIDENCE_WINDOW, GapCause, REST_MAX, Rest, Steady, Track, WallTime};
use gleaner_protocol::{GapReason, TerminalReason};
use gleaner_store::{PAGE_ROWS_MAX, Reader, RunSummary, Store};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Duration;

/// All records of a connection: place, body, how many versions; and its cursors and gaps as texts.
pub(crate) type Dump = (BTreeMap<Place, (Option<String>, usize)>, Vec<String>);

impl World {
    /// Whether store and model agree about everything that can be seen.
    pub(crate) fn compare(&self) {
        assert_eq!(read_records(&self.watcher, CONNECTION), self.expected.records, "records");
        assert_eq!(self.read_quarantine(), self.expected.quarantine, "quarantine");
        self.compare_gaps();
        let mut cursors = read_cursors::<Steady>(&self.reader);
        cursors.extend(read_cursors::<CatchUp>(&self.reader));
        assert_eq!(cursors, self.expected.cursors, "cursors");
        let rest = self.reader.cooldown(CONNECTION).unwrap().map(|rest| Resting {
            reason: rest.reason.code().to_owned(),
            escalation: rest.escalation,
            until: rest.until.as_unix_millis(),
            by: rest.armed_by.as_str().to_owned(),
        });
        assert_eq!(rest, self.expected.rest, "the rest");
        let mut runs = self.reader.runs(CONNECTION, PAGE_ROWS_MAX).unwrap().iter().map(booked).collect::<Vec<_>>();
        runs.reverse();
        assert_eq!(runs, self.expected.runs, "runs");
    }

    fn read_quarantine(&self) -> BTreeMap<Place, String> {
        let rows = self.reader.quarantine(CONNECTION, None, 0, PAGE_ROWS_MAX).unwrap();
        let count = rows.len();
        let by_place = rows.into_iter().map(|row| ((row.stream, row.key), row.body.unwrap_or_default()));
        let by_place = by_place.collect::<BTreeMap<_, _>>();
        assert_eq!(by_place.len(), count, "one key is in quarantine twice");
        by_place
    }

    fn compare_gaps(&self) {
        let rows = read_gaps(&self.reader);
        assert_eq!(rows.len(), self.expected.gaps.len(), "gaps: {rows:?}");
        for row in rows {
            let name = self.trace.known_name(&row.gap_id);
            let Some(gap) = self.expected.gaps.get(&name) else { panic!("nobody named this gap: {row:?}") };
            let (state, terminal) = state_of(gap);
            let shown = (row.state.as_str(), row.terminal_reason.as_deref(), row.attempts);
            assert_eq!(shown, (state, terminal, gap.attempts), "{name:?}");
            assert_eq!(row.confirmed_by.as_deref(), gap.confirmed_by, "{name:?}");
            let note = if let State::Ignored(note, _) = &gap.state { Some(note) } else { None };
            assert_eq!(row.ignored.as_ref().map(|ignored| &ignored.note), note, "{name:?}");
            let shown = (row.reason.as_deref(), row.run_cap, row.locator.as_ref());
            assert_eq!(shown, (Some(gap.cause.reason), gap.cause.run_cap, gap.locator.as_ref()), "{name:?}");
        }
    }

    /// What counts within one run.
    pub(crate) fn check_run_promises(&self) {
        promise::a10_coverage_adds_up(&self.trace.of_run).unwrap();
    }

    /// Every promise, and that the file is whole.
    pub(crate) fn check_promises(&self) {
        let db = Account::of(&self.watcher, CONNECTION);
        let facts = &self.trace.facts;
        let everything = STREAMS.iter().map(|&stream| (stream.to_owned(), BTreeSet::new())).collect();
        let kept = [
            promises::a1_no_record_is_lost(&db, facts),
            promises::a3_checkpoint_is_the_last_whole_slice(&db, &STREAMS),
            promises::a4_commits_go_forward(facts),
            promise::a5_gaps_disappear_only_when_settled(&BTreeSet::new(), &db, facts),
            promise::a11_tombstones_were_asked_for(&db, facts),
            promise::a12_closed_gaps_were_confirmed(facts),
            promise::p1_accepted_records_were_asked_for(&everything, facts),
            promise::p3_runs_end_once(facts),
            promises::l1_one_holder(facts),
            promises::l2_epochs_grow(facts),
            promise::l3_a_stale_runner_changes_nothing(facts),
        ];
        for promise in kept {
            promise.unwrap();
        }
        let rows = read_gaps(&self.reader).into_iter().filter(|row| row.state == "terminal");
        let causes = rows.map(|row| GapCause {
            reason: row.reason.as_deref().and_then(GapReason::from_code),
            run_cap: row.run_cap,
            http_status: row.http_status,
        });
        promise::a13_only_permanent_causes_are_given_up(causes).unwrap();
        assert_eq!(self.reader.verify(|_, _| {}).unwrap(), [], "the file is whole");
        self.check_counters();
        if let Some(other) = &self.other {
            assert_eq!(&dump(&self.watcher, "other"), other, "somebody else's connection changed");
        }
    }

    /// The counters and the histories that people are shown.
    fn check_counters(&self) {
        for stream in self.reader.streams(CONNECTION).unwrap() {
            let of_stream = self.expected.records.iter().filter(|((of, _), _)| *of == stream.name);
            let (mut records, mut tombstones, mut versions) = (0, 0, 0);
            for ((_, key), kept) in of_stream {
                let counter = if kept.body.is_some() { &mut records } else { &mut tombstones };
                *counter += 1;
                versions += kept.versions as u64;
                let history = self.reader.history(CONNECTION, &stream.name, key, None, PAGE_ROWS_MAX).unwrap();
                assert_eq!(history.len(), kept.versions, "the history of {key:?}");
                assert_eq!(history[0].body, kept.body, "the newest version of {key:?}");
            }
            let is_ignored = |(name, gap): &(&super::gaps::GapName, &ModelGap)| {
                name.0 == stream.name && matches!(gap.state, State::Ignored(..))
            };
            let ignored = self.expected.gaps.iter().filter(is_ignored).count() as u64;
            assert_eq!(stream.gaps_ignored, ignored, "ignored gaps of {:?}", stream.name);
            let shown = (stream.records, stream.tombstones, stream.versions);
            assert_eq!(shown, (records, tombstones, versions), "{:?}", stream.name);
        }
    }
}

const fn state_of(gap: &ModelGap) -> (&'static str, Option<&'static str>) {
    match gap.state {
        State::Ignored(..) => ("ignored", None),
        State::Pending => ("pending", None),
        State::Held(_) => ("in_progress", None),
        State::Recovered => ("recovered", None),
        State::Terminal(reason) => ("terminal", Some(reason)),
    }
}

fn booked(run: &RunSummary) -> Booked {
    let Counts { seen, new, changed, unchanged, deleted, rejected, gaps, recovered, unaccounted, .. } = run.counts;
    let track = if run.track == Steady::NAME { Steady::NAME } else { CatchUp::NAME };
    Booked {
        id: run.run_id.clone(),
        track,
        reason: run.reason.map(TerminalReason::code),
        counts: ModelCounts { seen, new, changed, unchanged, deleted, rejected, gaps, recovered, unaccounted },
    }
}

fn read_records(watcher: &Connection, connection: &str) -> BTreeMap<Place, Kept> {
    let sql = "SELECT s.name, r.key, v.deleted, v.body,
               (SELECT count(*) FROM versions o WHERE o.stream = r.stream AND o.key = r.key)
               FROM records r JOIN versions v ON v.seq = r.seq JOIN streams s ON s.id = r.stream
               JOIN connections c ON c.id = s.connection WHERE c.name = ?1";
    let mut statement = watcher.prepare_cached(sql).unwrap();
    let rows = statement.query_map([connection], |row| {
        let body = row.get::<_, Option<String>>(3)?;
        assert_eq!(row.get::<_, bool>(2)?, body.is_none(), "what is deleted has no body, what is there has one");
        let versions = usize::try_from(row.get::<_, i64>(4)?).unwrap();
        Ok(((row.get(0)?, row.get(1)?), Kept { body, versions }))
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

fn read_cursors<T: Track>(reader: &Reader) -> BTreeMap<(&'static str, String), (u64, String)> {
    let cursors = reader.bookmarks::<T>(CONNECTION).unwrap();
    let place = |cursor: &gleaner_engine::Cursor<T>| (T::NAME, cursor.stream().to_owned());
    let value = |cursor: &gleaner_engine::Cursor<T>| (cursor.seq().get(), cursor.token().as_str().to_owned());
    cursors.iter().map(|cursor| (place(cursor), value(cursor))).collect()
}

fn texts(watcher: &Connection, sql: &str, connection: &str) -> Vec<String> {
    let mut statement = watcher.prepare_cached(sql).unwrap();
    let rows = statement.query_map([connection], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Everything of a connection that another one must not touch.
pub(crate) fn dump(watcher: &Connection, connection: &str) -> Dump {
    let records = read_records(watcher, connection);
    let gaps = "SELECT hex(g.identity) || g.state || g.attempts || g.reason FROM gaps g
                JOIN connections c ON c.id = g.connection WHERE c.name = ?1 ORDER BY g.id";
    let cursors = "SELECT s.name || k.track || k.seq || k.token FROM cursors k JOIN streams s ON s.id = k.stream
                   JOIN connections c ON c.id = s.connection WHERE c.name = ?1 ORDER BY 1";
    let quarantine = "SELECT s.name || q.key || q.body FROM quarantine q JOIN streams s ON s.id = q.stream
                      JOIN connections c ON c.id = s.connection WHERE c.name = ?1 ORDER BY q.id";
    let rests =
        "SELECT r.reason || r.until FROM cooldowns r JOIN connections c ON c.id = r.connection WHERE c.name = ?1";
    let others = [gaps, cursors, quarantine, rests].iter().flat_map(|sql| texts(watcher, sql, connection)).collect();
    (records.into_iter().map(|(place, kept)| (place, (kept.body, kept.versions))).collect(), others)
}

/// The state of our connection as one number, and how many versions there are.
pub(crate) fn digest(watcher: &Connection) -> (u64, u64) {
    let state = dump(watcher, CONNECTION);
    let mut hasher = DefaultHasher::new();
    let records = state.0.iter().map(|(place, (body, _))| (place, body)).collect::<Vec<_>>();
    (records, &state.1).hash(&mut hasher);
    let versions = state.0.values().map(|(_, versions)| *versions as u64).sum();
    (hasher.finish(), versions)
}

/// Changes whenever anybody else changed the file.
pub(crate) fn data_version(watcher: &Connection) -> i64 {
    watcher.query_row("PRAGMA data_version", [], |row| row.get(0)).unwrap()
}

pub(crate) fn nothing_is_left_of_other(watcher: &Connection) {
    let orphans = "SELECT (SELECT count(*) FROM connections WHERE name = 'other')
        + (SELECT count(*) FROM streams WHERE connection NOT IN (SELECT id FROM connections))
        + (SELECT count(*) FROM versions WHERE stream NOT IN (SELECT id FROM streams))
        + (SELECT count(*) FROM records WHERE stream NOT IN (SELECT id FROM streams))
        + (SELECT count(*) FROM quarantine WHERE stream NOT IN (SELECT id FROM streams))
        + (SELECT count(*) FROM gaps WHERE stream NOT IN (SELECT id FROM streams))
        + (SELECT count(*) FROM cursors WHERE stream NOT IN (SELECT id FROM streams))
        + (SELECT count(*) FROM commits WHERE stream NOT IN (SELECT id FROM streams))
        + (SELECT count(*) FROM runs WHERE connection NOT IN (SELECT id FROM connections))
        + (SELECT count(*) FROM cooldowns WHERE connection NOT IN (SELECT id FROM connections))";
    assert_eq!(watcher.query_row(orphans, [], |row| row.get::<_, i64>(0)).unwrap(), 0, "rows that belong to nobody");
}

/// A rest that is not over is kept, none is longer than the longest, and each ends.
pub(crate) fn rest_ends(path: &Path, now: WallTime) {
    let mut store = Store::open(path).unwrap();
    let before = Reader::open(path).unwrap().cooldown(CONNECTION).unwrap();
    let rest = store.rest(CONNECTION, policy(), now).unwrap();
    if before.as_ref().is_some_and(|before| now < before.until) {
        assert_ne!(rest, Rest::No, "a rest was lost");
    }
    let after = Reader::open(path).unwrap().cooldown(CONNECTION).unwrap();
    let until = match rest {
        Rest::No => return,
        Rest::Until { until, .. } => until,
        Rest::NeedsAttention { .. } => after.as_ref().map_or(now, |rest| rest.until),
    };
    assert!(until <= now + REST_MAX, "a rest became endless");
    let over = until + EVIDENCE_WINDOW + Duration::from_millis(1);
    assert_eq!(Cooldown::answer(after.as_ref(), over, policy()), Rest::No, "a rest does not end");
    if let Rest::Until { .. } = rest {
        assert_eq!(Cooldown::answer(after.as_ref(), until, policy()), Rest::No, "a rest does not end when it said");
    }
}
