//! Between engine and store: one effect in, its answer back to the run.
//!
//! Why here: every loop that drives a run must carry out the same effects in the same way, or a test
//! would prove something of another loop than the one that owners use. Nothing is decided here.

use crate::error::StoreError;
use crate::run::session::Session;
use crate::store::Store;
use gleaner_engine::{Now, Run, StoreEffect, Track};

impl Store {
    /// Carries out an effect and tells the run what came of it. The end of a run takes the session with it, and is
    /// [`finish_run`](Self::finish_run).
    ///
    /// # Errors
    ///
    /// When the lease is lost or the store cannot be written. Nothing more of this run may be carried out
    /// then; whoever drives it tells the run.
    pub fn carry_out<T: Track>(
        &mut self,
        session: &mut Session<T>,
        run: &mut Run<T>,
        effect: StoreEffect<T>,
        now: Now,
    ) -> Result<(), StoreError> {
        match effect {
            StoreEffect::WriteSlice(slice) => {
                let receipt = self.write_slice(session, slice, now.wall)?;
                run.handle_receipt(receipt, now);
            }
            StoreEffect::KeepCoverageKeys { report, field, keys } => {
                self.keep_coverage_keys(session, report, field, &keys)?;
            }
            StoreEffect::TallyCoverage { report, pair } => {
                let tally = self.tally_coverage(session, report, &pair)?;
                run.handle_tally(report, &tally, now);
            }
            StoreEffect::WriteUnaccounted { report, pair } => {
                let gaps = self.write_unaccounted(session, report, &pair, now.wall)?;
                run.handle_unaccounted_written(gaps, now);
            }
            StoreEffect::LeaseGapsPage { streams, bytes_max } => {
                let page = self.lease_gaps_page(session, &streams, bytes_max, now.wall)?;
                run.handle_gaps_page(page, now);
            }
            StoreEffect::Commit(plan) => {
                self.commit(session, &plan, now.wall)?;
                run.handle_committed(now);
            }
            StoreEffect::Trace(event) => self.trace(session, event, now.wall)?,
        }
        Ok(())
    }
}
