//! Location of a panic in an author's code.
//!
//! The text of a panic may quote a record, so it stays on stderr. Its file and line may be reported.

use std::cell::RefCell;
use std::panic;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records the location of every panic from now on, beside the existing hook.
pub(crate) fn note_places() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let place = info.location().map(|place| format!("{}:{}", place.file(), place.line()));
        LAST.with_borrow_mut(|last| *last = place);
        before(info);
    }));
}

/// Location of this thread's last panic.
pub(crate) fn last_place() -> Option<String> {
    LAST.with_borrow_mut(Option::take)
}
