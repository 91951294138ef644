//! A run that nobody keeps: in a store of its own, while the leases of the real one are held.

use super::collect::lease;
use crate::app::App;
use crate::connection::credentials::Credentials;
use crate::connection::settings::Connection;
use crate::dates;
use crate::error::AppError;
use gleaner_store::{HEARTBEAT, Lease, Store};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use tempfile::TempDir;

/// A store that is thrown away, with its folder.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) store: Store,
    pub(super) folder: TempDir,
}

impl Scratch {
    /// With this connection and nothing else.
    pub(super) fn new(connection: &Connection) -> Result<Self, AppError> {
        let folder = tempfile::tempdir().map_err(|error| {
            let hint = "set TMPDIR to a folder that you may write to";
            AppError::failed(format!("cannot make a temporary folder: {error}"), hint)
        })?;
        let mut store = Store::open(&folder.path().join("store.db"))?;
        store.register(&connection.name, &connection.text, &connection.manifest, dates::now())?;
        Ok(Self { store, folder })
    }
}

impl App {
    /// Does something as the only process that asks this provider for this account.
    pub(super) fn alone<R>(
        &self,
        connection: &Connection,
        credentials: &Credentials,
        act: impl FnOnce() -> Result<R, AppError>,
    ) -> Result<R, AppError> {
        let account = credentials.account(&connection.manifest, self)?;
        let mut store = self.store()?;
        let leases = lease(&mut store, &connection.name, account.as_ref())?;
        let (over, is_over) = channel();
        thread::scope(|scope| {
            // Without this thread another process would take the leases for those of a dead one.
            let keeping = thread::Builder::new().name("leases".to_owned());
            let started = keeping.spawn_scoped(scope, move || keep(&mut store, &leases, &is_over));
            started.map_err(|error| {
                let hint = "end other programs or raise the limit on processes, then try again";
                AppError::failed(format!("the system gives no thread: {error}"), hint)
            })?;
            let done = act();
            drop::<Sender<()>>(over);
            done
        })
    }
}

/// Gives signs of life until it is over, then gives everything back.
fn keep(store: &mut Store, leases: &[Lease], is_over: &Receiver<()>) {
    while is_over.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
        if store.heartbeat(leases).is_err() {
            return;
        }
    }
    // A lease that is not given back ends with this process.
    drop(store.release(leases));
}
