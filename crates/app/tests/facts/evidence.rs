//! What each way in which a run ends means for the next one.

use crate::home::{Home, MINUTE, NAME, Ran, T, at, gave_up};
use gleaner_engine::{CatchUp, RunPurpose, Steady};
use gleaner_protocol::{PressureReason, RecoveryAction, TerminalReason};
use gleaner_schedule::{Because, Held, Kind, Next};
use gleaner_store::{Store, Wanted, WantedBy};

const HOUR: u64 = 60 * MINUTE;

fn run(millis: u64, kind: Kind, because: Because) -> Next {
    Next::Run { at: at(millis), kind, because }
}

#[test]
fn pressure_makes_it_rest_a_probe_makes_that_no_longer_and_one_that_works_ends_it() {
    let mut home = Home::new();
    let why = PressureReason::RateLimited;
    let pushed = Ran { reason: TerminalReason::SourceCooldown, pressure: Some(why), ..Ran::default() };
    home.ran(&pushed, T);
    let until = home.reader().cooldown(NAME).unwrap().unwrap().until;
    assert_eq!(until, at(T + 16 * MINUTE));
    assert_eq!(home.next(T + 2 * MINUTE), run(T + 16 * MINUTE, Kind::Full, Because::RestOver(why)));
    let probe = Ran { purpose: RunPurpose::Probe, ..pushed };
    home.ran(&probe, T + 5 * MINUTE);
    let rest = home.reader().cooldown(NAME).unwrap().unwrap();
    assert_eq!((rest.until, rest.escalation), (until, 0), "looking makes it no longer");
    home.ran(&Ran { purpose: RunPurpose::Probe, ..Ran::default() }, T + 8 * MINUTE);
    assert_eq!(home.next(T + 10 * MINUTE), run(T + 9 * MINUTE, Kind::Full, Because::BackAgain));
    // What the next full run meets is remembered as the second rest in a row.
    let pushed = Ran { reason: TerminalReason::SourceCooldown, pressure: Some(why), ..Ran::default() };
    home.ran(&pushed, T + 10 * MINUTE);
    assert_eq!(home.reader().cooldown(NAME).unwrap().unwrap().escalation, 1);
}

#[test]
fn gaps_that_are_recovered_in_a_rest_do_not_end_it() {
    let mut home = Home::new();
    let pressure = Some(PressureReason::UpstreamPressure);
    home.ran(&Ran { reason: TerminalReason::SourceCooldown, pressure, ..Ran::default() }, T);
    let before = home.reader().cooldown(NAME).unwrap();
    home.ran(&Ran { purpose: RunPurpose::RecoveryOnly, ..Ran::default() }, T + 3 * MINUTE);
    assert_eq!(home.reader().cooldown(NAME).unwrap(), before);
    // A full run that its owner insisted on does.
    home.ran(&Ran::default(), T + 5 * MINUTE);
    assert_eq!(home.reader().cooldown(NAME).unwrap().unwrap().until, at(T + 6 * MINUTE));
}

#[test]
fn an_own_budget_arms_nothing_and_is_gone_on_with_if_it_got_on() {
    let mut home = Home::new();
    home.ran(&Ran { reason: TerminalReason::BudgetReached, collected: 5, ..Ran::default() }, T);
    assert_eq!(home.reader().cooldown(NAME).unwrap(), None);
    assert_eq!(home.next(T + MINUTE), run(T + 2 * MINUTE, Kind::Full, Because::Remainder));
    home.ran(&Ran { reason: TerminalReason::BudgetReached, ..Ran::default() }, T + 2 * MINUTE);
    assert_eq!(home.next(T + 3 * MINUTE), run(T + 2 * MINUTE + HOUR, Kind::Full, Because::Cadence));
}

#[test]
fn a_run_without_an_end_whose_process_is_gone_goes_on_at_once() {
    let mut home = Home::new();
    let session = home.begin::<Steady>(&Ran::default(), T);
    assert!(matches!(home.next(T + MINUTE), Next::Run { because: Because::AtWork, .. }));
    assert_eq!(home.facts(T + MINUTE, None).last, None, "it goes on");
    home.store.release(session.leases()).unwrap();
    assert_eq!(home.next(T + MINUTE), run(T, Kind::Full, Because::CutShort));
    // Three in a row that got nowhere.
    for _ in 0..2 {
        let session = home.begin::<Steady>(&Ran::default(), T + MINUTE);
        home.store.release(session.leases()).unwrap();
    }
    assert!(matches!(home.next(T + 2 * MINUTE), Next::Run { at: when, .. } if when > at(T + HOUR)));
}

#[test]
fn what_was_handed_over_is_due_and_is_no_longer_when_a_run_begins() {
    let mut home = Home::new();
    home.ran(&Ran { reason: TerminalReason::Cancelled, ..Ran::default() }, T);
    assert_eq!(home.next(T + 2 * MINUTE), run(T + HOUR, Kind::Full, Because::Cadence));
    home.store.want_run(NAME, Wanted { by: WantedBy::HandedOver, at: at(T + MINUTE) }).unwrap();
    assert_eq!(home.next(T + 2 * MINUTE), run(T + MINUTE, Kind::Full, Because::CutShort));
    // The owner's wish takes its place, and is not taken back by another.
    home.store.want_run(NAME, Wanted { by: WantedBy::Owner, at: at(T + MINUTE) }).unwrap();
    home.store.want_run(NAME, Wanted { by: WantedBy::HandedOver, at: at(T + MINUTE) }).unwrap();
    assert!(matches!(home.next(T + 2 * MINUTE), Next::Run { because: Because::OwnerAsked, .. }));
    home.ran(&Ran::default(), T + 2 * MINUTE);
    assert_eq!(home.reader().wanted(NAME).unwrap(), None);
}

#[test]
fn refused_credentials_wait_for_others() {
    let mut home = Home::new();
    home.ran(&Ran { reason: TerminalReason::CredentialsRefused, ..Ran::default() }, T);
    let now = T + 2 * MINUTE;
    assert_eq!(home.next(now), Next::Held(Held::Owner(TerminalReason::CredentialsRefused)));
    assert!(!home.facts(now, Some("hash-1")).renewed, "the same one");
    let renewed = home.facts(now, Some("hash-2"));
    assert_eq!(Next::steady(&renewed, at(now)), run(now, Kind::Full, Because::Renewed));
}

#[test]
fn a_failure_that_needs_another_version_waits_for_it_and_any_other_is_tried_with_it() {
    let mut home = Home::new();
    home.ran(&gave_up(false, Some(RecoveryAction::RetryOnConnectorUpgrade)), T);
    let now = T + 2 * MINUTE;
    assert_eq!(home.next(now), Next::Held(Held::Action(RecoveryAction::RetryOnConnectorUpgrade)));
    home.register("2");
    assert_eq!(home.next(now), run(now, Kind::Full, Because::Renewed));
    let version = |ran: Ran| Ran { version: "2", ..ran };
    for turn in 0..7 {
        home.ran(&version(gave_up(false, None)), T + (turn + 1) * HOUR);
    }
    let now = T + 9 * HOUR;
    assert_eq!(home.next(now), Next::Held(Held::Blocked(8)), "with the one before");
    home.register("3");
    assert_eq!(home.next(now), run(now, Kind::Full, Because::Renewed));
}

#[test]
fn an_outage_is_probed_and_a_probe_that_works_proves_that_it_is_none() {
    let mut home = Home::new();
    for turn in 0..8 {
        home.ran(&gave_up(true, Some(RecoveryAction::RetryByRuntime)), T + turn * HOUR);
    }
    let now = T + 7 * HOUR + 2 * MINUTE;
    assert_eq!(home.next(now), run(T + 7 * HOUR + 41 * MINUTE, Kind::Probe, Because::MayBeUp(8)));
    let probe = Ran { purpose: RunPurpose::Probe, ..gave_up(true, None) };
    home.ran(&probe, T + 8 * HOUR);
    assert_eq!(home.facts(T + 9 * HOUR, None).failures.count, 8, "a probe is not in the row");
    home.ran(&Ran { purpose: RunPurpose::Probe, ..Ran::default() }, T + 9 * HOUR);
    let now = T + 9 * HOUR + 2 * MINUTE;
    assert_eq!(home.next(now), run(T + 9 * HOUR + MINUTE, Kind::Full, Because::BackAgain));
    home.ran(&gave_up(true, None), now);
    assert_eq!(home.next(now + 2 * MINUTE), Next::Held(Held::Blocked(9)));
    home.ran(&Ran::default(), now + HOUR);
    assert_eq!(home.facts(now + 2 * HOUR, None).failures.count, 0);
}

#[test]
fn a_history_that_was_begun_is_gone_on_with_until_it_is_complete() {
    let mut home = Home::new();
    home.ran(&Ran::default(), T);
    assert!(!home.facts(T + HOUR, None).history_left, "nobody asked for it");
    for (reason, is_left) in [(TerminalReason::BudgetReached, true), (TerminalReason::Succeeded, false)] {
        let ran = Ran { reason, ..Ran::default() };
        let session = home.begin::<CatchUp>(&ran, T + 5 * MINUTE);
        home.end(session, &ran, T + 6 * MINUTE);
        let facts = home.facts(T + 10 * MINUTE, None);
        assert_eq!(facts.history_left, is_left);
        assert_eq!(facts.last.unwrap().began, at(T), "the steady track is another");
    }
}

#[test]
fn an_event_is_told_once_and_again_when_it_was_over() {
    let mut home = Home::new();
    let events = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let note = |home: &mut Home, names: &[&str]| home.store.note_events(NAME, &events(names), at(T)).unwrap();
    assert_eq!(note(&mut home, &["a", "b"]), ["a", "b"]);
    assert_eq!(note(&mut home, &["b", "a"]), [] as [&str; 0]);
    // Another process, after a restart.
    home.store = Store::open(&home.path()).unwrap();
    assert_eq!(note(&mut home, &["a", "b", "c"]), ["c"]);
    assert_eq!(note(&mut home, &["c"]), [] as [&str; 0]);
    assert_eq!(note(&mut home, &["a", "c"]), ["a"]);
}
