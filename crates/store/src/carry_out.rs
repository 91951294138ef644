//! Between engine and store: one effect in, its answer back to the run.
//!
//! Why here: every loop that drives a run must carry out the same effects in the same way, or a test
//! would prove something of another loop than the one that owners use. What is a process's or an owner's
//! is handed back untouched. Nothing is decided here.

use crate::error::StoreError;
use crate::session::Session;
use crate::store::Store;
use gleaner_engine::{Effect, Now, Run, Track};

impl Store {
    /// Carries out an effect that is the store's, and tells the run what came of it. Any other effect
    /// comes back, and so does [`Effect::Finish`], which takes the session with it.
    ///
    /// # Errors
    ///
    /// When the lease is lost or the store cannot be written. Nothing more of this run may be carried out
    /// then; whoever drives it tells the run.
    pub fn carry_out<T: Track>(
        &mut self,
        session: &mut Session<T>,
        run: &mut Run<T>,
        effect: Effect<T>,
        now: Now,
    ) -> Result<Option<Effect<T>>, StoreError> {
        match effect {
            Effect::WriteSlice(slice) => {
                let receipt = self.write_slice(session, slice, now.wall)?;
                run.handle_receipt(receipt, now);
            }
            Effect::KeepCoverageKeys { report, field, keys } => {
                self.keep_coverage_keys(session, report, field, &keys)?;
            }
            Effect::TallyCoverage { report, pair } => {
                let tally = self.tally_coverage(session, report, &pair)?;
                run.handle_tally(report, &tally, now);
            }
            Effect::WriteUnaccounted { report, pair } => {
                let gaps = self.write_unaccounted(session, report, &pair, now.wall)?;
                run.handle_unaccounted_written(gaps, now);
            }
            Effect::LeaseGapsPage { streams, bytes_max } => {
                let page = self.lease_gaps_page(session, &streams, bytes_max, now.wall)?;
                run.handle_gaps_page(page, now);
            }
            Effect::Commit(plan) => {
                self.commit(session, &plan, now.wall)?;
                run.handle_committed(now);
            }
            Effect::Trace(event) => self.trace(session, event, now.wall)?,
            not_ours => return Ok(Some(not_ours)),
        }
        Ok(None)
    }
}
