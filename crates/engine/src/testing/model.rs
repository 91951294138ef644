//! What the tests of several files need: a manifest, cursors, and a store in memory with a run in
//! front of it.

use super::keys_in_memory::{KeyFacts, KeysInMemory, Presence};
use super::promises::Durable;
use crate::{
    AttemptLimits, CommitSeq, Counts, Cursor, EFFECTS_MAX, Effect, Epoch, Evidence, Exit, Gap, GapChange, GapId,
    GapIdentity, GapState, GapsConfirmed, LeaseId, NoSchema, Now, OwnerEffect, ProcessEffect, ReportId, Run, RunConfig,
    RunId, RunOutcome, Slice, Steady, StoreEffect, Time, Track, WallTime,
};
use gleaner_protocol::{
    Decoder, DetailGap, Event, GapKey, Interaction, Limits, Manifest, ManifestOrigin, Op, RawJson, RuntimeMessage,
    Scope, Semantics, ServedGap, StreamScope,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// `trips` with `comments` that ride on its checkpoint, `details` whose account `trips` waits for,
/// and `photos` alone, which only grow.
pub(crate) fn manifest() -> Manifest {
    let text = r#"{"connector_id":"c","connector_key":"c","version":"1","streams":[
        {"name":"trips","semantics":"mutable_state","consent_time_field":"at",
         "schema":{"type":"object","required":["id"]},"primary_key":"id"},
        {"name":"comments","semantics":"mutable_state","state_stream":"trips","coverage_strategy":"checkpoint_window"},
        {"name":"details","semantics":"mutable_state","parent_streams":["trips"],
         "coverage_strategy":"parent_detail_accounting"},
        {"name":"photos","semantics":"append_only"}]}"#;
    Manifest::parse(text.as_bytes(), ManifestOrigin::FirstParty).unwrap()
}

pub(crate) fn token(page: u64) -> RawJson<'static> {
    RawJson::new(format!("{{\"page\":{page}}}")).unwrap()
}

pub(crate) fn config<T: Track>(streams: &[&str]) -> RunConfig<T> {
    RunConfig {
        run_id: RunId::new("r1"),
        lease: LeaseId::new("l1"),
        manifest: Arc::new(manifest()),
        scope: Scope::new(streams.iter().map(|&name| StreamScope::all_of(name)).collect()).unwrap(),
        bookmarks: Vec::new(),
        bindings: vec!["interactive".to_owned()],
        grant_expires_at: None,
        validator: Box::new(NoSchema),
        silence_max: None,
        effects_max: EFFECTS_MAX,
    }
}

/// What is durable, and what happened.
#[derive(Debug, Default)]
pub(crate) struct ModelStore {
    /// By stream and key; `None` is a tombstone.
    pub(crate) records: BTreeMap<(String, String), Option<String>>,
    pub(crate) quarantine: Vec<(String, String)>,
    pub(crate) gaps: BTreeMap<GapIdentity, Gap>,
    /// The committed cursors, by track and stream.
    pub(crate) cursors: BTreeMap<(&'static str, String), (u64, String)>,
    keys: BTreeMap<ReportId, KeysInMemory>,
    /// The cursors in the order of their commits.
    commits: Vec<(&'static str, String, u64)>,
    /// How many slices were written.
    pub(crate) slices: u64,
}

const LIMITS: AttemptLimits = AttemptLimits { terminal_after: 5 };

impl ModelStore {
    pub(crate) fn write<T: Track>(&mut self, slice: &Slice<T>, lease: &LeaseId) -> Counts {
        self.slices += 1;
        let mut written = Counts { rejected: slice.rejected().len() as u64, ..Counts::default() };
        for record in slice.records() {
            let body = (record.op == Op::Upsert).then(|| record.body.unwrap_or("{}").to_owned());
            let before = self.records.insert((record.stream.to_owned(), record.key.to_owned()), body.clone());
            let counter = match (before, body) {
                (Some(before), body) if before == body => &mut written.unchanged,
                (_, None) => &mut written.deleted,
                (None | Some(None), Some(_)) => &mut written.new,
                (Some(Some(_)), Some(_)) => &mut written.changed,
            };
            *counter += 1;
        }
        self.quarantine.extend(slice.rejected().map(|(record, at)| (record.key.to_owned(), at.pointer.clone())));
        for change in slice.gap_changes() {
            self.change(change, lease, &mut written.confirmed);
            written.gaps += u64::from(matches!(change, GapChange::Open(_)));
        }
        written.recovered = written.confirmed.closed();
        self.commit(slice.committed());
        written
    }

    pub(crate) fn commit<T: Track>(&mut self, cursors: &[Cursor<T>]) {
        for cursor in cursors {
            self.commits.push((T::NAME, cursor.stream().to_owned(), cursor.seq().get()));
            let place = (T::NAME, cursor.stream().to_owned());
            let before = self.cursors.insert(place, (cursor.seq().get(), cursor.token().as_str().to_owned()));
            assert!(before.is_none_or(|(seq, _)| seq < cursor.seq().get()), "commits go forward");
        }
    }

    fn change(&mut self, change: &GapChange, lease: &LeaseId, confirmed: &mut GapsConfirmed) {
        match change {
            GapChange::Open(gap) => {
                let known = self.gaps.entry(GapIdentity::of("c", "g", gap));
                known
                    .and_modify(|known| known.defer(gap, lease, LIMITS, WallTime::default()))
                    .or_insert_with(|| Gap::open(gap, lease, WallTime::default()));
            }
            GapChange::Attempt { gap_id, lease } => self.served(gap_id.as_str(), |gap| gap.attempt(lease)),
            GapChange::Recover { gap_id, stream, lease } => {
                let key = gap_id.as_str().trim_start_matches("key:").to_owned();
                let is_here = self.records.contains_key(&(stream.clone(), key));
                let evidence = if is_here { Evidence::Record } else { Evidence::Nothing };
                self.served(gap_id.as_str(), |gap| confirmed.count(gap.recover(lease, evidence)));
            }
        }
    }

    /// The id of a gap is its subject here.
    fn served(&mut self, gap_id: &str, change: impl FnOnce(&mut Gap)) {
        if let Some((_, gap)) = self.gaps.iter_mut().find(|(identity, _)| identity.subject == gap_id) {
            change(gap);
        }
    }

    pub(crate) fn open_gaps(&self) -> Vec<&str> {
        self.gaps.iter().filter(|(_, gap)| gap.is_open()).map(|(identity, _)| identity.subject.as_str()).collect()
    }

    pub(crate) fn cursor(&self, track: &'static str, stream: &str) -> Option<&str> {
        self.cursors.get(&(track, stream.to_owned())).map(|(_, token)| token.as_str())
    }

    fn lease_page(&mut self, lease: &LeaseId) -> Vec<ServedGap> {
        let due = self.gaps.iter_mut().filter(|(_, gap)| gap.is_due(lease, WallTime::default()));
        let serve = |(identity, gap): (&GapIdentity, &mut Gap)| {
            gap.lease(lease, WallTime::default());
            ServedGap {
                gap_id: identity.subject.clone(),
                stream: identity.stream.clone(),
                record_key: None,
                parent_stream: None,
                detail_locator: gap.locator.clone(),
                list_cursor: None,
                lease_id: lease.as_str().to_owned(),
            }
        };
        due.take(2).map(serve).collect()
    }

    fn write_unaccounted(&mut self, report: ReportId, stream: &str, parent: &str, lease: &LeaseId) -> u64 {
        let facts = Facts { gaps: &self.gaps, stream, parent };
        let keys = self.keys.get(&report).map(|keys| keys.unaccounted(&facts)).unwrap_or_default();
        let keys = keys.into_iter().map(str::to_owned).collect::<Vec<_>>();
        for key in &keys {
            let gap = DetailGap {
                stream: stream.to_owned(),
                parent_stream: Some(parent.to_owned()),
                record_key: Some(GapKey::Text(key.clone())),
                ..DetailGap::default()
            };
            self.change(&GapChange::Open(Box::new(gap)), lease, &mut GapsConfirmed::default());
        }
        keys.len() as u64
    }
}

/// For the steady track.
impl Durable for ModelStore {
    fn checkpoint(&self, stream: &str) -> Option<CommitSeq> {
        self.cursors.get(&(Steady::NAME, stream.to_owned())).map(|(seq, _)| CommitSeq::new(*seq))
    }
    fn whole_slices(&self, stream: &str) -> Vec<CommitSeq> {
        let of_stream = self.commits.iter().filter(|(track, of, _)| *track == Steady::NAME && of == stream);
        of_stream.map(|(_, _, seq)| CommitSeq::new(*seq)).collect()
    }
    fn accounts_for(&self, stream: &str, key: &str) -> bool {
        let subject = format!("key:{key}");
        self.records.contains_key(&(stream.to_owned(), key.to_owned())) || self.open_gaps().contains(&subject.as_str())
    }
    fn backlog_covers(&self, _: &str, _: i64) -> bool {
        false
    }
    fn tombstones(&self) -> Vec<(String, String)> {
        self.records.iter().filter(|(_, body)| body.is_none()).map(|(place, _)| place.clone()).collect()
    }
    fn semantics(&self, stream: &str) -> Option<Semantics> {
        manifest().stream(stream).map(|stream| stream.semantics)
    }
    fn open_gaps(&self) -> BTreeSet<GapId> {
        self.open_gaps().into_iter().map(GapId::new).collect()
    }
}

struct Facts<'a> {
    gaps: &'a BTreeMap<GapIdentity, Gap>,
    stream: &'a str,
    parent: &'a str,
}

impl KeyFacts for Facts<'_> {
    fn has_durable_gap(&self, key: &str) -> bool {
        self.gaps.iter().any(|(identity, gap)| {
            gap.is_open()
                && identity.stream == self.stream
                && identity.parent_stream.as_deref() == Some(self.parent)
                && identity.subject == format!("key:{key}")
        })
    }

    fn is_in_quarantine(&self, _: &str) -> bool {
        false
    }

    /// Everything is here but what says that it is not.
    fn presence(&self, key: &str) -> Presence {
        if key.starts_with("unsent") { Presence::Nowhere } else { Presence::Here }
    }
}

/// A run, a store and a process that does as it is told.
#[derive(Debug)]
pub(crate) struct World<T: Track> {
    pub(crate) run: Run<T>,
    pub(crate) store: ModelStore,
    pub(crate) now: Now,
    pub(crate) sent: Vec<RuntimeMessage>,
    pub(crate) asked: Vec<Interaction>,
    pub(crate) log: Vec<&'static str>,
    pub(crate) finished: Vec<RunOutcome>,
    /// What the process exits with once its input is closed or it is stopped. `None`: it does not.
    pub(crate) exit: Option<Exit>,
    /// Whether effects are carried out as soon as they are there.
    pub(crate) eager: bool,
    decoder: Decoder,
    pub(crate) refused: VecDeque<String>,
}

impl<T: Track> World<T> {
    pub(crate) fn new(config: RunConfig<T>) -> Self {
        let now = Now { time: Time::from_millis(0), wall: WallTime::from_unix_millis(1_000_000) };
        Self {
            run: Run::new(config, now).unwrap(),
            store: ModelStore::default(),
            now,
            sent: Vec::new(),
            asked: Vec::new(),
            log: Vec::new(),
            finished: Vec::new(),
            exit: Some(Exit::Code(0)),
            eager: true,
            decoder: Decoder::new(Limits::default()),
            refused: VecDeque::new(),
        }
    }

    /// Feeds a line. What is refused is kept.
    pub(crate) fn line(&mut self, line: &str) -> &mut Self {
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(Limits::default()));
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        let mut feed = decoder.feed(&bytes);
        let mut taken = false;
        while let Some(event) = feed.next() {
            while self.offer(&event).is_err() {
                if !taken {
                    // Nothing of the line is in: it can come again as a whole, to a fresh decoder.
                    self.refused.push_back(line.to_owned());
                    return self;
                }
                assert!(self.step(), "full, and nothing to carry out");
            }
            taken = true;
        }
        self.decoder = decoder;
        self
    }

    fn offer(&mut self, event: &Event<'_>) -> Result<(), crate::Full> {
        let taken = self.run.handle_event(event, self.now);
        if self.eager {
            self.settle();
        }
        taken
    }

    pub(crate) fn lines(&mut self, lines: &[&str]) -> &mut Self {
        for line in lines {
            self.line(line);
        }
        self
    }

    pub(crate) fn pass(&mut self, millis: u64) -> &mut Self {
        let wait = Duration::from_millis(millis);
        self.now = Now { time: self.now.time + wait, wall: self.now.wall + wait };
        self.run.handle_timeout(self.now);
        self.settle();
        self
    }

    /// Carries out everything that is wanted.
    pub(crate) fn settle(&mut self) {
        while self.step() {}
    }

    /// Carries out one effect.
    pub(crate) fn step(&mut self) -> bool {
        let Some(effect) = self.run.poll_effect() else { return false };
        let lease = LeaseId::new("l1");
        match effect {
            Effect::Store(effect) => self.of_store(effect, &lease),
            Effect::Finish(outcome) => {
                for gap in self.store.gaps.values_mut() {
                    gap.release(&lease, LIMITS, self.now.wall);
                }
                self.finished.push(*outcome);
            }
            Effect::Process(ProcessEffect::Send(message)) => self.sent.push(message),
            Effect::Process(ProcessEffect::CloseInput) => self.end_process("close"),
            Effect::Process(ProcessEffect::Stop) => self.end_process("stop"),
            Effect::Process(ProcessEffect::Kill) => self.end_process("kill"),
            Effect::Owner(OwnerEffect::Ask(question)) => self.asked.push(question),
            Effect::Owner(OwnerEffect::Withdraw { .. }) => self.log.push("withdraw"),
        }
        true
    }

    fn of_store(&mut self, effect: StoreEffect<T>, lease: &LeaseId) {
        match effect {
            StoreEffect::WriteSlice(slice) => {
                self.log.push("write");
                let written = self.store.write(&slice, lease);
                self.run.handle_receipt(slice.into_receipt(Epoch::new(1), written), self.now);
            }
            StoreEffect::KeepCoverageKeys { report, field, keys } => {
                self.store.keys.entry(report).or_default().push(field, &keys).unwrap();
            }
            StoreEffect::TallyCoverage { report, pair } => {
                let facts = Facts { gaps: &self.store.gaps, stream: &pair.stream, parent: &pair.state_stream };
                let tally = self.store.keys.entry(report).or_default().tally(&facts);
                self.run.handle_tally(report, &tally, self.now);
            }
            StoreEffect::WriteUnaccounted { report, pair } => {
                let gaps = self.store.write_unaccounted(report, &pair.stream, &pair.state_stream, lease);
                self.run.handle_unaccounted_written(gaps, self.now);
            }
            StoreEffect::LeaseGapsPage { .. } => {
                let page = self.store.lease_page(lease);
                self.run.handle_gaps_page(page, self.now);
            }
            StoreEffect::Commit(plan) => {
                self.log.push("commit");
                self.store.commit(plan.cursors());
                self.run.handle_committed(self.now);
            }
            StoreEffect::Trace(_) => self.log.push("trace"),
        }
    }

    fn end_process(&mut self, how: &'static str) {
        self.log.push(how);
        if let Some(exit) = self.exit.take() {
            self.run.handle_exit(exit, self.now);
        }
    }

    pub(crate) fn outcome(&self) -> &RunOutcome {
        assert_eq!(self.finished.len(), 1, "{:?}", self.finished);
        assert_eq!(self.run.outcome(), self.finished.first());
        &self.finished[0]
    }

    pub(crate) fn keys(&self, stream: &str) -> BTreeSet<&str> {
        self.store.records.keys().filter(|(of, _)| of == stream).map(|(_, key)| key.as_str()).collect()
    }

    pub(crate) fn held_gaps(&self) -> usize {
        self.store.gaps.values().filter(|gap| matches!(gap.state, GapState::InProgress { .. })).count()
    }
}

pub(crate) fn record(stream: &str, key: &str) -> String {
    format!(
        r#"{{"type":"RECORD","stream":"{stream}","key":"{key}","data":{{"id":1.0}},"emitted_at":"2031-01-01T00:00:00Z"}}"#
    )
}

pub(crate) fn state(stream: &str, page: u64) -> String {
    format!(r#"{{"type":"STATE","stream":"{stream}","cursor":{{"page":{page}}}}}"#)
}

pub(crate) fn slice_state(stream: &str, page: u64) -> String {
    format!(r#"{{"type":"STATE","stream":"{stream}","cursor":{{"page":{page}}},"slice":true}}"#)
}

pub(crate) fn done(status: &str, records: u64) -> String {
    format!(r#"{{"type":"DONE","status":"{status}","records_emitted":{records}}}"#)
}

pub(crate) fn failed(code: &str, records: u64) -> String {
    format!(
        r#"{{"type":"DONE","status":"failed","records_emitted":{records},"error":{{"message":"m","retryable":true,"code":"{code}"}}}}"#
    )
}

pub(crate) fn gap(stream: &str, parent: &str, key: &str, reason: &str) -> String {
    format!(
        r#"{{"type":"DETAIL_GAP","reference_only":true,"status":"pending","stream":"{stream}","parent_stream":"{parent}","record_key":"{key}","reason":"{reason}"}}"#
    )
}

pub(crate) fn coverage(required: &[&str], hydrated: &[&str], gaps: &[&str]) -> String {
    let list = |keys: &[&str]| keys.iter().map(|key| format!("\"{key}\"")).collect::<Vec<_>>().join(",");
    format!(
        r#"{{"type":"DETAIL_COVERAGE","reference_only":true,"stream":"details","state_stream":"trips","required_keys":[{}],"hydrated_keys":[{}],"gap_keys":[{}]}}"#,
        list(required),
        list(hydrated),
        list(gaps)
    )
}
