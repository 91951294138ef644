//! What happens to machines, clocks, leases and neighbours.
//!
//! Nothing here is said by a connector, and the store is written to by hand for one purpose only: a
//! holder that is dead has another process, boot or time in its lease.

use super::{World, acquire, holder, leases_on};
use crate::model::check;
use crate::model::lines::{self, CAUSES};
use crate::model::live::{Live, LiveRun, MANIFEST, Step, manifest};
use crate::model::trace::CONNECTION;
use crate::model::world::STREAMS;
use gleaner_engine::testing::promises::Fact;
use gleaner_engine::{Now, RunId, Steady, WallTime};
use gleaner_store::{Acquired, LeaseOn, Store, StoreError};
use std::time::Duration;

impl World {
    pub(super) fn pass(&mut self) {
        let wait = Duration::from_secs(6);
        self.now = Now { time: self.now.time + wait, wall: self.now.wall + wait };
        self.expected.now = self.now.wall.as_unix_millis();
        let going = self.expected.going.as_mut().filter(|going| going.ending.is_none());
        if let (Some(live), Some(going)) = (&mut self.live, going) {
            live.pass_time(self.now);
            going.flush();
        }
    }

    /// Leases do not care, and a rest neither grows nor is forgotten.
    pub(super) fn jump(&mut self, hours: i64) {
        let millis = self.now.wall.as_unix_millis().saturating_add_signed(hours * 3_600_000);
        self.now.wall = WallTime::from_unix_millis(millis.clamp(1_000_000_000_000, 4_000_000_000_000));
        self.expected.now = self.now.wall.as_unix_millis();
        let store = Store::open(&self.path).unwrap();
        let held = store.held_by(LeaseOn::Connection(CONNECTION), &holder(), self.now.wall).unwrap();
        assert_eq!(held.is_some(), self.live.is_some(), "a lease moved with the calendar");
        drop(store);
        check::rest_ends(&self.path, self.now.wall);
        self.stepped = true;
        if self.expected.rest_after_jump(self.now.wall.as_unix_millis()) {
            self.met.insert("a rest cut after the calendar was set back");
        }
    }

    pub(super) fn crash(&mut self, carried_out: usize) {
        for _ in 0..carried_out {
            if let Some(step) = self.live.as_mut().and_then(|live| live.step(self.now)) {
                self.observe(step);
            }
        }
        if let (Some(mut live), Some(going)) = (self.live.take(), self.expected.going.take()) {
            if live.has_effects() {
                self.met.insert("a crash between two effects");
            }
            self.crashed.push(going.id);
        }
        if let Some((id, _)) = self.stale.take() {
            self.trace.ended(&id, true);
        }
        self.lazy = false;
        self.store = None;
        self.watcher.execute("UPDATE leases SET boot = 'before'", []).unwrap();
    }

    /// A run under pressure whose last effect alone is still to be carried out.
    pub(super) fn go_on_to_the_end(&mut self) {
        if self.is_speaking() {
            self.done(7);
        }
        while self.live.as_mut().is_some_and(|live| live.has_effects() && !live.is_at_its_end()) {
            if let Some(step) = self.live.as_mut().and_then(|live| live.step(self.now)) {
                self.observe(step);
            }
        }
    }

    /// While the holder lives nobody takes over; once it is dead somebody does.
    pub(super) fn take_over(&mut self, death: u8, catch_up: bool, at_its_end: bool) {
        if self.live.is_none() {
            return;
        }
        self.stale_acts();
        if at_its_end {
            self.go_on_to_the_end();
        }
        let mut second = Store::open(&self.path).unwrap();
        let asked = second.acquire(&leases_on(CONNECTION), &holder(), self.now.wall).unwrap();
        assert!(matches!(asked, Acquired::Held(_)), "two holders");
        let sql = match death {
            0 => "UPDATE leases SET pid = 4194305",
            1 => "UPDATE leases SET boot = 'before'",
            _ => "UPDATE leases SET expires_boot_ms = 0",
        };
        self.watcher.execute(sql, []).unwrap();
        self.store = Some(second);
        let id = self.expected.going.take().unwrap().id;
        self.stale = self.live.take().map(|live| (id, live));
        self.begin(catch_up, true);
    }

    /// L3: whoever lost the lease changes nothing, says so, and cannot take it back.
    pub(super) fn stale_acts(&mut self) {
        let Some((id, mut live)) = self.stale.take() else { return };
        let before = check::data_version(&self.watcher);
        let leases = live.leases();
        let mut steps = live.say(&lines::record("trips", "stale", "{}"), self.now);
        steps.extend(live.say(&lines::state("trips", "{\"stale\":1}", true), self.now));
        while let Some(step) = live.step(self.now) {
            steps.push(step);
        }
        let refused = steps.iter().any(|step| matches!(step, Step::Refused | Step::FinishRefused));
        assert!(refused, "{id} lost its lease and was not refused: {steps:?}");
        self.met.insert(if matches!(steps.last(), Some(Step::FinishRefused)) {
            "a stale run refused at its end"
        } else {
            "a stale run refused in the middle"
        });
        let superseded = match steps.last() {
            Some(Step::Finished(outcome)) => outcome.reason.code() == "superseded" && outcome.pressure.is_none(),
            last => matches!(last, Some(Step::FinishRefused)),
        };
        let mut store = live.into_store();
        assert!(matches!(store.heartbeat(&leases), Err(StoreError::Superseded { .. })), "a dead lease lives on");
        let rows_changed = u64::from(check::data_version(&self.watcher) != before);
        // What is not ours is not given back.
        store.release(&leases).unwrap();
        self.trace.facts.push(Fact::StaleCommit { run: RunId::new(&id), rows_changed });
        self.trace.ended(&id, superseded);
    }

    /// Another connection comes, with a run of its own, and goes; ours does not notice.
    pub(super) fn other_connection(&mut self) {
        let mut store = Store::open(&self.path).unwrap();
        if self.other.take().is_some() {
            let leases = acquire(&mut store, "other", self.now);
            store.purge("other", &leases).unwrap();
            store.release(&leases).unwrap();
            check::nothing_is_left_of_other(&self.watcher);
            self.met.insert("a connection forgotten beside ours");
            return;
        }
        self.runs += 1;
        store.register("other", MANIFEST, &manifest(), self.now.wall).unwrap();
        let leases = acquire(&mut store, "other", self.now);
        let id = format!("o{}", self.runs);
        let mut live = LiveRun::<Steady>::begin(store, ("other", &id), &STREAMS, leases, self.now);
        live.set_exit(0);
        let said = [
            lines::record("trips", "k0", r#"{"v":7}"#),
            lines::record("trips", "k1", r#"{"bad":7}"#),
            lines::delete("trips", "k2"),
            lines::gap("details", Some("trips"), "k0", CAUSES[0]),
            lines::state("trips", r#"{"page":7}"#, true),
            lines::done("succeeded", 3, None),
        ];
        for line in said {
            live.say(&line, self.now);
        }
        while live.step(self.now).is_some() {}
        self.other = Some(check::dump(&self.watcher, "other"));
    }
}
