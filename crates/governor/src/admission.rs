//! Admission decides whether a request may be sent, and when: state of one key, governor, permits, requests in
//! flight, run budget.

pub(crate) mod governor;
pub(crate) mod lane;
pub(crate) mod permit;
pub(crate) mod run_budget;
pub(crate) mod state;
