//! What a connector author links.

#![warn(missing_docs)]

pub mod budget;
pub mod caps;
pub mod clock;
pub mod collect;
pub mod emit;
pub mod fetch_error;
pub mod gaps;
pub mod lane;
pub mod stop;
pub mod wire;
