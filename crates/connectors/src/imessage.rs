//! Messages of Apple's Messages, out of its database on a Mac.

mod buckets;
pub(crate) mod collect;
mod parse;
mod source;
mod tables;
mod typedstream;
