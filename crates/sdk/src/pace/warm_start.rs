//! Restores the learned pace of an earlier run from the cursors in START.
//!
//! Every stream's cursor carries it, because a connector has no other storage. The newest is used; the governor
//! decides whether it is fresh. An author never sees it.

use crate::emit::Cursor;
use gleaner_http::governor::Learned;
use gleaner_http::restore_from;

/// Prefix of the pacing fields on a cursor. Authors must not use it.
const PREFIX: &str = "pacing_";

/// Removes the learned pace from a cursor.
pub(crate) fn take_learned(cursor: &mut Cursor) -> Option<Learned> {
    let learned = restore_from(cursor);
    cursor.retain(|name, _| !name.starts_with(PREFIX));
    learned
}
