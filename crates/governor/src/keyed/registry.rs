//! All keys of a program: finds them by name, forgets the ones that nobody uses, and says how they are.
//!
//! A key is found under the lock of its shard and used under a lock of its own, so nobody who sends waits for
//! anybody but the senders to the same key. No lock is held while another shard's is taken, and a key's lock
//! is taken under its shard's, never the other way round.

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

/// Steps in which room for one more key is looked for: with shards brought up to date 16 keys at a time, more
/// means that everything is in use.
const ROOM_STEPS: usize = 256;

/// Keys by name. `W` is what the owner keeps with each key.
///
/// Driven like a [`Governor`](crate::Governor), by four kinds of methods: [`acquire`](Self::acquire) asks;
/// [`feedback`](Self::feedback), [`cancel`](Self::cancel) and [`abandon`](Self::abandon) tell what became of a permit,
/// each of which must be given back by one of them; [`snapshot`](Self::snapshot) shows; [`learned`](Self::learned) and
/// [`restore`](Self::restore) remember. Beside them [`tend`](Self::tend) frees memory.
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
    /// When the shard's oldest key was last used, or earlier: where to look for room. A hint; it is checked
    /// under the lock.
    oldest: AtomicU64,
}

/// There is no room for another key: all are in use or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// Which key.
    pub domain: Domain,
    /// How many there may be.
    pub keys_max: usize,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys are in use or closed; {} would be one more", self.keys_max, self.domain)
    }
}

impl std::error::Error for Full {}

impl<W: Default> Registry<W> {
    /// An empty registry. `seed` are random bits, so that nobody can choose names that fall into one place.
    ///
    /// # Errors
    /// When a setting makes no sense.
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

    /// The handle of `domain`, which is made if nobody has asked for it before.
    ///
    /// # Errors
    /// When there is no room: all keys are in use or closed.
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

    /// Begins with what was learned elsewhere about `domain`. False when the key is known already, when there
    /// is no room, or when the record is dated in the future.
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
            // Somebody may have been faster.
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
    // Relaxed: the number says nothing about other memory.
    len.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |len| (len < max).then_some(len + 1)).is_ok()
}

impl<W> Registry<W> {
    /// Asks whether a request may be sent at `now`; `since` is when its caller began to ask.
    /// [`Admission::Send`] counts as sent.
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

    /// Tells what came back for a permit of this handle, and says what to do next. A retry asks for a permit like
    /// everything else.
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
        // A key with something in flight does not rest.
        let Key::Active(active) = &mut *key else { return Advice::Done };
        let statuses = if entry.has_statuses { self.rules.statuses_of(entry.name()) } else { None };
        let advice = active.feedback(&self.rules, statuses, permit, feedback, now);
        entry.unlock(key, &self.rules, now);
        advice
    }

    /// Takes back a request that was never sent: it owes nothing.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up by cancelling it")]
    pub fn cancel(&self, handle: &Handle<W>, permit: Permit, now: Time) {
        if let Key::Active(active) = &mut *handle.entry.lock(&self.rules, now) {
            active.cancel(&self.rules, &permit);
        }
    }

    /// Tells that a request was sent and that nobody waited for its answer.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up by abandoning it")]
    pub fn abandon(&self, handle: &Handle<W>, permit: Permit, now: Time) {
        if let Key::Active(active) = &mut *handle.entry.lock(&self.rules, now) {
            active.abandon(&permit, now);
        }
    }

    /// Keys that are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether no key is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks after all keys: puts those away that nobody used for the breaker's window, and forgets those that
    /// nobody used for `forget_after`. To be called every half of the shorter of the two, or less often: until
    /// then keys take more memory, and nothing else. A shard's lock is held for 16 keys at a time.
    pub fn tend(&self, now: Time) {
        (0..self.shards.len()).for_each(|shard| self.tend_shard(shard, now));
    }

    /// The part of [`tend`](Self::tend) that one shard is, for whoever wants to do something else in between.
    /// Shards are numbered from 0.
    pub fn tend_shard(&self, shard: usize, now: Time) {
        let Some(part) = self.shards.get(shard) else { return };
        let mut left = part.lock().watched();
        while left > 0 {
            part.lock().look_after(&self.rules, &mut left, now);
        }
        while self.forget_step(shard, now).more {}
    }

    /// The last part of [`tend_shard`](Self::tend_shard) for at most 16 keys: forgets those that nobody used for
    /// `forget_after`. Their memory is freed when what is returned is dropped, with no lock held.
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

    /// Forgets the key that was idle the longest of all that may go. False when there is none.
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

    /// The shard with the oldest key, and how old the next one's is.
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

    /// How the registry is, with the `top` keys that are used most; no more than `snapshot_keys_max`. Nobody is kept from
    /// sending meanwhile, so what happens during the look may be in it or not.
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
        // The name decides between two that are used alike, so that two looks at one state agree.
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

    /// Hands everything that is worth remembering to `keep`, with no shard locked meanwhile.
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

    /// What is worth remembering about one key.
    #[must_use]
    pub fn learned_about(&self, handle: &Handle<W>, now: Time, wall_now: WallTime) -> Option<Learned> {
        handle.entry.lock(&self.rules, now).learned(&self.rules, now, wall_now)
    }

    /// The name that a domain is governed under, and its hash.
    #[inline]
    pub(crate) fn place_of<'a>(&self, domain: &'a Domain) -> (&'a str, u64) {
        let name = self.rules.group_of(domain.as_str());
        (name, hash(self.seed, name.as_bytes()))
    }

    /// The hash of a name. It is not kept with each key: eight bytes, eight million with a million of them.
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

    /// Visits the keys that are looked after, without the lock.
    fn visit_watched(&self, mut visit: impl FnMut(&Arc<Entry<W>>)) {
        // The list moves on meanwhile; its slots are noted first, so that no key is visited twice.
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
