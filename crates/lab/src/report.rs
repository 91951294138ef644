//! Runs made readable: words, summaries, charts for a terminal and a page for a browser.
//!
//! Everything here is a function from figures and samples to text. Nothing writes, asks for the
//! width of a terminal or chooses a colour: that is the business of whoever shows it.

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
