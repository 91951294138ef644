//! What the libraries have to say, on stderr: warnings always, every request with `-v`.
//!
//! Only our own libraries are heard. Others might print headers, and there are credentials in them.

use gleaner_app::LogFile;
use gleaner_base::live_line::LiveLine;
use std::io;
use std::sync::Arc;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

/// Shows what is said from now on, down to `level`. The live line is taken away before something is written.
pub(crate) fn show(level: Level, live: Arc<LiveLine>) {
    let stderr = move || {
        live.clear();
        io::stderr()
    };
    let lines = layer().with_ansi(false).with_target(false).with_writer(stderr);
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(filter_fn(is_ours(level))));
    // There is no other in this program, so it is set.
    let _set = tracing::subscriber::set_global_default(subscriber);
}

/// Writes what is said from now on to a file, and what matters to stderr; everything unless it is `quiet`.
pub(crate) fn to_file(file: LogFile, quiet: bool) {
    let level = if quiet { Level::WARN } else { Level::INFO };
    let to_file = layer().with_ansi(false).with_target(false).with_writer(move || file.clone());
    let shown = layer().with_ansi(false).with_target(false).with_writer(io::stderr);
    let (to_file, shown) =
        (to_file.with_filter(filter_fn(is_ours(Level::INFO))), shown.with_filter(filter_fn(is_ours(level))));
    // There is no other in this program, so it is set.
    let _set = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(to_file).with(shown));
}

/// Whether something is said by a library of ours, and matters so much.
fn is_ours(level: Level) -> impl Fn(&Metadata<'_>) -> bool {
    move |about| *about.level() <= level && about.target().starts_with("gleaner")
}
