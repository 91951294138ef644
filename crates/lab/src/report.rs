//! Reports of runs: text, summaries, terminal charts and an HTML page.
//!
//! Everything here is a function from figures and samples to text. Nothing writes, reads the terminal's width or
//! chooses a color: the caller does that.

mod axis;
mod chart;
mod describe;
mod html;
mod series;
mod story;
mod summary;
mod svg;

pub use chart::{Cell, Chart, Ink};
pub use describe::{kind_name, limit_changes, number, provider, seconds};
pub use html::{Drawing, Section, page};
pub use series::{Mark, Series};
pub use story::story;
pub use summary::{Better, Spread, Summary, TARGET_GOODPUT, TARGET_VIOLATIONS, is_on_target};
