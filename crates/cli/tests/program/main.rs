//! The program as a user meets it: what it prints where, and how it ends.
//!
//! One binary for all of it; figures themselves are tested in the lab, here only that they arrive.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod acceptance;
mod bad_input;
mod canary;
mod care;
mod collect;
mod cores;
mod doctor;
mod endings;
mod expectations;
mod fetch;
mod first_record;
mod html;
mod incomplete;
mod json;
mod killed;
mod live;
mod local_files;
mod look;
mod look_speed;
mod new;
mod notes_provider;
mod old_store;
mod other_accounts;
mod place;
mod proxy;
mod proxy_support;
mod quarantine;
mod races;
mod rehearsal;
mod scenarios;
mod scoped;
mod serve;
mod statements;
mod stays_known;
mod stops;
mod support;
mod tables;
mod terminal;
mod times_and_retries;
mod tracks;
mod transcripts;
mod tuning;
mod validation;
mod waits;
