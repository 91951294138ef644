//! The service: keeps every connection as fresh as its plan says, and does what its owner asks.
//!
//! The schedule decides ([`gleaner_schedule`]), the store remembers, a run is a process of its own. This crate has what is
//! between them: it gathers what is known, starts runs, waits for them without asking all the time, and tells the owner
//! when only the owner can help.
//!
//! | for | see |
//! |---|---|
//! | the loop, and the way to it | [`Service`], [`ServiceConfig`], [`Handle`] |
//! | what an owner can do, for terminal, console and API | [`Actions`], [`OwnerActions`] |
//! | connectors that can be added, and how the machine is | [`Setup`], [`Wish`], [`Verdict`], [`Check`] |
//! | when a connection runs, as its owner sets it | [`ScheduleChange`], [`Setting`] |
//! | what a connection does next, and why | [`Outlook`], [`outlook()`] |
//! | from the read model to a schedule | [`gather()`], [`Gathered`] |
//! | telling the owner, once | [`Notice`], [`Channels`] |
//! | systemd, and the log | [`Supervisor`], [`LogFile`] |
//!
//! # What is deliberately absent
//!
//! - A rule about when something runs: that is `crates/schedule`, which has no clock.
//! - Runs in this process. A run that hangs, panics or eats memory is a child, and ends alone.

mod actions;
mod child;
mod gather;
mod log_file;
mod notices;
mod notify;
mod outlook;
mod sd_notify;
mod service;
mod settings;
mod setup;

pub use actions::{ActionError, Actions, Nudge, OwnerActions, Reply, Stop};
pub use gather::{Asking, Gathered, Manifests, cooldown_policy, gather, plan_of, waits_for_credential};
pub use log_file::LogFile;
pub use notices::Notice;
pub use notify::Channels;
pub use outlook::{Outlook, kind_code, outlook};
pub use sd_notify::Supervisor;
pub use service::{FindCredential, Handle, ServeError, Service, ServiceConfig};
pub use settings::{ScheduleChange, Setting, SettingFault, wish};
pub use setup::{
    Check, CheckVerdict, NotOffered, Offer, OfferedField, Setup, SetupError, SetupErrorKind, Verdict, Wish,
};
