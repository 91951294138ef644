//! What a run may do to the account, given what it asks for: which track it moves, which cursors it goes on from,
//! which gaps it is served, and what it may overwrite.
//!
//! A cursor says "everything before me is accounted for". That is true only of what was looked at on the way. A run
//! that asks for less than the owner allows looks at less, and its connector moves the cursor past the rest all the
//! same; so such a run has a track of its own, one per exact scope. [`Reach::decide`] is the one place where this is
//! decided, from the manifest, the owner's grant, the run's scope and what the store has seen. Nothing that a
//! connector sends during the run changes it. See docs/decisions/0001-scoped-runs.md.

use crate::checkpoint::FoundBy;
use crate::coverage::{CoveragePair, gaps_need_no_parent};
use crate::instant::Instant;
use gleaner_protocol::{
    Checkpoint, CoveragePolicy, Manifest, Scope, StreamManifest, StreamScope, TimeRange, coded_enum,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// What a run asks for, beside what the owner allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunScope {
    /// The owner's grant: what an ordinary run collects.
    pub grant: Scope,
    /// What this run collects.
    pub asked: Scope,
    /// Which part of the grant its track is about.
    pub part: GrantPart,
}

/// Which part of the grant a track is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GrantPart {
    /// All of it.
    #[default]
    All,
    /// What is older than the first ordinary run: catch-up.
    History {
        /// The time of that run; absent when there was none.
        until: Option<String>,
    },
}

impl RunScope {
    /// An ordinary run: all that the owner allows.
    #[must_use]
    pub fn ordinary(grant: Scope) -> Self {
        Self { asked: grant.clone(), grant, part: GrantPart::All }
    }
}

/// Which track a run moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackChoice {
    /// The ordinary one.
    Steady,
    /// That of catch-up runs.
    CatchUp,
    /// One for exactly this scope.
    Scoped,
}

/// What a store has seen of the streams of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenStreams {
    /// Pairs of a stream and its parent, from coverage reports and gaps of any run.
    pub reported: BTreeSet<(String, String)>,
    /// The streams that have a committed steady cursor of their own.
    pub with_cursor: BTreeSet<String>,
    /// Pairs of a stream and its list of which a coverage report came in any run.
    pub reports: BTreeMap<(String, String), ReportedKeys>,
}

coded_enum! {
    /// Whether the required keys of the coverage reports about a list are keys of the list's records.
    #[derive(Default)]
    pub enum ReportedKeys {
        /// No report named a key so far.
        #[default]
        Unknown = "unknown";
        /// All of them are.
        OfList = "of_list";
        /// Some are not.
        Other = "other";
    }
}

/// A coverage report that a run owes before the cursor of a list counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedReport {
    /// What it is about.
    pub pair: CoveragePair,
    /// Whether the manifest demands it; otherwise the connector sent one in some run.
    pub is_declared: bool,
    /// What its keys were so far.
    pub keys: ReportedKeys,
}

/// Coverage strategies of streams that are listed whole in every run: they ride on no cursor.
const LISTED_WHOLE: [&str; 3] = ["full_inventory", "singleton_presence", "snapshot_import_receipt"];
/// The strategy of streams whose records are details of other streams' records.
const PARENT_DETAIL_ACCOUNTING: &str = "parent_detail_accounting";

impl SeenStreams {
    /// Whether records of a stream may be found only while the cursor of another one moves.
    fn may_depend(&self, stream: &StreamManifest, on: &str) -> bool {
        // Nothing says where a stream without a cursor of its own keeps its place, so it may be in any cursor.
        let is_placed = LISTED_WHOLE.contains(&strategy(stream)) || self.with_cursor.contains(&stream.name);
        let is_nowhere = stream.name != on && stream.checkpoint == Checkpoint::Own && !is_placed;
        is_nowhere || self.depends(stream, on)
    }

    /// Whether somebody says so: the manifest, or its connector in some run.
    fn depends(&self, stream: &StreamManifest, on: &str) -> bool {
        if stream.name == on {
            return false;
        }
        if self.reported.contains(&(stream.name.clone(), on.to_owned())) {
            return true;
        }
        match &stream.checkpoint {
            Checkpoint::StateStream(_) | Checkpoint::ParentStreams(_) => {
                stream.checkpoint.parents().iter().any(|parent| parent == on)
            }
            Checkpoint::Own => strategy(stream) == PARENT_DETAIL_ACCOUNTING,
        }
    }

    /// By the lists of which streams of the extent the records of each are found, as far as somebody says so.
    fn found_by(&self, manifest: &Manifest, extent: &Extent) -> FoundBy {
        let streams = manifest.streams.iter().filter(|stream| extent.0.contains_key(&stream.name));
        FoundBy::of(streams.flat_map(|stream| {
            let lists = extent.0.keys().filter(|list| self.depends(stream, list));
            lists.map(|list| (stream.name.clone(), list.clone())).collect::<Vec<_>>()
        }))
    }

    /// The reports that a run with this extent owes, by the stream whose cursor they are about.
    fn expected(&self, manifest: &Manifest, extent: &Extent) -> BTreeMap<String, Vec<ExpectedReport>> {
        let mut expected = BTreeMap::<String, Vec<ExpectedReport>>::new();
        let streams = manifest.streams.iter().filter(|stream| extent.0.contains_key(&stream.name));
        for (stream, list) in streams.flat_map(|stream| extent.0.keys().map(move |list| (stream, list))) {
            let keys = self.reports.get(&(stream.name.clone(), list.clone())).copied();
            let is_declared =
                matches!(&stream.checkpoint, Checkpoint::ParentStreams(parents) if parents.contains(list));
            if is_declared || keys.is_some() {
                let any_parent = stream.name == *list || gaps_need_no_parent(manifest, &stream.name);
                let pair = CoveragePair { stream: stream.name.clone(), state_stream: list.clone(), any_parent };
                let report = ExpectedReport { pair, is_declared, keys: keys.unwrap_or_default() };
                expected.entry(list.clone()).or_default().push(report);
            }
        }
        expected
    }

    /// For each stream of the extent the others of it that depend on its cursor, directly or through others.
    fn dependents(&self, manifest: &Manifest, extent: &Extent) -> BTreeMap<String, BTreeSet<String>> {
        let streams = manifest.streams.iter().filter(|stream| extent.0.contains_key(&stream.name)).collect::<Vec<_>>();
        let of = |root: &String| {
            let (mut found, mut waiting) = (BTreeSet::new(), vec![root.clone()]);
            while let Some(on) = waiting.pop() {
                for stream in streams.iter().filter(|stream| self.may_depend(stream, &on) && stream.name != *root) {
                    if found.insert(stream.name.clone()) {
                        waiting.push(stream.name.clone());
                    }
                }
            }
            found
        };
        extent.0.keys().map(|name| (name.clone(), of(name))).collect()
    }
}

fn strategy(stream: &StreamManifest) -> &str {
    stream.coverage_strategy.as_deref().unwrap_or_default()
}

/// A scope as a value that can be compared and written down: the order in which it was typed does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent(BTreeMap<String, StreamExtent>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StreamExtent {
    name: String,
    /// Empty means all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    resources: BTreeSet<String>,
    /// Empty means all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    fields: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

impl Extent {
    /// The extent of a scope.
    #[must_use]
    pub fn of(scope: &Scope) -> Self {
        Self(scope.streams().iter().map(|stream| (stream.name.clone(), StreamExtent::of(stream))).collect())
    }

    /// As a store writes it: the same text for the same extent.
    #[must_use]
    pub fn to_text(&self) -> String {
        json!({ "streams": self.0.values().collect::<Vec<_>>() }).to_string()
    }

    /// Reads it back; nothing where the text makes no sense.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let mut lists = serde_json::from_str::<BTreeMap<String, Vec<StreamExtent>>>(text).ok()?;
        Some(Self(lists.remove("streams")?.into_iter().map(|part| (part.name.clone(), part)).collect()))
    }

    /// The options of `gleaner run` that ask for this part of what the owner allows.
    #[must_use]
    pub fn options(&self, grant: &Self) -> Vec<String> {
        let mut options = Vec::new();
        if !self.0.keys().eq(grant.0.keys()) {
            options.extend(["--stream".to_owned(), self.0.keys().cloned().collect::<Vec<_>>().join(",")]);
        }
        for (name, part) in &self.0 {
            let keys = part.resources.iter().flat_map(|key| ["--resource".to_owned(), format!("{name}={key}")]);
            options.extend(keys);
        }
        let is_own = |(name, part): &(&String, &StreamExtent)| {
            part.since.is_some() && grant.0.get(*name).is_none_or(|granted| granted.since != part.since)
        };
        let since = self.0.iter().find(is_own).and_then(|(_, part)| part.since.clone());
        options.extend(since.into_iter().flat_map(|since| ["--since".to_owned(), since]));
        options
    }

    fn only(mut self, is_meant: impl Fn(&String) -> bool) -> Self {
        self.0.retain(|name, _| is_meant(name));
        self
    }

    /// The part of it that is older than this.
    fn until(mut self, until: Option<&str>) -> Self {
        for part in self.0.values_mut() {
            if !ends_no_earlier(until, part.until.as_deref()) {
                part.until = until.map(str::to_owned);
            }
        }
        self
    }

    /// Whether everything of this stream in the other extent is in this one. A stream that the other does not
    /// have is.
    fn covers(&self, other: &Self, stream: &str) -> bool {
        let Some(wanted) = other.0.get(stream) else { return true };
        self.0.get(stream).is_some_and(|part| part.covers(wanted))
    }

    /// What is in both, as far as it can be told: never more.
    fn meet(&self, other: &Self) -> Self {
        let both = self.0.iter().filter_map(|(name, part)| {
            let other = other.0.get(name)?;
            let narrower = if part.covers(other) { Some(other) } else { other.covers(part).then_some(part) };
            narrower.map(|part| (name.clone(), part.clone()))
        });
        Self(both.collect())
    }
}

impl StreamExtent {
    fn of(stream: &StreamScope) -> Self {
        let TimeRange { since, until } = stream.time_range.clone().unwrap_or_default();
        let set = |texts: &[String]| texts.iter().cloned().collect();
        let (resources, fields) = (set(&stream.resources), set(&stream.fields));
        Self { name: stream.name.clone(), resources, fields, since, until }
    }

    fn covers(&self, other: &Self) -> bool {
        let all = |own: &BTreeSet<String>, other: &BTreeSet<String>| {
            own.is_empty() || (!other.is_empty() && other.is_subset(own))
        };
        all(&self.resources, &other.resources)
            && all(&self.fields, &other.fields)
            && starts_no_later(self.since.as_deref(), other.since.as_deref())
            && ends_no_earlier(self.until.as_deref(), other.until.as_deref())
    }
}

fn starts_no_later(own: Option<&str>, other: Option<&str>) -> bool {
    in_order(own, other, |own, other| own <= other)
}

fn ends_no_earlier(own: Option<&str>, other: Option<&str>) -> bool {
    in_order(own, other, |own, other| own >= other)
}

/// An end that is absent is open. Times that cannot be read are in order only if they are the same.
fn in_order(own: Option<&str>, other: Option<&str>, holds: impl Fn(Instant, Instant) -> bool) -> bool {
    match (own, other) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(own), Some(other)) => match (Instant::parse(own), Instant::parse(other)) {
            (Some(own), Some(other)) => holds(own, other),
            (_, _) => own == other,
        },
    }
}

/// What one run may do to the account.
#[derive(Debug)]
pub struct Reach {
    track: TrackChoice,
    grant: Extent,
    asked: Extent,
    /// What it asks for, without streams that the connector does not collect.
    collected: Extent,
    /// What the track is about: all of the grant, its history, or exactly what was asked for.
    about: Extent,
    dependents: BTreeMap<String, BTreeSet<String>>,
    found_by: FoundBy,
    listed_whole: BTreeSet<String>,
    expected: BTreeMap<String, Vec<ExpectedReport>>,
}

impl Reach {
    /// Decides it. The run is ordinary only if it looks at all that the owner allows, in every stream that its
    /// cursors account for.
    #[must_use]
    pub fn decide(manifest: &Manifest, run: &RunScope, seen: &SeenStreams) -> Self {
        let (grant, asked) = (Extent::of(&run.grant), Extent::of(&run.asked));
        let (about, own_track) = match &run.part {
            GrantPart::All => (grant.clone(), TrackChoice::Steady),
            GrantPart::History { until } => (grant.clone().until(until.as_deref()), TrackChoice::CatchUp),
        };
        // A stream that is not collected is not accounted for, however long a cursor has moved beside it.
        let policy = |name: &String| manifest.stream(name).map(|stream| stream.coverage_policy);
        let is_collected = |name: &String| policy(name) == Some(CoveragePolicy::Collect);
        let about = about.only(is_collected);
        let collected = asked.clone().only(is_collected);
        let is_whole = is_whole(&collected, &about, manifest, seen);
        let (track, about) = if is_whole { (own_track, about) } else { (TrackChoice::Scoped, collected.clone()) };
        let dependents = seen.dependents(manifest, &about);
        let found_by = seen.found_by(manifest, &asked);
        let whole = manifest.streams.iter().filter(|stream| LISTED_WHOLE.contains(&strategy(stream)));
        let listed_whole = whole.map(|stream| stream.name.clone()).collect();
        let expected = seen.expected(manifest, &asked);
        Self { track, grant, asked, collected, about, dependents, found_by, listed_whole, expected }
    }

    /// Which track it moves.
    #[must_use]
    pub const fn track(&self) -> TrackChoice {
        self.track
    }

    /// By the lists of which streams the records of each are found.
    #[must_use]
    pub const fn found_by(&self) -> &FoundBy {
        &self.found_by
    }

    /// Whether every run lists this stream from its beginning.
    #[must_use]
    pub fn is_listed_whole(&self, stream: &str) -> bool {
        self.listed_whole.contains(stream)
    }

    /// The streams whose cursors records of this one may be found by, as far as nothing says that they are not.
    #[must_use]
    pub fn lists_of(&self, stream: &str) -> BTreeSet<String> {
        let lists = self.dependents.iter().filter(|(_, dependents)| dependents.contains(stream));
        lists.map(|(list, _)| list.clone()).collect()
    }

    /// What it asks for.
    #[must_use]
    pub const fn asked(&self) -> &Extent {
        &self.asked
    }

    /// What the owner allows.
    #[must_use]
    pub const fn grant(&self) -> &Extent {
        &self.grant
    }

    /// Whether a stream is in its scope.
    #[must_use]
    pub fn contains(&self, stream: &str) -> bool {
        self.asked.0.contains_key(stream)
    }

    /// The coverage reports that the cursor of this stream waits for.
    #[must_use]
    pub fn expected_reports(&self, list: &str) -> &[ExpectedReport] {
        self.expected.get(list).map_or(&[], Vec::as_slice)
    }

    /// Whether the run may go on from a cursor of this stream: all that the track is about, of the stream and of those
    /// that depend on its cursor, was looked at on the way to it. Otherwise the grant was widened since, and the
    /// stream is listed again; records that did not change cost nothing.
    #[must_use]
    pub fn may_resume(&self, stream: &str, basis: &str) -> bool {
        let Some(basis) = Extent::from_text(basis) else { return false };
        let dependents = self.dependents.get(stream).into_iter().flatten().map(String::as_str);
        std::iter::once(stream).chain(dependents).all(|stream| basis.covers(&self.about, stream))
    }

    /// The basis of a cursor that this run commits: what it asks for, and no more than was looked at on the way to the
    /// cursor that it went on from.
    #[must_use]
    pub fn basis(&self, went_on_from: Option<&str>) -> String {
        match went_on_from {
            None => self.collected.to_text(),
            Some(basis) => Extent::from_text(basis).unwrap_or_default().meet(&self.collected).to_text(),
        }
    }

    /// Whether the run is served a gap that ordinary runs share: only if what is missing is certainly in its scope,
    /// as it would be in an ordinary run. `stands_for_many` is a gap that is no single record.
    #[must_use]
    pub fn serves(&self, stream: &str, record_key: Option<&str>, stands_for_many: bool) -> bool {
        if self.track == TrackChoice::Steady {
            return true;
        }
        let (Some(asked), Some(key)) = (self.asked.0.get(stream), record_key) else { return false };
        let has_key = asked.resources.is_empty() || asked.resources.contains(key);
        !stands_for_many && has_key && !self.is_partial(stream) && !self.is_limited_in_time(stream)
    }

    /// Whether bodies of this stream lack fields that ordinary runs bring.
    #[must_use]
    pub fn is_partial(&self, stream: &str) -> bool {
        self.is_narrower(stream, |part| StreamExtent { fields: part.fields.clone(), ..StreamExtent::default() })
    }

    /// The streams whose bodies lack fields, as JSON, if there are any.
    #[must_use]
    pub fn partial_streams(&self) -> Option<String> {
        let streams = self.asked.0.keys().filter(|stream| self.is_partial(stream)).cloned().collect::<Vec<_>>();
        (!streams.is_empty()).then(|| json!(streams).to_string())
    }

    fn is_limited_in_time(&self, stream: &str) -> bool {
        self.is_narrower(stream, |part| StreamExtent {
            since: part.since.clone(),
            until: part.until.clone(),
            ..StreamExtent::default()
        })
    }

    fn is_narrower(&self, stream: &str, by: impl Fn(&StreamExtent) -> StreamExtent) -> bool {
        let (asked, allowed) = (self.asked.0.get(stream), self.grant.0.get(stream));
        let allowed = allowed.map(&by).unwrap_or_default();
        self.track != TrackChoice::Steady && asked.is_some_and(|asked| !by(asked).covers(&allowed))
    }
}

/// Whether nothing that the track is about is left out, but for streams that have nothing to do with those asked for.
fn is_whole(asked: &Extent, about: &Extent, manifest: &Manifest, seen: &SeenStreams) -> bool {
    let is_asked = |name: &str| asked.0.contains_key(name);
    let known = |name: &String| about.0.contains_key(name) && asked.covers(about, name);
    if !asked.0.keys().all(known) {
        return false;
    }
    let streams = manifest.streams.iter().filter(|stream| about.0.contains_key(&stream.name));
    let (inside, outside) = streams.partition::<Vec<_>, _>(|stream| is_asked(&stream.name));
    let is_apart = |inside: &StreamManifest, outside: &StreamManifest| {
        !seen.may_depend(inside, &outside.name) && !seen.may_depend(outside, &inside.name)
    };
    inside.iter().all(|one| outside.iter().all(|other| is_apart(one, other)))
}

#[cfg(test)]
mod tests;
