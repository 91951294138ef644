//! May a request be sent, and when: the governor of one key, its places in flight, and the budget of a run.

pub(crate) mod governor;
pub(crate) mod lane;
pub(crate) mod run_budget;
