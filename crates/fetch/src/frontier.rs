//! Frontier: a queue of work for each site, and the order of sites.
//!
//! Pure: times in, decisions out. Sites that may be asked are in a ring, and each gives one piece of work per round,
//! so a host with a million URLs delays no other. A site that must wait is elsewhere: with its wake-up time, or with
//! the key whose answer it waits for. So no ready site waits for one that is not.
//!
//! A site that has not answered yet, or whose last request failed, gets one request at a time, and all such sites
//! together use at most half of the slots. Dead hosts hold each request until it times out; live ones must not queue
//! behind them.

use gleaner_http::governor::Time;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// A site, by its number.
pub(crate) type SiteId = u32;
/// A key of the registry, by its number: several sites may share one.
pub(crate) type KeyId = u32;

/// Maximum of concurrent requests per site, bodies included. Slow bodies hold their slots longer than the registry
/// counts them; more would not be polite.
const SITE_RUNNING_MAX: u32 = 16;

/// All sites and their work.
#[derive(Debug)]
pub(crate) struct Frontier<W> {
    sites: Vec<Site<W>>,
    ready: VecDeque<SiteId>,
    /// Sites with a wake-up time. An entry counts only with the site's current turn.
    sleeping: BinaryHeap<Reverse<(Time, SiteId, u32)>>,
    /// Work with a time, by its number.
    later: BinaryHeap<Reverse<(Time, u64, SiteId)>>,
    later_work: HashMap<u64, (W, Lane)>,
    later_count: u64,
    /// Waiting for an answer of their key.
    parked: HashMap<KeyId, Vec<SiteId>>,
    /// Doubtful sites without a slot.
    doubtful: VecDeque<SiteId>,
    doubtful_running: usize,
    doubtful_max: usize,
    /// All pieces of work.
    len: usize,
}

/// Position of a piece of work in its site's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Before everything else, and also while the site is held.
    Errand,
    /// Before the others.
    Front,
    /// After the others.
    Back,
}

#[derive(Debug)]
struct Site<W> {
    key: KeyId,
    errands: VecDeque<W>,
    queue: VecDeque<W>,
    place: SiteState,
    /// Counts its sleeps, so that old wake-up times are ignored.
    turn: u32,
    /// Only errands are given out.
    is_held: bool,
    is_trusted: bool,
    running: u32,
    /// Running requests that started while the site was doubtful.
    running_in_doubt: u32,
    /// Since when its next piece of work has been next.
    next_since: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SiteState {
    /// No work, all slots used, or held by the caller.
    Nowhere,
    Ready,
    Sleeping,
    Parked,
    Doubtful,
}

impl<W> Site<W> {
    fn has_work(&self) -> bool {
        !self.errands.is_empty() || (!self.is_held && !self.queue.is_empty())
    }

    const fn has_place(&self) -> bool {
        self.running < if self.is_trusted { SITE_RUNNING_MAX } else { 1 }
    }
}

impl<W> Frontier<W> {
    /// A frontier for `concurrency` requests at a time.
    pub(crate) fn new(concurrency: usize) -> Self {
        Self {
            sites: Vec::new(),
            ready: VecDeque::new(),
            sleeping: BinaryHeap::new(),
            later: BinaryHeap::new(),
            later_work: HashMap::new(),
            later_count: 0,
            parked: HashMap::new(),
            doubtful: VecDeque::new(),
            doubtful_running: 0,
            doubtful_max: (concurrency / 2).max(1),
            len: 0,
        }
    }

    pub(crate) fn add_site(&mut self, key: KeyId) -> SiteId {
        self.sites.push(Site {
            key,
            errands: VecDeque::new(),
            queue: VecDeque::new(),
            place: SiteState::Nowhere,
            turn: 0,
            is_held: false,
            is_trusted: false,
            running: 0,
            running_in_doubt: 0,
            next_since: Time::ZERO,
        });
        // There are no more sites than URLs, whose positions fit a file.
        (self.sites.len() - 1) as SiteId
    }

    /// Pieces of work not yet taken.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, id: SiteId, work: W, lane: Lane, now: Time) {
        self.len += 1;
        self.put(id, work, lane, now);
    }

    fn put(&mut self, id: SiteId, work: W, lane: Lane, now: Time) {
        let site = &mut self.sites[id as usize];
        if !site.has_work() {
            site.next_since = now;
        }
        match lane {
            Lane::Errand => site.errands.push_back(work),
            Lane::Front => site.queue.push_front(work),
            Lane::Back => site.queue.push_back(work),
        }
        self.offer(id);
    }

    /// The same, but not before `at`.
    pub(crate) fn push_later(&mut self, at: Time, id: SiteId, work: W, lane: Lane) {
        self.len += 1;
        self.later_count += 1;
        self.later.push(Reverse((at, self.later_count, id)));
        self.later_work.insert(self.later_count, (work, lane));
    }

    /// Whether the site has an errand.
    pub(crate) fn has_errand(&self, id: SiteId) -> bool {
        !self.sites[id as usize].errands.is_empty()
    }

    /// Whether the site has no work. Delayed work does not count.
    pub(crate) fn is_idle(&self, id: SiteId) -> bool {
        let site = &self.sites[id as usize];
        site.running == 0 && site.queue.is_empty() && site.errands.is_empty()
    }

    /// Since when the site's next piece of work has been next.
    pub(crate) fn next_since(&self, id: SiteId) -> Time {
        self.sites[id as usize].next_since
    }

    /// Gives out errands only.
    pub(crate) fn hold(&mut self, id: SiteId) {
        self.sites[id as usize].is_held = true;
    }

    pub(crate) fn release(&mut self, id: SiteId, now: Time) {
        let site = &mut self.sites[id as usize];
        site.is_held = false;
        site.next_since = now;
        self.offer(id);
    }

    /// Puts the site into the ring, if it has work and is nowhere else.
    fn offer(&mut self, id: SiteId) {
        let site = &mut self.sites[id as usize];
        if site.place == SiteState::Nowhere && site.has_work() && site.has_place() {
            site.place = SiteState::Ready;
            self.ready.push_back(id);
        }
    }

    /// The next site that may be asked. The caller then calls [`take`](Self::take) and [`begin`](Self::begin),
    /// [`sleep`](Self::sleep) or [`park`](Self::park), and at last [`pass`](Self::pass).
    pub(crate) fn next(&mut self, now: Time) -> Option<SiteId> {
        self.wake(now);
        self.admit_doubtful();
        while let Some(id) = self.ready.pop_front() {
            let no_room = self.doubtful_running >= self.doubtful_max;
            let site = &mut self.sites[id as usize];
            site.place = SiteState::Nowhere;
            if !site.has_work() || !site.has_place() {
                continue;
            }
            if !site.is_trusted && no_room {
                site.place = SiteState::Doubtful;
                self.doubtful.push_back(id);
                continue;
            }
            return Some(id);
        }
        None
    }

    /// Returns the site to the ring.
    pub(crate) fn pass(&mut self, id: SiteId) {
        self.offer(id);
    }

    fn wake(&mut self, now: Time) {
        while let Some(&Reverse((at, number, id))) = self.later.peek() {
            if at > now {
                break;
            }
            self.later.pop();
            if let Some((work, lane)) = self.later_work.remove(&number) {
                self.put(id, work, lane, now);
            }
        }
        while let Some(&Reverse((at, id, turn))) = self.sleeping.peek() {
            if at > now {
                break;
            }
            self.sleeping.pop();
            let site = &mut self.sites[id as usize];
            if site.place == SiteState::Sleeping && site.turn == turn {
                site.place = SiteState::Nowhere;
                self.offer(id);
            }
        }
    }

    /// When the next wake-up is due.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        let sleeping = self.sleeping.peek().map(|Reverse((at, ..))| *at);
        let later = self.later.peek().map(|Reverse((at, ..))| *at);
        sleeping.into_iter().chain(later).min()
    }

    /// Takes the site's next piece of work.
    pub(crate) fn take(&mut self, id: SiteId, now: Time) -> Option<W> {
        let site = &mut self.sites[id as usize];
        let work = match site.errands.pop_front() {
            None if !site.is_held => site.queue.pop_front(),
            errand => errand,
        }?;
        self.len -= 1;
        site.next_since = now;
        Some(work)
    }

    /// A request of the site was started.
    pub(crate) fn begin(&mut self, id: SiteId) {
        let site = &mut self.sites[id as usize];
        site.running += 1;
        if !site.is_trusted {
            site.running_in_doubt += 1;
            self.doubtful_running += 1;
        }
    }

    /// A request of the site has ended.
    pub(crate) fn end(&mut self, id: SiteId) {
        let site = &mut self.sites[id as usize];
        site.running = site.running.saturating_sub(1);
        self.settle_doubt(id);
        self.offer(id);
    }

    /// Whether the site answers.
    pub(crate) fn trust(&mut self, id: SiteId, is_trusted: bool) {
        self.sites[id as usize].is_trusted = is_trusted;
        self.settle_doubt(id);
        self.offer(id);
    }

    /// Frees the slots that the site used while doubtful and no longer needs.
    fn settle_doubt(&mut self, id: SiteId) {
        let site = &mut self.sites[id as usize];
        let still = if site.is_trusted { 0 } else { site.running_in_doubt.min(site.running) };
        self.doubtful_running -= (site.running_in_doubt - still) as usize;
        site.running_in_doubt = still;
    }

    /// Moves as many doubtful sites into the ring as there are slots. Counts slots and not departures: a site that
    /// gets one may sleep, and then the next site gets it.
    fn admit_doubtful(&mut self) {
        let room = self.doubtful_max.saturating_sub(self.doubtful_running);
        for _ in 0..room {
            let Some(id) = self.doubtful.pop_front() else { return };
            self.sites[id as usize].place = SiteState::Nowhere;
            self.offer(id);
        }
    }

    /// Asks the site again at `until`.
    pub(crate) fn sleep(&mut self, id: SiteId, until: Time) {
        let site = &mut self.sites[id as usize];
        site.place = SiteState::Sleeping;
        site.turn = site.turn.wrapping_add(1);
        self.sleeping.push(Reverse((until, id, site.turn)));
    }

    /// Asks the site again when its key was answered.
    pub(crate) fn park(&mut self, id: SiteId) {
        let site = &mut self.sites[id as usize];
        site.place = SiteState::Parked;
        self.parked.entry(site.key).or_default().push(id);
    }

    /// A request of this key was answered.
    pub(crate) fn answered(&mut self, key: KeyId) {
        for id in self.parked.remove(&key).unwrap_or_default() {
            self.sites[id as usize].place = SiteState::Nowhere;
            self.offer(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn start(frontier: &mut Frontier<u32>, now: Time) -> Option<(SiteId, u32)> {
        let id = frontier.next(now)?;
        let work = frontier.take(id, now).unwrap();
        frontier.begin(id);
        frontier.pass(id);
        Some((id, work))
    }

    fn trusted(sites: u32, works: u32) -> Frontier<u32> {
        let mut frontier = Frontier::new(8);
        for key in 0..sites {
            let id = frontier.add_site(key);
            frontier.trust(id, true);
            (0..works).for_each(|work| frontier.push(id, work, Lane::Back, at(0)));
        }
        frontier
    }

    #[test]
    fn each_site_gives_one_piece_per_round() {
        let mut frontier = trusted(3, 2);
        let order: Vec<_> = std::iter::from_fn(|| start(&mut frontier, at(0))).collect();
        assert_eq!(order, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
        assert_eq!(frontier.len(), 0);
    }

    #[test]
    fn a_site_that_sleeps_or_is_parked_holds_up_nobody() {
        let mut frontier = trusted(3, 1);
        let first = frontier.next(at(0)).unwrap();
        frontier.sleep(first, at(50));
        let second = frontier.next(at(0)).unwrap();
        frontier.park(second);
        assert_eq!(start(&mut frontier, at(0)), Some((2, 0)));
        assert_eq!((frontier.next(at(49)), frontier.next_wake()), (None, Some(at(50))));
        assert_eq!(start(&mut frontier, at(50)), Some((0, 0)));
        frontier.answered(2);
        assert_eq!(frontier.next(at(50)), None, "the answer of another key");
        frontier.answered(1);
        assert_eq!(start(&mut frontier, at(50)), Some((1, 0)));
    }

    #[test]
    fn work_with_a_time_goes_first_when_it_is_due() {
        let mut frontier = trusted(1, 1);
        frontier.push_later(at(10), 0, 7, Lane::Front);
        assert_eq!(frontier.len(), 2);
        assert_eq!(frontier.next(at(10)), Some(0));
        assert_eq!(frontier.take(0, at(10)), Some(7));
        assert_eq!(frontier.take(0, at(11)), Some(0));
        assert_eq!((frontier.take(0, at(11)), frontier.len()), (None, 0));
    }

    #[test]
    fn a_site_that_is_held_gives_out_errands_alone() {
        let mut frontier = trusted(1, 1);
        frontier.hold(0);
        assert_eq!(frontier.next(at(0)), None);
        frontier.push(0, 9, Lane::Errand, at(1));
        assert_eq!(start(&mut frontier, at(1)), Some((0, 9)));
        assert_eq!(frontier.next(at(1)), None);
        frontier.release(0, at(2));
        assert_eq!(frontier.next_since(0), at(2));
        assert_eq!(start(&mut frontier, at(2)), Some((0, 0)));
    }

    #[test]
    fn a_site_in_doubt_is_asked_one_thing_and_all_of_them_use_half() {
        let mut frontier = Frontier::new(4);
        for key in 0..4 {
            let id = frontier.add_site(key);
            (0..3).for_each(|work| frontier.push(id, work, Lane::Back, at(0)));
        }
        assert_eq!(start(&mut frontier, at(0)), Some((0, 0)));
        assert_eq!(start(&mut frontier, at(0)), Some((1, 0)));
        assert_eq!(start(&mut frontier, at(0)), None, "half of the places are used");
        frontier.trust(0, true);
        assert_eq!(start(&mut frontier, at(0)), Some((0, 1)), "one that answers may do more at a time");
        assert_eq!(start(&mut frontier, at(0)), Some((2, 0)), "and gives its place back");
        assert_eq!(start(&mut frontier, at(0)), Some((0, 2)));
        frontier.end(1);
        assert_eq!(start(&mut frontier, at(0)), Some((3, 0)));
        frontier.end(2);
        assert_eq!(start(&mut frontier, at(0)), Some((1, 1)));
    }

    #[test]
    fn a_place_that_a_doubtful_site_does_not_use_goes_to_the_next() {
        let mut frontier = Frontier::new(2);
        for key in 0..3 {
            let id = frontier.add_site(key);
            frontier.push(id, key, Lane::Back, at(0));
        }
        assert_eq!(start(&mut frontier, at(0)), Some((0, 0)));
        assert_eq!(frontier.next(at(0)), None);
        frontier.end(0);
        assert_eq!(frontier.next(at(0)), Some(1));
        frontier.sleep(1, at(60_000));
        assert_eq!(start(&mut frontier, at(0)), Some((2, 2)), "nobody will ever give a place back for it");
    }

    #[test]
    fn a_site_uses_sixteen_places_at_most() {
        let mut frontier = trusted(1, 40);
        let begun = std::iter::from_fn(|| start(&mut frontier, at(0))).count();
        assert_eq!(begun, 16);
        frontier.end(0);
        assert!(start(&mut frontier, at(0)).is_some() && start(&mut frontier, at(0)).is_none());
    }

    proptest! {
        /// Whatever happens in between: all work is given out, once.
        #[test]
        fn everything_is_given_out_once(acts in proptest::collection::vec((0u8..6, 0u32..4), 1..300)) {
            let mut frontier = Frontier::new(4);
            (0..4).for_each(|site| { frontier.add_site(site / 2); });
            let (mut now, mut pushed, mut got, mut running) = (0, 0, Vec::new(), Vec::new());
            for (act, site) in acts {
                now += 1;
                match act {
                    0 => { frontier.push(site, pushed, Lane::Back, at(now)); pushed += 1; }
                    1 => { frontier.push_later(at(now + u64::from(site) * 3), site, pushed, Lane::Front); pushed += 1; }
                    2 => if let Some(id) = frontier.next(at(now)) { frontier.sleep(id, at(now + 4)); }
                    3 => if let Some(id) = frontier.next(at(now)) {
                        if running.is_empty() { frontier.pass(id) } else { frontier.park(id) }
                    }
                    4 => if let Some((id, work)) = start(&mut frontier, at(now)) { running.push(id); got.push(work); }
                    _ => if let Some(id) = running.pop() {
                        frontier.trust(id, site > 1);
                        frontier.answered(id / 2);
                        frontier.end(id);
                    }
                }
            }
            for _ in 0..2000 {
                now += 5;
                while let Some((id, work)) = start(&mut frontier, at(now)) { running.push(id); got.push(work); }
                for id in running.drain(..) { frontier.end(id); }
                (0..2).for_each(|key| frontier.answered(key));
            }
            got.sort_unstable();
            prop_assert_eq!(got, (0..pushed).collect::<Vec<_>>());
            prop_assert_eq!(frontier.len(), 0);
        }
    }
}
