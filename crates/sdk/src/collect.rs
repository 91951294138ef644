//! One run as an author's code sees it: what was asked for, and everything that may be done about it.

use crate::budget::Budget;
use crate::caps::Caps;
use crate::clock::Clock;
use crate::emit::{Cursor, Emitter};
use crate::gaps::GapPages;
use gleaner_protocol::{CollectionMode, Manifest, StreamScope};
use std::collections::BTreeMap;

/// One run.
#[derive(Debug)]
pub struct Collect<'r> {
    pub(crate) manifest: &'r Manifest,
    pub(crate) clock: &'r dyn Clock,
    pub(crate) emitter: Emitter<'r>,
    pub(crate) gaps: GapPages,
    pub(crate) budget: Budget,
    pub(crate) caps: Caps,
    pub(crate) scope: Vec<StreamScope>,
    pub(crate) mode: CollectionMode,
    pub(crate) recovery_only: bool,
    /// What the author put into each cursor; the pace that rides along is taken out.
    pub(crate) cursors: BTreeMap<String, Cursor>,
}

impl<'r> Collect<'r> {
    /// Says what was collected.
    pub const fn emitter(&mut self) -> &mut Emitter<'r> {
        &mut self.emitter
    }

    /// The cursor that the last run left for a stream.
    #[must_use]
    pub fn cursor(&self, stream: &str) -> Option<&Cursor> {
        self.cursors.get(stream)
    }

    /// What was asked for of a stream; `None` when nothing was.
    #[must_use]
    pub fn scope(&self, stream: &str) -> Option<&StreamScope> {
        self.scope.iter().find(|asked| asked.name == stream)
    }

    /// Whether only gaps are to be recovered, without a walk forward.
    #[must_use]
    pub const fn is_recovery_only(&self) -> bool {
        self.recovery_only
    }
}
