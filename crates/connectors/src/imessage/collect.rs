//! What a run does with the database of Messages: nothing if it did not change, and otherwise bucket after bucket.
//!
//! Each stream has its own way through its table and its own cursor, so that any of them can be asked for alone.

use super::buckets::{Known, Next, Table};
use super::source::{Source, damaged};
use super::tables::{Item, RowRead, Stream, Tables};
use crate::files::{Place, Spot, Trouble, Troubles, scope_word};
use gleaner_sdk::{Collect, Connector, Cursor, Emitted, Emitter, Left, SliceEnd, Stop};
use serde_json::Value;

/// Deletions of one slice.
const DELETIONS: i64 = 1000;
/// The form of the cursor. Version 1 left rows out without a gap, so everything is read again after it.
const VERSION: u64 = 2;

const TOO_MANY_DELETED: Trouble = Trouble::new(
    "too_many_deleted",
    "more than 1,000,000 messages are in \"Recently Deleted\"; some of them are stored as if they were not",
);
const ROWS_BELOW_ZERO: Trouble =
    Trouble::new("rows_below_zero", "rows of a table have numbers below zero and were left out");

#[derive(Debug)]
pub(crate) struct IMessage;

impl Connector for IMessage {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        let place = Place::find("IMESSAGE_DB_PATH", "Library/Messages/chat.db")?;
        // Its folder will do, too.
        let path = if place.path.is_dir() { place.path.join("chat.db") } else { place.path };
        let source = Source::new(&path);
        let fingerprint = source.fingerprint().map_err(|error| source.fault(&error))?;
        let mut tables = Opening { source: &source, tables: None };
        for stream in Stream::ALL {
            let troubles = Troubles::take(run, stream.name(), &[stream.name()])?;
            let mut walk = Walk::new(stream, &fingerprint, troubles, run);
            let left = run.slices(stream.name(), |emitter| walk.slice(emitter, &mut tables))?;
            if left == Left::Finished {
                walk.troubles.close(run.emitter(), |_| true)?;
            }
        }
        Ok(())
    }
}

/// One stream in one run.
struct Walk<'f> {
    stream: Stream,
    fingerprint: &'f str,
    scope: String,
    /// Whether the last run read everything, and nothing was written since.
    is_same: bool,
    known: Known,
    /// The last note of a deletion that was looked at; `None` before the first run.
    deletion: Option<i64>,
    table: Option<Table>,
    troubles: Troubles,
    /// Rows in which an earlier run left something out, to be read again.
    again: Vec<i64>,
}

impl<'f> Walk<'f> {
    fn new(stream: Stream, fingerprint: &'f str, troubles: Troubles, run: &Collect<'_>) -> Self {
        let scope = scope_word(run, &[stream.name()]);
        let cursor = run.cursor(stream.name());
        let field = |name: &str| cursor.and_then(|cursor| cursor.get(name));
        // Of another scope everything is read again. What was deleted since is still to be said.
        let sent = cursor.filter(|cursor| is_ours(cursor, &scope));
        let is_unchanged = sent.is_some() && field("database").and_then(Value::as_str) == Some(fingerprint);
        // One gap stands for many rows: all of them are read again.
        let sent = sent.filter(|_| !troubles.has_rest(stream.table()));
        Self {
            is_same: is_unchanged && !troubles.has_served(),
            again: troubles.rows(stream.table()),
            known: sent.and_then(Known::of_cursor).unwrap_or_default(),
            deletion: field("deletion").and_then(Value::as_i64),
            stream,
            fingerprint,
            scope,
            table: None,
            troubles,
        }
    }

    /// Sends one slice.
    fn slice(&mut self, emitter: &mut Emitter<'_>, tables: &mut Opening<'_>) -> Result<SliceEnd, Stop> {
        if self.is_same {
            return Ok(SliceEnd::Last(self.cursor(true)));
        }
        let tables = tables.get()?;
        let fault = |error: rusqlite::Error| damaged(&error);
        let last = tables.last_deletion(self.stream).map_err(fault)?;
        // What was deleted before the first run was never here. A note that is missing means another database.
        let after = match self.deletion {
            None => last,
            Some(deletion) if deletion > last => 0,
            Some(deletion) => deletion,
        };
        self.deletion = Some(after);
        if after < last {
            return self.deletions(emitter, after, last, tables);
        }
        let table = match self.table.take() {
            Some(table) => table,
            None => {
                self.begin(emitter, tables)?;
                sum(self.stream, &self.known, tables).map_err(fault)?
            }
        };
        if let Some(Next { rows, known }) = table.next(&self.known) {
            for row in tables.rows(self.stream, &rows).map_err(fault)? {
                self.send(emitter, row)?;
            }
            let message = format!("read {} up to row {}", self.stream.name(), rows.end());
            emitter.say(message)?;
            self.known = known;
        }
        let is_last = table.next(&self.known).is_none();
        self.table = Some(table);
        let cursor = self.cursor(is_last);
        Ok(if is_last { SliceEnd::Last(cursor) } else { SliceEnd::Then(cursor) })
    }

    /// What is looked at once: rows with gaps of earlier runs, and what no row tells.
    fn begin(&mut self, emitter: &mut Emitter<'_>, tables: &Tables) -> Result<(), Stop> {
        let (table, fault) = (self.stream.table(), |error: rusqlite::Error| damaged(&error));
        if self.stream == Stream::Messages && tables.recoverable_is_cut {
            self.troubles.tell(emitter, TOO_MANY_DELETED, &Spot::other("list", "recently deleted"))?;
        }
        if tables.has_rows_below_zero(self.stream).map_err(fault)? {
            self.troubles.tell(emitter, ROWS_BELOW_ZERO, &Spot::other("list", table))?;
        }
        for number in std::mem::take(&mut self.again) {
            for row in tables.rows(self.stream, &(number..=number)).map_err(fault)? {
                self.send(emitter, row)?;
            }
            self.troubles.settle_row(emitter, table, number)?;
        }
        Ok(())
    }

    fn send(&mut self, emitter: &mut Emitter<'_>, row: RowRead) -> Result<(), Stop> {
        let RowRead { number, item, trouble } = row;
        let emitted = match item {
            Item::Record(key, record) => emitter.record(self.stream.name(), key, &record)?,
            Item::Deleted(key) => emitter.tombstone(self.stream.name(), key)?,
            Item::LeftOut => Emitted::Sent,
        };
        let trouble = if emitted == Emitted::Rejected { Some(Trouble::REJECTED) } else { trouble };
        if let Some(trouble) = trouble {
            self.troubles.tell(emitter, trouble, &Spot::row(self.stream.table(), number))?;
        }
        Ok(())
    }

    /// What Messages noted as deleted since the last run. It notes no kind: the name of a reaction is among them, too.
    fn deletions(
        &mut self,
        emitter: &mut Emitter<'_>,
        after: i64,
        last: i64,
        tables: &Tables,
    ) -> Result<SliceEnd, Stop> {
        let deleted = tables.deletions(self.stream, after, DELETIONS).map_err(|error| damaged(&error))?;
        let is_all = i64::try_from(deleted.len()).is_ok_and(|count| count < DELETIONS);
        for (number, key) in deleted {
            let _: Emitted = emitter.tombstone(self.stream.name(), key)?;
            self.deletion = Some(number);
        }
        if is_all {
            self.deletion = Some(last);
        }
        Ok(SliceEnd::Then(self.cursor(false)))
    }

    fn cursor(&self, is_finished: bool) -> Cursor {
        let mut cursor = Cursor::new();
        cursor.insert("version".to_owned(), VERSION.into());
        cursor.insert("scope".to_owned(), self.scope.as_str().into());
        cursor.insert("deletion".to_owned(), self.deletion.into());
        // Only a table that was read to its end is the same when the database is.
        cursor.insert("database".to_owned(), if is_finished { self.fingerprint.into() } else { Value::Null });
        self.known.put_onto(&mut cursor);
        cursor
    }
}

/// The copy of the database, made when the first stream has something to read.
struct Opening<'s> {
    source: &'s Source,
    tables: Option<Tables>,
}

impl Opening<'_> {
    fn get(&mut self) -> Result<&Tables, Stop> {
        match &mut self.tables {
            Some(tables) => Ok(tables),
            none => Ok(none.insert(Tables::new(self.source.open_copy()?).map_err(|error| damaged(&error))?)),
        }
    }
}

fn is_ours(cursor: &Cursor, scope: &str) -> bool {
    cursor.get("version").and_then(Value::as_u64) == Some(VERSION)
        && cursor.get("scope").and_then(Value::as_str) == Some(scope)
}

fn sum(stream: Stream, known: &Known, tables: &Tables) -> rusqlite::Result<Table> {
    let mut summing = Table::begin(tables.last_row(stream)?, known);
    tables.watch(stream, |number, content| summing.row(number, content))?;
    Ok(summing.finish())
}
