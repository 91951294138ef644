//! Chats that were exported out of WhatsApp.

pub(crate) mod collect;
mod export;
mod parse;
mod stamps;
mod words;
