//! A stream as a table: a column per property of its schema, and where each record stands.
//!
//! Values are what they are: a text without quotes, a number as it was written, what has parts as JSON. Nothing
//! is put before a value that a spreadsheet would take for a formula, because then it would be another value.

use crate::commands::export::{Export, Stopped};
use gleaner_protocol::RawJson;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

const DELETED: &str = "deleted";
/// The whole record, where no schema says what is in it.
const WHOLE: &str = "data";

pub(super) struct CsvSheet<W: Write> {
    table: csv::Writer<W>,
    /// Where each property stands. Empty: the whole record is one column.
    properties: BTreeMap<String, usize>,
    with_deleted: bool,
}

impl<W: Write> CsvSheet<W> {
    /// Writes the head of the table.
    pub(super) fn begin(export: &Export<'_>, with_deleted: bool, sink: W) -> Result<Self, Stopped> {
        let names = export.snapshot.columns(&export.streams.0, &export.streams.1[0])?;
        let mut own = vec!["key", "seq", "emitted_at"];
        own.extend(with_deleted.then_some(DELETED));
        // A property with the name of one of ours is told apart from it.
        let title = |name: &String| if own.contains(&name.as_str()) { format!("data.{name}") } else { name.clone() };
        let mut titles = own.iter().map(|&name| name.to_owned()).chain(names.iter().map(title)).collect::<Vec<_>>();
        if names.is_empty() {
            titles.push(WHOLE.to_owned());
        }
        let mut table = csv::Writer::from_writer(sink);
        table.write_record(&titles).map_err(plain)?;
        let properties = names.into_iter().enumerate().map(|(at, name)| (name, at)).collect();
        Ok(Self { table, properties, with_deleted })
    }

    /// Writes the rows; answers how many.
    pub(super) fn fill(mut self, export: &Export<'_>) -> Result<u64, Stopped> {
        let stream = &export.streams.1[0];
        let written = export.each(stream, |row| {
            let damaged = || Stopped::Damaged { stream: stream.clone(), key: row.key.to_owned() };
            let body = row.body.map(RawJson::new).transpose().map_err(|_| damaged())?;
            let members = body.as_ref().and_then(RawJson::members).unwrap_or_default();
            let mut cells = vec![Cow::Borrowed(""); self.properties.len().max(1)];
            if self.properties.is_empty() {
                cells[0] = Cow::Borrowed(row.body.unwrap_or_default());
            }
            for (name, value) in &members {
                if let Some(&at) = self.properties.get(name.as_ref()) {
                    cells[at] = cell(value);
                }
            }
            let seq = row.seq.to_string();
            let mut own = vec![row.key, &seq, row.emitted_at.unwrap_or_default()];
            own.extend(self.with_deleted.then_some(if row.deleted { "true" } else { "false" }));
            let all = own.into_iter().chain(cells.iter().map(Cow::as_ref));
            self.table.write_record(all).map_err(plain)?;
            Ok(())
        })?;
        self.table.flush()?;
        Ok(written)
    }
}

fn cell<'a>(value: &'a RawJson<'_>) -> Cow<'a, str> {
    if value.is_null() {
        return Cow::Borrowed("");
    }
    // Half a character is in no text; then the value stays as it was written.
    value.text().unwrap_or_else(|| Cow::Borrowed(value.as_str().trim()))
}

/// The library's errors are those of the sink: our rows have equal lengths.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
