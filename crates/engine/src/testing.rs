//! What tests of this crate and of stores share. In no program: see the feature `testing`.

pub mod backlog;
pub mod keys_in_memory;
pub mod promises;

#[cfg(test)]
mod model;
#[cfg(test)]
pub(crate) use model::*;
