//! Runs connectors: a process and its guard, a lease, questions to the owner, and a loop that carries
//! out what the engine decides.
//!
//! **It does and decides nothing.** What a message means, which cursor counts, when a run is over: that
//! is the engine's. What is durable is the store's. This crate has processes, pipes, threads and clocks.
//!
//! | for | see |
//! |---|---|
//! | one run, from its lease to its end | [`run`], [`RunRequest`], [`RunReport`] |
//! | watching it, answering it, stopping it | [`Observer`], [`Control`] |
//! | the same from another process | [`tell`] |
//! | what a connector finds around it | [`Environment`], [`Launch`] |
//! | that nothing of it is left when we are gone | [`guard_main`], [`exec_main`] |
//! | keeping secrets out of what people see | [`Redactor`] |
//!
//! # What is deliberately absent
//!
//! - An async runtime: a run is one loop and four threads that move bytes.
//! - A sandbox. A foreign connector runs with the user's rights, and is said to.
//! - Any way for a connector to see more of our environment than the list in [`Environment`].
//!
//! # Files
//!
//! - `supervisor.rs`, `supervisor/effects.rs`: the loop of one run; carrying out effects
//! - `request.rs`, `observer.rs`, `start.rs`: what a run is asked, what it shows, what a connector is told first
//! - `control_socket.rs`: how other processes answer and stop a run
//! - `process.rs`, `frames.rs`: a connector's process as events; what is said to its guard
//! - `guard.rs`, `process_tree.rs`: the process that ends a connector and all that came out of it, also when we are
//!   killed
//! - `environment.rs`, `stderr_tail.rs`: what a connector sees of ours; the end of its errors

mod control_socket;
mod environment;
mod frames;
mod guard;
mod observer;
mod process;
mod process_tree;
mod request;
mod start;
mod stderr_tail;
mod supervisor;

pub use control_socket::{ControlError, tell};
pub use environment::Environment;
pub use gleaner_engine::Redactor;
pub use guard::{exec_main, guard_main};
pub use observer::{Observer, Saved, Unobserved};
pub use process::{Launch, LaunchError};
pub use request::{Control, RunError, RunReport, RunRequest};
pub use supervisor::run;
