//! A stream as a table: a column per property of its schema, and where each record stands.
//!
//! Values are what they are: a text without quotes, a number as it was written, what has parts as JSON. A text that a
//! spreadsheet would take for a formula stays as it is for programs; where a person opens the file it begins with an
//! apostrophe, and every cell stands in quotes. It knows nothing of spreadsheets but that.

use super::{Export, ExportStopped, Formulas};
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
    formulas: Formulas,
}

impl<W: Write> CsvSheet<W> {
    /// Writes the head of the table.
    pub(super) fn begin(export: &Export<'_>, stream: &str, formulas: Formulas, sink: W) -> Result<Self, ExportStopped> {
        let with_deleted = export.of.tombstones;
        let names = export.snapshot.columns(&export.of.connection, stream)?;
        let mut own = vec!["key", "seq", "emitted_at"];
        own.extend(with_deleted.then_some(DELETED));
        // A property with the name of one of ours is told apart from it.
        let title = |name: &String| if own.contains(&name.as_str()) { format!("data.{name}") } else { name.clone() };
        let mut titles = own.iter().map(|&name| name.to_owned()).chain(names.iter().map(title)).collect::<Vec<_>>();
        if names.is_empty() {
            titles.push(WHOLE.to_owned());
        }
        let quotes = match formulas {
            Formulas::Kept => csv::QuoteStyle::Necessary,
            Formulas::Disarmed => csv::QuoteStyle::Always,
        };
        let mut table = csv::WriterBuilder::new().quote_style(quotes).from_writer(sink);
        let titles = titles.iter().map(|title| shown(Cow::Borrowed(title.as_str()), formulas));
        table.write_record(titles.map(Cow::into_owned).collect::<Vec<_>>()).map_err(plain)?;
        let properties = names.into_iter().enumerate().map(|(at, name)| (name, at)).collect();
        Ok(Self { table, properties, with_deleted, formulas })
    }

    /// Writes the rows; answers how many.
    pub(super) fn fill(mut self, export: &Export<'_>, stream: &str) -> Result<u64, ExportStopped> {
        let written = export.each(stream, |row| {
            let damaged = || ExportStopped::Damaged { stream: stream.to_owned(), key: row.key.to_owned() };
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
            for text in own.into_iter().map(Cow::Borrowed).chain(cells) {
                self.table.write_field(shown(text, self.formulas).as_ref()).map_err(plain)?;
            }
            self.table.write_record(None::<&[u8]>).map_err(plain)?;
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

/// A cell as it is written.
fn shown(text: Cow<'_, str>, formulas: Formulas) -> Cow<'_, str> {
    match formulas {
        Formulas::Disarmed if begins_a_formula(&text) => Cow::Owned(format!("'{text}")),
        Formulas::Disarmed | Formulas::Kept => text,
    }
}

/// Whether a spreadsheet would compute this. The wide forms are what some keyboards write; what is before them may be
/// left out by the program. A number does no harm.
fn begins_a_formula(text: &str) -> bool {
    let begins = |text: &str| {
        text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'])
    };
    let is_number = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
        && text.parse::<f64>().is_ok();
    (begins(text) || begins(text.trim_start())) && !is_number
}

/// The library's errors are those of the sink: our rows have equal lengths.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spreadsheet_would_compute_becomes_a_text_and_nothing_else_changes() {
        for formula in
            ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", " =1", "\r\n@x", "＝1", "-", "+49 170 1", "-inf"]
        {
            assert_eq!(shown(Cow::Borrowed(formula), Formulas::Disarmed), format!("'{formula}"));
            assert_eq!(shown(Cow::Borrowed(formula), Formulas::Kept), formula);
        }
        for value in ["", "a=1", "-5", "+4.5", "-1.5e-3", "{\"a\":\"=1\"}", "'=1", "1-2"] {
            assert_eq!(shown(Cow::Borrowed(value), Formulas::Disarmed), value);
        }
    }
}
