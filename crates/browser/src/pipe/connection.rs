//! Calls to the browser and their answers. One thread reads, one writes; a caller waits for its own answer and no longer
//! than its deadline, whatever the browser, or any page in it, does.
//!
//! Events are not queued: each changes the [`World`] as it is read, and whoever waits for something looks there.

use super::frames::{Frame, Framer, Message};
use super::world::{Consequences, Order, World};
use crate::engine::Deadline;
use crate::error::BrowserError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How many messages may wait for a browser that does not read.
const OUTBOX_MAX: usize = 256;
/// What a pipe gives at a time.
const READ_BYTES: usize = 64 * 1024;
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A connection to a browser.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    shared: Arc<Shared>,
    outbox: SyncSender<Vec<u8>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    downloads: PathBuf,
}

#[derive(Debug)]
struct State {
    next_id: u64,
    pending: BTreeMap<u64, Pending>,
    gone: Option<String>,
    world: World,
}

#[derive(Debug)]
struct Pending {
    session: Option<String>,
    answer: SyncSender<Answer>,
}

#[derive(Debug)]
enum Answer {
    Result(Value),
    Refused(String),
    TooLong,
    PageGone(String),
    BrowserGone(String),
}

impl Connection {
    pub(crate) fn new(
        from_it: PipeReader,
        to_it: PipeWriter,
        world: World,
        message_bytes_max: usize,
        downloads: PathBuf,
    ) -> Self {
        let state = State { next_id: 0, pending: BTreeMap::new(), gone: None, world };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), downloads });
        let (outbox, to_write) = sync_channel(OUTBOX_MAX);
        let connection = Self { shared: Arc::clone(&shared), outbox: outbox.clone() };
        thread::spawn(move || write_all(to_it, &to_write));
        // The reader's outbox is a weak hold: it ends when the browser does, and then the writer has nobody left.
        thread::spawn(move || read_all(from_it, message_bytes_max, &shared, &outbox));
        connection
    }

    /// Tells the browser something, and waits for its answer. `what` is for the words when it does not come.
    pub(crate) fn call(
        &self,
        session: Option<&str>,
        method: &'static str,
        params: &Value,
        what: &'static str,
        deadline: Deadline,
    ) -> Result<Value, BrowserError> {
        let (answer, answers) = sync_channel(1);
        let id = {
            let mut state = self.lock();
            if let Some(why) = &state.gone {
                return Err(BrowserError::Gone { why: why.clone() });
            }
            state.next_id += 1;
            let id = state.next_id;
            state.pending.insert(id, Pending { session: session.map(str::to_owned), answer });
            id
        };
        let result = self.send(encode(id, session, method, params), what, deadline).and_then(|()| {
            answers.recv_timeout(deadline.left()).map_err(|error| match error {
                RecvTimeoutError::Timeout => deadline.timed_out(what),
                RecvTimeoutError::Disconnected => BrowserError::Gone { why: "it was closed".to_owned() },
            })
        });
        self.lock().pending.remove(&id);
        match result? {
            Answer::Result(value) => Ok(value),
            Answer::Refused(why) => Err(refused(method, &why)),
            Answer::TooLong => {
                Err(BrowserError::TooLarge { what: "an answer of the browser", max: self.message_max() })
            }
            Answer::PageGone(why) => Err(BrowserError::PageGone { why }),
            Answer::BrowserGone(why) => Err(BrowserError::Gone { why }),
        }
    }

    /// Waits until something is so. `None` when the time is over.
    pub(crate) fn wait<T>(
        &self,
        deadline: Deadline,
        mut look: impl FnMut(&mut World) -> Option<T>,
    ) -> Result<Option<T>, BrowserError> {
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state.world) {
                return Ok(Some(found));
            }
            if let Some(why) = &state.gone {
                return Err(BrowserError::Gone { why: why.clone() });
            }
            let left = deadline.left();
            if left.is_zero() {
                return Ok(None);
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.lock().world)
    }

    pub(crate) fn gone(&self) -> Option<String> {
        self.lock().gone.clone()
    }

    /// The browser is gone, for a reason that is known better than the pipe's.
    pub(crate) fn set_gone(&self, why: &str) {
        self.shared.set_gone(why);
    }

    /// Puts a message into the outbox. A browser that does not read does not hold the caller longer than it wants.
    fn send(&self, mut message: Vec<u8>, what: &'static str, deadline: Deadline) -> Result<(), BrowserError> {
        loop {
            match self.outbox.try_send(message) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => {
                    let why = self.gone().unwrap_or_else(|| "its pipe is closed".to_owned());
                    return Err(BrowserError::Gone { why });
                }
                Err(TrySendError::Full(back)) => message = back,
            }
            if deadline.is_over() {
                return Err(deadline.timed_out(what));
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn message_max(&self) -> u64 {
        self.look(|world| world.message_bytes_max())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }
}

impl Shared {
    /// A panic of another thread leaves whole values behind: every change is one assignment.
    fn lock(&self) -> MutexGuard<'_, State> {
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
            Frame::Message(Message { id: Some(id), result, error, .. }) => {
                let answer = error.map_or(Answer::Result(result), |refusal| Answer::Refused(refusal.message));
                self.answer(id, answer);
            }
            Frame::TooLong(Some(id)) => self.answer(id, Answer::TooLong),
            Frame::Message(Message { method: Some(method), params, session_id, .. }) => {
                self.event(&method, &params, session_id.as_deref(), outbox);
            }
            Frame::Message(_) | Frame::TooLong(None) | Frame::Garbage => self.lock().world.count_dropped(),
        }
    }

    fn answer(&self, id: u64, answer: Answer) {
        // Nobody waits any more, or nobody ever did.
        let Some(pending) = self.lock().pending.remove(&id) else { return };
        drop(pending.answer.try_send(answer));
    }

    fn event(&self, method: &str, params: &Value, session: Option<&str>, outbox: &SyncSender<Vec<u8>>) {
        let mut state = self.lock();
        let Consequences { orders, lost, delete } = state.world.on_event(method, params, session);
        for Order { session, method, params } in orders {
            state.next_id += 1;
            let message = encode(state.next_id, session.as_deref(), method, &params);
            if outbox.try_send(message).is_err() {
                state.world.count_dropped();
            }
        }
        for (session, why) in lost {
            let of_it = |pending: &Pending| pending.session.as_deref() == Some(session.as_str());
            for (_, pending) in state.pending.extract_if(.., |_, pending| of_it(pending)) {
                drop(pending.answer.try_send(Answer::PageGone(why.clone())));
            }
        }
        drop(state);
        for guid in delete {
            // It may not be there yet, or no longer.
            drop(std::fs::remove_file(self.downloads.join(guid)));
        }
        self.changed.notify_all();
    }
}

fn encode(id: u64, session: Option<&str>, method: &str, params: &Value) -> Vec<u8> {
    let mut message = json!({"id": id, "method": method, "params": params});
    if let Some(session) = session {
        message["sessionId"] = session.into();
    }
    let mut bytes = message.to_string().into_bytes();
    bytes.push(0);
    bytes
}

/// The browser's own words for a page that went elsewhere while a script ran.
fn refused(method: &'static str, why: &str) -> BrowserError {
    const ELSEWHERE: [&str; 4] = [
        "navigated or closed",
        "context was destroyed",
        "Cannot find context",
        "Cannot find default execution context",
    ];
    const CLOSED: [&str; 3] = ["Session with given id not found", "No target with given id", "Target crashed"];
    if ELSEWHERE.iter().any(|words| why.contains(words)) {
        return BrowserError::Replaced;
    }
    if CLOSED.iter().any(|words| why.contains(words)) {
        return BrowserError::PageGone { why: "it was closed".to_owned() };
    }
    BrowserError::Protocol { method: method.to_owned(), why: why.chars().take(300).collect() }
}

fn write_all(mut to_it: PipeWriter, messages: &Receiver<Vec<u8>>) {
    while let Ok(message) = messages.recv() {
        // An empty one is a farewell.
        if message.is_empty() || to_it.write_all(&message).is_err() {
            return;
        }
    }
}

fn read_all(mut from_it: PipeReader, max: usize, shared: &Shared, outbox: &SyncSender<Vec<u8>>) {
    let mut framer = Framer::new(max);
    let mut part = vec![0; READ_BYTES];
    while let Ok(count @ 1..) = from_it.read(&mut part) {
        for frame in framer.push(&part[..count]) {
            shared.take(frame, outbox);
        }
    }
    shared.set_gone("its process ended");
    // The writer has an end of the pipe; with it the browser would never see that it is closed.
    drop(outbox.try_send(Vec::new()));
}
