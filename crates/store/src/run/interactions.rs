//! Questions to the owner: that they are open, until when, and what became of them.
//!
//! Answers are passwords and codes. They go from the owner to the connector and are never here. Of
//! two answers the first counts, also when they come from two programs at once.

use crate::error::{StoreError, date_from_sql, date_to_sql};
use crate::read::Reader;
use crate::run::session::Session;
use crate::sql::{first, rows};
use crate::store::Store;
use gleaner_engine::{Track, WallTime};
use gleaner_protocol::{Interaction, RawJson, coded_enum};

/// A question that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its number, by which the owner answers.
    pub id: i64,
    /// The connection.
    pub connection: String,
    /// The run.
    pub run_id: String,
    /// The connector's name for it.
    pub request_id: String,
    /// What kind of answer is needed, as a word of the protocol.
    pub kind: String,
    /// The question. Text from outside.
    pub message: String,
    /// A JSON Schema of the answer.
    pub schema: Option<String>,
    /// Since when.
    pub asked_at: WallTime,
    /// Until when.
    pub expires_at: Option<WallTime>,
    /// The name of a picture in the run's folder. Text from outside.
    pub picture: Option<String>,
}

coded_enum! {
    /// How a question ended.
    pub enum Settled {
        /// The owner answered.
        Answered = "answered";
        /// The owner declined.
        Cancelled = "cancelled";
        /// Nobody answered in time.
        Expired = "expired";
        /// The run no longer needs it.
        Withdrawn = "withdrawn";
    }
}

impl Store {
    /// A run asks something.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    pub fn ask<T: Track>(
        &mut self,
        session: &Session<T>,
        question: &Interaction,
        expires_at: Option<WallTime>,
        now: WallTime,
    ) -> Result<i64, StoreError> {
        self.write(&session.leases, |transaction| {
            // A connector that uses a name again asks anew.
            let sql = "INSERT INTO interactions
                       (run, request_id, kind, message, schema, stream, asked_at, expires_at, picture, state)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'open') ON CONFLICT (run, request_id) DO UPDATE SET
                       kind = excluded.kind, message = excluded.message, schema = excluded.schema,
                       picture = excluded.picture,
                       asked_at = excluded.asked_at, expires_at = excluded.expires_at, state = 'open',
                       settled_at = NULL RETURNING id";
            let Interaction { request_id, kind, message, stream, picture, .. } = question;
            let schema = question.schema.as_ref().map(RawJson::as_str);
            let (asked_at, expires_at) = (date_to_sql(now), expires_at.map(date_to_sql));
            let kind = kind.code();
            let values = (session.run, request_id, kind, message, schema, stream, asked_at, expires_at, picture);
            Ok(transaction.prepare_cached(sql)?.query_row(values, |row| row.get(0))?)
        })
    }

    /// Ends a question. Answers whether this was the first to do so; the second is told no.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    pub fn settle_question(&mut self, id: i64, how: Settled, now: WallTime) -> Result<bool, StoreError> {
        self.write(&[], |transaction| {
            let sql = "UPDATE interactions SET state = ?2, settled_at = ?3 WHERE id = ?1 AND state = 'open'";
            Ok(transaction.prepare_cached(sql)?.execute((id, how.code(), date_to_sql(now)))? == 1)
        })
    }
}

const OPEN: &str = "SELECT i.id, c.name, r.run_id, i.request_id, i.kind, i.message, i.schema, i.asked_at, i.expires_at,
                    i.picture FROM interactions i JOIN runs r ON r.id = i.run JOIN connections c ON c.id = r.connection
                    WHERE i.state = 'open'";

impl Reader {
    /// All questions that wait for the owner, the oldest first. There is at most one per run that goes on.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn open_questions(&self) -> Result<Vec<OpenQuestion>, StoreError> {
        self.ask(|connection| rows(connection, &format!("{OPEN} ORDER BY i.id"), [], read))
    }

    /// One question, if it waits.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn open_question(&self, id: i64) -> Result<Option<OpenQuestion>, StoreError> {
        self.ask(|connection| first(connection, &format!("{OPEN} AND i.id = ?1"), [id], read))
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<OpenQuestion> {
    Ok(OpenQuestion {
        id: row.get(0)?,
        connection: row.get(1)?,
        run_id: row.get(2)?,
        request_id: row.get(3)?,
        kind: row.get(4)?,
        message: row.get(5)?,
        schema: row.get(6)?,
        asked_at: date_from_sql(row.get(7)?),
        expires_at: row.get::<_, Option<i64>>(8)?.map(date_from_sql),
        picture: row.get(9)?,
    })
}
