//! Promises of the governor, R1 to R16 and the scenarios of the requirements, through its public
//! API alone. A test here fails when a guard is removed, not when a number is tuned.

mod allocations;
mod budgets;
mod circuit;
mod harness;
mod law;
mod oracle;
mod pacing;
mod plans;
mod quotas;
mod retries;
mod retry_after;
mod scenarios;
mod warm_start;
