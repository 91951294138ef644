//! Order of the connections that are due.
//!
//! Rules in this order: runs requested by the owner; a part of the history for every few steady runs; then the
//! provider that used the machine least, and of it the most overdue connection. An idle provider starts level with
//! the others: it saves nothing up. Starts are spaced, so that a machine that wakes up does not flood anyone. Two
//! runs never share an account.

use crate::facts::Facts;
use crate::next::{Kind, Next};
use gleaner_engine::WallTime;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Limits of concurrency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Concurrent runs.
    pub runs: usize,
    /// Time between two starts.
    pub apart: Duration,
    /// After this many steady runs a part of a history goes first, if one waits.
    pub steady_per_history: u32,
}

impl Default for Limits {
    fn default() -> Self {
        // Connectors mostly wait; four keep a small machine busy and usable. A fifth of the starts is enough to
        // complete a history over time.
        Self { runs: 4, apart: Duration::from_secs(1), steady_per_history: 4 }
    }
}

/// Queue of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Requested by the owner.
    Owner,
    /// It keeps data fresh.
    Steady,
    /// It catches up on a history.
    History,
}

/// A run to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its connection.
    pub connection: String,
    /// Its kind.
    pub kind: Kind,
    /// When it was due.
    pub due: WallTime,
    /// Its queue.
    pub class: Class,
}

/// Facts and decision about one connection.
#[derive(Debug)]
struct Entry {
    facts: Facts,
    steady: Next,
    history: Next,
    /// Its current run.
    running: Option<Running>,
}

/// A current run, with its account at the start: facts may change meanwhile.
#[derive(Clone, Debug)]
struct Running {
    provider: String,
    account: String,
    /// Start of the counted time.
    since: WallTime,
    /// It waits for its owner and uses no slot.
    parked: bool,
}

/// A provider's use of the machine.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    /// Milliseconds of runs.
    millis: u64,
    /// Its running or waiting connections.
    busy: u32,
}

/// All connections and current runs.
#[derive(Debug, Default)]
pub struct Scheduler {
    limits: Limits,
    entries: BTreeMap<String, Entry>,
    /// Times at which connections must be checked again.
    wakes: BTreeSet<(WallTime, String)>,
    /// Connections that are due.
    waiting: BTreeSet<String>,
    /// Running connections.
    running: BTreeSet<String>,
    accounts: BTreeSet<(String, String)>,
    served: BTreeMap<String, Served>,
    last_start: Option<WallTime>,
    last_look: WallTime,
    steady_in_a_row: u32,
}

impl Scheduler {
    /// A scheduler with these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Sets the facts of a new or changed connection.
    pub fn learn(&mut self, facts: Facts, now: WallTime) {
        let name = facts.connection.clone();
        let running = self.forget_times(&name).and_then(|entry| entry.running);
        let (steady, history) = (Next::steady(&facts, now), Next::history(&facts, now));
        self.entries.insert(name.clone(), Entry { facts, steady, history, running });
        self.note_times(&name);
    }

    /// Removes a connection. A running one is removed when its run ends.
    pub fn forget(&mut self, connection: &str) {
        let Some(entry) = self.entries.get(connection).filter(|entry| entry.running.is_none()) else { return };
        let provider = entry.facts.provider.clone();
        self.forget_times(connection);
        // No connection of the provider remains.
        if !self.entries.values().any(|entry| entry.facts.provider == provider) {
            self.served.remove(&provider);
        }
    }

    /// A run ended. [`learn`](Self::learn) the new facts, or [`forget`](Self::forget) the connection.
    pub fn ended(&mut self, connection: &str, now: WallTime) {
        let Some(running) = self.entries.get_mut(connection).and_then(|entry| entry.running.take()) else { return };
        let served = self.served.entry(running.provider.clone()).or_default();
        // A run of zero length still counts.
        served.millis = served.millis.saturating_add(running.millis(now).max(1));
        served.busy = served.busy.saturating_sub(1);
        self.running.remove(connection);
        self.accounts.remove(&(running.provider, running.account));
        self.look_again(connection, now);
    }

    /// Sets whether a run waits for its owner: then it keeps its account but frees its slot.
    pub fn set_parked(&mut self, connection: &str, parked: bool, now: WallTime) {
        let Some(running) = self.entries.get_mut(connection).and_then(|entry| entry.running.as_mut()) else { return };
        if running.parked != parked {
            let millis = running.millis(now);
            (running.parked, running.since) = (parked, now);
            let served = self.served.entry(running.provider.clone()).or_default();
            served.millis = served.millis.saturating_add(millis);
        }
    }

    /// The running connections.
    pub fn running(&self) -> impl Iterator<Item = &str> {
        self.running.iter().map(String::as_str)
    }

    /// All connections.
    pub fn connections(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The next steady and history run of a connection; `None` while it runs or is unknown.
    #[must_use]
    pub fn next_of(&self, connection: &str) -> Option<(Next, Next)> {
        let entry = self.entries.get(connection).filter(|entry| entry.running.is_none())?;
        Some((entry.steady, entry.history))
    }

    /// When to poll again; `None` when only a change of facts matters.
    #[must_use]
    pub fn wake_at(&self, now: WallTime) -> Option<WallTime> {
        let timer = self.wakes.first().map(|(at, _)| *at);
        let can_start = self.has_room() && self.waiting.iter().any(|name| self.is_free(name));
        let start = can_start.then(|| self.last_start.map_or(now, |last| last.min(now) + self.limits.apart));
        timer.into_iter().chain(start).min()
    }

    /// A run to start now, if any. Poll until there is none.
    pub fn poll(&mut self, now: WallTime) -> Option<Launch> {
        // The clock was set back: recompute everything.
        if now < self.last_look {
            for name in self.entries.keys().cloned().collect::<Vec<_>>() {
                self.look_again(&name, now);
            }
        }
        self.last_look = now;
        self.collect_due(now);
        let too_soon = self.last_start.is_some_and(|last| last <= now && now < last + self.limits.apart);
        if !self.has_room() || too_soon {
            return None;
        }
        while let Some(launch) = self.choose() {
            // It may have waited for its turn into the quiet hours.
            self.look_again(&launch.connection, now);
            let entry = self.entries.get(&launch.connection)?;
            let is_this = |next: Next| matches!(next, Next::Run { at, kind, .. } if at <= now && kind == launch.kind);
            if is_this(entry.steady) || is_this(entry.history) {
                self.start(&launch, now);
                return Some(launch);
            }
        }
        None
    }

    fn has_room(&self) -> bool {
        let is_at_work = |name: &&String| {
            self.entries.get(*name).and_then(|entry| entry.running.as_ref()).is_some_and(|running| !running.parked)
        };
        self.running.iter().filter(is_at_work).count() < self.limits.runs
    }

    fn look_again(&mut self, name: &str, now: WallTime) {
        if let Some(entry) = self.forget_times(name) {
            let (steady, history) = (Next::steady(&entry.facts, now), Next::history(&entry.facts, now));
            self.entries.insert(name.to_owned(), Entry { steady, history, ..entry });
            self.note_times(name);
        }
    }

    /// Removes a connection and its times.
    fn forget_times(&mut self, name: &str) -> Option<Entry> {
        let entry = self.entries.remove(name)?;
        for next in [entry.steady, entry.history] {
            if let Next::Run { at, .. } = next {
                self.wakes.remove(&(at, name.to_owned()));
            }
        }
        self.stop_waiting(name, &entry.facts.provider);
        Some(entry)
    }

    fn note_times(&mut self, name: &str) {
        let entry = &self.entries[name];
        if entry.running.is_some() {
            return;
        }
        for next in [entry.steady, entry.history] {
            if let Next::Run { at, .. } = next {
                self.wakes.insert((at, name.to_owned()));
            }
        }
    }

    /// Recomputes all due connections, because more than the time may have changed.
    fn collect_due(&mut self, now: WallTime) {
        let mut due = BTreeSet::new();
        while let Some((at, _)) = self.wakes.first()
            && *at <= now
        {
            let (_, name) = self.wakes.pop_first().unwrap_or_default();
            due.insert(name);
        }
        for name in due {
            self.look_again(&name, now);
            let entry = &self.entries[&name];
            let [is_due, history_is_due] = [entry.steady, entry.history].map(|next| due_since(next, now).is_some());
            if is_due || history_is_due {
                let provider = entry.facts.provider.clone();
                // Both times are in its entry; a waiting connection needs no timer.
                for next in [entry.steady, entry.history] {
                    if let Some(at) = due_since(next, now) {
                        self.wakes.remove(&(at, name.clone()));
                    }
                }
                self.wait(name, provider);
            }
        }
    }

    fn wait(&mut self, name: String, provider: String) {
        if self.waiting.insert(name) {
            let least = self.served.values().filter(|served| served.busy > 0).map(|served| served.millis).min();
            let served = self.served.entry(provider).or_default();
            if served.busy == 0 {
                served.millis = served.millis.max(least.unwrap_or(0));
            }
            served.busy += 1;
        }
    }

    fn stop_waiting(&mut self, name: &str, provider: &str) {
        if self.waiting.remove(name)
            && let Some(served) = self.served.get_mut(provider)
        {
            served.busy = served.busy.saturating_sub(1);
        }
    }

    fn is_free(&self, name: &str) -> bool {
        let facts = &self.entries[name].facts;
        !self.accounts.contains(&(facts.provider.clone(), facts.account.clone()))
    }

    fn choose(&self) -> Option<Launch> {
        let now = self.last_look;
        let launches = self.waiting.iter().filter(|name| self.is_free(name)).flat_map(|name| self.launches(name, now));
        let history_first = self.steady_in_a_row >= self.limits.steady_per_history;
        launches.min_by_key(|launch| {
            let class = match launch.class {
                Class::Owner => 0,
                Class::History if history_first => 1,
                Class::Steady => 2,
                Class::History => 3,
            };
            let served = self.served_so_far(&self.entries[&launch.connection].facts.provider, now);
            (class, served, launch.due, launch.connection.clone())
        })
    }

    /// Includes current runs: otherwise a provider with long runs would get one after the other.
    fn served_so_far(&self, provider: &str, now: WallTime) -> u64 {
        let runs = self.running.iter().filter_map(|name| self.entries.get(name)?.running.as_ref());
        let now_running = runs.filter(|running| running.provider == provider).map(|running| running.millis(now));
        self.served.get(provider).map_or(0, |served| served.millis).saturating_add(now_running.sum())
    }

    fn launches(&self, name: &str, now: WallTime) -> impl Iterator<Item = Launch> + use<> {
        let entry = &self.entries[name];
        let is_asked = entry.facts.asked.is_some();
        let classes =
            [(entry.steady, if is_asked { Class::Owner } else { Class::Steady }), (entry.history, Class::History)];
        let name = name.to_owned();
        classes.into_iter().filter_map(move |(next, class)| {
            let Next::Run { kind, .. } = next else { return None };
            Some(Launch { connection: name.clone(), kind, due: due_since(next, now)?, class })
        })
    }

    fn start(&mut self, launch: &Launch, now: WallTime) {
        self.steady_in_a_row = match launch.class {
            Class::History => 0,
            Class::Owner | Class::Steady => self.steady_in_a_row.saturating_add(1),
        };
        if let Some(mut entry) = self.forget_times(&launch.connection) {
            let Facts { provider, account, .. } = entry.facts.clone();
            self.accounts.insert((provider.clone(), account.clone()));
            self.served.entry(provider.clone()).or_default().busy += 1;
            self.running.insert(launch.connection.clone());
            entry.running = Some(Running { provider, account, since: now, parked: false });
            self.entries.insert(launch.connection.clone(), entry);
        }
        self.last_start = Some(now);
    }
}

impl Running {
    fn millis(&self, now: WallTime) -> u64 {
        if self.parked { 0 } else { u64::try_from(now.since(self.since).as_millis()).unwrap_or(u64::MAX) }
    }
}

fn due_since(next: Next, now: WallTime) -> Option<WallTime> {
    match next {
        Next::Run { at, .. } => (at <= now).then_some(at),
        Next::Held(_) => None,
    }
}
