//! The model: what must be durable of one connection, in plain maps.
//!
//! It hears what a connector says and which effects were carried out, and works out by itself what
//! that must have left behind. It shares no code with engine or store, never reads the store, and
//! knows nothing of SQL, receipts or epochs.

use super::gaps::{GapName, ModelGap, State};
use super::lines::Cause;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Stream and key.
pub(crate) type Place = (String, String);

/// A record as it is now; without a body it was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) body: Option<String>,
    pub(crate) versions: usize,
}

/// A connection that rests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resting {
    pub(crate) reason: String,
    pub(crate) escalation: u32,
    pub(crate) until: u64,
    pub(crate) by: String,
}

/// A run in the books. Without a reason it has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Booked {
    pub(crate) id: String,
    pub(crate) track: &'static str,
    pub(crate) reason: Option<&'static str>,
    pub(crate) counts: ModelCounts,
}

/// What a run did, of what is durable; but for what it has seen, which is counted as it comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelCounts {
    pub(crate) seen: u64,
    pub(crate) new: u64,
    pub(crate) changed: u64,
    pub(crate) unchanged: u64,
    pub(crate) deleted: u64,
    pub(crate) rejected: u64,
    pub(crate) gaps: u64,
    pub(crate) recovered: u64,
    pub(crate) unaccounted: u64,
}

/// Something that a connector said and that a slice carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Record {
        place: Place,
        body: Option<String>,
    },
    Bad {
        place: Place,
        body: String,
    },
    Gap {
        name: GapName,
        cause: Cause,
        locator: Option<String>,
    },
    Attempt {
        name: GapName,
        lease: String,
    },
    /// In the name of a stream, which may be another one.
    Recover {
        name: GapName,
        lease: String,
        stream: String,
    },
    Cursor {
        stream: String,
        seq: u64,
        token: String,
        slice: bool,
    },
}

/// How a run will end. A later, weightier one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    Succeeded,
    StreamsFailed,
    Failed(&'static str),
    Broken,
    Cancelled,
}

#[derive(Debug)]
pub(crate) struct Report {
    /// Required, hydrated, gaps, skips.
    pub(crate) lists: [Vec<String>; 4],
    pub(crate) unaccounted: Option<u64>,
}

/// The run that is going on.
#[derive(Debug)]
pub(crate) struct Going {
    pub(crate) id: String,
    pub(crate) track: &'static str,
    pub(crate) streams: &'static [&'static str],
    /// What no slice carries yet, and the slices that were given out and are not written.
    open: Vec<Said>,
    slices: VecDeque<Vec<Said>>,
    pub(crate) seqs: BTreeMap<String, u64>,
    staged: BTreeMap<String, (u64, String)>,
    committed: BTreeSet<String>,
    failed: BTreeSet<String>,
    pub(crate) report: Option<Report>,
    pressure: Option<&'static str>,
    /// RECORD lines.
    pub(crate) seen: u64,
    pub(crate) ending: Option<Ending>,
    wrote_unaccounted: bool,
    /// Whether it was served a part of a list before its report.
    expands_list: bool,
    /// What came for each gap since it was served: nothing, a record, or only one of another stream.
    came: BTreeMap<GapName, Option<&'static str>>,
    /// The last slice that had records or gaps.
    pub(crate) last_slice: Vec<Said>,
}

#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) records: BTreeMap<Place, Kept>,
    pub(crate) quarantine: BTreeMap<Place, String>,
    /// The run that deleted a record.
    pub(crate) deleted_by: BTreeMap<Place, String>,
    pub(crate) gaps: BTreeMap<GapName, ModelGap>,
    /// By track and stream: number and token.
    pub(crate) cursors: BTreeMap<(&'static str, String), (u64, String)>,
    pub(crate) rest: Option<Resting>,
    pub(crate) runs: Vec<Booked>,
    pub(crate) going: Option<Going>,
    /// The calendar, in milliseconds.
    pub(crate) now: u64,
}

const MINUTE: u64 = 60_000;
pub(crate) const SIX_HOURS: u64 = 360 * MINUTE;

/// What there is for a key that a report calls hydrated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Record,
    InQuarantine,
    Empty,
    Nothing,
}

impl Expected {
    /// A new run settles what runs before it left open.
    pub(crate) fn begin(&mut self, id: &str, track: &'static str, streams: &'static [&'static str]) {
        self.release();
        for run in &mut self.runs {
            run.reason = run.reason.or(Some("interrupted"));
        }
        self.runs.push(Booked { id: id.to_owned(), track, reason: None, counts: ModelCounts::default() });
        let of_track = self.cursors.iter().filter(|((of, _), _)| *of == track);
        self.going = Some(Going {
            id: id.to_owned(),
            track,
            streams,
            open: Vec::new(),
            slices: VecDeque::new(),
            seqs: of_track.map(|((_, stream), (seq, _))| (stream.clone(), *seq)).collect(),
            staged: BTreeMap::new(),
            committed: BTreeSet::new(),
            failed: BTreeSet::new(),
            report: None,
            pressure: None,
            seen: 0,
            ending: None,
            wrote_unaccounted: false,
            expands_list: false,
            came: BTreeMap::new(),
            last_slice: Vec::new(),
        });
    }

    fn release(&mut self) {
        self.gaps.values_mut().for_each(|gap| gap.release(self.now));
    }

    /// The oldest slice that was given out is durable. Answers what was in it.
    pub(crate) fn wrote(&mut self, shape: [usize; 3]) -> Vec<Said> {
        let going = self.going.as_mut().unwrap();
        let slice = going.slices.pop_front().expect("a slice that nobody filled");
        assert_eq!(slice_shape(&slice), shape, "records, rejected and gap changes of a slice");
        let [records, rejected, _] = shape.map(|count| count as u64);
        let counts = self.counts();
        (counts.seen, counts.rejected) = (counts.seen + records + rejected, counts.rejected + rejected);
        for said in &slice {
            self.apply(said, &slice);
        }
        let going = self.going.as_mut().unwrap();
        if slice.iter().any(|said| !matches!(said, Said::Cursor { .. })) {
            going.last_slice.clone_from(&slice);
        }
        slice
    }

    fn counts(&mut self) -> &mut ModelCounts {
        &mut self.runs.last_mut().unwrap().counts
    }

    fn keep(&mut self, place: &Place, body: Option<&String>) {
        self.quarantine.remove(place);
        let kept = self.records.entry(place.clone()).or_insert(Kept { body: None, versions: 0 });
        let counts = &mut self.runs.last_mut().unwrap().counts;
        if kept.versions > 0 && kept.body.as_ref() == body {
            counts.unchanged += 1;
            return;
        }
        if body.is_none() {
            self.deleted_by.insert(place.clone(), self.going.as_ref().unwrap().id.clone());
        }
        match (&kept.body, body) {
            (_, None) => counts.deleted += 1,
            (None, Some(_)) => counts.new += 1,
            (Some(_), Some(_)) => counts.changed += 1,
        }
        (kept.body, kept.versions) = (body.cloned(), kept.versions + 1);
    }

    /// Whether there can be nothing under the key of a gap that only another stream has: not if its record is in quarantine,
    /// and not if the two streams have the same keys.
    fn may_be_empty(&self, (stream, parent, subject): &GapName, slice: &[Said]) -> bool {
        let key = subject.strip_prefix("key:").unwrap_or_default();
        let place = (stream.clone(), key.to_owned());
        let is_bad = |said: &Said| matches!(said, Said::Bad { place: bad, .. } if *bad == place);
        let others = self.records.keys().filter(|(other, of)| other != stream && of == key);
        let mut others = others.filter(|(other, _)| parent.as_ref().is_none_or(|parent| parent == other));
        let shares = |(other, _): &Place| {
            self.records
                .keys()
                .any(|(of, key)| of == stream && self.records.contains_key(&(other.clone(), key.clone())))
        };
        !self.quarantine.contains_key(&place) && !slice.iter().any(is_bad) && !others.any(shares)
    }

    fn apply(&mut self, said: &Said, slice: &[Said]) {
        let may_be_empty = matches!(said, Said::Recover { name, .. } if self.may_be_empty(name, slice));
        let going = self.going.as_mut().unwrap();
        match said {
            Said::Record { place, body } => {
                going.bring(place, body.as_deref());
                self.keep(place, body.as_ref());
            }
            Said::Bad { place, body } => drop(self.quarantine.insert(place.clone(), body.clone())),
            Said::Gap { name, cause, locator } => {
                let run = going.id.clone();
                self.open_gap(name, *cause, locator.clone(), &run);
                self.counts().gaps += 1;
            }
            Said::Attempt { name, lease } => self.gaps.get_mut(name).unwrap().attempt(lease),
            Said::Recover { name, lease, stream } => {
                let came = match going.came.get(name) {
                    _ if *stream != name.0 => None,
                    _ if name.2.starts_with("loc:") => Some("list"),
                    came => came.copied().flatten().filter(|came| *came != "empty" || may_be_empty),
                };
                let closed = self.gaps.get_mut(name).unwrap().recover(lease, came);
                self.counts().recovered += u64::from(closed);
            }
            Said::Cursor { stream, seq, token, slice: true } => {
                going.staged.remove(stream);
                going.committed.insert(stream.clone());
                self.cursors.insert((going.track, stream.clone()), (*seq, token.clone()));
            }
            Said::Cursor { stream, seq, token, slice: false } => {
                going.staged.insert(stream.clone(), (*seq, token.clone()));
            }
        }
    }

    fn open_gap(&mut self, name: &GapName, cause: Cause, locator: Option<String>, run: &str) {
        match self.gaps.get_mut(name) {
            Some(gap) => gap.defer(cause, locator, run, self.now),
            None => drop(self.gaps.insert(name.clone(), ModelGap::open(cause, locator, run))),
        }
    }

    /// The gaps that a page must hold now; they are held from here on.
    pub(crate) fn lease_page(&mut self) -> BTreeSet<GapName> {
        let (going, now) = (self.going.as_mut().unwrap(), self.now);
        let in_scope = |name: &GapName| going.streams.contains(&name.0.as_str());
        let due = self.gaps.iter_mut().filter(|(name, gap)| in_scope(name) && gap.is_due_for(&going.id, now));
        let lease = |(name, gap): (&GapName, &mut ModelGap)| {
            gap.state = State::Held(going.id.clone());
            name.clone()
        };
        let page = due.map(lease).collect::<BTreeSet<_>>();
        going.came.extend(page.iter().map(|name| (name.clone(), None)));
        page
    }

    /// Judges the report from what is durable now.
    pub(crate) fn tally(&mut self) {
        let mut going = self.going.take().unwrap();
        going.expands_list = going.came.keys().any(|name| self.gaps[name].stands_for_many(name));
        let report = going.report.as_mut().unwrap();
        let [required, hydrated, _, skips] = &report.lists;
        let accounted =
            |key: &&String| hydrated.contains(key) && self.has_detail(key) || skips.contains(key) || self.has_gap(key);
        report.unaccounted = Some(required.iter().filter(|key| !accounted(key)).count() as u64);
        self.going = Some(going);
    }

    fn has_gap(&self, key: &str) -> bool {
        self.gaps.get(&detail_gap(key)).is_some_and(|gap| gap.state != State::Recovered)
    }

    /// Whether what a report calls hydrated is here, in quarantine, or empty.
    pub(crate) fn has_detail(&self, key: &str) -> bool {
        self.found(key) != Found::Nothing
    }

    /// What there is for a key that a report calls hydrated. It is empty if only trips have it, and no detail has the key of
    /// a trip.
    fn found(&self, key: &str) -> Found {
        let of = |stream: &'static str| self.records.iter().filter(move |((of, _), _)| of == stream);
        let has_field = |body: &str| fields_of(body).iter().any(|field| field == key);
        // A deletion by an earlier run is no detail of a trip that is there again.
        let is_listed = of("trips").any(|((_, trip), kept)| trip == key && kept.body.is_some());
        let run = self.going.as_ref().map(|going| &going.id);
        let counts =
            |place: &Place, kept: &Kept| kept.body.is_some() || !is_listed || self.deleted_by.get(place) == run;
        let is_it = |(place, kept): (&Place, &Kept)| {
            place.1 == key && counts(place, kept) || kept.body.as_deref().is_some_and(has_field)
        };
        let is_trip = |wanted: &str| of("trips").any(|((_, trip), _)| trip == wanted);
        let may_be_empty = of("details").next().is_some() && !of("details").any(|((_, detail), _)| is_trip(detail));
        let rejected = |place: &Place, by_field: bool| match self.quarantine.get(place) {
            Some(body) if place.0 == "details" => place.1 == key || by_field && has_field(body),
            _ => false,
        };
        if self.quarantine.keys().any(|place| rejected(place, false)) {
            Found::InQuarantine
        } else if of("details").any(is_it) {
            Found::Record
        } else if self.quarantine.keys().any(|place| rejected(place, true)) {
            Found::InQuarantine
        } else if may_be_empty && is_trip(key) {
            Found::Empty
        } else {
            Found::Nothing
        }
    }

    /// Keys that are called hydrated and are empty are kept as gaps that closed so. Answers the names of the new ones.
    pub(crate) fn keep_empty(&mut self) -> Vec<GapName> {
        let going = self.going.as_ref().unwrap();
        let Some(report) = going.report.as_ref().filter(|report| report.unaccounted.is_some()) else {
            return Vec::new();
        };
        let ([required, hydrated, gaps, skips], run) = (report.lists.clone(), going.id.clone());
        let is_hydrated = |key: &&String| hydrated.contains(key) && !gaps.contains(key) && !skips.contains(key);
        let mut names = Vec::new();
        for key in required.iter().filter(is_hydrated) {
            let (found, name) = (self.found(key), detail_gap(key));
            match self.gaps.get_mut(&name) {
                None if found == Found::Empty => {
                    let cause = Cause { reason: "unaccounted", run_cap: false, status: None };
                    self.open_gap(&name, cause, None, &run);
                    let gap = self.gaps.get_mut(&name).unwrap();
                    (gap.state, gap.confirmed_by) = (State::Recovered, Some("empty"));
                    names.push(name);
                }
                Some(gap) if found == Found::Record && gap.confirmed_by == Some("empty") => {
                    gap.confirmed_by = Some("record");
                }
                _ => {}
            }
        }
        names
    }

    /// Keys that nothing accounts for are gaps now. Answers their names.
    pub(crate) fn write_unaccounted(&mut self) -> Vec<GapName> {
        let going = self.going.as_mut().unwrap();
        assert!(going.owes_unaccounted(), "unaccounted keys were written out of turn");
        going.wrote_unaccounted = true;
        let ([required, hydrated, _, skips], run) = (going.report.as_ref().unwrap().lists.clone(), going.id.clone());
        let is_left = |key: &&String| !(skips.contains(key) || hydrated.contains(key) && self.has_detail(key));
        let left = required.iter().filter(is_left).cloned().collect::<Vec<_>>();
        let names = left.iter().filter(|key| !self.has_gap(key)).map(|key| detail_gap(key)).collect::<Vec<_>>();
        let cause = Cause { reason: "unaccounted", run_cap: false, status: None };
        for name in &names {
            self.open_gap(name, cause, None, &run);
        }
        self.counts().unaccounted += names.len() as u64;
        names
    }

    /// The cursors that the end of the run must commit.
    fn plan(&self) -> Vec<(String, u64, String)> {
        let going = self.going.as_ref().unwrap();
        let complete = going.report.as_ref().is_some_and(|report| report.unaccounted == Some(0));
        let held_back = |stream: &str| {
            let failed = going.failed.contains(stream) || stream == "trips" && going.failed.contains("details");
            let scoped = going.ending == Some(Ending::StreamsFailed) && failed;
            // The list waits for the report, and so does the stream that it is about.
            let waits = ["trips", "details"].iter().all(|name| going.streams.contains(name)) && !complete;
            scoped || waits && matches!(stream, "trips" | "details")
        };
        let eligible = matches!(going.ending, Some(Ending::Succeeded | Ending::StreamsFailed));
        let staged = going.staged.iter().filter(|(stream, _)| eligible && !held_back(stream));
        staged.map(|(stream, (seq, token))| (stream.clone(), *seq, token.clone())).collect()
    }

    pub(crate) fn committed(&mut self, cursors: &[(String, u64, String)]) {
        assert_eq!(cursors, self.plan(), "the plan at the end of a run");
        let going = self.going.as_mut().unwrap();
        going.staged.clear();
        for (stream, seq, token) in cursors {
            self.cursors.insert((going.track, stream.clone()), (*seq, token.clone()));
        }
    }

    /// The run is over and the store knows. Answers whether the connection rests because of it.
    pub(crate) fn finished(&mut self, at: u64) -> bool {
        assert_eq!(self.plan(), [], "these cursors were left behind");
        let going = self.going.take().unwrap();
        assert!(going.slices.is_empty() && going.open.is_empty(), "something said was not written");
        assert_eq!(going.owes_unaccounted(), going.wrote_unaccounted, "unaccounted keys were not written");
        self.release();
        let booked = self.runs.last_mut().unwrap();
        (booked.reason, booked.counts.seen) = (Some(going.reason()), going.seen);
        if let Some(reason) = going.pressure {
            self.arm(reason, going.id, at);
        } else if matches!(self.runs.last().unwrap().reason, Some("succeeded" | "budget_reached")) {
            self.lift(at);
        }
        going.pressure.is_some()
    }

    /// The provider let a run through: there is no rest any more, and after twelve in a row the row is no longer so long
    /// that somebody has to look.
    fn lift(&mut self, at: u64) {
        if let Some(rest) = &mut self.rest {
            (rest.until, rest.escalation) = (rest.until.min(at), rest.escalation.min(11));
        }
    }

    /// A schedule that asks after the calendar was set back: no rest is longer than the longest.
    pub(crate) fn rest_after_jump(&mut self, now: u64) -> bool {
        let too_long = self.rest.as_mut().filter(|rest| rest.until > now + SIX_HOURS);
        too_long.map(|rest| rest.until = now + SIX_HOURS).is_some()
    }

    fn arm(&mut self, reason: &str, by: String, at: u64) {
        let in_a_row = self.rest.as_ref().filter(|before| at <= before.until + SIX_HOURS);
        let escalation = in_a_row.map_or(0, |before| before.escalation + 1);
        let length = ((15 * MINUTE) << escalation.min(6)).min(SIX_HOURS);
        self.rest = Some(Resting { reason: reason.to_owned(), escalation, until: at + length, by });
    }
}

impl Going {
    /// Something that a slice will carry.
    pub(crate) fn say(&mut self, said: Said) {
        match &said {
            Said::Record { .. } | Said::Bad { .. } => self.seen += 1,
            Said::Gap { cause, .. } if cause.is_pressure() => self.pressure = Some(cause.reason),
            Said::Gap { .. } | Said::Recover { .. } | Said::Attempt { .. } | Said::Cursor { .. } => {}
        }
        let whole = matches!(said, Said::Cursor { slice: true, .. });
        self.open.push(said);
        if whole {
            self.flush();
        }
    }

    /// A record is durable: it may be what a gap stands for.
    fn bring(&mut self, (stream, key): &Place, body: Option<&str>) {
        let fields = body.map(fields_of).unwrap_or_default();
        for (name, came) in &mut self.came {
            let Some(wanted) = name.2.strip_prefix("key:") else { continue };
            if name.0 == *stream && (key == wanted || fields.iter().any(|field| field == wanted)) {
                *came = Some("record");
            } else if key == wanted && name.1.as_ref().is_none_or(|parent| parent == stream) {
                *came = came.or(Some("empty"));
            }
        }
    }

    /// A slice ends here.
    pub(crate) fn flush(&mut self) {
        if !self.open.is_empty() {
            self.slices.push_back(std::mem::take(&mut self.open));
        }
    }

    pub(crate) fn fail_stream(&mut self, stream: &str) {
        self.failed.insert(stream.to_owned());
    }

    pub(crate) fn has_failed_streams(&self) -> bool {
        !self.failed.is_empty()
    }

    pub(crate) fn throttle(&mut self) {
        self.pressure = Some("rate_limited");
    }

    /// The end is decided, unless a weightier one is.
    pub(crate) fn conclude(&mut self, ending: Ending) {
        self.flush();
        self.ending = Some(self.ending.map_or(ending, |decided| decided.max(ending)));
    }

    /// Whether keys lie behind a cursor that this run or an earlier one committed, without anything that accounts for them.
    fn owes_unaccounted(&self) -> bool {
        let short = self.report.as_ref().is_some_and(|report| report.unaccounted.is_some_and(|keys| keys > 0));
        short && self.ending.is_some() && (self.expands_list || self.committed.contains("trips"))
    }

    const fn reason(&self) -> &'static str {
        match self.ending {
            Some(Ending::Succeeded) => "succeeded",
            Some(Ending::StreamsFailed) => "stream_collection_failed",
            Some(Ending::Failed(reason)) => reason,
            Some(Ending::Broken) | None => "protocol_violation",
            Some(Ending::Cancelled) => "cancelled",
        }
    }
}

/// The texts and numbers of a body.
pub(crate) fn fields_of(body: &str) -> Vec<String> {
    let body = serde_json::from_str::<BTreeMap<String, serde_json::Value>>(body).unwrap();
    let field = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    body.into_values().filter_map(field).collect()
}

fn detail_gap(key: &str) -> GapName {
    ("details".to_owned(), Some("trips".to_owned()), format!("key:{key}"))
}

/// How many records, rejected records and changes of gaps a slice has. Of one key the last counts.
fn slice_shape(slice: &[Said]) -> [usize; 3] {
    let is_replaced = |(nth, said): (usize, &Said)| {
        let Said::Bad { place, .. } = said else { return false };
        slice[nth..].iter().any(|later| matches!(later, Said::Record { place: other, .. } if other == place))
    };
    let replaced = slice.iter().enumerate().filter(|&said| is_replaced(said)).count();
    let count = |is: fn(&Said) -> bool| slice.iter().filter(|said| is(said)).count();
    let gaps = |said: &Said| matches!(said, Said::Gap { .. } | Said::Attempt { .. } | Said::Recover { .. });
    let rejected = count(|said| matches!(said, Said::Bad { .. })) - replaced;
    [count(|said| matches!(said, Said::Record { .. })), rejected, count(gaps)]
}
