//! Where an author's code panicked.
//!
//! The text of a panic may quote a record, so it stays on standard error. Its place, a file and a line,
//! may be told.

use std::cell::RefCell;
use std::panic;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes the place of every panic from now on, besides what was done about it before.
pub(crate) fn note_places() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let place = info.location().map(|place| format!("{}:{}", place.file(), place.line()));
        LAST.with_borrow_mut(|last| *last = place);
        before(info);
    }));
}

/// Where this thread panicked last.
pub(crate) fn last_place() -> Option<String> {
    LAST.with_borrow_mut(Option::take)
}
