//! What an owner can do to a connection: one function for terminal, console and API.
//!
//! **Why through the store and the runs' own sockets, and not through a channel into the service:** a wish is durable
//! before anybody is told that it was heard, it works while no service runs, and a service that is restarted finds it.
//! The service notices a change of the store within seconds; who runs inside of it says so at once ([`Nudge`]).
//! Nothing here waits for a run.

use crate::outlook::{Outlook, outlook};
use crate::settings::{ScheduleChange, SettingFault};
use crate::setup::Setup;
use gleaner_engine::{AnswerTaken, Note, NoteFault, WallTime};
use gleaner_protocol::{Answer, InteractionResponse, InteractionStatus, RawJson};
use gleaner_runtime::{Control, ControlError};
use gleaner_store::{ConnectionState, GapsMeant, HeldBy, Holder, LeaseOn, Reader, Store, StoreError, Wanted, WantedBy};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// How a run is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After the slice that is under way.
    InOrder,
    /// At once.
    Now,
}

/// What the owner says to a question.
#[derive(Clone, Debug)]
pub enum Reply {
    /// An object with a key per field. It reaches the connector, and is kept nowhere.
    Given(RawJson<'static>),
    /// There is no answer.
    Declined,
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// There is no such connection.
    #[error("there is no connection {0:?}")]
    NoSuchConnection(String),
    /// The owner is done with it.
    #[error("{0:?} is removed, and does not run")]
    Removed(String),
    /// The owner holds it back.
    #[error("{0:?} is paused")]
    Paused(String),
    /// Nothing of it goes on.
    #[error("{0:?} does not run")]
    NotRunning(String),
    /// It was answered, its time is over, or its run has ended.
    #[error("question {0} does not wait: it was answered, its time is over, or its run has ended")]
    NoSuchQuestion(i64),
    /// There is no such gap, or it is closed.
    #[error("{connection:?} has no open gap {gap_id:?}")]
    NoSuchGap {
        /// The connection.
        connection: String,
        /// What was asked for.
        gap_id: String,
    },
    /// There is no such gap that is ignored.
    #[error("{connection:?} has no ignored gap {gap_id:?}")]
    NotIgnored {
        /// The connection.
        connection: String,
        /// What was asked for.
        gap_id: String,
    },
    /// It cannot be a note.
    #[error(transparent)]
    Note(#[from] NoteFault),
    /// It cannot be a schedule.
    #[error(transparent)]
    Setting(#[from] SettingFault),
    /// The run did not listen.
    #[error("process {pid} works on it, and {error}")]
    Unreachable {
        /// The process.
        pid: u32,
        /// Why.
        error: ControlError,
    },
    /// The store could not be used.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for ActionError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::UnknownConnection(name) | StoreError::Purging(name) => Self::NoSuchConnection(name),
            other => Self::Store(other),
        }
    }
}

/// What an owner can do. Every method may take as long as a store takes to sync, and no longer.
pub trait Actions: Send + Sync {
    /// A run before its time. The service begins it when a place is free; a provider that rests is asked with one
    /// request, or for gaps that are not pressure.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or it is held back.
    fn run_now(&self, connection: &str) -> Result<(), ActionError>;

    /// Stops the run of a connection, whoever started it.
    ///
    /// # Errors
    ///
    /// When it does not run, or does not listen.
    fn cancel(&self, connection: &str, how: Stop) -> Result<(), ActionError>;

    /// Answers a question.
    ///
    /// # Errors
    ///
    /// When it does not wait.
    fn answer(&self, question: i64, reply: Reply) -> Result<(), ActionError>;

    /// Another try of a gap, with the next run: of one that was given up, and of one that waits for its time.
    ///
    /// # Errors
    ///
    /// When there is no such gap, or it is closed.
    fn retry_gap(&self, connection: &str, gap_id: &str) -> Result<(), ActionError>;

    /// Another try of all gaps of a connection that fit, with the next run. What is ignored stays so. Answers how many.
    ///
    /// # Errors
    ///
    /// When there is no such connection or stream.
    fn retry_gaps(&self, connection: &str, meant: GapsMeant<'_>) -> Result<u64, ActionError>;

    /// Does without a gap: it is tried no more, needs nobody, and stays on record as missing, with this note. A run that
    /// is at work on it is left alone.
    ///
    /// # Errors
    ///
    /// When there is no such gap, or it is closed, or the note is none.
    fn ignore_gap(&self, connection: &str, gap_id: &str, note: &str) -> Result<(), ActionError>;

    /// Wants a gap after all: the next run tries it.
    ///
    /// # Errors
    ///
    /// When there is no such gap, or it is not ignored.
    fn take_back_gap(&self, connection: &str, gap_id: &str) -> Result<(), ActionError>;

    /// Holds a connection back. A run that goes on is left to its end.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    fn pause(&self, connection: &str) -> Result<(), ActionError>;

    /// Lets a connection run again.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    fn resume(&self, connection: &str) -> Result<(), ActionError>;

    /// When a connection runs. What the change does not name stays as it is.
    ///
    /// # Errors
    ///
    /// When it cannot be a schedule; nothing is changed then.
    fn set_schedule(&self, connection: &str, change: &ScheduleChange) -> Result<(), ActionError>;

    /// What a connection does next, and why.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    fn outlook(&self, connection: &str) -> Result<Outlook, ActionError>;

    /// What the whole program can do, if it is there.
    fn setup(&self) -> Option<&dyn Setup> {
        None
    }
}

/// Wakes a service of the same process.
pub type Nudge = Arc<dyn Fn() + Send + Sync>;

/// The actions on a data root.
#[derive(Clone)]
pub struct OwnerActions {
    store: PathBuf,
    control: PathBuf,
    nudge: Option<Nudge>,
    setup: Option<Arc<dyn Setup>>,
}

impl std::fmt::Debug for OwnerActions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnerActions").field("store", &self.store).field("control", &self.control).finish()
    }
}

impl OwnerActions {
    /// On the store at this path, whose runs listen in this folder.
    #[must_use]
    pub fn new(store: PathBuf, control: PathBuf) -> Self {
        Self { store, control, nudge: None, setup: None }
    }

    /// The same, which tells a service of this process at once.
    #[must_use]
    pub fn with_nudge(self, nudge: Nudge) -> Self {
        Self { nudge: Some(nudge), ..self }
    }

    /// The same, with what the whole program can do.
    #[must_use]
    pub fn with_setup(self, setup: Arc<dyn Setup>) -> Self {
        Self { setup: Some(setup), ..self }
    }

    fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.store)
    }

    /// Changes something of a connection that is not removed.
    fn change(
        &self,
        connection: &str,
        change: impl FnOnce(&mut Store, ConnectionState) -> Result<(), ActionError>,
    ) -> Result<(), ActionError> {
        let state = self.reader()?.connection(connection)?.state;
        match state {
            ConnectionState::Removed => return Err(ActionError::Removed(connection.to_owned())),
            ConnectionState::Purging => return Err(ActionError::NoSuchConnection(connection.to_owned())),
            ConnectionState::Active | ConnectionState::Paused => {}
        }
        change(&mut Store::open(&self.store)?, state)?;
        if let Some(nudge) = &self.nudge {
            nudge();
        }
        Ok(())
    }

    fn tell(&self, holder: &HeldBy, order: &Control) -> Result<AnswerTaken, ActionError> {
        gleaner_runtime::tell(&self.control, holder.epoch, order)
            .map_err(|error| ActionError::Unreachable { pid: holder.pid, error })
    }
}

impl Actions for OwnerActions {
    fn run_now(&self, connection: &str) -> Result<(), ActionError> {
        self.change(connection, |store, state| {
            if state == ConnectionState::Paused {
                return Err(ActionError::Paused(connection.to_owned()));
            }
            Ok(store.want_run(connection, Wanted { by: WantedBy::Owner, at: now() })?)
        })
    }

    fn cancel(&self, connection: &str, how: Stop) -> Result<(), ActionError> {
        let reader = self.reader()?;
        reader.connection(connection)?;
        let not_running = || ActionError::NotRunning(connection.to_owned());
        let holder = holder(&reader, connection)?.ok_or_else(not_running)?;
        let order = match how {
            Stop::InOrder => Control::Cancel,
            Stop::Now => Control::CancelNow,
        };
        match self.tell(&holder, &order) {
            Ok(_) => Ok(()),
            // Between our two looks it came to its end by itself.
            Err(ActionError::Unreachable { error: ControlError::HungUp, .. }) => Err(not_running()),
            Err(error) => Err(error),
        }
    }

    fn answer(&self, question: i64, reply: Reply) -> Result<(), ActionError> {
        let reader = self.reader()?;
        let none = || ActionError::NoSuchQuestion(question);
        let asked = reader.open_question(question)?.ok_or_else(none)?;
        let holder = holder(&reader, &asked.connection)?.ok_or_else(none)?;
        let (status, data) = match reply {
            Reply::Given(data) => (InteractionStatus::Success, Some(Answer::new(data))),
            Reply::Declined => (InteractionStatus::Cancelled, None),
        };
        let response = InteractionResponse { request_id: asked.request_id, status, data };
        match self.tell(&holder, &Control::Answer(response))? {
            AnswerTaken::Yes => Ok(()),
            AnswerTaken::AlreadyAnswered | AnswerTaken::NoSuchQuestion => Err(none()),
        }
    }

    fn retry_gap(&self, connection: &str, gap_id: &str) -> Result<(), ActionError> {
        self.change(connection, |store, _| {
            if store.retry_gap(connection, gap_id)? {
                return Ok(());
            }
            Err(ActionError::NoSuchGap { connection: connection.to_owned(), gap_id: gap_id.to_owned() })
        })
    }

    fn retry_gaps(&self, connection: &str, meant: GapsMeant<'_>) -> Result<u64, ActionError> {
        let mut count = 0;
        self.change(connection, |store, _| {
            count = store.retry_gaps(connection, meant)?;
            Ok(())
        })?;
        Ok(count)
    }

    fn ignore_gap(&self, connection: &str, gap_id: &str, note: &str) -> Result<(), ActionError> {
        let note = Note::new(note)?;
        self.change(connection, |store, _| {
            if store.ignore_gap(connection, gap_id, &note, now())? {
                return Ok(());
            }
            Err(ActionError::NoSuchGap { connection: connection.to_owned(), gap_id: gap_id.to_owned() })
        })
    }

    fn take_back_gap(&self, connection: &str, gap_id: &str) -> Result<(), ActionError> {
        self.change(connection, |store, _| {
            if store.take_back_gap(connection, gap_id)? {
                return Ok(());
            }
            Err(ActionError::NotIgnored { connection: connection.to_owned(), gap_id: gap_id.to_owned() })
        })
    }

    fn pause(&self, connection: &str) -> Result<(), ActionError> {
        self.change(connection, |store, _| Ok(store.set_paused(connection, true)?))
    }

    fn resume(&self, connection: &str) -> Result<(), ActionError> {
        self.change(connection, |store, _| Ok(store.set_paused(connection, false)?))
    }

    fn set_schedule(&self, connection: &str, change: &ScheduleChange) -> Result<(), ActionError> {
        let before = self.reader()?.schedule(connection)?;
        let after = change.of(&before)?;
        self.change(connection, |store, _| {
            store.set_schedule(connection, &after)?;
            match change.pauses() {
                Some(paused) => Ok(store.set_paused(connection, paused)?),
                None => Ok(()),
            }
        })
    }

    fn outlook(&self, connection: &str) -> Result<Outlook, ActionError> {
        Ok(outlook(&self.reader()?, connection, now())?)
    }

    fn setup(&self) -> Option<&dyn Setup> {
        self.setup.as_deref()
    }
}

/// Who works on it.
fn holder(reader: &Reader, connection: &str) -> Result<Option<HeldBy>, StoreError> {
    let ourselves = Holder::current().map_err(StoreError::Holder)?;
    reader.held_by(LeaseOn::Connection(connection), &ourselves, now())
}

/// The date.
pub(crate) fn now() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_unix_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
