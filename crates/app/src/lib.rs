//! Everything that an owner can do, without terminal and without HTTP.
//!
//! [`App`] is built once from a data root and has one method per action. The terminal and the console parse what they are
//! asked, call one of them, and show what it answers. The schedule decides what runs ([`gleaner_schedule`]), the store
//! remembers, and a run is a process of its own; this crate is between them.
//!
//! | folder | |
//! |---|---|
//! | `app.rs` | the data root: its paths, its store |
//! | `actions/` | run now, cancel, pause, resume, schedule; gaps; questions; backup, restore, remove, repair |
//! | `connection/` | how a connection is described: catalog of connectors, settings, credentials, adding one |
//! | `run/` | [`RunSpec`] and the one way from there to a run; checks and rehearsals, which nobody keeps |
//! | `view/` | [`ConnectionView`]: how a connection stands, gathered in one place; [`Outlook`]: what it does next |
//! | `service/` | the loop of `gleaner serve`: starts what is due, tells the owner, ends in order |
//! | `doctor/` | what a run depends on, looked at |
//!
//! # What is deliberately absent
//!
//! - A rule about when something runs: that is `crates/schedule`, which has no clock.
//! - Runs in the process of the service. A run that hangs, panics or eats memory is a child, and ends alone.
//! - Text for a terminal or a page, beyond messages and hints.
//!
//! # Files
//!
//! - `app.rs`, `error.rs`, `dates.rs`: `App`: the data root, its paths and its store; the one error: kind, message,
//!   hint; dates
//! - `actions.rs`, `actions/`: what an owner does to a connection, durable before it is answered: `gaps`,
//!   `questions`, `schedule_change`, `maintenance` (init, backup, restore, remove, repair)
//! - `connection/`: how a connection is described: `catalog` (connectors that can be added by name), `settings`,
//!   `setting_name`, `credentials`, `new_connection` (the one way to add one), `connector_form` and `add_request` (the
//!   same for a page, and what a page may never say)
//! - `run/spec.rs`: `RunSpec`, what is asked of a run, and the one way from there to a `RunRequest`; `scope` and
//!   `bindings` are parts of it
//! - `run/collect.rs`: whether a run may begin, and what came of it
//! - `run/trial.rs`, `run/rehearsal.rs`, `run/scratch.rs`, `run/recording.rs`: the runs that nobody keeps: a check,
//!   and a rehearsal for authors; their scratch store; a recording that a connector made
//! - `view/connection_view.rs`: `ConnectionView::load`, the only place that gathers the state of a connection;
//!   `facts` (what a schedule decides by), `outlook` (what comes next, in words and codes), `coverage` (how complete
//!   each stream is), `reports` (what the commands that only read show)
//! - `service.rs`, `service/`: the loop; `child` (one run as a process), `shutdown`, `notices` (what the owner is
//!   told, pure) and `notify` (how), `sd_notify`, `log_file`
//! - `doctor.rs`, `doctor/`: the checks: folder, store, connections, machine
//! - `stream_name.rs`: which stream is meant

mod actions;
mod app;
mod connection;
pub mod dates;
mod doctor;
mod error;
mod run;
mod service;
mod stream_name;
mod view;

pub use actions::schedule_change::{ScheduleChange, Setting};
pub use actions::{Backup, Initialized, Removed, Reply, Restored, Stop, Stopped, usual_fields};
pub use app::{App, Nudge, Program};
pub use connection::add_request::{AddRequest, Added};
pub use connection::catalog::{Catalog, Connector, Faulty, Origin};
pub use connection::connector_form::{ConnectorForm, FormField};
pub use connection::credentials::{AskSecret, Credential, Credentials, how_to_give};
pub use connection::new_connection::{AddSpec, NewConnection};
pub use connection::setting_name::setting_names;
pub use connection::settings::{Expires, parse_manifest, read_manifest};
pub use doctor::{Check, CheckVerdict};
pub use error::{AppError, ErrorKind, nearest};
pub use run::collect::{EndedRun, PreparedRun, end_of_rest, renew, rest_text};
pub use run::recording::{NOT_RECORDED, Recorded, place_of_recording};
pub use run::rehearsal::{Item, ItemKind, Rehearsal, RehearsalSpec, Rehearsed, Sums};
pub use run::spec::{BudgetSpec, Purpose, RunOf, RunSpec, ScopeSpec};
pub use run::trial::{Checked, Verdict};
pub use service::log_file::LogFile;
pub use service::notify::Channels;
pub use service::sd_notify::Supervisor;
pub use service::{Handle, Service, ServiceConfig};
pub use stream_name::one_stream;
pub use view::connection_view::{ConnectionView, Look, is_collected};
pub use view::coverage::CoveredStream;
pub use view::outlook::{Outlook, kind_code};
pub use view::reports::{Explained, ExportTo, MissingRecord, MissingSums, Overview, each_row};
