//! What an owner says about one gap: another try, do without it, or want it after all.
//!
//! The rules are the engine's; here is which row is meant. No run has to be over for it: what the owner says is a
//! transaction of its own, and a run that goes on meets the gap as it is then.

use crate::error::{Failure, StoreError};
use crate::gaps::gap_rows::{GapRow, parse_gap_id};
use crate::gaps::renewal;
use crate::read::stream_id;
use crate::registry;
use crate::store::Store;
use gleaner_engine::{Gap, GapId, Note, WallTime};
use rusqlite::Connection;

/// Which gaps of a connection are meant. Without anything, all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapsMeant<'a> {
    /// Of this stream.
    pub stream: Option<&'a str>,
    /// Missing for this reason, or given up for it.
    pub reason: Option<&'a str>,
}

impl Store {
    /// The owner asks for another try of a gap: of one that was given up, of one that waits for its time, and of one that
    /// they did without. Answers whether there is such a gap and it is open.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn retry_gap(&mut self, name: &str, gap_id: &str) -> Result<bool, StoreError> {
        self.write(&[], |transaction| {
            change(transaction, name, gap_id, |gap| {
                gap.take_back();
                gap.retry();
                gap.is_open()
            })
        })
    }

    /// The owner asks for another try of all gaps that fit: of those that were given up, and of those that wait for their
    /// time. Those that they did without stay so. Answers how many the next run tries.
    ///
    /// # Errors
    ///
    /// When there is no such connection or stream.
    pub fn retry_gaps(&mut self, name: &str, meant: GapsMeant<'_>) -> Result<u64, StoreError> {
        self.write(&[], |transaction| {
            let of = registry::find(transaction, name)?;
            let stream = meant.stream.map(|stream| stream_id(transaction, name, stream)).transpose()?;
            let sql = "SELECT id FROM gaps WHERE connection = ?1 AND state IN ('pending', 'terminal')
                       AND (?2 IS NULL OR stream = ?2) AND (?3 IS NULL OR reason = ?3 OR terminal_reason = ?3)";
            renewal::retry_all(transaction, sql, (of, stream, meant.reason))
        })
    }

    /// The owner does without a gap, and says why. Answers whether there is such a gap and it is open.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or the gap is not one record: later runs would write what they leave into a gap
    /// that nobody tries.
    pub fn ignore_gap(&mut self, name: &str, gap_id: &str, note: &Note, now: WallTime) -> Result<bool, StoreError> {
        self.write(&[], |transaction| {
            if find(transaction, name, gap_id)?.is_some_and(|row| row.stands_for_many()) {
                return Err(StoreError::StandsForMany(gap_id.to_owned()).into());
            }
            change(transaction, name, gap_id, |gap| gap.ignore(note.clone(), now))
        })
    }

    /// The owner wants a gap after all. Answers whether there is such a gap and it was ignored.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn take_back_gap(&mut self, name: &str, gap_id: &str) -> Result<bool, StoreError> {
        self.write(&[], |transaction| change(transaction, name, gap_id, Gap::take_back))
    }
}

/// Changes the gap that is meant, if the engine's rule says that there is something to change.
fn change(
    connection: &Connection,
    name: &str,
    gap_id: &str,
    rule: impl FnOnce(&mut Gap) -> bool,
) -> Result<bool, Failure> {
    let Some(mut row) = find(connection, name, gap_id)? else { return Ok(false) };
    let changed = rule(&mut row.gap);
    if changed {
        row.update(connection)?;
    }
    Ok(changed)
}

fn find(connection: &Connection, name: &str, gap_id: &str) -> Result<Option<GapRow>, Failure> {
    let of = registry::find(connection, name)?;
    let Some(identity) = parse_gap_id(&GapId::new(gap_id)) else { return Ok(None) };
    Ok(GapRow::find(connection, &identity)?.filter(|row| row.connection() == of))
}
