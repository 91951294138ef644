//! What a former run learned about the provider's pace, found on the cursors that START brings.
//!
//! It rides on the cursor of every stream, because a connector has no other place that outlives its run.
//! The newest is taken; whether it is still fresh is the governor's to decide. An author never sees it.

use crate::emit::Cursor;
use gleaner_http::{SendGovernor, restore_from};

/// The fields that the pace takes on a cursor all begin with this. An author's own must not.
const PREFIX: &str = "pacing_";

/// What a former run learned.
#[derive(Clone, Debug)]
pub(crate) struct Learned(gleaner_http::governor::Learned);

impl Learned {
    /// Takes what was learned off a cursor.
    pub(crate) fn take_from(cursor: &mut Cursor) -> Option<Self> {
        let learned = restore_from(cursor).map(Self);
        cursor.retain(|name, _| !name.starts_with(PREFIX));
        learned
    }

    pub(crate) fn newest(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        a.into_iter().chain(b).max_by_key(|learned| learned.0.recorded_at)
    }

    pub(crate) fn restore(&self, governor: &SendGovernor) {
        governor.restore(&self.0);
    }
}
