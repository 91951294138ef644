//! What the owner is known by: the token, sessions of browsers, and one-time links.
//!
//! Of each only a hash is held, and hashes are compared in constant time. The token lies in a file that only the owner
//! can read, since other programs of the owner's use it; sessions are kept as hashes, so that a restart signs nobody out.
//! A link is good once, for a quarter of an hour, and never survives the process.

use crate::auth::private_file;
use crate::error::ConsoleError;
use blake3::Hash;
use gleaner_engine::WallTime;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a one-time link waits to be opened: to the browser and back, with an interruption.
const LINK_LIFE: Duration = Duration::from_secs(15 * 60);
/// How long a browser stays signed in.
pub(crate) const SESSION_LIFE: Duration = Duration::from_secs(30 * 86_400);
/// Browsers that are signed in; beyond it the oldest is signed out.
const SESSIONS_MAX: usize = 32;
/// Links that wait; beyond it the oldest is void.
const LINKS_MAX: usize = 8;
/// Bytes of a secret: 256 bits.
const SECRET_BYTES: usize = 32;
const TOKEN_FILE: &str = "token";
const SESSIONS_FILE: &str = "sessions";
/// The longest of both files: [`SESSIONS_MAX`] lines of a hash and a date.
const FILE_BYTES_MAX: usize = 16 * 1024;

/// A secret that somebody is told once. It is shown by nobody else.
pub(crate) struct Secret(String);

impl Secret {
    fn new() -> Result<Self, ConsoleError> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| ConsoleError::Random(error.to_string()))?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Copy, Debug)]
struct Timed {
    hash: Hash,
    until: WallTime,
}

/// Everything that the owner is known by.
#[derive(Debug)]
pub(crate) struct Keys {
    token: Hash,
    sessions_path: PathBuf,
    sessions: Mutex<Vec<Timed>>,
    links: Mutex<Vec<Timed>>,
}

impl Keys {
    /// Reads the files of a data root, and makes a token if there is none.
    pub(crate) fn open(root: &Path, now: WallTime) -> Result<Self, ConsoleError> {
        let folder = private_file::folder(root)?;
        let token = blake3::hash(token(&folder)?.as_bytes());
        let sessions_path = folder.join(SESSIONS_FILE);
        let text = private_file::read(&sessions_path, FILE_BYTES_MAX)?.unwrap_or_default();
        let mut sessions = text.lines().filter_map(session_from_line).collect();
        tidy(&mut sessions, SESSIONS_MAX, now);
        Ok(Self { token, sessions_path, sessions: Mutex::new(sessions), links: Mutex::default() })
    }

    pub(crate) fn is_token(&self, token: &str) -> bool {
        blake3::hash(token.as_bytes()) == self.token
    }

    pub(crate) fn is_session(&self, session: &str, now: WallTime) -> bool {
        find(&lock(&self.sessions), session, now).is_some()
    }

    /// A code that opens one session.
    pub(crate) fn new_link(&self, now: WallTime) -> Result<Secret, ConsoleError> {
        let code = Secret::new()?;
        let mut links = lock(&self.links);
        links.push(Timed { hash: blake3::hash(code.reveal().as_bytes()), until: now + LINK_LIFE });
        tidy(&mut links, LINKS_MAX, now);
        Ok(code)
    }

    /// Takes a code and gives a session for it; nothing when the code is not good, or no longer.
    pub(crate) fn exchange(&self, code: &str, now: WallTime) -> Result<Option<Secret>, ConsoleError> {
        {
            let mut links = lock(&self.links);
            let Some(at) = find(&links, code, now) else { return Ok(None) };
            links.remove(at);
        }
        let session = Secret::new()?;
        let mut sessions = lock(&self.sessions);
        sessions.push(Timed { hash: blake3::hash(session.reveal().as_bytes()), until: now + SESSION_LIFE });
        tidy(&mut sessions, SESSIONS_MAX, now);
        self.keep(&sessions)?;
        Ok(Some(session))
    }

    /// Ends a session.
    pub(crate) fn sign_out(&self, session: &str, now: WallTime) -> Result<(), ConsoleError> {
        let mut sessions = lock(&self.sessions);
        let Some(at) = find(&sessions, session, now) else { return Ok(()) };
        sessions.remove(at);
        self.keep(&sessions)
    }

    fn keep(&self, sessions: &[Timed]) -> Result<(), ConsoleError> {
        let line = |session: &Timed| format!("{} {}\n", session.hash.to_hex(), session.until.as_unix_millis());
        private_file::replace(&self.sessions_path, &sessions.iter().map(line).collect::<String>())
    }
}

/// The token of a data root, for programs of the owner's; made if there is none.
///
/// # Errors
///
/// When it cannot be read or made, or others could read it.
pub fn token_of(root: &Path) -> Result<String, ConsoleError> {
    token(&private_file::folder(root)?)
}

fn token(folder: &Path) -> Result<String, ConsoleError> {
    let path = folder.join(TOKEN_FILE);
    if private_file::read(&path, FILE_BYTES_MAX)?.is_none() {
        private_file::make(&path, &format!("{}\n", Secret::new()?.reveal()))?;
    }
    let text = private_file::read(&path, FILE_BYTES_MAX)?.unwrap_or_default();
    let token = text.trim_end();
    let is_token = token.len() == 2 * SECRET_BYTES && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_token { Ok(token.to_owned()) } else { Err(ConsoleError::BadToken(path)) }
}

/// What cannot be read was never a session of ours, and signs nobody in.
fn session_from_line(line: &str) -> Option<Timed> {
    let (hash, until) = line.split_once(' ')?;
    Some(Timed { hash: Hash::from_hex(hash).ok()?, until: WallTime::from_unix_millis(until.parse().ok()?) })
}

/// All are looked at, so that the time that it takes says nothing.
fn find(among: &[Timed], secret: &str, now: WallTime) -> Option<usize> {
    let hash = blake3::hash(secret.as_bytes());
    let mut found = None;
    for (at, known) in among.iter().enumerate() {
        if known.hash == hash && known.until > now {
            found = Some(at);
        }
    }
    found
}

fn tidy(among: &mut Vec<Timed>, max: usize, now: WallTime) {
    among.retain(|known| known.until > now);
    let surplus = among.len().saturating_sub(max);
    among.drain(..surplus);
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn at(seconds: u64) -> WallTime {
        WallTime::from_unix_millis(seconds * 1000)
    }

    fn root() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_link_is_good_once_and_for_a_quarter_of_an_hour() {
        let root = root();
        let keys = Keys::open(root.path(), at(0)).unwrap();
        let code = keys.new_link(at(0)).unwrap();
        assert!(keys.exchange("wrong", at(1)).unwrap().is_none());
        let session = keys.exchange(code.reveal(), at(899)).unwrap().unwrap();
        assert!(keys.exchange(code.reveal(), at(899)).unwrap().is_none(), "twice");
        assert!(keys.is_session(session.reveal(), at(900)));
        assert!(!keys.is_session(code.reveal(), at(900)));
        let late = keys.new_link(at(0)).unwrap();
        assert!(keys.exchange(late.reveal(), at(900)).unwrap().is_none(), "too late");
    }

    #[test]
    fn sessions_outlive_the_process_and_end_with_their_time_or_on_request() {
        let root = root();
        let keys = Keys::open(root.path(), at(0)).unwrap();
        let open = || keys.exchange(keys.new_link(at(0)).unwrap().reveal(), at(0)).unwrap().unwrap();
        let (kept, left) = (open(), open());
        keys.sign_out(left.reveal(), at(1)).unwrap();
        let again = Keys::open(root.path(), at(2)).unwrap();
        assert!(again.is_session(kept.reveal(), at(2)));
        assert!(!again.is_session(left.reveal(), at(2)));
        assert!(!again.is_session(kept.reveal(), at(30 * 86_400)));
        let file = std::fs::read_to_string(root.path().join("console/sessions")).unwrap();
        assert!(!file.contains(kept.reveal()), "only a hash is kept");
    }

    #[test]
    fn the_number_of_sessions_and_links_is_bounded() {
        let root = root();
        let keys = Keys::open(root.path(), at(0)).unwrap();
        let first = keys.new_link(at(0)).unwrap();
        for _ in 0..LINKS_MAX {
            keys.new_link(at(0)).unwrap();
        }
        assert!(keys.exchange(first.reveal(), at(0)).unwrap().is_none());
        let open = || keys.exchange(keys.new_link(at(0)).unwrap().reveal(), at(0)).unwrap().unwrap();
        let first = open();
        let others = (0..SESSIONS_MAX).map(|_| open()).collect::<Vec<_>>();
        assert!(!keys.is_session(first.reveal(), at(0)));
        assert!(others.iter().all(|session| keys.is_session(session.reveal(), at(0))));
    }

    #[test]
    fn the_token_is_made_once_for_the_owner_alone() {
        let root = root();
        let token = token_of(root.path()).unwrap();
        assert_eq!(token_of(root.path()).unwrap(), token);
        let path = root.path().join("console/token");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(Keys::open(root.path(), at(0)).unwrap().is_token(&token));
        let names = std::fs::read_dir(root.path().join("console")).unwrap().count();
        assert_eq!(names, 1, "nothing lies beside it");
    }

    #[test]
    fn two_that_make_it_at_once_get_the_same() {
        let root = root();
        let tokens = std::thread::scope(|scope| {
            let threads = (0..8).map(|_| scope.spawn(|| token_of(root.path()))).collect::<Vec<_>>();
            threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect::<Vec<_>>()
        });
        assert!(tokens.iter().all(|token| *token == tokens[0]));
    }

    #[test]
    fn a_token_that_others_can_read_or_that_is_a_link_is_refused() {
        let root = root();
        token_of(root.path()).unwrap();
        let path = root.path().join("console/token");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(token_of(root.path()), Err(ConsoleError::NotPrivate { .. })));
        std::fs::remove_file(&path).unwrap();
        let elsewhere = root.path().join("elsewhere");
        std::fs::write(&elsewhere, "0".repeat(64)).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert!(token_of(root.path()).is_err());
        std::fs::remove_file(&path).unwrap();
        private_file::make(&path, "short\n").unwrap();
        assert!(matches!(token_of(root.path()), Err(ConsoleError::BadToken(_))));
    }
}
