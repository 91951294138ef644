//! Registry of all keys of a program: finds them by name, drops unused ones, and reports their state.
//!
//! A key is found under the lock of its shard and used under its own lock, so a sender waits only for senders to the
//! same key. No shard's lock is taken while another shard's is held, and a key's lock is taken under its shard's,
//! never the other way round.

use super::config::{RegistryConfig, RegistryRules};
use super::domain::Domain;
use super::feedback::Feedback;
use super::handle::{Entry, Handle};
use super::hash::hash;
use super::key::Key;
use super::shard::{Forgotten, STEP, Shard};
use super::snapshot::Snapshot;
use crate::admission::permit::{Admission, Advice, Permit};
use crate::config::ConfigError;
use crate::retry::circuit::CircuitState;
use crate::signals::outcome::Verdict;
use crate::time::{Time, WallTime};
use crate::warm_start::Learned;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Steps of the search for room for one more key: each brings 16 keys of a shard up to date. Beyond this number all
/// keys are in use.
const ROOM_STEPS: usize = 256;

/// Keys by name. `W` is a value that the owner attaches to each key.
///
/// It is used like a [`Governor`](crate::Governor), with four groups of methods: [`acquire`](Self::acquire) asks for
/// a permit; [`feedback`](Self::feedback), [`cancel`](Self::cancel) and [`abandon`](Self::abandon) give a permit
/// back, and each permit needs one of them; [`snapshot`](Self::snapshot) shows the state; [`learned`](Self::learned)
/// and [`restore`](Self::restore) save and load it. [`tend`](Self::tend) frees memory.
///
/// ```
/// use gleaner_governor::{Admission, Time};
/// use gleaner_governor::keyed::{Domain, Feedback, Registry, RegistryConfig};
///
/// let registry: Registry = Registry::new(RegistryConfig::default(), 42).unwrap();
/// let now = Time::from_nanos(1);
/// let handle = registry.handle(&Domain::parse("https://Example.com/").unwrap(), now).unwrap();
/// if let Admission::Send(permit) = registry.acquire(&handle, now, now) {
///     // ... send the request ...
///     registry.feedback(&handle, permit, &Feedback::status(200, None), now);
/// }
/// assert!(matches!(registry.acquire(&handle, now, now), Admission::WaitUntil(at) if at > now));
/// assert_eq!(registry.snapshot(10, now).totals.granted, 1);
/// ```
pub struct Registry<W = ()> {
    rules: RegistryRules,
    seed: u64,
    shards: Box<[Part<W>]>,
    /// Keys in all shards.
    len: AtomicUsize,
}

struct Part<W> {
    shard: Mutex<Shard<W>>,
    /// Last use of the shard's oldest key, or earlier: a hint for the search for room, checked under the lock.
    oldest: AtomicU64,
}

/// No room for another key: all are in use or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// The key that did not fit.
    pub domain: Domain,
    /// Maximum number of keys.
    pub keys_max: usize,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key limit reached: all {} keys are in use or closed; no room for {}", self.keys_max, self.domain)
    }
}

impl std::error::Error for Full {}

impl<W: Default> Registry<W> {
    /// An empty registry. `seed` are random bits, so that nobody can choose names that collide.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn new(config: RegistryConfig, seed: u64) -> Result<Self, ConfigError> {
        let rules = RegistryRules::new(config)?;
        let part = || Part { shard: Mutex::default(), oldest: AtomicU64::new(u64::MAX) };
        let shards = (0..rules.config.shards).map(|_| part()).collect();
        Ok(Self { rules, seed, shards, len: AtomicUsize::new(0) })
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &RegistryConfig {
        &self.rules.config
    }

    /// Returns the handle of `domain`, and creates the key if it is new.
    ///
    /// # Errors
    /// No room: all keys are in use or closed.
    #[inline]
    pub fn handle(&self, domain: &Domain, now: Time) -> Result<Handle<W>, Full> {
        let (name, hash) = self.place_of(domain);
        let part = self.part(hash);
        if let Some(entry) = part.lock().find(hash, name) {
            return Ok(Handle { entry: Arc::clone(entry) });
        }
        self.make(name, hash, Key::new(now), now)
            .ok_or_else(|| Full { domain: domain.clone(), keys_max: self.rules.config.keys_max })
    }

    /// Starts `domain` from a saved record. False when the key exists already, when there is no room, or when the
    /// record is dated in the future.
    pub fn restore(&self, domain: &Domain, learned: &Learned, now: Time, wall_now: WallTime) -> bool {
        let (name, hash) = self.place_of(domain);
        if self.part(hash).lock().find(hash, name).is_some() {
            return false;
        }
        let key = Key::remembering(learned, &self.rules, now, wall_now);
        key.is_some_and(|key| self.make(name, hash, key, now).is_some())
    }

    #[cold]
    fn make(&self, name: &str, hash: u64, key: Key, now: Time) -> Option<Handle<W>> {
        let part = self.part(hash);
        let mut key = Some(key);
        loop {
            let mut shard = part.lock();
            // Another thread may have inserted it.
            if let Some(entry) = shard.find(hash, name) {
                return Some(Handle { entry: Arc::clone(entry) });
            }
            if take_place(&self.len, self.rules.config.keys_max) {
                let key = key.take()?;
                let has_statuses = self.rules.statuses_of(name).is_some();
                let make = |slot| Entry::new(name.into(), slot, key, has_statuses, W::default());
                let entry = shard.insert(hash, self.hash_again(), now, make);
                part.hint(&shard);
                return Some(Handle { entry });
            }
            drop(shard);
            if !self.make_room(now) {
                return None;
            }
        }
    }
}

/// Counts one more, unless there are `max`.
fn take_place(len: &AtomicUsize, max: usize) -> bool {
    // Relaxed: the number guards no other memory.
    len.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |len| (len < max).then_some(len + 1)).is_ok()
}

impl<W> Registry<W> {
    /// Asks whether a request may be sent at `now`; `since` is when the caller first asked. [`Admission::Send`]
    /// counts as sent.
    #[inline]
    pub fn acquire(&self, handle: &Handle<W>, since: Time, now: Time) -> Admission {
        if now.nanos_since(since) <= self.rules.throttled
            && let Some(passed) = handle.entry.express.pass(now)
        {
            return Admission::Send(Permit::of_passed(passed, now));
        }
        self.acquire_locked(handle, since, now)
    }

    #[inline(never)]
    fn acquire_locked(&self, handle: &Handle<W>, since: Time, now: Time) -> Admission {
        let entry = &handle.entry;
        let mut key = entry.lock(&self.rules, now);
        let was_idle = matches!(*key, Key::Idle(_));
        let admission = key.wake(&self.rules, now).admit(&self.rules, since, now);
        entry.unlock(key, &self.rules, now);
        if was_idle {
            self.part(hash(self.seed, entry.name().as_bytes())).lock().watch(entry.slot);
        }
        admission
    }

    /// Reports the answer for a permit of this handle, and returns what to do next. A retry needs a new permit.
    #[inline]
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up by its answer")]
    pub fn feedback(&self, handle: &Handle<W>, permit: Permit, feedback: &Feedback, now: Time) -> Advice {
        if feedback.outcome.verdict == Verdict::Success && permit.tell(&handle.entry.express, now) {
            return Advice::Done;
        }
        self.feedback_locked(handle, &permit, feedback, now)
    }

    #[inline(never)]
    fn feedback_locked(&self, handle: &Handle<W>, permit: &Permit, feedback: &Feedback, now: Time) -> Advice {
        let entry = &handle.entry;
        let mut key = entry.lock(&self.rules, now);
        // A key with a request in flight is never idle.
        let Key::Active(active) = &mut *key else { return Advice::Done };
        let statuses = if entry.has_statuses { self.rules.statuses_of(entry.name()) } else { None };
        let advice = active.feedback(&self.rules, statuses, permit, feedback, now);
        entry.unlock(key, &self.rules, now);
        advice
    }

    /// Takes back a request that was never sent. It counts against no limit.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up by cancelling it")]
    pub fn cancel(&self, handle: &Handle<W>, permit: Permit, now: Time) {
        if let Key::Active(active) = &mut *handle.entry.lock(&self.rules, now) {
            active.cancel(&self.rules, &permit);
        }
    }

    /// Reports that a request was sent and its caller stopped waiting.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up by abandoning it")]
    pub fn abandon(&self, handle: &Handle<W>, permit: Permit, now: Time) {
        if let Key::Active(active) = &mut *handle.entry.lock(&self.rules, now) {
            active.abandon(&permit, now);
        }
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Maintains all keys: makes idle those unused for the breaker's window, and drops those unused for
    /// `forget_after`. Call it every half of the shorter of the two times; called less often, keys only take more
    /// memory. A shard's lock is held for 16 keys at a time.
    pub fn tend(&self, now: Time) {
        (0..self.shards.len()).for_each(|shard| self.tend_shard(shard, now));
    }

    /// Does the work of [`tend`](Self::tend) for one shard, for callers that do other work in between. Shards are
    /// numbered from 0.
    pub fn tend_shard(&self, shard: usize, now: Time) {
        let Some(part) = self.shards.get(shard) else { return };
        let mut left = part.lock().watched();
        while left > 0 {
            part.lock().look_after(&self.rules, &mut left, now);
        }
        while self.forget_step(shard, now).more {}
    }

    /// The last step of [`tend_shard`](Self::tend_shard) for at most 16 keys: drops those unused for `forget_after`.
    /// Dropping the returned value frees their memory, with no lock held.
    pub fn forget_step(&self, shard: usize, now: Time) -> Forgotten<W> {
        let before = now.as_nanos().checked_sub(self.rules.forget).map(Time::from_nanos);
        let mut gone = Vec::with_capacity(STEP);
        let (Some(part), Some(before)) = (self.shards.get(shard), before) else {
            return Forgotten::new(gone, false);
        };
        let mut shard = part.lock();
        let more = shard.forget_before(&self.rules, &self.hash_again(), before, &mut gone, now);
        part.hint(&shard);
        drop(shard);
        self.len.fetch_sub(gone.len(), Ordering::Relaxed);
        Forgotten::new(gone, more)
    }

    /// Drops the longest idle key that may be dropped. False when there is none.
    fn make_room(&self, now: Time) -> bool {
        for _ in 0..ROOM_STEPS {
            let Some((part, rival)) = self.oldest_part() else { return false };
            let mut shard = part.lock();
            let gone = shard.forget_one(&self.rules, &self.hash_again(), rival, now);
            part.hint(&shard);
            drop(shard);
            if gone.is_some() {
                self.len.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// The shard with the oldest key, and the age of the second oldest shard.
    fn oldest_part(&self) -> Option<(&Part<W>, Time)> {
        let (mut best, mut rival): (Option<(&Part<W>, u64)>, u64) = (None, u64::MAX);
        for part in &self.shards {
            let oldest = part.oldest.load(Ordering::Relaxed);
            match best {
                Some((_, known)) if known <= oldest => rival = rival.min(oldest),
                _ => {
                    rival = best.map_or(rival, |(_, known)| rival.min(known));
                    best = Some((part, oldest));
                }
            }
        }
        best.filter(|&(_, oldest)| oldest != u64::MAX).map(|(part, _)| (part, Time::from_nanos(rival)))
    }

    /// State of the registry, with the `top` most used keys, at most `snapshot_keys_max`. It blocks no sender, so
    /// concurrent changes may be missing.
    #[must_use]
    pub fn snapshot(&self, top: usize, now: Time) -> Snapshot {
        let mut snapshot = Snapshot { keys_known: self.len(), ..Snapshot::default() };
        let mut used = Vec::new();
        for part in &self.shards {
            let (totals, forgotten) = {
                let shard = part.lock();
                (shard.totals, shard.forgotten)
            };
            snapshot.totals.join(totals);
            snapshot.keys_forgotten += forgotten;
            part.visit_watched(|entry| {
                let mut key = entry.lock(&self.rules, now);
                snapshot.keys_active += 1;
                snapshot.totals.add(key.tally());
                match key.circuit(now) {
                    CircuitState::Open => snapshot.circuits_open += 1,
                    CircuitState::HalfOpen => snapshot.circuits_half_open += 1,
                    CircuitState::Closed => {}
                }
                if let Key::Active(active) = &mut *key {
                    used.push((active.answers(&self.rules, now), Arc::clone(entry)));
                }
            });
        }
        let top = top.min(self.rules.config.snapshot_keys_max);
        // The name breaks ties, so that two snapshots of one state are equal.
        used.sort_unstable_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.name().cmp(other.name())));
        used.truncate(top);
        snapshot.keys = used.iter().filter_map(|(_, entry)| self.look_at(entry, now)).collect();
        snapshot
    }

    fn look_at(&self, entry: &Entry<W>, now: Time) -> Option<super::KeySnapshot> {
        match &mut *entry.lock(&self.rules, now) {
            Key::Active(active) => Some(active.snapshot(entry.name(), &self.rules, now)),
            Key::Idle(_) => None,
        }
    }

    /// Passes every record worth saving to `keep`, with no shard locked meanwhile.
    pub fn learned(&self, now: Time, wall_now: WallTime, mut keep: impl FnMut(&str, &Learned)) {
        for part in &self.shards {
            let mut from = 0;
            loop {
                let (entries, looked) = part.lock().slots_from(from);
                if looked == 0 {
                    break;
                }
                from += looked;
                for entry in entries {
                    let learned = entry.lock(&self.rules, now).learned(&self.rules, now, wall_now);
                    if let Some(learned) = learned {
                        keep(entry.name(), &learned);
                    }
                }
            }
        }
    }

    /// The learned state of one key.
    #[must_use]
    pub fn learned_about(&self, handle: &Handle<W>, now: Time, wall_now: WallTime) -> Option<Learned> {
        handle.entry.lock(&self.rules, now).learned(&self.rules, now, wall_now)
    }

    /// The key name of a domain, and its hash.
    #[inline]
    pub(crate) fn place_of<'a>(&self, domain: &'a Domain) -> (&'a str, u64) {
        let name = self.rules.group_of(domain.as_str());
        (name, hash(self.seed, name.as_bytes()))
    }

    /// Hashes a name again. The hash is not stored with each key: that would take 8 MB per million keys.
    fn hash_again(&self) -> impl Fn(&str) -> u64 + use<W> {
        let seed = self.seed;
        move |name| hash(seed, name.as_bytes())
    }

    /// The shard of a hash: its upper bits, since the table inside uses the lower ones.
    #[inline]
    fn part(&self, hash: u64) -> &Part<W> {
        &self.shards[(hash >> 32) as usize & (self.shards.len() - 1)]
    }
}

impl<W> Part<W> {
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Shard<W>> {
        self.shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Visits the keys of the watch list, without the lock.
    fn visit_watched(&self, mut visit: impl FnMut(&Arc<Entry<W>>)) {
        // The list changes meanwhile; its slots are copied first, so that no key is visited twice.
        let slots = self.lock().watched_slots();
        for step in slots.chunks(STEP) {
            let entries = self.lock().entries(step);
            entries.iter().for_each(&mut visit);
        }
    }

    fn hint(&self, shard: &Shard<W>) {
        self.oldest.store(shard.oldest().as_nanos(), Ordering::Relaxed);
    }
}

impl<W> fmt::Debug for Registry<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("len", &self.len()).finish_non_exhaustive()
    }
}
