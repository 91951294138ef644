//! A browser driven over a connection: the common part of both engines.

use crate::browser::{BrowserCounts, Download};
use crate::engine::connection::{Connection, Counterpart};
use crate::engine::{Deadline, Engine, EngineKind, EnginePage};
use crate::error::BrowserError;
use crate::process::BrowserProcess;
use crate::process::footprint;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Timeout for closing a dropped browser. It saves its state within a fifth of a second.
const FAREWELL_MAX: Duration = Duration::from_secs(2);

/// Engine-specific operations.
pub(crate) trait Drive: Counterpart {
    const KIND: EngineKind;

    /// Opens a page, and returns its id.
    fn open_page(connection: &Connection<Self>, deadline: Deadline) -> Result<String, BrowserError>;
    fn page(connection: Connection<Self>, name: String) -> Arc<dyn EnginePage>;
    /// Asks the browser to close; returns whether it did.
    fn end(connection: &Connection<Self>, process: &BrowserProcess, deadline: Deadline) -> bool;
}

/// A browser that runs.
#[derive(Debug)]
pub(crate) struct Driven<C: Drive> {
    pub(crate) connection: Connection<C>,
    pub(crate) process: Arc<BrowserProcess>,
    /// Keeps a requested page from being taken as a popup.
    opening: Mutex<()>,
}

impl<C: Drive> Driven<C> {
    pub(crate) fn new(connection: Connection<C>, process: Arc<BrowserProcess>) -> Self {
        Self { connection, process, opening: Mutex::new(()) }
    }

    /// Also ends it when it uses too much memory or disk.
    pub(crate) fn watched(self, profile: &Path) -> Self {
        let (connection, process, profile) =
            (self.connection.clone(), Arc::downgrade(&self.process), profile.to_owned());
        thread::spawn(move || footprint::watch(&connection, &process, &profile));
        self
    }

    fn opening(&self) -> MutexGuard<'_, ()> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Drive> Engine for Driven<C> {
    fn kind(&self) -> EngineKind {
        C::KIND
    }

    fn new_page(&self, deadline: Deadline) -> Result<Arc<dyn EnginePage>, BrowserError> {
        let _opening = self.opening();
        self.connection.look(|known| known.pages().check_room())?;
        let name = C::open_page(&self.connection, deadline)?;
        Ok(C::page(self.connection.clone(), name))
    }

    fn take_popups(&self) -> Vec<Arc<dyn EnginePage>> {
        let _opening = self.opening();
        let names = self.connection.look(|known| known.pages().take_unclaimed());
        names.into_iter().map(|name| C::page(self.connection.clone(), name)).collect()
    }

    fn downloads(&self) -> Vec<Download> {
        self.connection.downloads()
    }

    fn counts(&self) -> BrowserCounts {
        self.connection.look(|known| known.pages().counts)
    }

    fn gone(&self) -> Option<String> {
        self.connection.gone()
    }

    fn close(&self, deadline: Deadline) -> Result<(), BrowserError> {
        let ended = C::end(&self.connection, &self.process, deadline);
        self.connection.set_gone("it was closed");
        self.process.kill();
        if ended { Ok(()) } else { Err(deadline.timed_out("close")) }
    }
}

impl<C: Drive> Drop for Driven<C> {
    fn drop(&mut self) {
        // A closed browser is gone already. Otherwise it gets time to save its state.
        if self.connection.gone().is_none() {
            drop(self.close(Deadline::after(FAREWELL_MAX)));
        }
        self.process.kill();
    }
}
