//! The way to a run that goes on: a socket in the data root that nobody but its owner can open.
//!
//! Why a socket: an answer is a password or a code. Here it goes from one process to another and lies
//! nowhere, neither in a file nor in a list of arguments. A run listens under the epoch of its lease,
//! which no other run of its store has; whoever knows who holds the lease knows where to ask.
//!
//! One client says one line and hears one line. Lines are bounded, clients are few, and each has a time
//! limit, so that one who says nothing keeps nobody waiting; the run itself never waits for a client.

use crate::process::start_thread;
use crate::request::Control;
use gleaner_base::private;
use gleaner_engine::{AnswerTaken, Epoch};
use gleaner_protocol::{RawJson, RuntimeMessage};
use rustix::fs::FlockOperation;
use rustix::net::Shutdown;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The longest line: a form with a few long secrets.
const LINE_BYTES_MAX: usize = 256 * 1024;
/// How long a client may take to say its line.
const CLIENT_MAX: Duration = Duration::from_secs(5);
/// How long the run may take to look up: it may be writing a slice to a slow disk.
const REPLY_MAX: Duration = Duration::from_secs(20);
/// Clients at a time. People answer and cancel one thing at a time.
const CLIENTS_MAX: usize = 8;
/// What the system lets a socket's path be, without its end.
const PATH_BYTES_MAX: usize = 100;
/// Entries of the folder that are looked at for leftovers. There is one per run that was killed.
const LEFTOVERS_MAX: usize = 1000;
/// A pause after the system had no room for a client.
const PAUSE: Duration = Duration::from_millis(50);

const CANCEL: &str = "CANCEL";
const CANCEL_NOW: &str = "CANCEL_NOW";

/// Why a run could not be told something.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody listens.
    #[error("it does not listen")]
    NobodyListens,
    /// Somebody else listens.
    #[error("what listens there belongs to another user")]
    Foreign,
    /// It hung up: it is over, or it has too many to listen to.
    #[error("it hung up without a reply")]
    HungUp,
    /// The system refused, or it took too long.
    #[error("it cannot be reached: {0}")]
    Io(#[from] io::Error),
}

/// Tells the run that holds this epoch what is wanted of it. `Yes` means that it does so.
///
/// # Errors
///
/// When it does not listen or does not reply.
pub fn tell(folder: &Path, epoch: Epoch, order: &Control) -> Result<AnswerTaken, ControlError> {
    let opened = private::open_folder(folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ControlError::NobodyListens,
        _ => error.into(),
    })?;
    let mut stream =
        UnixStream::connect(short_path(&opened, folder, &name(epoch))).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ControlError::NobodyListens,
            _ => ControlError::Io(error),
        })?;
    if !is_ours(&stream) {
        return Err(ControlError::Foreign);
    }
    stream.set_write_timeout(Some(CLIENT_MAX))?;
    stream.write_all(&line_of(order))?;
    let reply = read_line(&mut stream, CLIENT_MAX + REPLY_MAX)?.ok_or(ControlError::HungUp)?;
    field(&reply, "reply").as_deref().and_then(AnswerTaken::from_code).ok_or(ControlError::HungUp)
}

fn line_of(order: &Control) -> Vec<u8> {
    let plain = |word: &str| format!("{{\"type\":\"{word}\"}}\n").into_bytes();
    match order {
        Control::Cancel => plain(CANCEL),
        Control::CancelNow => plain(CANCEL_NOW),
        Control::Answer(response) => {
            let mut line = Vec::new();
            RuntimeMessage::InteractionResponse(response.clone()).encode(&mut line);
            line
        }
    }
}

fn order_of(line: &[u8]) -> Option<Control> {
    match field(line, "type").as_deref() {
        Some(CANCEL) => Some(Control::Cancel),
        Some(CANCEL_NOW) => Some(Control::CancelNow),
        Some(_) | None => match RuntimeMessage::decode(line) {
            Ok(RuntimeMessage::InteractionResponse(response)) => Some(Control::Answer(response)),
            Ok(_) | Err(_) => None,
        },
    }
}

/// A text field of an object.
fn field(line: &[u8], name: &str) -> Option<String> {
    let raw = RawJson::new(std::str::from_utf8(line).ok()?).ok()?;
    let members = raw.members()?;
    let (_, value) = members.iter().find(|(known, _)| known == name)?;
    Some(value.text()?.into_owned())
}

/// One line without its end; nothing when the other side hangs up before it.
fn read_line(stream: &mut UnixStream, max: Duration) -> io::Result<Option<Vec<u8>>> {
    let until = Instant::now() + max;
    let (mut line, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let read = match stream.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = buffer[..read].iter().position(|&byte| byte == b'\n');
        line.extend_from_slice(&buffer[..end.unwrap_or(read)]);
        if end.is_some() {
            return Ok(Some(line));
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

fn is_ours(stream: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid == rustix::process::getuid())
}

fn name(epoch: Epoch) -> String {
    format!("{}.sock", epoch.get())
}

/// The path of a socket, or a shorter one to the same: a data root may lie deeper than the system lets a
/// socket's path be.
fn short_path(opened: &File, folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    if path.as_os_str().len() <= PATH_BYTES_MAX {
        return path;
    }
    PathBuf::from(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd()))
}

/// A run's ear. Closed and removed when it is dropped.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: Arc<UnixListener>,
    closed: Arc<AtomicBool>,
    path: PathBuf,
}

/// Hands an order to the run, which replies through the sender. Whether the run was there.
type Deliver = dyn Fn(Control, Sender<AnswerTaken>) -> bool + Send + Sync;

impl ControlSocket {
    /// Listens under this epoch. What killed runs left in the folder is removed.
    pub(crate) fn bind(folder: &Path, epoch: Epoch, deliver: Arc<Deliver>) -> io::Result<Self> {
        private::make_folder(folder)?;
        let opened = private::open_folder(folder)?;
        let open_to_others = |_| io::Error::other("its folder `run` is open to others; remove it");
        private::check(&opened.metadata()?).map_err(open_to_others)?;
        // Between its bind and its listen a socket looks like a leftover; nobody looks meanwhile.
        rustix::fs::flock(&opened, FlockOperation::LockExclusive)?;
        remove_leftovers(&opened, folder);
        let short = short_path(&opened, folder, &name(epoch));
        let listener = Arc::new(UnixListener::bind(&short)?);
        fs::set_permissions(&short, fs::Permissions::from_mode(private::FILE_MODE))?;
        let closed = Arc::new(AtomicBool::new(false));
        let (ours, is_closed) = (Arc::clone(&listener), Arc::clone(&closed));
        let socket = Self { listener, closed, path: folder.join(name(epoch)) };
        start_thread("listener", move || serve(&ours, &is_closed, &deliver))?;
        Ok(socket)
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // The next run removes what cannot be removed now.
        drop(fs::remove_file(&self.path));
        // Wakes who waits for the next client.
        let _woken = rustix::net::shutdown(&self.listener, Shutdown::Both);
    }
}

/// Removes sockets that nobody listens to.
fn remove_leftovers(opened: &File, folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.take(LEFTOVERS_MAX).flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.ends_with(".sock")) else { continue };
        let answer = UnixStream::connect(short_path(opened, folder, name));
        if answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

fn serve(listener: &UnixListener, closed: &AtomicBool, deliver: &Arc<Deliver>) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let accepted = listener.accept();
        if closed.load(Ordering::Relaxed) {
            return;
        }
        let Ok((stream, _)) = accepted else {
            thread::sleep(PAUSE);
            continue;
        };
        // One too many is hung up on.
        if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
            clients.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (deliver, attended) = (Arc::clone(deliver), Arc::clone(&clients));
        let started = start_thread("client", move || {
            // A client that is gone or talks nonsense is nobody's trouble but its own.
            drop(attend(stream, &*deliver));
            attended.fetch_sub(1, Ordering::Relaxed);
        });
        // Without a thread this client is hung up on as well; it may ask again.
        if started.is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Hears one line, and says what became of it.
fn attend(mut stream: UnixStream, deliver: &Deliver) -> io::Result<()> {
    if !is_ours(&stream) {
        return Ok(());
    }
    stream.set_write_timeout(Some(CLIENT_MAX))?;
    let Some(line) = read_line(&mut stream, CLIENT_MAX)? else { return Ok(()) };
    let code = match order_of(&line) {
        None => "not_understood",
        Some(order) => {
            let (reply, replies) = channel();
            if !deliver(order, reply) {
                return Ok(());
            }
            // Without a reply the run is over, or stuck; the client hears that nobody replies.
            let Ok(taken) = replies.recv_timeout(REPLY_MAX) else { return Ok(()) };
            taken.code()
        }
    };
    stream.write_all(format!("{{\"reply\":\"{code}\"}}\n").as_bytes())
}
