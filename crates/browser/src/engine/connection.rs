//! Calls to the browser or its driver, and their answers. One thread reads, one writes; a caller waits only for its
//! own answer and only until its deadline, whatever the browser or a page does.
//!
//! Events are not queued: each updates the state of the [`Counterpart`] when it is read, and waiting callers check
//! that state.

use crate::browser::Download;
use crate::engine::Deadline;
use crate::engine::message::{Frame, Framer, Message, Refusal};
use crate::engine::open_pages::OpenPages;
use crate::error::BrowserError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum of queued messages for a browser that does not read.
const OUTBOX_MAX: usize = 256;
/// Bytes per read from a pipe.
const READ_BYTES: usize = 64 * 1024;
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Timeout of an order whose answer nobody awaits.
const ORDER_MAX: Duration = Duration::from_secs(10);

/// A message to send: to a session or an object, or to the browser itself.
#[derive(Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) to: Option<String>,
    pub(crate) method: &'static str,
    pub(crate) params: Value,
}

/// Consequences of an event.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Consequences {
    pub(crate) orders: Vec<Order>,
    /// Sessions that will not answer any more, and why.
    pub(crate) lost: Vec<(String, String)>,
    /// Downloads whose files must be deleted.
    pub(crate) delete: Vec<String>,
    /// Why the browser is gone, if this was its end.
    pub(crate) gone: Option<String>,
}

/// The other end of a connection: its protocol and state. Pure.
pub(crate) trait Counterpart: Debug + Send + Sized + 'static {
    type Framer: Framer;
    /// State of a page.
    type Page: Debug;
    /// Text for a closed pipe.
    const ENDED: &'static str;

    fn framer(message_bytes_max: usize) -> Self::Framer;
    fn pages(&mut self) -> &mut OpenPages<Self::Page>;
    fn encode(id: u64, order: &Order, within: Duration) -> Vec<u8>;
    fn refused(method: &'static str, refusal: &Refusal) -> BrowserError;
    fn on_event(&mut self, method: &str, params: &Value, about: Option<&str>) -> Consequences;
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection<C: Counterpart> {
    shared: Arc<Shared<C>>,
    outbox: SyncSender<Vec<u8>>,
}

impl<C: Counterpart> Clone for Connection<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), outbox: self.outbox.clone() }
    }
}

#[derive(Debug)]
struct Shared<C> {
    state: Mutex<State<C>>,
    changed: Condvar,
    downloads: PathBuf,
}

#[derive(Debug)]
struct State<C> {
    next_id: u64,
    pending: BTreeMap<u64, Pending>,
    gone: Option<String>,
    known: C,
}

impl<C: Counterpart> State<C> {
    fn count_dropped(&mut self) {
        self.known.pages().counts.events_dropped += 1;
    }
}

#[derive(Debug)]
struct Pending {
    to: Option<String>,
    answer: SyncSender<Answer>,
}

#[derive(Debug)]
enum Answer {
    Result(Value),
    Refused(Refusal),
    TooLong,
    Unread,
    PageGone(String),
    BrowserGone(String),
}

impl<C: Counterpart> Connection<C> {
    pub(crate) fn new(from_it: PipeReader, to_it: PipeWriter, mut known: C, downloads: PathBuf) -> Self {
        let framer = C::framer(known.pages().limits.message_bytes_max);
        let state = State { next_id: 0, pending: BTreeMap::new(), gone: None, known };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), downloads });
        let (outbox, to_write) = sync_channel(OUTBOX_MAX);
        let connection = Self { shared: Arc::clone(&shared), outbox: outbox.clone() };
        thread::spawn(move || write_all(to_it, &to_write));
        // The reader holds the outbox weakly: it ends with the browser, and then the writer has no sender left.
        thread::spawn(move || read_all(from_it, framer, &shared, &outbox));
        connection
    }

    /// Sends a call, and waits for the answer. `what` is for a timeout message.
    pub(crate) fn call(
        &self,
        to: Option<&str>,
        method: &'static str,
        params: Value,
        what: &'static str,
        deadline: Deadline,
    ) -> Result<Value, BrowserError> {
        let (answer, answers) = sync_channel(1);
        let order = Order { to: to.map(str::to_owned), method, params };
        let id = {
            let mut state = self.lock();
            if let Some(why) = &state.gone {
                return Err(BrowserError::Gone(why.clone()));
            }
            state.next_id += 1;
            let id = state.next_id;
            state.pending.insert(id, Pending { to: order.to.clone(), answer });
            id
        };
        let result = self.send(C::encode(id, &order, deadline.left()), what, deadline).and_then(|()| {
            answers.recv_timeout(deadline.left()).map_err(|error| match error {
                RecvTimeoutError::Timeout => deadline.timed_out(what),
                RecvTimeoutError::Disconnected => BrowserError::Gone("it was closed".to_owned()),
            })
        });
        self.lock().pending.remove(&id);
        match result? {
            Answer::Result(value) => Ok(value),
            // The driver's timer was faster than ours.
            Answer::Refused(refusal) if refusal.name == "TimeoutError" => Err(deadline.timed_out(what)),
            Answer::Refused(refusal) => Err(C::refused(method, &refusal)),
            Answer::TooLong => {
                let max = self.look(|known| known.pages().limits.message_bytes_max);
                Err(BrowserError::TooLarge { what: "an answer of the browser", max: max as u64 })
            }
            Answer::Unread => Err(BrowserError::protocol(what, "it is not JSON, or nested too deeply")),
            Answer::PageGone(why) => Err(BrowserError::PageGone(why)),
            Answer::BrowserGone(why) => Err(BrowserError::Gone(why)),
        }
    }

    /// Waits for a condition. `None` after the timeout.
    pub(crate) fn wait<T>(
        &self,
        deadline: Deadline,
        mut look: impl FnMut(&mut C) -> Option<T>,
    ) -> Result<Option<T>, BrowserError> {
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state.known) {
                return Ok(Some(found));
            }
            if let Some(why) = &state.gone {
                return Err(BrowserError::Gone(why.clone()));
            }
            let left = deadline.left();
            if left.is_zero() {
                return Ok(None);
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut C) -> T) -> T {
        look(&mut self.lock().known)
    }

    /// State of a page, or why it is gone.
    pub(crate) fn of_page<T>(&self, page: &str, get: impl FnOnce(&mut C) -> Option<T>) -> Result<T, BrowserError> {
        self.look(get).ok_or_else(|| self.page_gone(page))
    }

    /// Waits until a page is ready.
    pub(crate) fn wait_for_page(
        &self,
        page: &str,
        deadline: Deadline,
        is_ready: impl Fn(&mut C) -> bool,
    ) -> Result<(), BrowserError> {
        let seen = self.wait(deadline, |known| match known.pages().get(page) {
            Some(_) => is_ready(known).then_some(true),
            None => Some(false),
        })?;
        match seen {
            Some(true) => Ok(()),
            Some(false) => Err(self.page_gone(page)),
            None => Err(deadline.timed_out("open the page")),
        }
    }

    /// Why a page is gone. If the browser is gone, that is the better reason.
    pub(crate) fn page_gone(&self, page: &str) -> BrowserError {
        let mut state = self.lock();
        match &state.gone {
            Some(why) => BrowserError::Gone(why.clone()),
            None => BrowserError::PageGone(state.known.pages().why_closed(page)),
        }
    }

    pub(crate) fn downloads(&self) -> Vec<Download> {
        self.look(|known| known.pages().downloads(&self.shared.downloads))
    }

    /// The folder for downloads.
    pub(crate) fn downloads_folder(&self) -> &Path {
        &self.shared.downloads
    }

    pub(crate) fn gone(&self) -> Option<String> {
        self.lock().gone.clone()
    }

    /// Marks the browser as gone, with a better reason than a closed pipe.
    pub(crate) fn set_gone(&self, why: &str) {
        self.shared.set_gone(why);
    }

    /// Queues a message. A browser that does not read blocks the caller only until its deadline.
    fn send(&self, mut message: Vec<u8>, what: &'static str, deadline: Deadline) -> Result<(), BrowserError> {
        loop {
            match self.outbox.try_send(message) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => {
                    let why = self.gone().unwrap_or_else(|| "its pipe is closed".to_owned());
                    return Err(BrowserError::Gone(why));
                }
                Err(TrySendError::Full(back)) => message = back,
            }
            if deadline.is_over() {
                return Err(deadline.timed_out(what));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.shared.lock()
    }
}

impl<C: Counterpart> Shared<C> {
    /// A panic of another thread leaves consistent values: every change is one assignment.
    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_gone(&self, why: &str) {
        let mut state = self.lock();
        let why = state.gone.get_or_insert_with(|| why.to_owned()).clone();
        for (_, pending) in std::mem::take(&mut state.pending) {
            drop(pending.answer.try_send(Answer::BrowserGone(why.clone())));
        }
        drop(state);
        self.changed.notify_all();
    }

    fn take(&self, frame: Frame, outbox: &SyncSender<Vec<u8>>) {
        match frame {
            Frame::Message(message) => self.take_message(*message, outbox),
            Frame::TooLong(Some(id)) => self.answer(id, Answer::TooLong),
            Frame::Garbage(Some(id)) => self.answer(id, Answer::Unread),
            Frame::TooLong(None) | Frame::Garbage(None) => self.lock().count_dropped(),
        }
    }

    fn take_message(&self, message: Message, outbox: &SyncSender<Vec<u8>>) {
        let Message { id, method, params, result, error, log, about } = message;
        if let Some(id) = id {
            let refused = |refusal| Answer::Refused(Refusal { log, ..refusal });
            self.answer(id, error.map_or(Answer::Result(result), refused));
        } else if let Some(method) = method {
            self.event(&method, &params, about.as_deref(), outbox);
        } else {
            self.lock().count_dropped();
        }
    }

    fn answer(&self, id: u64, answer: Answer) {
        // No caller waits for it.
        let Some(pending) = self.lock().pending.remove(&id) else { return };
        drop(pending.answer.try_send(answer));
    }

    fn event(&self, method: &str, params: &Value, about: Option<&str>, outbox: &SyncSender<Vec<u8>>) {
        let mut state = self.lock();
        let Consequences { orders, lost, delete, gone } = state.known.on_event(method, params, about);
        for order in orders {
            state.next_id += 1;
            let message = C::encode(state.next_id, &order, ORDER_MAX);
            if outbox.try_send(message).is_err() {
                state.count_dropped();
            }
        }
        for (lost, why) in lost {
            let of_it = |pending: &Pending| pending.to.as_deref() == Some(lost.as_str());
            for (_, pending) in state.pending.extract_if(.., |_, pending| of_it(pending)) {
                drop(pending.answer.try_send(Answer::PageGone(why.clone())));
            }
        }
        drop(state);
        for guid in delete {
            // It may not exist yet, or no longer.
            drop(std::fs::remove_file(self.downloads.join(guid)));
        }
        match gone {
            Some(why) => self.set_gone(&why),
            None => self.changed.notify_all(),
        }
    }
}

fn write_all(mut to_it: PipeWriter, messages: &Receiver<Vec<u8>>) {
    while let Ok(message) = messages.recv() {
        // An empty message ends the writer.
        if message.is_empty() || to_it.write_all(&message).is_err() {
            return;
        }
    }
}

fn read_all<C: Counterpart>(
    mut from_it: PipeReader,
    mut framer: C::Framer,
    shared: &Shared<C>,
    outbox: &SyncSender<Vec<u8>>,
) {
    let mut part = vec![0; READ_BYTES];
    while let Ok(count @ 1..) = from_it.read(&mut part) {
        for frame in framer.push(&part[..count]) {
            shared.take(frame, outbox);
        }
    }
    shared.set_gone(C::ENDED);
    // The writer holds an end of the pipe; until it ends, the browser would not see the pipe closed.
    drop(outbox.try_send(Vec::new()));
}
