//! What the libraries have to say, on stderr: warnings always, every request with `-v`.
//!
//! Only our own libraries are heard. Others might print headers, and there are credentials in them.

use crate::terminal::live::LiveLine;
use gleaner_app::LogFile;
use std::io::{self, Write};
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

/// Shows what is said from now on, down to `level`.
pub(crate) fn show(level: Level, live: LiveLine) {
    let is_wanted = move |about: &Metadata<'_>| *about.level() <= level && about.target().starts_with("gleaner");
    let lines = layer().with_ansi(false).with_target(false).with_writer(Lines { live });
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(filter_fn(is_wanted)));
    // There is no other in this program, so it is set.
    let _set = tracing::subscriber::set_global_default(subscriber);
}

/// Writes what is said from now on to a file, and what matters to stderr; everything unless it is `quiet`.
pub(crate) fn to_file(file: LogFile, quiet: bool) {
    let is_ours = |about: &Metadata<'_>| *about.level() <= Level::INFO && about.target().starts_with("gleaner");
    let level = if quiet { Level::WARN } else { Level::INFO };
    let is_shown = move |about: &Metadata<'_>| *about.level() <= level && about.target().starts_with("gleaner");
    let to_file =
        layer().with_ansi(false).with_target(false).with_writer(move || file.clone()).with_filter(filter_fn(is_ours));
    let shown = layer()
        .with_ansi(false)
        .with_target(false)
        .with_writer(Lines { live: LiveLine::new(true) })
        .with_filter(filter_fn(is_shown));
    // There is no other in this program, so it is set.
    let _set = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(to_file).with(shown));
}

/// Stderr, with the live line taken away before something is written.
struct Lines {
    live: LiveLine,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { live: self.live }
    }
}

struct Line {
    live: LiveLine,
}

impl Write for Line {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.live.clear();
        io::stderr().lock().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}
