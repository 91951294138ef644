//! Why records are missing, in words: the store's read model says it, for the terminal and the console alike.

pub(crate) use gleaner_store::GapCause as Cause;
