//! What a former run learned about the provider's pace, found on the cursors that START brings.
//!
//! It rides on the cursor of every stream, because a connector has no other place that outlives its run.
//! The newest is taken; whether it is still fresh is the governor's to decide. An author never sees it.

use crate::emit::Cursor;
use gleaner_http::governor::Learned;
use gleaner_http::restore_from;

/// The fields that the pace takes on a cursor all begin with this. An author's own must not.
const PREFIX: &str = "pacing_";

/// Takes what was learned off a cursor.
pub(crate) fn take_learned(cursor: &mut Cursor) -> Option<Learned> {
    let learned = restore_from(cursor);
    cursor.retain(|name, _| !name.starts_with(PREFIX));
    learned
}
