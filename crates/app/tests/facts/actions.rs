//! What an owner does, through the one way that terminal, console and API have.

use crate::home::{Home, NAME};
use gleaner_app::{ActionError, Actions, Reply, ScheduleChange, Setting, Stop};
use gleaner_schedule::Mode;
use gleaner_store::WantedBy;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_wish_is_in_the_store_before_anybody_is_told() {
    let home = Home::new();
    let nudges = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&nudges);
    let actions = home.actions().with_nudge(Arc::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    actions.run_now(NAME).unwrap();
    assert_eq!(home.reader().wanted(NAME).unwrap().unwrap().by, WantedBy::Owner);
    let every = Setting::Set(std::time::Duration::from_secs(7200));
    actions.set_schedule(NAME, &ScheduleChange { every, ..ScheduleChange::default() }).unwrap();
    assert_eq!(actions.outlook(NAME).unwrap().cadence(), "every 2 h");
    assert_eq!(nudges.load(Ordering::Relaxed), 2);
}

#[test]
fn a_pause_is_a_pause_however_it_is_said() {
    let home = Home::new();
    let actions = home.actions();
    actions.pause(NAME).unwrap();
    assert_eq!(actions.outlook(NAME).unwrap().code(), "paused");
    assert!(matches!(actions.run_now(NAME), Err(ActionError::Paused(_))));
    actions.resume(NAME).unwrap();
    let paused = ScheduleChange { mode: Setting::Set(Mode::Paused), ..ScheduleChange::default() };
    actions.set_schedule(NAME, &paused).unwrap();
    assert_eq!(actions.outlook(NAME).unwrap().code(), "paused");
    let automatic = ScheduleChange { mode: Setting::Set(Mode::Automatic), ..ScheduleChange::default() };
    actions.set_schedule(NAME, &automatic).unwrap();
    assert_eq!(actions.outlook(NAME).unwrap().code(), "first_run");
}

#[test]
fn what_is_not_there_is_said_to_be_not_there() {
    let home = Home::new();
    let actions = home.actions();
    let is_unknown = |result: Result<(), ActionError>| matches!(result, Err(ActionError::NoSuchConnection(_)));
    assert!(is_unknown(actions.run_now("nobody")) && is_unknown(actions.pause("nobody")));
    assert!(is_unknown(actions.cancel("nobody", Stop::InOrder)));
    assert!(is_unknown(actions.set_schedule("nobody", &ScheduleChange::default())));
    assert!(matches!(actions.cancel(NAME, Stop::Now), Err(ActionError::NotRunning(_))));
    assert!(matches!(actions.answer(7, Reply::Declined), Err(ActionError::NoSuchQuestion(7))));
    for gap in ["", "x", &"0".repeat(32), "🦀"] {
        assert!(matches!(actions.retry_gap(NAME, gap), Err(ActionError::NoSuchGap { .. })), "{gap}");
        assert!(matches!(actions.ignore_gap(NAME, gap, "note"), Err(ActionError::NoSuchGap { .. })), "{gap}");
        assert!(matches!(actions.take_back_gap(NAME, gap), Err(ActionError::NotIgnored { .. })), "{gap}");
    }
    assert!(matches!(actions.ignore_gap(NAME, "x", " "), Err(ActionError::Note(_))));
    assert!(is_unknown(actions.ignore_gap("nobody", "x", "note")) && is_unknown(actions.take_back_gap("nobody", "x")));
    let wrong = ScheduleChange { cron: Setting::Set("soon".to_owned()), ..ScheduleChange::default() };
    assert!(matches!(actions.set_schedule(NAME, &wrong), Err(ActionError::Setting(_))));
    assert_eq!(home.reader().schedule(NAME).unwrap(), gleaner_store::OwnerSchedule::default());
}
