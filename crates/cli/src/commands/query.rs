//! `gleaner query`: one question in SQL, as a table or as JSON lines.
//!
//! Rows go out as they come. The widths of a table are those of its first rows; what comes later is cut to fit
//! on a terminal, and never where another program reads.

use crate::args::inspect::QueryArgs;
use crate::error::{CliError, EXIT_INTERRUPTED};
use crate::terminal::output::{Output, Tone};
use crate::terminal::stop_signals;
use gleaner_base::outside::one_line;
use gleaner_store::{Cell, Interrupter, QuerySink};
use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

/// Rows that are held to find the widths of columns.
const SAMPLE_ROWS: usize = 100;
/// The same in bytes: one value may be as long as a record.
const SAMPLE_BYTES: usize = 1024 * 1024;
/// Of a value in a narrow table, at least this much is shown.
const NARROWEST: usize = 6;

pub(crate) fn run(args: &QueryArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let app = args.home.app()?;
    let mut stopped = None;
    let watch = |interrupter: Interrupter| stopped = Some(stop_signals::watch(move || interrupter.interrupt()));
    let asked = if args.json {
        app.query(&args.sql, &mut Lines { names: Vec::new(), out }, watch)
    } else {
        let width = out.is_terminal().then(|| out.width());
        let mut table = Table { out, width, names: Vec::new(), widths: None, sample: Vec::new(), bytes: 0 };
        app.query(&args.sql, &mut table, watch).and_then(|()| table.finish())
    };
    // Rows may also have been cut off between two steps of the query.
    if stopped.is_some_and(|stopped| stopped.is_set()) {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    asked.map(|()| ExitCode::SUCCESS)
}

/// One JSON object per row.
struct Lines<'o> {
    names: Vec<String>,
    out: &'o mut Output,
}

impl QuerySink for Lines<'_> {
    type Error = CliError;

    /// Two columns of one name would be one field: the second gets a number.
    fn columns(&mut self, names: &[&str]) -> Result<(), CliError> {
        let mut unique = Vec::<String>::new();
        for &name in names {
            let numbered = (2_usize..).map(|n| format!("{name}_{n}"));
            let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !unique.contains(name));
            unique.extend(free);
        }
        self.names = unique.iter().map(serde_json::to_string).collect::<Result<_, _>>().map_err(io::Error::from)?;
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), CliError> {
        let mut line = String::from("{");
        for (at, (name, cell)) in self.names.iter().zip(cells).enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let value = json(cell).map_err(io::Error::from)?;
            // Writing to a string cannot fail.
            let _ = write!(line, "{comma}{name}:{value}");
        }
        line.push('}');
        Ok(self.out.line(&line)?)
    }
}

fn json(cell: &Cell<'_>) -> serde_json::Result<String> {
    match cell {
        Cell::Null => Ok("null".to_owned()),
        Cell::Integer(number) => Ok(number.to_string()),
        // There is no JSON number for these.
        Cell::Real(number) if !number.is_finite() => Ok(format!("\"{number}\"")),
        Cell::Real(number) => serde_json::to_string(number),
        Cell::Text(text) => serde_json::to_string(text),
        Cell::Blob(bytes) => Ok(format!("{{\"blob\":\"{}\"}}", hex(bytes))),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Columns for people.
struct Table<'o> {
    out: &'o mut Output,
    /// What must not be exceeded; nothing where another program reads.
    width: Option<usize>,
    names: Vec<String>,
    /// Known once there are enough rows.
    widths: Option<Vec<usize>>,
    sample: Vec<Vec<Shown>>,
    bytes: usize,
}

/// A value as it is printed.
#[derive(Clone)]
struct Shown {
    text: String,
    is_number: bool,
}

impl QuerySink for Table<'_> {
    type Error = CliError;

    fn columns(&mut self, names: &[&str]) -> Result<(), CliError> {
        self.names = names.iter().map(|name| one_line(name)).collect();
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), CliError> {
        let row = cells.iter().map(|cell| self.show(cell)).collect::<Vec<_>>();
        if self.widths.is_some() {
            return self.print(&row);
        }
        self.bytes += row.iter().map(|cell| cell.text.len()).sum::<usize>();
        self.sample.push(row);
        if self.sample.len() >= SAMPLE_ROWS || self.bytes >= SAMPLE_BYTES { self.begin() } else { Ok(()) }
    }
}

impl Table<'_> {
    fn finish(mut self) -> Result<(), CliError> {
        if self.widths.is_none() { self.begin() } else { Ok(()) }
    }

    /// Decides the widths and prints what was held.
    fn begin(&mut self) -> Result<(), CliError> {
        let mut widths = self.names.iter().map(|name| name.chars().count()).collect::<Vec<_>>();
        for row in &self.sample {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        fit(&mut widths, self.width);
        let head = self.names.iter().zip(&widths).map(|(name, &width)| pad(name, width, false, self.width.is_some()));
        let head = head.collect::<Vec<_>>().join("  ");
        self.widths = Some(widths);
        self.out.line(&self.out.paint(Tone::Quiet, head.trim_end()))?;
        for row in std::mem::take(&mut self.sample) {
            self.print(&row)?;
        }
        Ok(())
    }

    fn print(&mut self, row: &[Shown]) -> Result<(), CliError> {
        let widths = self.widths.iter().flatten();
        let cells =
            row.iter().zip(widths).map(|(cell, &width)| pad(&cell.text, width, cell.is_number, self.width.is_some()));
        let line = cells.collect::<Vec<_>>().join("  ");
        Ok(self.out.line(line.trim_end())?)
    }

    /// On a terminal never more than fits into it, so that a long value costs no memory either.
    fn show(&self, cell: &Cell<'_>) -> Shown {
        let longest = self.width.map_or(usize::MAX, |width| width + 1);
        let text = match cell {
            Cell::Null => String::new(),
            Cell::Integer(number) => number.to_string(),
            Cell::Real(number) => format!("{number:?}"),
            Cell::Text(text) => one_line(&text.chars().take(longest).collect::<String>()),
            Cell::Blob(bytes) => format!("x'{}'", hex(&bytes[..bytes.len().min(longest)])),
        };
        Shown { text, is_number: matches!(cell, Cell::Integer(_) | Cell::Real(_)) }
    }
}

/// Makes the widest columns narrower until the row fits, or all are as narrow as they may be.
fn fit(widths: &mut [usize], line: Option<usize>) {
    let Some(line) = line else { return };
    let gaps = 2 * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > line {
        match widths.iter_mut().max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            Some(_) | None => return,
        }
    }
}

/// Numbers to the right. Cut, a value ends with a sign that it goes on.
fn pad(text: &str, width: usize, to_the_right: bool, cut: bool) -> String {
    if cut && text.chars().count() > width {
        return text.chars().take(width.saturating_sub(1)).chain(['…']).collect();
    }
    if to_the_right { format!("{text:>width$}") } else { format!("{text:<width$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_columns_give_way_first_and_cut_values_say_so() {
        let mut widths = [3, 40, 60];
        fit(&mut widths, Some(60));
        assert_eq!(widths, [3, 27, 26]);
        assert_eq!(pad("abcdef", 4, false, true), "abc…");
        assert_eq!(pad("abcdef", 4, false, false), "abcdef");
        assert_eq!(pad("12", 4, true, true), "  12");
    }

    #[test]
    fn bytes_and_numbers_are_shown_truly() {
        let shown = [Cell::Blob(&[0, 255]), Cell::Integer(i64::MIN), Cell::Real(f64::INFINITY), Cell::Real(0.1)];
        let shown = shown.iter().map(|cell| json(cell).unwrap()).collect::<Vec<_>>();
        assert_eq!(shown, [r#"{"blob":"00ff"}"#, "-9223372036854775808", "\"inf\"", "0.1"]);
    }
}
