//! The stream of events: tells pages that something has changed, and lets them ask what.
//!
//! One thread looks at one number of the store for all clients, and only while there are any. It says no more than that
//! number and how many questions wait, so an event can be dropped and nothing is lost: the next one says the same. Clients
//! are few, what waits for one is bounded, and whoever does not read is let go.

use crate::problem::Problem;
use crate::server::reading::Reading;
use bytes::Bytes;
use gleaner_store::Reader;
use http_body::{Body as HttpBody, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Streams at a time: far more tabs than anybody has, so that who forgets to close some is not refused. Each holds some
/// kilobytes, and costs a write when something changes.
pub(crate) const CLIENTS_MAX: usize = 512;
/// Events that wait for one client. One that is this far behind reads nothing.
const WAITING_MAX: usize = 16;
/// How often the number is looked at: faster than an eye, slower than slices follow each other.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How often something is said when there is nothing to say, so that a dead connection is noticed.
const SIGN_EVERY: Duration = Duration::from_secs(15);
/// How often a store that cannot be read is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// The clients, and the thread that serves them.
#[derive(Clone, Debug)]
pub(crate) struct Events(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    clients: Vec<mpsc::Sender<Bytes>>,
    is_over: bool,
    number: u64,
}

impl Events {
    /// Starts the thread.
    pub(crate) fn start(reading: Reading) -> std::io::Result<(Self, JoinHandle<()>)> {
        let shared = Arc::<Shared>::default();
        let served = Arc::clone(&shared);
        let thread = thread::Builder::new().name("console-events".to_owned()).spawn(move || served.work(&reading))?;
        Ok((Self(shared), thread))
    }

    /// One more client, which is told the present number at once.
    pub(crate) fn subscribe(&self) -> Result<Stream, Problem> {
        let mut state = self.0.lock();
        state.clients.retain(|client| !client.is_closed());
        if state.clients.len() >= CLIENTS_MAX {
            let problem = Problem::new(
                http::StatusCode::TOO_MANY_REQUESTS,
                "too_many_streams",
                format!("{CLIENTS_MAX} streams of events are open already"),
                "close a tab, or try again later",
            );
            return Err(problem);
        }
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        // There is room for the first.
        let _sent = sender.try_send(hello(state.number));
        state.clients.push(sender);
        self.0.changed.notify_all();
        Ok(Stream(receiver))
    }

    pub(crate) fn clients(&self) -> usize {
        self.0.lock().clients.iter().filter(|client| !client.is_closed()).count()
    }

    /// Ends the thread and all streams.
    pub(crate) fn stop(&self) {
        let mut state = self.0.lock();
        state.is_over = true;
        state.clients.clear();
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, reading: &Reading) {
        while self.wait_for_a_client() {
            match reading.open() {
                Ok(reader) => self.follow(&reader),
                Err(error) => {
                    tracing::debug!(%error, "the stream of events cannot read the store");
                    self.pause(AGAIN_AFTER);
                }
            }
        }
    }

    fn wait_for_a_client(&self) -> bool {
        let idle = |state: &mut State| state.clients.is_empty() && !state.is_over;
        let state = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        !state.is_over
    }

    /// Until nobody listens, or there is another file.
    fn follow(&self, reader: &Reader) {
        let (mut seen, mut said) = (None, Instant::now());
        loop {
            let Ok(found) = reader.change_number() else { return };
            if seen != Some(found) {
                let waiting = reader.open_questions().map_or(0, |questions| questions.len());
                self.tell(|state| {
                    state.number += 1;
                    change(state.number, waiting)
                });
                (seen, said) = (Some(found), Instant::now());
            } else if said.elapsed() >= SIGN_EVERY {
                self.tell(|_| Bytes::from_static(b": still here\n\n"));
                said = Instant::now();
            }
            self.pause(POLL_INTERVAL);
            let state = self.lock();
            if state.is_over || state.clients.is_empty() || !reader.is_current() {
                return;
            }
        }
    }

    fn tell(&self, event: impl FnOnce(&mut State) -> Bytes) {
        let mut state = self.lock();
        let event = event(&mut state);
        state.clients.retain(|client| client.try_send(event.clone()).is_ok());
    }

    /// Ends early at the end only; a client that comes in between is told by the next look.
    fn pause(&self, length: Duration) {
        let on = |state: &mut State| !state.is_over;
        let (state, _) =
            self.changed.wait_timeout_while(self.lock(), length, on).unwrap_or_else(PoisonError::into_inner);
        drop(state);
    }
}

fn hello(number: u64) -> Bytes {
    Bytes::from(format!("retry: 2000\nevent: hello\nid: {number}\ndata: {{\"number\":{number}}}\n\n"))
}

fn change(number: u64, questions: usize) -> Bytes {
    let data = format!("{{\"number\":{number},\"questions_open\":{questions}}}");
    Bytes::from(format!("event: change\nid: {number}\ndata: {data}\n\n"))
}

/// What one client reads.
#[derive(Debug)]
pub(crate) struct Stream(mpsc::Receiver<Bytes>);

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_does_not_read_is_let_go_and_the_others_stay() {
        let events = Events(Arc::default());
        let (mut reads, mut sleeps) = (events.subscribe().unwrap(), events.subscribe().unwrap());
        assert_eq!(events.clients(), 2);
        for number in 0..WAITING_MAX as u64 + 4 {
            events.0.tell(|_| change(number, 0));
            assert!(reads.0.try_recv().is_ok());
        }
        assert_eq!(events.clients(), 1);
        // It gets what waited for it, and then the end.
        assert_eq!(std::iter::from_fn(|| sleeps.0.try_recv().ok()).count(), WAITING_MAX);
        assert!(sleeps.0.is_closed());
        events.stop();
        assert_eq!(events.clients(), 0);
    }
}
