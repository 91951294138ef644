//! What an owner can do to a connection: one method for terminal, console and API.
//!
//! **Why through the store and the runs' own sockets, and not through a channel into the service:** a wish is durable
//! before anybody is told that it was heard, it works while no service runs, and a service that is restarted finds it.
//! The service notices a change of the store within seconds; an [`App`] of its own process wakes it at once. Nothing here
//! waits for a run.

mod gaps;
mod maintenance;
mod questions;
pub(crate) mod schedule_change;

pub use maintenance::{Backup, Initialized, Removed, Restored};
pub use questions::{Reply, usual_fields};

use crate::app::{App, ourselves};
use crate::connection::settings::{Expires, Settings};
use crate::dates::{now, rfc3339};
use crate::error::{AppError, ErrorKind};
use crate::run::collect::renew;
use crate::view::connection_view::{ConnectionView, Look};
use gleaner_base::outside::one_line;
use gleaner_engine::{AnswerTaken, WallTime};
use gleaner_runtime::{Control, ControlError};
use gleaner_store::{ConnectionState, HeldBy, LeaseOn, Store, StoreError, Wanted, WantedBy};
use schedule_change::ScheduleChange;

/// How a run is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After the slice that is under way.
    InOrder,
    /// At once.
    Now,
}

/// What came of stopping a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// This process was told.
    Told(u32),
    /// This process came to its end by itself.
    Over(u32),
    /// Nothing runs.
    NotRunning,
}

impl App {
    /// Changes something of a connection that is not removed.
    fn change<R>(
        &self,
        name: &str,
        change: impl FnOnce(&mut Store, ConnectionState) -> Result<R, AppError>,
    ) -> Result<R, AppError> {
        let state = match self.reader()?.connection(name) {
            Err(StoreError::Purging(_)) => return Err(AppError::no_connection(name)),
            known => known?.state,
        };
        match state {
            ConnectionState::Removed => {
                let message = format!("{} is removed, and does not run", one_line(name));
                return Err(AppError::needs_owner(message, "`gleaner add` adds it again"));
            }
            ConnectionState::Purging => return Err(AppError::no_connection(name)),
            ConnectionState::Active | ConnectionState::Paused => {}
        }
        let changed = change(&mut self.store()?, state)?;
        self.nudge();
        Ok(changed)
    }

    /// Tells a run something.
    fn tell(&self, name: &str, holder: &HeldBy, order: &Control) -> Result<AnswerTaken, ControlFault> {
        gleaner_runtime::tell(&self.control_folder(), holder.epoch, order).map_err(|error| match error {
            ControlError::HungUp => ControlFault::Over,
            error => {
                let (pid, name) = (holder.pid, one_line(name));
                let message = format!("process {pid} works on {name}, and {error}");
                let hint = format!("a check is over soon; otherwise end the process: kill {pid}");
                ControlFault::Unreachable(AppError::new(ErrorKind::Unreachable, message, hint))
            }
        })
    }

    /// The process that works on a connection.
    fn holder(&self, name: &str) -> Result<Option<HeldBy>, AppError> {
        let reader = self.reader()?;
        reader.connection(name)?;
        Ok(reader.held_by(LeaseOn::Connection(name), &ourselves()?, now())?)
    }

    /// Everything that is known about a connection.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn view(&self, name: &str) -> Result<ConnectionView, AppError> {
        let reader = self.reader()?;
        let mut look = Look::new(&reader)?;
        Ok(ConnectionView::load(&reader, &mut look, name)?)
    }

    /// A run before its time. The service begins it when a place is free; during a cooldown with one request, or for
    /// gaps that are not pressure.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or it is paused or removed.
    pub fn run_now(&self, name: &str) -> Result<(), AppError> {
        self.change(name, |store, state| {
            if state == ConnectionState::Paused {
                let message = format!("{} is paused", one_line(name));
                return Err(AppError::needs_owner(message, "`gleaner resume` lets it run"));
            }
            Ok(store.want_run(name, Wanted { by: WantedBy::Owner, at: now() })?)
        })
    }

    /// Stops the run of a connection, whoever started it.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or its run does not listen.
    pub fn cancel(&self, name: &str, how: Stop) -> Result<Stopped, AppError> {
        let Some(holder) = self.holder(name)? else { return Ok(Stopped::NotRunning) };
        let order = match how {
            Stop::InOrder => Control::Cancel,
            Stop::Now => Control::CancelNow,
        };
        match self.tell(name, &holder, &order) {
            Ok(_) => Ok(Stopped::Told(holder.pid)),
            // Between our two looks it came to its end by itself.
            Err(ControlFault::Over) => Ok(Stopped::Over(holder.pid)),
            Err(ControlFault::Unreachable(error)) => Err(error),
        }
    }

    /// Stops one run, and no later one of the same connection.
    ///
    /// # Errors
    ///
    /// When there is no such run, it has ended, or it does not listen.
    pub fn cancel_run(&self, run_id: &str, how: Stop) -> Result<Stopped, AppError> {
        let reader = self.reader()?;
        let (run, connection) = (reader.run(run_id)?, reader.connection_of_run(run_id)?);
        let (Some(run), Some(connection)) = (run, connection) else {
            let hint = "the connection's own page lists its runs";
            return Err(AppError::new(ErrorKind::NotFound, "there is no such run", hint));
        };
        if run.ended_at.is_some() {
            return Err(AppError::new(ErrorKind::Conflict, "this run has ended already", "nothing is to be done"));
        }
        self.cancel(&connection, how)
    }

    /// Holds a connection back. A run that goes on is left to its end.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn pause(&self, name: &str) -> Result<(), AppError> {
        self.change(name, |store, _| Ok(store.set_paused(name, true)?))
    }

    /// Lets a connection run again, and says until when if the permission has an end or gets another one.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or its permission is over all the same.
    pub fn resume(&self, name: &str, expires: Option<Expires>) -> Result<Option<WallTime>, AppError> {
        let end = self.change(name, |store, _| {
            let mut settings = Settings::from_json(&self.reader()?.settings(name)?);
            if let Some(expires) = expires {
                settings.set_expires(expires);
                store.set_settings(name, &settings.to_json())?;
            }
            store.set_paused(name, false)?;
            Ok(settings.expires_at())
        })?;
        if let Some(end) = end.filter(|end| *end <= now()) {
            let (name, end) = (one_line(name), rfc3339(end));
            let message = format!("{name} is not paused, but its permission is over: it may run until {end}");
            return Err(AppError::needs_owner(message, renew(&name)));
        }
        Ok(end)
    }

    /// Sets when a connection runs. A setting that the change does not name stays as it is.
    ///
    /// # Errors
    ///
    /// When it cannot be a schedule; nothing is changed then.
    pub fn set_schedule(&self, name: &str, change: &ScheduleChange) -> Result<(), AppError> {
        let before = self.reader()?.schedule(name)?;
        let wrong = "nothing was changed; docs/serve.md has examples";
        let after = change.of(&before).map_err(|fault| AppError::usage(fault.to_string(), wrong))?;
        self.change(name, |store, _| {
            store.set_schedule(name, &after)?;
            match change.pauses() {
                Some(paused) => Ok(store.set_paused(name, paused)?),
                None => Ok(()),
            }
        })
    }
}

/// Why a run was not told.
enum ControlFault {
    /// It came to its end.
    Over,
    Unreachable(AppError),
}
