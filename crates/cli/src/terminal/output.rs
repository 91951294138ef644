//! The one place that writes: data to stdout, everything else to stderr, colour only where it is wanted.

use crate::args::maintenance::Colour;
use std::io::{self, IsTerminal, StdoutLock, Write};

/// Written at once where there is much of it.
const BULK_BYTES: usize = 64 * 1024;

/// Standard output, locked for the whole run.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: StdoutLock<'static>,
    colour: bool,
}

/// How a piece of text stands out on a terminal. It must be understood without, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Quiet,
    Bad,
    Limit,
    Accepted,
}

impl Output {
    pub(crate) fn stdout(when: Colour) -> Self {
        let stdout = io::stdout().lock();
        let colour = match when {
            Colour::Auto => stdout.is_terminal() && colour_wanted(),
            Colour::Always => true,
            Colour::Never => false,
        };
        Self { stdout, colour }
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.stdout, "{text}")
    }

    /// Writes a text in lines of at most `width` characters.
    pub(crate) fn paragraph(&mut self, tone: Tone, text: &str, width: usize) -> io::Result<()> {
        wrap(text, width).iter().try_for_each(|line| self.line(&self.paint(tone, line)))
    }

    /// Standard output for a great deal of data: not line by line. Whoever takes it flushes it.
    pub(crate) fn bulk(&mut self) -> io::BufWriter<&mut StdoutLock<'static>> {
        io::BufWriter::with_capacity(BULK_BYTES, &mut self.stdout)
    }

    /// Whether somebody watches.
    pub(crate) fn is_terminal(&self) -> bool {
        self.stdout.is_terminal()
    }

    /// The text as it should be printed here.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Quiet => "2",
            Tone::Bad => "31",
            Tone::Limit => "33",
            Tone::Accepted => "36",
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Columns of the terminal, 80 where there is none.
    pub(crate) fn width(&self) -> usize {
        let terminal = self.stdout.is_terminal().then(terminal_size::terminal_size).flatten();
        terminal.map_or(80, |(width, _)| usize::from(width.0))
    }
}

/// <https://no-color.org>: set and not empty means no.
fn colour_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// Writes a line to stderr. That nobody reads stderr is no reason to stop.
pub(crate) fn report_to_stderr(text: &str) {
    let _written = writeln!(io::stderr().lock(), "{text}");
}

/// `1 record`, `2 records`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Breaks `text` into lines of at most `width` characters, at spaces.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("", 7), Vec::<String>::new());
    }
}
