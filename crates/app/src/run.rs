//! Runs: what is asked ([`spec`]), what may begin and what came of it ([`collect`]), and the two kinds that nobody keeps:
//! a check ([`trial`]) and a rehearsal.

pub(crate) mod bindings;
pub(crate) mod collect;
pub(crate) mod recording;
pub(crate) mod rehearsal;
pub(crate) mod scope;
pub(crate) mod scratch;
pub(crate) mod spec;
pub(crate) mod trial;
