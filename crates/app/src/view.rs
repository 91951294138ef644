//! How a connection stands: the one place that gathers it, and the readings that status, pages, API and schedule share.

pub(crate) mod connection_view;
pub(crate) mod coverage;
pub(crate) mod facts;
pub(crate) mod outlook;
pub(crate) mod reports;
