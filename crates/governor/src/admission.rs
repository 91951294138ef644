//! May a request be sent, and when: the state of one key, the governor around it, its permits and places in
//! flight, and the budget of a run.

pub(crate) mod governor;
pub(crate) mod lane;
pub(crate) mod permit;
pub(crate) mod run_budget;
pub(crate) mod state;
