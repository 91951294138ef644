//! The rules of `next.rs`, one by one, with times that were worked out by hand.

use super::*;
use crate::calendar::{Cadence, Every};
use crate::facts::Failures;
use crate::plan::{Mode, OwnerWish, Plan, Session};
use gleaner_engine::{CooldownPolicy, RunId};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
/// Some day.
const T: u64 = 1_000_000 * HOUR;
const WHY: PressureReason = PressureReason::RateLimited;

fn at(millis: u64) -> WallTime {
    WallTime::from_unix_millis(millis)
}

/// Runs by itself every six hours; its last run began at `T`, took a minute, and went well.
fn facts() -> Facts {
    let cadence = Cadence::Every(Every::new(Duration::from_secs(6 * 3600)).unwrap());
    let wish = OwnerWish { mode: Some(Mode::Automatic), cadence: Some(cadence), ..OwnerWish::default() };
    Facts {
        connection: "c".to_owned(),
        provider: "p".to_owned(),
        account: "a".to_owned(),
        added: at(0),
        plan: Plan::combine(None, &wish),
        last: Some(ended(TerminalReason::Succeeded)),
        last_full: Some(Span { began: at(T), ended: at(T + MINUTE) }),
        pushed_back: None,
        last_success: Some(at(T + MINUTE)),
        failures: Failures::default(),
        cut_short: 0,
        handed_over: false,
        cooldown: None,
        cooldown_policy: CooldownPolicy::of(Some(Duration::from_secs(6 * 3600)), None),
        told_until: None,
        other_gaps: false,
        remainder: false,
        history_left: false,
        last_catch_up: None,
        question_open: false,
        renewed: false,
        grant_is_over: false,
        asked: None,
        detained: None,
    }
}

fn ended(reason: TerminalReason) -> LastRun {
    LastRun { began: at(T), ended: at(T + MINUTE), reason, purpose: RunPurpose::Full }
}

fn failed(count: u32, may_pass: bool) -> Facts {
    let failures = Failures { count, may_pass, ..Failures::default() };
    Facts { failures, last: Some(ended(TerminalReason::ConnectorFailed)), ..facts() }
}

fn pushed_back() -> Facts {
    let rest = Cooldown { reason: WHY, escalation: 0, until: at(T + 6 * HOUR), armed_by: RunId::new("r") };
    let last = Some(ended(TerminalReason::SourceCooldown));
    Facts { cooldown: Some(rest), pushed_back: Some(WHY), last, ..facts() }
}

/// Two minutes after the last run began.
fn check(facts: &Facts, millis_after: u64, kind: Kind, because: Because) {
    let next = Next::steady(facts, at(T + 2 * MINUTE));
    assert_eq!(next, Next::Run { at: at(T + millis_after), kind, because });
}

fn check_held(facts: &Facts, held: Held) {
    assert_eq!(Next::steady(facts, at(T + 2 * MINUTE)), Next::Held(held));
}

#[test]
fn what_went_well_runs_at_its_time_and_a_remainder_after_a_minute() {
    check(&facts(), 6 * HOUR, Kind::Full, Because::Cadence);
    check(&Facts { remainder: true, ..facts() }, 2 * MINUTE, Kind::Full, Because::Remainder);
    let mut apart = Facts { remainder: true, ..facts() };
    apart.plan.apart = Duration::from_secs(3600);
    check(&apart, HOUR, Kind::Full, Because::Remainder);
    check(&Facts { last: None, last_full: None, added: at(T), ..facts() }, 8_418, Kind::Full, Because::First);
}

#[test]
fn failures_run_less_often_from_the_third_on_and_not_at_all_from_the_seventh() {
    check(&failed(2, false), 6 * HOUR, Kind::Full, Because::Cadence);
    check(&failed(3, false), 12 * HOUR + MINUTE, Kind::Full, Because::FailedBefore(3));
    check(&failed(6, false), 24 * HOUR + MINUTE, Kind::Full, Because::FailedBefore(6));
    check_held(&failed(7, false), Held::Blocked(7));
}

#[test]
fn what_looks_like_an_outage_is_probed_until_a_probe_has_worked() {
    check(&failed(1, true), 41 * MINUTE, Kind::Probe, Because::MayBeUp(1));
    check(&failed(9, true), 41 * MINUTE, Kind::Probe, Because::MayBeUp(9));
    let probe = LastRun { purpose: RunPurpose::Probe, ..ended(TerminalReason::Succeeded) };
    let mut worked = Facts { last: Some(probe), ..failed(9, true) };
    worked.failures.provider_is_there = true;
    check(&worked, MINUTE, Kind::Full, Because::BackAgain);
    // It fails all the same, so it is not the provider.
    let mut all_the_same = failed(10, true);
    all_the_same.failures.provider_is_there = true;
    check_held(&all_the_same, Held::Blocked(10));
}

#[test]
fn a_rest_is_probed_and_other_gaps_take_turns_with_that() {
    check(&pushed_back(), 41 * MINUTE, Kind::Probe, Because::MayBeBack(WHY));
    let gaps = Facts { other_gaps: true, ..pushed_back() };
    check(&gaps, 21 * MINUTE, Kind::RecoveryOnly, Because::OtherGaps(WHY));
    let recovered = LastRun { purpose: RunPurpose::RecoveryOnly, ..ended(TerminalReason::Succeeded) };
    check(&Facts { last: Some(recovered), ..gaps }, 21 * MINUTE, Kind::Probe, Because::MayBeBack(WHY));
    // A provider with a Retry-After is not asked earlier.
    let told = Facts { told_until: Some(at(T + 5 * HOUR)), ..pushed_back() };
    check(&told, 5 * HOUR, Kind::Probe, Because::MayBeBack(WHY));
    let later = Facts { told_until: Some(at(T + 9 * HOUR)), ..pushed_back() };
    check(&later, 9 * HOUR, Kind::Full, Because::RestOver(WHY));
}

#[test]
fn only_pressure_makes_it_rest() {
    // The same facts without a rest: what a store has after a run that stopped at its own budget.
    let budget = Facts { cooldown: None, pushed_back: None, remainder: true, ..pushed_back() };
    check(&budget, 2 * MINUTE, Kind::Full, Because::Remainder);
}

#[test]
fn too_many_rests_are_probed_without_an_end_in_sight() {
    let mut often = pushed_back();
    often.cooldown = often.cooldown.map(|rest| Cooldown { escalation: 12, ..rest });
    check(&often, 41 * MINUTE, Kind::Probe, Because::MayBeBack(WHY));
    // Gaps of other kinds do not make up for that.
    check(&Facts { other_gaps: true, ..often }, 41 * MINUTE, Kind::Probe, Because::MayBeBack(WHY));
}

#[test]
fn what_only_the_owner_can_change_waits_for_the_owner() {
    for reason in
        [TerminalReason::CredentialsMissing, TerminalReason::CredentialsRefused, TerminalReason::InteractionExpired]
    {
        let held = Facts { last: Some(ended(reason)), ..facts() };
        check_held(&held, Held::Owner(reason));
        check(&Facts { renewed: true, ..held }, 2 * MINUTE, Kind::Full, Because::Renewed);
    }
    check_held(&Facts { grant_is_over: true, ..facts() }, Held::Owner(TerminalReason::GrantExpired));
    check_held(&Facts { question_open: true, ..facts() }, Held::Question);
    let upgrade = RecoveryAction::RetryOnConnectorUpgrade;
    let mut needs = failed(1, false);
    needs.failures.action = Some(upgrade);
    check_held(&needs, Held::Action(upgrade));
    check(&Facts { renewed: true, ..needs }, 2 * MINUTE, Kind::Full, Because::Renewed);
}

#[test]
fn a_session_of_the_owners_lets_it_run_by_itself_for_as_long_as_it_lasts() {
    let mut assisted = facts();
    assisted.plan.session = Some(Session { lifetime: Some(Duration::from_secs(90)) });
    check(&assisted, 6 * HOUR, Kind::Full, Because::Cadence);
    assert_eq!(Next::steady(&assisted, at(T + 3 * MINUTE)), Next::Held(Held::SignIn));
    check_held(&Facts { last_success: None, ..assisted }, Held::SignIn);
}

#[test]
fn what_was_cut_short_goes_on_at_once_unless_it_gets_nowhere() {
    let cut = |cut_short| Facts { cut_short, last: Some(ended(TerminalReason::Interrupted)), ..facts() };
    check(&cut(1), MINUTE, Kind::Full, Because::CutShort);
    check(&cut(2), MINUTE, Kind::Full, Because::CutShort);
    check(&cut(3), 12 * HOUR + MINUTE, Kind::Full, Because::CutShort);
    let last = Some(ended(TerminalReason::Cancelled));
    check(&Facts { handed_over: true, last, ..facts() }, MINUTE, Kind::Full, Because::CutShort);
    check(&Facts { last, ..facts() }, 6 * HOUR, Kind::Full, Because::Cadence);
}

#[test]
fn the_owner_is_heeded_at_once_but_not_against_a_pause_or_a_rest() {
    let asked = |facts: Facts| Facts { asked: Some(at(T + MINUTE)), ..facts };
    check(&asked(facts()), MINUTE, Kind::Full, Because::OwnerAsked);
    check(&asked(failed(9, false)), MINUTE, Kind::Full, Because::OwnerAsked);
    check(&asked(pushed_back()), MINUTE, Kind::Probe, Because::OwnerAsked);
    let gaps = Facts { other_gaps: true, ..pushed_back() };
    check(&asked(gaps), MINUTE, Kind::RecoveryOnly, Because::OwnerAsked);
    let mut paused = asked(facts());
    paused.plan.held_back = Some(HeldBack::Paused);
    check_held(&paused, Held::Back(HeldBack::Paused));
}

#[test]
fn nothing_begins_while_somebody_else_is_at_work() {
    let busy = Facts { detained: Some(Detained::AtWork(at(T + 7 * HOUR))), ..facts() };
    check(&busy, 7 * HOUR, Kind::Full, Because::AtWork);
    let soon = Facts { detained: Some(Detained::AtWork(at(T + HOUR))), ..facts() };
    check(&soon, 6 * HOUR, Kind::Full, Because::Cadence);
}

#[test]
fn history_waits_for_the_provider_and_for_nothing_else() {
    let history = |facts: Facts| Next::history(&Facts { history_left: true, ..facts }, at(T + 2 * MINUTE));
    let run = Next::Run { at: at(T + 2 * MINUTE), kind: Kind::CatchUp, because: Because::History };
    assert_eq!(history(facts()), run);
    for held in [pushed_back(), failed(1, true), Facts { last: None, ..facts() }] {
        assert_eq!(history(held), Next::Held(Held::NothingToDo));
    }
    assert_eq!(Next::history(&facts(), at(T)), Next::Held(Held::NothingToDo));
}
