//! Standard input and output as a wire.
//!
//! Two threads move bytes. The reader turns lines into messages and notices the end of the input. The writer writes
//! the queue; the queue is bounded, so a fast connector is slowed down to its runtime. Nobody waits for ever: a
//! runtime that does not read is given up after a timeout, and the process can end while the writer is still blocked
//! in its pipe.
//!
//! The real standard output is hidden from the rest of the program: output of a library goes to stderr, where it is
//! harmless.

use crate::wire::{Aside, Wire, WireFault};
use gleaner_protocol::{Limits, RuntimeMessage};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum of queued bytes: collecting continues while the runtime stores the last page.
const QUEUE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes per write, so that progress is visible.
const PIECE_BYTES: usize = 64 * 1024;
/// Maximum of unread messages. A runtime only answers, so there are one or two.
const MESSAGES_MAX: usize = 16;
/// Longest time without reading by a runtime that still holds our input: as long as an acknowledgement may take. It
/// may wait for a disk.
const UNREAD_MAX: Duration = Duration::from_secs(30 * 60);
/// The same after it closed our input: then it has ended, and another process holds the pipe.
const UNREAD_AFTER_END_MAX: Duration = Duration::from_secs(2);
/// Poll interval of a waiting writer.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Standard input and output.
pub(crate) struct Stdio {
    queue: Arc<Queue>,
    messages: Receiver<Result<RuntimeMessage, WireFault>>,
    /// Set by the reader.
    has_ended: Arc<AtomicBool>,
}

gleaner_base::debug_only!(Stdio);

impl Stdio {
    /// Takes standard input and output over, for the rest of the process.
    pub(crate) fn open() -> io::Result<Self> {
        // Not below 3, and close-on-exec: a child that held it would keep the runtime waiting.
        let output = rustix::io::fcntl_dupfd_cloexec(io::stdout().as_fd(), 3)?;
        rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
        let pipe = output.try_clone()?;
        Self::over(io::stdin(), File::from(output), move || rustix::io::ioctl_fionread(&pipe).ok())
    }

    /// The same over any two streams; `unread` returns the unread bytes of the output, if known. A write returns only
    /// when all bytes are written, so it does not show partial progress.
    fn over(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        unread: impl Fn() -> Option<u64> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let queue = Queue { state: Mutex::default(), changed: Condvar::new(), unread: Box::new(unread) };
        let queue = Arc::new(queue);
        let has_ended = Arc::new(AtomicBool::new(false));
        let (sender, messages) = sync_channel(MESSAGES_MAX);
        let (reader_end, writer_queue) = (Arc::clone(&has_ended), Arc::clone(&queue));
        thread::Builder::new().name("gleaner-read".to_owned()).spawn(move || {
            read_messages(input, &sender);
            reader_end.store(true, Ordering::Release);
        })?;
        thread::Builder::new().name("gleaner-write".to_owned()).spawn(move || writer_queue.write_to(output))?;
        Ok(Self { queue, messages, has_ended })
    }
}

impl Wire for Stdio {
    fn write(&mut self, bytes: &[u8]) -> Result<(), WireFault> {
        let patience = || if self.has_ended.load(Ordering::Acquire) { UNREAD_AFTER_END_MAX } else { UNREAD_MAX };
        let mut state = self.queue.wait(patience, |state| state.queued.len() < QUEUE_BYTES_MAX)?;
        state.queued.extend_from_slice(bytes);
        state.is_inside_a_line = bytes.last().map_or(state.is_inside_a_line, |last| *last != b'\n');
        self.queue.changed.notify_all();
        Ok(())
    }

    fn aside(&self) -> Option<Box<dyn Aside>> {
        Some(Box::new(Beside(Arc::clone(&self.queue))))
    }

    fn hold_asides(&mut self, hold: bool) {
        self.queue.lock().asides_are_held = hold;
    }

    fn read(&mut self) -> Result<Option<RuntimeMessage>, WireFault> {
        // The sender is gone when the input has ended.
        self.messages.recv().ok().transpose()
    }

    fn drain(&mut self, patience: Duration) -> Result<(), WireFault> {
        self.queue.wait(|| patience, |state| state.queued.is_empty() && !state.is_writing).map(drop)
    }

    fn wait_for_end(&mut self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        loop {
            match self.messages.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

/// Output queue.
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
    unread: Box<dyn Fn() -> Option<u64> + Send + Sync>,
}

#[derive(Default)]
struct QueueState {
    queued: Vec<u8>,
    is_writing: bool,
    is_broken: bool,
    /// The rest of a line follows.
    is_inside_a_line: bool,
    asides_are_held: bool,
    /// Grows with all bytes that the pipe takes.
    progress: u64,
}

/// Adds whole lines between those of the connector.
struct Beside(Arc<Queue>);

impl Aside for Beside {
    fn say(&self, line: &[u8]) -> bool {
        let mut state = self.0.lock();
        // A nonempty queue means that the runtime has enough to read.
        if state.is_broken || state.is_inside_a_line || state.asides_are_held || !state.queued.is_empty() {
            return false;
        }
        state.queued.extend_from_slice(line);
        self.0.changed.notify_all();
        true
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // A change of the state is one assignment, so a poisoned lock is still consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `is_ready`, for at most `patience` without progress.
    fn wait(
        &self,
        patience: impl Fn() -> Duration,
        is_ready: impl Fn(&QueueState) -> bool,
    ) -> Result<MutexGuard<'_, QueueState>, WireFault> {
        let mut state = self.lock();
        let (mut seen, mut since) = ((state.progress, (self.unread)()), Instant::now());
        loop {
            if state.is_broken {
                return Err(WireFault::Disconnected);
            }
            if is_ready(&state) {
                return Ok(state);
            }
            let now = (state.progress, (self.unread)());
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if since.elapsed() >= patience() {
                state.is_broken = true;
                return Err(WireFault::Disconnected);
            }
            let waited = self.changed.wait_timeout(state, POLL_INTERVAL.min(patience()));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn write_to(&self, mut output: impl Write) {
        let mut taken = Vec::new();
        loop {
            taken.clear();
            {
                let mut state = self.lock();
                state.is_writing = false;
                self.changed.notify_all();
                while state.queued.is_empty() {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                std::mem::swap(&mut taken, &mut state.queued);
                state.is_writing = true;
                self.changed.notify_all();
            }
            for piece in taken.chunks(PIECE_BYTES) {
                let written = self.write_piece(&mut output, piece);
                let mut state = self.lock();
                state.progress += 1;
                state.is_broken |= written.is_err();
                self.changed.notify_all();
                if state.is_broken {
                    return;
                }
            }
        }
    }

    /// Writes one piece completely. Waits for a nonblocking pipe.
    fn write_piece(&self, output: &mut impl Write, mut piece: &[u8]) -> io::Result<()> {
        while !piece.is_empty() {
            match output.write(piece) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    piece = &piece[count..];
                    self.lock().progress += 1;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    drop(self.changed.wait_timeout(self.lock(), POLL_INTERVAL));
                }
                Err(error) => return Err(error),
            }
        }
        output.flush()
    }
}

/// Turns lines into messages, until the input ends or the receiver is gone. An incomplete line is no message.
fn read_messages(input: impl Read, messages: &SyncSender<Result<RuntimeMessage, WireFault>>) {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    loop {
        line.clear();
        let bytes_max = Limits::LINE_BYTES_MAX as u64 + 1;
        match input.by_ref().take(bytes_max).read_until(b'\n', &mut line) {
            Ok(_) if line.last() == Some(&b'\n') => {}
            Ok(0) | Err(_) => return,
            Ok(count) => {
                if count as u64 == bytes_max {
                    drop(messages.send(Err(WireFault::Unreadable("it is longer than 16 MiB".to_owned()))));
                }
                return;
            }
        }
        let text = line.trim_ascii_end();
        if text.is_empty() {
            continue;
        }
        let message = RuntimeMessage::decode(text).map_err(|violation| WireFault::Unreadable(violation.to_string()));
        if messages.send(message).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use std::sync::atomic::AtomicU64;

    const ANSWER: &str =
        r#"{"type":"DETAIL_GAPS_PAGE_RESPONSE","request_id":"g","reference_only":true,"detail_gaps":[]}"#;

    /// A reader that never reads.
    struct Stuck;

    impl Write for Stuck {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            thread::park();
            Ok(0)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A reader that is slow and reads.
    struct Slow(Arc<Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            thread::park_timeout(Duration::from_millis(60));
            self.0.lock().unwrap().extend_from_slice(&bytes[..bytes.len().min(10)]);
            Ok(bytes.len().min(10))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_messages_and_half_a_line_is_none() {
        let input = format!("\r\n{ANSWER}\r\n\nnot json\n{ANSWER}");
        let mut wire = Stdio::over(Cursor::new(input), io::sink(), || None).unwrap();
        assert!(matches!(wire.read(), Ok(Some(RuntimeMessage::GapsPageResponse(_)))));
        assert!(matches!(wire.read(), Err(WireFault::Unreadable(_))));
        assert_eq!(wire.read(), Ok(None));
        assert!(wire.wait_for_end(Duration::ZERO));
    }

    #[test]
    fn safety_timeout_gives_up_a_reader_that_never_reads_and_not_one_that_is_slow() {
        let mut wire = Stdio::over(Cursor::new(""), Stuck, || None).unwrap();
        wire.write(b"last words\n").unwrap();
        let start = Instant::now();
        assert_eq!(wire.drain(Duration::from_millis(200)), Err(WireFault::Disconnected));
        assert!((200..2000).contains(&start.elapsed().as_millis()));
        assert_eq!(wire.write(b"more\n"), Err(WireFault::Disconnected));

        let read = Arc::new(Mutex::new(Vec::new()));
        let mut wire = Stdio::over(Cursor::new(""), Slow(Arc::clone(&read)), || None).unwrap();
        let words = "0123456789".repeat(8);
        wire.write(words.as_bytes()).unwrap();
        // All of it takes 480 ms; each part of it less than the patience.
        assert_eq!(wire.drain(Duration::from_millis(250)), Ok(()));
        assert_eq!(*read.lock().unwrap(), words.as_bytes());
    }

    #[test]
    fn a_reader_that_takes_a_little_is_seen_although_no_write_returns() {
        let (reads, seen) = (Arc::new(AtomicU64::new(4096)), Arc::new(AtomicU64::new(0)));
        let (unread, looks) = (Arc::clone(&reads), Arc::clone(&seen));
        let look = move || {
            looks.fetch_add(1, Ordering::Relaxed);
            Some(unread.fetch_sub(u64::from(looks.load(Ordering::Relaxed) < 8), Ordering::Relaxed))
        };
        let mut wire = Stdio::over(Cursor::new(""), Stuck, look).unwrap();
        wire.write(b"last words\n").unwrap();
        assert_eq!(wire.drain(Duration::from_millis(250)), Err(WireFault::Disconnected));
        assert!(seen.load(Ordering::Relaxed) > 8, "it was waited for as long as somebody read");
    }

    #[test]
    fn what_is_said_aside_goes_between_two_lines_and_not_while_it_is_held() {
        let read = Arc::new(Mutex::new(Vec::new()));
        let mut wire = Stdio::over(Cursor::new(""), Slow(Arc::clone(&read)), || None).unwrap();
        let aside = wire.aside().unwrap();
        assert!(aside.say(b"1\n"));
        wire.drain(Duration::from_secs(30)).unwrap();
        wire.write(b"two ").unwrap();
        wire.drain(Duration::from_secs(30)).unwrap();
        assert!(!aside.say(b"never\n"), "in the middle of a line");
        wire.write(b"halves\n").unwrap();
        wire.drain(Duration::from_secs(30)).unwrap();
        wire.hold_asides(true);
        assert!(!aside.say(b"never\n"), "while a question waits");
        wire.hold_asides(false);
        assert!(aside.say(b"3\n"));
        wire.drain(Duration::from_secs(30)).unwrap();
        assert_eq!(String::from_utf8(read.lock().unwrap().clone()).unwrap(), "1\ntwo halves\n3\n");
    }

    #[test]
    fn a_queue_is_bounded_and_given_up_when_the_runtime_is_gone() {
        let mut wire = Stdio::over(Cursor::new(""), Stuck, || None).unwrap();
        let megabyte = vec![b'x'; 1024 * 1024];
        let written = (0..100).take_while(|_| wire.write(&megabyte).is_ok()).count();
        // The writer took some of it before it got stuck.
        assert!((4..=10).contains(&written), "{written} MiB were queued");
    }
}
