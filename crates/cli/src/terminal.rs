//! What the program shows and asks on a terminal.

pub(crate) mod live;
pub(crate) mod log;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod run_account;
pub(crate) mod run_view;
pub(crate) mod stop_signals;
pub(crate) mod table;
