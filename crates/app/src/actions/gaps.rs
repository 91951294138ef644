//! What an owner says about gaps: retry, ignore, take back.

use crate::app::App;
use crate::dates::now;
use crate::error::{AppError, ErrorKind};
use gleaner_base::outside::one_line;
use gleaner_engine::Note;
use gleaner_protocol::GapReason;
use gleaner_store::{GAP_ID_DIGITS_MIN, GapsMeant, MeantGap};

const LISTED: &str = "`gleaner gaps CONNECTION` lists them with their ids";

impl App {
    /// Another try of a gap with the next run: of one that was given up, and of one that waits for its time.
    ///
    /// # Errors
    ///
    /// When there is no such gap, or it is closed.
    pub fn retry_gap(&self, connection: &str, gap_id: &str) -> Result<(), AppError> {
        self.change(connection, |store, _| {
            if store.retry_gap(connection, gap_id)? { Ok(()) } else { Err(no_open_gap(connection, gap_id)) }
        })
    }

    /// Another try of all gaps of a connection that fit, with the next run. Ignored gaps stay ignored. Answers how many.
    ///
    /// # Errors
    ///
    /// When there is no such connection, stream or reason.
    pub fn retry_gaps(&self, connection: &str, meant: GapsMeant<'_>) -> Result<u64, AppError> {
        if let Some(reason) = meant.reason.filter(|reason| GapReason::from_code(reason).is_none()) {
            let hint = "`gleaner gaps CONNECTION --json` prints the reason of each gap";
            return Err(AppError::usage(format!("there is no reason {:?}", one_line(reason)), hint));
        }
        self.change(connection, |store, _| Ok(store.retry_gaps(connection, meant)?))
    }

    /// Ignores a gap: it is not retried, needs nobody, and stays on record as missing, with this note. A run that is at
    /// work on it is left alone.
    ///
    /// # Errors
    ///
    /// When there is no such gap, or it is closed, or the note is none.
    pub fn ignore_gap(&self, connection: &str, gap_id: &str, note: &str) -> Result<(), AppError> {
        let note = Note::new(note).map_err(|fault| {
            AppError::usage(fault.to_string(), "say in a sentence why you do without it: --note \"…\"")
        })?;
        self.change(connection, |store, _| {
            let ignored = store.ignore_gap(connection, gap_id, &note, now())?;
            if ignored { Ok(()) } else { Err(no_open_gap(connection, gap_id)) }
        })
    }

    /// Stops ignoring a gap: the next run tries it.
    ///
    /// # Errors
    ///
    /// When there is no such gap, or it is not ignored.
    pub fn take_back_gap(&self, connection: &str, gap_id: &str) -> Result<(), AppError> {
        self.change(connection, |store, _| {
            if store.take_back_gap(connection, gap_id)? {
                return Ok(());
            }
            let message = format!("{connection:?} has no ignored gap {gap_id:?}");
            Err(AppError::new(ErrorKind::Conflict, message, LISTED))
        })
    }

    /// The gap whose id begins so, with its connection.
    ///
    /// # Errors
    ///
    /// When there is none, or more than one.
    pub fn meant_gap(&self, id: &str) -> Result<(String, String), AppError> {
        match self.reader()?.meant_gap(id)? {
            MeantGap::One { connection, gap_id } => Ok((connection, gap_id)),
            MeantGap::Several => {
                let message = format!("more than one gap has an id that begins with {}", one_line(id));
                Err(AppError::usage(message, "say more of it; --json lists the whole ids"))
            }
            MeantGap::None if id.len() < GAP_ID_DIGITS_MIN => {
                Err(AppError::usage(format!("at least {GAP_ID_DIGITS_MIN} digits of a gap's id are needed"), LISTED))
            }
            MeantGap::None => {
                Err(AppError::new(ErrorKind::NotFound, format!("there is no gap {}", one_line(id)), LISTED))
            }
        }
    }
}

fn no_open_gap(connection: &str, gap_id: &str) -> AppError {
    AppError::new(ErrorKind::NotFound, format!("{connection:?} has no open gap {gap_id:?}"), LISTED)
}
