//! What is asked of the tables of Messages, and how rows become records.
//!
//! Tables and columns have come and gone with the versions of macOS, so a column that is not there reads as nothing.
//! Values may be of any type: SQLite does not mind, and what is no text or number is nothing too.

use super::parse::{date, kind, reaction, target, text};
use crate::files::Trouble;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// How many messages may lie in "Recently Deleted". They are kept there for 40 days.
const RECOVERABLE_MAX: usize = 1_000_000;
/// Participants of one chat that are told. Apple allows 32.
const PARTICIPANTS_MAX: usize = 100_000;

const NAMELESS: Trouble = Trouble::new(
    "nameless_row",
    "a row has no name of its own (guid), so it cannot be told from others and was left out",
);
const REACTION_NOT_KNOWN: Trouble =
    Trouble::new("reaction_not_understood", "a reaction is of an unknown kind and was left out");
const TEXT_NOT_READABLE: Trouble = Trouble::new(
    "text_not_readable",
    "the text of a message is in a form that cannot be read; the rest of it is stored",
);
const MANY_PARTICIPANTS: Trouble =
    Trouble::new("too_many_participants", "a chat has more than 100,000 participants; not all are listed");

/// A stream, by the table it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Attachments,
    Chats,
    Messages,
    Reactions,
}

/// What becomes of a row.
#[derive(Debug)]
pub(crate) enum Item {
    Record(String, Value),
    /// It is in "Recently Deleted".
    Deleted(String),
    /// It cannot be stored.
    LeftOut,
}

/// A row with its number, and what of it is missing.
#[derive(Debug)]
pub(crate) struct RowRead {
    pub(crate) number: i64,
    pub(crate) item: Item,
    pub(crate) trouble: Option<Trouble>,
}

/// The database with what is known about its columns.
#[derive(Debug)]
pub(crate) struct Tables {
    database: Connection,
    recoverable: HashSet<i64>,
    /// There are more of them: some messages are told as present that were deleted.
    pub(crate) recoverable_is_cut: bool,
}

impl Stream {
    pub(crate) const ALL: [Self; 4] = [Self::Attachments, Self::Chats, Self::Messages, Self::Reactions];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Attachments => "attachments",
            Self::Chats => "chats",
            Self::Messages => "messages",
            Self::Reactions => "reactions",
        }
    }

    pub(crate) const fn table(self) -> &'static str {
        match self {
            Self::Attachments => "attachment",
            Self::Chats => "chat",
            Self::Messages | Self::Reactions => "message",
        }
    }

    /// Where Messages notes what it deleted. A reaction is an event, which stays true when it is over.
    const fn deletions(self) -> Option<&'static str> {
        match self {
            Self::Attachments => Some("sync_deleted_attachments"),
            Self::Chats => Some("sync_deleted_chats"),
            Self::Messages => Some("deleted_messages"),
            Self::Reactions => None,
        }
    }

    /// The columns by whose change a row is noticed.
    const fn watched(self) -> &'static str {
        match self {
            Self::Attachments => "guid filename transfer_name total_bytes transfer_state",
            Self::Chats => "guid display_name chat_identifier style service_name",
            Self::Messages => "guid date date_read date_delivered date_edited date_retracted",
            Self::Reactions => "guid",
        }
    }

    const fn columns(self) -> &'static str {
        match self {
            Self::Attachments => {
                "guid transfer_name filename mime_type uti total_bytes is_outgoing is_sticker created_date"
            }
            Self::Chats => "guid chat_identifier display_name service_name style",
            Self::Messages => {
                "guid text attributedBody subject service is_from_me item_type date date_read date_delivered \
                 date_edited date_retracted thread_originator_guid cache_has_attachments"
            }
            Self::Reactions => {
                "guid associated_message_guid associated_message_type associated_message_emoji is_from_me date"
            }
        }
    }

    /// What else is looked up for a row: who, and where. Behind the columns.
    const fn lookups(self) -> &'static str {
        match self {
            Self::Attachments => {
                "(SELECT m.guid FROM message_attachment_join j JOIN message m ON m.ROWID = j.message_id
                  WHERE j.attachment_id = t.ROWID ORDER BY m.ROWID LIMIT 1)"
            }
            Self::Chats => "t.ROWID",
            Self::Messages | Self::Reactions => {
                "(SELECT h.id FROM handle h WHERE h.ROWID = t.handle_id),
                 (SELECT c.guid FROM chat_message_join j JOIN chat c ON c.ROWID = j.chat_id
                  WHERE j.message_id = t.ROWID ORDER BY c.ROWID LIMIT 1)"
            }
        }
    }
}

impl Tables {
    pub(crate) fn new(database: Connection) -> rusqlite::Result<Self> {
        let mut tables = Self { database, recoverable: HashSet::new(), recoverable_is_cut: false };
        if tables.has("chat_recoverable_message_join", "message_id")? {
            let sql = "SELECT message_id FROM chat_recoverable_message_join LIMIT ?1";
            let mut statement = tables.database.prepare(sql)?;
            let ids = statement.query_map([RECOVERABLE_MAX as i64 + 1], |row| row.get::<_, i64>(0))?;
            let ids = ids.collect::<rusqlite::Result<HashSet<_>>>()?;
            drop(statement);
            tables.recoverable_is_cut = ids.len() > RECOVERABLE_MAX;
            tables.recoverable = ids;
        }
        Ok(tables)
    }

    fn has(&self, table: &str, column: &str) -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2";
        Ok(self.database.query_row(sql, (table, column), |_| Ok(())).optional()?.is_some())
    }

    /// The columns that are there, and nothing in place of the others.
    fn selected(&self, table: &str, columns: &str) -> rusqlite::Result<String> {
        let select = |column| Ok(if self.has(table, column)? { format!("t.{column}") } else { "NULL".to_owned() });
        Ok(columns.split(' ').map(select).collect::<rusqlite::Result<Vec<_>>>()?.join(", "))
    }

    /// Which rows of a table are the stream's.
    fn filter(&self, stream: Stream) -> rusqlite::Result<&'static str> {
        let has_reactions = self.has("message", "associated_message_type")?;
        Ok(match (stream, has_reactions) {
            (Stream::Messages, true) => "coalesce(t.associated_message_type, 0) NOT BETWEEN 2000 AND 3999",
            (Stream::Reactions, true) => "t.associated_message_type BETWEEN 2000 AND 3999",
            (Stream::Reactions, false) => "0",
            _ => "1",
        })
    }

    /// The number of the last row.
    pub(crate) fn last_row(&self, stream: Stream) -> rusqlite::Result<i64> {
        self.max_row(stream.table())
    }

    /// Whether there are rows whose number is below zero, which Messages never writes and which are not read.
    pub(crate) fn has_rows_below_zero(&self, stream: Stream) -> rusqlite::Result<bool> {
        let sql = format!("SELECT 1 FROM {} WHERE ROWID < 0 LIMIT 1", stream.table());
        Ok(self.database.query_row(&sql, [], |_| Ok(())).optional()?.is_some())
    }

    /// Every row with what may change about it, in order.
    pub(crate) fn watch(&self, stream: Stream, mut take: impl FnMut(i64, &[u8])) -> rusqlite::Result<()> {
        let (columns, filter) = (self.selected(stream.table(), stream.watched())?, self.filter(stream)?);
        let sql = format!("SELECT t.ROWID, {columns} FROM {} t WHERE {filter} ORDER BY t.ROWID", stream.table());
        let mut statement = self.database.prepare(&sql)?;
        let count = statement.column_count();
        let mut rows = statement.query([])?;
        let mut content = Vec::new();
        while let Some(row) = rows.next()? {
            let number = row.get::<_, i64>(0)?;
            content.clear();
            for column in 1..count {
                describe(row.get_ref(column)?, &mut content);
            }
            if stream == Stream::Chats {
                content.extend(self.participants(number)?.0.join("\n").as_bytes());
            }
            content.push(u8::from(stream == Stream::Messages && self.recoverable.contains(&number)));
            take(number, &content);
        }
        Ok(())
    }

    /// The rows of a range, as records.
    pub(crate) fn rows(&self, stream: Stream, range: &RangeInclusive<i64>) -> rusqlite::Result<Vec<RowRead>> {
        let (columns, filter) = (self.selected(stream.table(), stream.columns())?, self.filter(stream)?);
        let (table, lookups) = (stream.table(), stream.lookups());
        let sql = format!(
            "SELECT t.ROWID, {columns}, {lookups} FROM {table} t WHERE t.ROWID BETWEEN ?1 AND ?2 AND {filter} ORDER BY t.ROWID"
        );
        let mut statement = self.database.prepare_cached(&sql)?;
        let mut rows = statement.query((range.start(), range.end()))?;
        let mut items = Vec::new();
        while let Some(row) = rows.next()? {
            items.push(self.item(stream, row)?);
        }
        Ok(items)
    }

    fn item(&self, stream: Stream, row: &Row<'_>) -> rusqlite::Result<RowRead> {
        let number = row.get::<_, i64>(0)?;
        let left_out = |trouble| Ok(RowRead { number, item: Item::LeftOut, trouble: Some(trouble) });
        let Some(id) = words(row, 1)? else { return left_out(NAMELESS) };
        if stream == Stream::Messages && self.recoverable.contains(&number) {
            return Ok(RowRead { number, item: Item::Deleted(id), trouble: None });
        }
        let wrong_encoding = has_wrong_encoding(row)?.then_some(Trouble::WRONG_ENCODING);
        let (record, trouble) = match stream {
            Stream::Attachments => (attachment(&id, row)?, None),
            Stream::Chats => self.chat(&id, row)?,
            Stream::Messages => message(&id, row)?,
            Stream::Reactions => match reaction_record(&id, row)? {
                Some(record) => (record, None),
                None => return left_out(REACTION_NOT_KNOWN),
            },
        };
        Ok(RowRead { number, item: Item::Record(id, record), trouble: trouble.or(wrong_encoding) })
    }

    fn chat(&self, id: &str, row: &Row<'_>) -> rusqlite::Result<(Value, Option<Trouble>)> {
        let (participants, is_cut) = self.participants(row.get(0)?)?;
        let chat = json!({
            "id": id,
            "identifier": words(row, 2)?,
            "name": words(row, 3)?,
            "service": words(row, 4)?,
            // 43 is a group, 45 two people.
            "is_group": number(row, 5)? == Some(43),
            "participants": participants,
        });
        Ok((chat, is_cut.then_some(MANY_PARTICIPANTS)))
    }

    fn participants(&self, chat: i64) -> rusqlite::Result<(Vec<String>, bool)> {
        let sql = "SELECT h.id FROM chat_handle_join j JOIN handle h ON h.ROWID = j.handle_id
                   WHERE j.chat_id = ?1 ORDER BY h.id LIMIT ?2";
        let mut statement = self.database.prepare_cached(sql)?;
        let found = statement.query_map((chat, PARTICIPANTS_MAX as i64 + 1), |row| words(row, 0))?;
        let mut names = found.filter_map(Result::transpose).collect::<rusqlite::Result<Vec<_>>>()?;
        let is_cut = names.len() > PARTICIPANTS_MAX;
        names.truncate(PARTICIPANTS_MAX);
        names.dedup();
        Ok((names, is_cut))
    }

    /// The last note of a deletion; zero when there is none.
    pub(crate) fn last_deletion(&self, stream: Stream) -> rusqlite::Result<i64> {
        self.deletions_of(stream)?.map_or(Ok(0), |table| self.max_row(table))
    }

    /// Where Messages notes what it deleted, if this version does.
    fn deletions_of(&self, stream: Stream) -> rusqlite::Result<Option<&'static str>> {
        let Some(table) = stream.deletions() else { return Ok(None) };
        Ok(self.has(table, "guid")?.then_some(table))
    }

    fn max_row(&self, table: &str) -> rusqlite::Result<i64> {
        let sql = format!("SELECT max(ROWID) FROM {table}");
        Ok(self.database.query_row(&sql, [], |row| row.get::<_, Option<i64>>(0))?.unwrap_or(0))
    }

    /// Notes of deletions after this one: at most `count`, each with its number.
    pub(crate) fn deletions(&self, stream: Stream, after: i64, count: i64) -> rusqlite::Result<Vec<(i64, String)>> {
        let Some(table) = self.deletions_of(stream)? else { return Ok(Vec::new()) };
        // What was deleted and is there again was only moved. A note without a name deletes nothing, and must not make the
        // list look shorter than it is.
        let sql = format!(
            "SELECT d.ROWID, d.guid FROM {table} d WHERE d.ROWID > ?1
             AND typeof(d.guid) IN ('text', 'integer') AND d.guid <> ''
             AND NOT EXISTS (SELECT 1 FROM {} t WHERE t.guid = d.guid) ORDER BY d.ROWID LIMIT ?2",
            stream.table()
        );
        let mut statement = self.database.prepare_cached(&sql)?;
        let with_name = |row: &Row<'_>| {
            let number = row.get(0)?;
            Ok(words(row, 1)?.map(|name| (number, name)))
        };
        statement.query_map((after, count), with_name)?.filter_map(Result::transpose).collect()
    }
}

fn message(id: &str, row: &Row<'_>) -> rusqlite::Result<(Value, Option<Trouble>)> {
    let archived = match row.get_ref(3)? {
        ValueRef::Blob(bytes) => Some(bytes),
        _ => None,
    };
    let has_archive = archived.is_some_and(|bytes| !bytes.is_empty());
    let text = text(words(row, 2)?, archived);
    let edited_at = date(number(row, 11)?);
    // What was unsent is an edit that left nothing.
    let is_emptied = edited_at.is_some() && text.text.is_none() && !has_archive;
    let unsent_at = date(number(row, 12)?).or_else(|| edited_at.clone().filter(|_| is_emptied));
    let message = json!({
        "id": id,
        "chat_id": words(row, 16)?,
        "kind": kind(number(row, 7)?.unwrap_or(0)),
        "sent_at": date(number(row, 8)?),
        "sender": words(row, 15)?,
        "is_from_me": is_set(row, 6)?,
        "text": text.text,
        "text_is_unreadable": text.is_unreadable,
        "subject": words(row, 4)?,
        "service": words(row, 5)?,
        "reply_to": words(row, 13)?,
        "has_attachments": is_set(row, 14)?,
        "delivered_at": date(number(row, 10)?),
        "read_at": date(number(row, 9)?),
        "edited_at": edited_at,
        "unsent_at": unsent_at,
    });
    // A text that is no text is not read.
    let is_blob = matches!(row.get_ref(2)?, ValueRef::Blob(_));
    Ok((message, (text.is_unreadable || is_blob).then_some(TEXT_NOT_READABLE)))
}

fn reaction_record(id: &str, row: &Row<'_>) -> rusqlite::Result<Option<Value>> {
    let Some((kind, is_removed)) = reaction(number(row, 3)?.unwrap_or(0)) else { return Ok(None) };
    let associated = words(row, 2)?.unwrap_or_default();
    let (message_id, message_part) = target(&associated);
    Ok(Some(json!({
        "id": id,
        "message_id": message_id,
        "message_part": message_part,
        "chat_id": words(row, 8)?,
        "kind": kind,
        "emoji": words(row, 4)?,
        "is_removed": is_removed,
        "sender": words(row, 7)?,
        "is_from_me": is_set(row, 5)?,
        "reacted_at": date(number(row, 6)?),
    })))
}

fn attachment(id: &str, row: &Row<'_>) -> rusqlite::Result<Value> {
    Ok(json!({
        "id": id,
        "message_id": words(row, 10)?,
        "name": words(row, 2)?,
        "path": words(row, 3)?,
        "mime_type": words(row, 4)?,
        "uti": words(row, 5)?,
        "bytes": number(row, 6)?.filter(|&bytes| bytes >= 0),
        "is_from_me": is_set(row, 7)?,
        "is_sticker": is_set(row, 8)?,
        "created_at": date(number(row, 9)?),
    }))
}

/// Whether a text of the row is not UTF-8, so that bytes of it are replaced.
fn has_wrong_encoding(row: &Row<'_>) -> rusqlite::Result<bool> {
    for column in 0..row.as_ref().column_count() {
        if let ValueRef::Text(bytes) = row.get_ref(column)?
            && std::str::from_utf8(bytes).is_err()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A text that is not empty. Bytes that are no UTF-8 are replaced.
fn words(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    }
    .filter(|text| !text.is_empty()))
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<i64>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => Some(number),
        // Old versions wrote some dates so. A cast stops at the ends.
        ValueRef::Real(number) => Some(number as i64),
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    })
}

fn is_set(row: &Row<'_>, column: usize) -> rusqlite::Result<bool> {
    Ok(number(row, column)?.unwrap_or(0) != 0)
}

/// A value in bytes that differ when it does.
fn describe(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let (code, bytes): (u8, &[u8]) = match &value {
        ValueRef::Null => (0, &[]),
        ValueRef::Integer(number) => (1, &number.to_le_bytes()),
        ValueRef::Real(number) => (2, &number.to_bits().to_le_bytes()),
        ValueRef::Text(text) => (3, text),
        ValueRef::Blob(blob) => (4, blob),
    };
    out.push(code);
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}
