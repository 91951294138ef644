//! What an owner does, through the one way that terminal, console and API have.

use crate::home::{Home, NAME};
use gleaner_app::{AppError, ErrorKind, Reply, ScheduleChange, Setting, Stop, Stopped};
use gleaner_schedule::Mode;
use gleaner_store::WantedBy;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_wish_is_in_the_store_before_anybody_is_told() {
    let home = Home::new();
    let nudges = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&nudges);
    let actions = home.app().with_nudge(Arc::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    actions.run_now(NAME).unwrap();
    assert_eq!(home.reader().wanted(NAME).unwrap().unwrap().by, WantedBy::Owner);
    let every = Setting::Set(std::time::Duration::from_secs(7200));
    actions.set_schedule(NAME, &ScheduleChange { every, ..ScheduleChange::default() }).unwrap();
    assert_eq!(actions.view(NAME).unwrap().outlook().cadence(), "every 2 h");
    assert_eq!(nudges.load(Ordering::Relaxed), 2);
}

#[test]
fn a_pause_is_a_pause_however_it_is_said() {
    let home = Home::new();
    let actions = home.app();
    actions.pause(NAME).unwrap();
    assert_eq!(actions.view(NAME).unwrap().outlook().code(), "paused");
    assert_eq!(actions.run_now(NAME).unwrap_err().kind, ErrorKind::NeedsOwner);
    actions.resume(NAME, None).unwrap();
    let paused = ScheduleChange { mode: Setting::Set(Mode::Paused), ..ScheduleChange::default() };
    actions.set_schedule(NAME, &paused).unwrap();
    assert_eq!(actions.view(NAME).unwrap().outlook().code(), "paused");
    let automatic = ScheduleChange { mode: Setting::Set(Mode::Automatic), ..ScheduleChange::default() };
    actions.set_schedule(NAME, &automatic).unwrap();
    assert_eq!(actions.view(NAME).unwrap().outlook().code(), "first_run");
}

#[test]
fn what_is_not_there_is_said_to_be_not_there() {
    let home = Home::new();
    let actions = home.app();
    let kind = |result: Result<(), AppError>| result.unwrap_err().kind;
    let is_unknown = |result: Result<(), AppError>| kind(result) == ErrorKind::NotFound;
    assert!(is_unknown(actions.run_now("nobody")) && is_unknown(actions.pause("nobody")));
    assert!(is_unknown(actions.cancel("nobody", Stop::InOrder).map(drop)));
    assert!(is_unknown(actions.set_schedule("nobody", &ScheduleChange::default())));
    assert_eq!(actions.cancel(NAME, Stop::Now), Ok(Stopped::NotRunning), "there is nothing to stop");
    assert_eq!(kind(actions.answer(7, Reply::Declined)), ErrorKind::NoSuchQuestion);
    for gap in ["", "x", &"0".repeat(32), "🦀"] {
        assert_eq!(kind(actions.retry_gap(NAME, gap)), ErrorKind::NotFound, "{gap}");
        assert_eq!(kind(actions.ignore_gap(NAME, gap, "note")), ErrorKind::NotFound, "{gap}");
        assert_eq!(kind(actions.take_back_gap(NAME, gap)), ErrorKind::Conflict, "{gap}");
    }
    assert_eq!(kind(actions.ignore_gap(NAME, "x", " ")), ErrorKind::Usage);
    assert!(is_unknown(actions.ignore_gap("nobody", "x", "note")) && is_unknown(actions.take_back_gap("nobody", "x")));
    let wrong = ScheduleChange { cron: Setting::Set("soon".to_owned()), ..ScheduleChange::default() };
    assert_eq!(kind(actions.set_schedule(NAME, &wrong)), ErrorKind::Usage);
    assert_eq!(home.reader().schedule(NAME).unwrap(), gleaner_store::OwnerSchedule::default());
}
