//! The program as a user meets it: what it prints where, and how it ends.
//!
//! One binary for all of it; figures themselves are tested in the lab, here only that they arrive.

mod bad_input;
mod expectations;
mod html;
mod json;
mod support;
mod tables;
