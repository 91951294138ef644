//! A year of two hundred connections, in seconds: clock jumps, changes of the clock in three zones, sleep, failures,
//! rests. The checks are about effects that an owner would notice.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod outage;
mod share;
mod world;
mod year;
