//! A provider and a connector that was not written with the SDK: it believes in nothing but its own cursor.
//!
//! It walks its list from its cursor, sends what was asked for, and moves the cursor past everything that it walked over.
//! Beyond its cap it writes one gap for the rest. Some of its kind do worse: see [`Lies`].

use gleaner_protocol::{RuntimeMessage, Scope, ServedGap, Start};
use gleaner_sdk::{Wire, WireFault};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The provider's state of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its place in the list; each change gives it a new one.
    pub(crate) at: u64,
    pub(crate) version: u64,
    pub(crate) deleted: bool,
}

/// A list that changes. Whether a record fits its schema, and whether its detail can be had, follows from its number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Provider {
    pub(crate) items: BTreeMap<u64, Entry>,
    pub(crate) now: u64,
    /// Details that fail now and then can be had.
    pub(crate) is_well: bool,
}

impl Provider {
    pub(crate) fn add(&mut self, count: u64) {
        for _ in 0..count {
            self.now += 1;
            let number = self.items.len() as u64;
            self.items.insert(number, Entry { at: self.now, version: 0, deleted: false });
        }
    }

    pub(crate) fn change(&mut self, number: u64, deletes: bool) {
        let count = self.items.len().max(1) as u64;
        self.now += 1;
        let at = self.now;
        if let Some(entry) = self.items.get_mut(&(number % count)).filter(|entry| !entry.deleted) {
            *entry = Entry { at, version: entry.version + 1, deleted: deletes };
        }
    }

    /// Newer than this, the oldest first.
    fn list(&self, after: u64) -> Vec<(u64, Entry)> {
        let mut list =
            self.items.iter().filter(|(_, entry)| entry.at > after).map(|(n, e)| (*n, *e)).collect::<Vec<_>>();
        list.sort_unstable_by_key(|(_, entry)| entry.at);
        list
    }

    const fn is_bad(number: u64) -> bool {
        number % 7 == 3
    }

    /// Whether its detail can be had.
    const fn has_detail(&self, number: u64) -> bool {
        match number % 5 {
            1 => self.is_well,
            // Never.
            4 => number % 10 != 4,
            _ => true,
        }
    }
}

/// A place in the list as a time.
pub(crate) fn time(at: u64) -> String {
    format!("2030-01-01T{:02}:{:02}:{:02}Z", at / 3600, at / 60 % 60, at % 60)
}

/// Its fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lies {
    /// A run that only recovers moves the cursor to the end.
    pub(crate) moves_when_recovering: bool,
    /// A gap is said to be recovered although nothing was sent.
    pub(crate) recovers_nothing: bool,
    /// Details count as hydrated that were not sent.
    pub(crate) hydrates_nothing: bool,
}

/// How it is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nature {
    pub(crate) lies: Lies,
    /// How many items of the list it works on in a run.
    pub(crate) cap: Option<usize>,
    /// How many items a slice has.
    pub(crate) slice: usize,
    /// Whether it says how many details there are.
    pub(crate) reports: bool,
}

/// One run of it. The error is the end of its pipe.
pub(crate) fn run(wire: &mut dyn Wire, provider: &Provider, nature: Nature) -> Result<i32, WireFault> {
    let Some(RuntimeMessage::Start(start)) = wire.read()? else { return Err(WireFault::Disconnected) };
    let mut run = Running { wire, provider, nature, start: &start, sent: 0, keys: Keys::default() };
    run.collect()?;
    let sent = run.sent;
    run.say(&json!({"type": "DONE", "status": "succeeded", "records_emitted": sent}))?;
    Ok(0)
}

#[derive(Default)]
struct Keys {
    required: Vec<String>,
    hydrated: Vec<String>,
    gaps: Vec<String>,
}

struct Running<'r> {
    wire: &'r mut dyn Wire,
    provider: &'r Provider,
    nature: Nature,
    start: &'r Start,
    sent: u64,
    keys: Keys,
}

impl Running<'_> {
    fn say(&mut self, message: &Value) -> Result<(), WireFault> {
        self.wire.write(format!("{message}\n").as_bytes())
    }

    fn collect(&mut self) -> Result<(), WireFault> {
        let mut left = self.nature.cap.unwrap_or(usize::MAX);
        let gaps = self.start.detail_gaps.clone();
        let (backlogs, singles) = gaps.iter().partition::<Vec<_>, _>(|gap| is_backlog(gap));
        for gap in singles {
            self.recover(gap)?;
        }
        let mut ranges = Vec::new();
        for gap in &backlogs {
            for range in ranges_of(gap) {
                let rest = self.walk(range, false, &mut left)?;
                ranges.extend(rest);
            }
        }
        let asks_for_items = self.start.scope.stream("items").is_some();
        let end = self.provider.now;
        if !self.start.recovery_only {
            let state = self.start.state.as_ref().and_then(|state| state.iter().find(|(stream, _)| stream == "items"));
            let cursor = state.map(|(_, cursor)| serde_json::from_str::<Value>(cursor.as_str()).unwrap());
            let from = cursor.and_then(|cursor| cursor["at"].as_u64()).unwrap_or(0);
            ranges.extend(self.walk((from, end), true, &mut left)?);
        }
        self.write_backlog(&backlogs, &ranges)?;
        if asks_for_items && (!self.start.recovery_only || self.nature.lies.moves_when_recovering) {
            self.say(&json!({"type": "STATE", "stream": "items", "cursor": {"at": end}}))?;
        }
        self.report()
    }

    /// The rest of the list as one gap, or that there is none any more.
    fn write_backlog(&mut self, served: &[&ServedGap], ranges: &[(u64, u64)]) -> Result<(), WireFault> {
        if self.start.scope.stream("details").is_none() {
            return Ok(());
        }
        if ranges.is_empty() {
            for gap in served {
                self.say(&recovered(gap))?;
            }
            return Ok(());
        }
        self.say(&json!({
            "type": "DETAIL_GAP", "stream": "details", "record_key": "rest", "status": "pending", "reference_only": true,
            "reason": "retry_exhausted", "last_error": {"class": "run_cap_deferred"}, "parent_stream": "items",
            "detail_locator": {"kind": "backlog", "watermark": 0, "ranges": ranges},
        }))
    }

    /// Works on what lies between two places, and answers what is left of it. Only on the way forward it tells how far it came.
    fn walk(
        &mut self,
        (from, to): (u64, u64),
        is_forward: bool,
        left: &mut usize,
    ) -> Result<Option<(u64, u64)>, WireFault> {
        let mut in_slice = 0;
        for (number, entry) in self.provider.list(from).into_iter().filter(|(_, entry)| entry.at <= to) {
            if *left == 0 && self.start.scope.stream("details").is_some() {
                return Ok(Some((entry.at - 1, to)));
            }
            *left = left.saturating_sub(1);
            self.emit(number, entry)?;
            in_slice += 1;
            // Within a cap nothing is whole before its gap is written.
            let is_whole = is_forward && self.nature.cap.is_none();
            if in_slice == self.nature.slice && is_whole && self.start.scope.stream("items").is_some() {
                in_slice = 0;
                self.say(&json!({"type": "STATE", "stream": "items", "cursor": {"at": entry.at}, "slice": true}))?;
            }
        }
        Ok(None)
    }

    fn emit(&mut self, number: u64, entry: Entry) -> Result<(), WireFault> {
        let key = format!("k{number}");
        self.record("items", &key, number, entry)?;
        if self.start.scope.stream("details").is_none() || !wants(&self.start.scope, "details", &key, entry) {
            return Ok(());
        }
        self.keys.required.push(key.clone());
        if entry.deleted || self.provider.has_detail(number) {
            self.record("details", &key, number, entry)?;
            self.keys.hydrated.push(key);
            return Ok(());
        }
        if self.nature.lies.hydrates_nothing {
            self.keys.hydrated.push(key);
            return Ok(());
        }
        self.keys.gaps.push(key.clone());
        self.say(&json!({
            "type": "DETAIL_GAP", "stream": "details", "record_key": key, "parent_stream": "items", "status": "pending",
            "reference_only": true, "reason": "temporary_unavailable",
        }))
    }

    /// A gap that was served: sent if it can be had and was asked for; said to be recovered in any case.
    fn recover(&mut self, gap: &ServedGap) -> Result<(), WireFault> {
        let key = gap.record_key.as_ref().map(|key| key.as_str().to_owned()).unwrap_or_default();
        let number = key[1..].parse::<u64>().unwrap();
        let entry = self.provider.items[&number];
        let can_be_had = entry.deleted || self.provider.has_detail(number);
        if can_be_had {
            self.record("details", &key, number, entry)?;
        }
        if can_be_had || self.nature.lies.recovers_nothing {
            return self.say(&recovered(gap));
        }
        self.say(&json!({
            "type": "DETAIL_GAP", "stream": "details", "record_key": key, "parent_stream": "items", "status": "pending",
            "reference_only": true, "reason": "temporary_unavailable", "gap_id": gap.gap_id, "lease_id": gap.lease_id,
        }))
    }

    fn record(&mut self, stream: &str, key: &str, number: u64, entry: Entry) -> Result<(), WireFault> {
        if !wants(&self.start.scope, stream, key, entry) {
            return Ok(());
        }
        self.sent += 1;
        if entry.deleted {
            return self.say(&json!({"type": "RECORD", "stream": stream, "key": key, "op": "delete"}));
        }
        let version = if Provider::is_bad(number) { json!("bad") } else { json!(entry.version) };
        let mut data =
            json!({"id": key, "at": time(entry.at), "v": version, "note": format!("{number}.{}", entry.version)});
        let asked = self.start.scope.stream(stream).unwrap();
        if !asked.fields.is_empty() {
            let timed = asked.time_range.is_some();
            let keeps = |name: &String| name == "id" || (timed && name == "at") || asked.fields.contains(name);
            data.as_object_mut().unwrap().retain(|name, _| keeps(name));
        }
        self.say(&json!({"type": "RECORD", "stream": stream, "key": key, "data": data, "emitted_at": time(entry.at)}))
    }

    fn report(&mut self) -> Result<(), WireFault> {
        let is_asked = |stream: &str| self.start.scope.stream(stream).is_some();
        if !self.nature.reports || !is_asked("items") || !is_asked("details") {
            return Ok(());
        }
        let mut keys = std::mem::take(&mut self.keys);
        for list in [&mut keys.required, &mut keys.hydrated, &mut keys.gaps] {
            list.sort_unstable();
            list.dedup();
        }
        self.say(&json!({
            "type": "DETAIL_COVERAGE", "stream": "details", "state_stream": "items", "reference_only": true,
            "required_keys": keys.required, "hydrated_keys": keys.hydrated, "gap_keys": keys.gaps,
        }))
    }
}

fn recovered(gap: &ServedGap) -> Value {
    json!({
        "type": "DETAIL_GAP_RECOVERED", "gap_id": gap.gap_id, "stream": gap.stream, "reference_only": true,
        "lease_id": gap.lease_id, "record_key": gap.record_key.as_ref().map(|key| key.as_str()),
    })
}

fn is_backlog(gap: &ServedGap) -> bool {
    gap.record_key.as_ref().is_some_and(|key| key.as_str() == "rest")
}

fn ranges_of(gap: &ServedGap) -> Vec<(u64, u64)> {
    let locator = serde_json::from_str::<Value>(gap.detail_locator.as_ref().unwrap().as_str()).unwrap();
    serde_json::from_value(locator["ranges"].clone()).unwrap()
}

fn wants(scope: &Scope, stream: &str, key: &str, entry: Entry) -> bool {
    let Some(asked) = scope.stream(stream) else { return false };
    let range = asked.time_range.clone().unwrap_or_default();
    let at = time(entry.at);
    (asked.resources.is_empty() || asked.resources.iter().any(|name| name == key))
        && range.since.is_none_or(|since| at >= since)
        && range.until.is_none_or(|until| at < until)
}
