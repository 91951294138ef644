//! What a run does with the database of Messages: nothing if it did not change, and otherwise bucket after bucket.
//!
//! Each stream has its own way through its table and its own cursor, so that any of them can be asked for alone.

use super::buckets::{Known, Next, Table};
use super::source::{Source, damaged};
use super::tables::{Item, Stream, Tables};
use crate::files::{Place, scope_word};
use gleaner_sdk::protocol::{Progress, SkipResult};
use gleaner_sdk::{Collect, Connector, Cursor, Emitted, Emitter, Left, SliceEnd, Stop};
use serde_json::Value;

/// Deletions of one slice.
const DELETIONS: i64 = 1000;
/// The form of the cursor.
const VERSION: u64 = 1;

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
            let mut walk = Walk::new(stream, &fingerprint, run);
            let _: Left = run.slices(stream.name(), |emitter| walk.slice(emitter, &mut tables))?;
            if walk.nameless > 0 {
                let what = format!("{} rows have no name of their own (guid) and were left out", walk.nameless);
                run.emitter().skip(skip(stream, "nameless_row", what))?;
            }
        }
        Ok(())
    }
}

fn skip(stream: Stream, reason: &str, message: String) -> SkipResult {
    SkipResult {
        stream: Some(stream.name().to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message),
        ..SkipResult::default()
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
    nameless: u64,
}

impl<'f> Walk<'f> {
    fn new(stream: Stream, fingerprint: &'f str, run: &Collect<'_>) -> Self {
        let scope = scope_word(run, &[stream.name()]);
        let cursor = run.cursor(stream.name());
        let field = |name: &str| cursor.and_then(|cursor| cursor.get(name));
        // Of another scope everything is read again. What was deleted since is still to be said.
        let sent = cursor.filter(|cursor| is_ours(cursor, &scope));
        Self {
            is_same: sent.is_some() && field("database").and_then(Value::as_str) == Some(fingerprint),
            known: sent.and_then(Known::of_cursor).unwrap_or_default(),
            deletion: field("deletion").and_then(Value::as_i64),
            stream,
            fingerprint,
            scope,
            table: None,
            nameless: 0,
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
            None => sum(self.stream, &self.known, tables).map_err(fault)?,
        };
        if let Some(Next { rows, known }) = table.next(&self.known) {
            for item in tables.rows(self.stream, &rows).map_err(fault)? {
                self.send(emitter, item)?;
            }
            let message = format!("read {} up to row {}", self.stream.name(), rows.end());
            emitter.progress(Progress { message, ..Progress::default() })?;
            self.known = known;
        }
        let is_last = table.next(&self.known).is_none();
        self.table = Some(table);
        let cursor = self.cursor(is_last);
        Ok(if is_last { SliceEnd::Last(cursor) } else { SliceEnd::Then(cursor) })
    }

    fn send(&mut self, emitter: &mut Emitter<'_>, item: Item) -> Result<(), Stop> {
        let _: Emitted = match item {
            Item::Record(key, record) => emitter.record(self.stream.name(), key, &record)?,
            Item::Deleted(key) => emitter.tombstone(self.stream.name(), key)?,
            Item::Nameless => {
                self.nameless += 1;
                return Ok(());
            }
        };
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
