//! What a connector author links.

pub mod lane;
