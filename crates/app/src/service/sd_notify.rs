//! What the service tells systemd, if systemd started it: that it is ready, that it stops, that it lives.
//!
//! By hand, because it is one datagram. The sign of life is given by the loop that does the work, and by nothing else: a
//! thread of its own would live on when the loop does not.

use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Whoever started us and wants to hear of us.
#[derive(Debug, Default)]
pub struct Supervisor {
    socket: Option<OsString>,
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// What the environment says, as `systemd` sets it.
    #[must_use]
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let number = |name| variable(name).and_then(|value| value.to_str()?.parse::<u64>().ok());
        // Not ours if it names another process: it was left by whoever started us.
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let micros = number("WATCHDOG_USEC").filter(|micros| *micros > 0 && is_ours);
        Self {
            socket: variable("NOTIFY_SOCKET").filter(|path| !path.is_empty()),
            watchdog: micros.map(Duration::from_micros),
        }
    }

    /// How often a sign of life is wanted: twice as often as it would be missed.
    #[must_use]
    pub fn sign_every(&self) -> Option<Duration> {
        self.watchdog.map(|limit| limit / 2)
    }

    /// It works from now on.
    pub fn ready(&self) {
        self.say("READY=1");
    }

    /// It ends.
    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    /// It lives.
    pub fn alive(&self) {
        if self.watchdog.is_some() {
            self.say("WATCHDOG=1");
        }
    }

    /// What it is doing, for whoever asks systemd.
    pub fn status(&self, text: &str) {
        self.say(&format!("STATUS={}", text.replace('\n', " ")));
    }

    /// That nobody hears is no reason to stop.
    fn say(&self, text: &str) {
        let Some(path) = &self.socket else { return };
        if let Err(error) = send(path, text) {
            tracing::debug!("systemd was not told {text}: {error}");
        }
    }
}

fn send(path: &OsStr, text: &str) -> Result<(), rustix::io::Errno> {
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddrUnix::new_abstract_name(name)?,
        None => SocketAddrUnix::new(path)?,
    };
    // Without waiting: whoever does not listen must not hold us up.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    rustix::net::sendto(&socket, text.as_bytes(), SendFlags::NOSIGNAL, &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    fn supervisor(pairs: &[(&str, &str)]) -> Supervisor {
        let variable = |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        Supervisor::from_environment(variable)
    }

    #[test]
    fn it_tells_systemd_and_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let systemd = supervisor(&[("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "3000000")]);
        assert_eq!(systemd.sign_every(), Some(Duration::from_millis(1500)));
        systemd.ready();
        systemd.alive();
        systemd.status("two\nlines");
        systemd.stopping();
        let mut heard = Vec::new();
        for _ in 0..4 {
            let mut buffer = [0; 64];
            let length = socket.recv(&mut buffer).unwrap();
            heard.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
        }
        assert_eq!(heard, ["READY=1", "WATCHDOG=1", "STATUS=two lines", "STOPPING=1"]);
    }

    #[test]
    fn without_systemd_nothing_is_said_and_another_processs_watchdog_is_not_ours() {
        let nobody = supervisor(&[]);
        nobody.ready();
        nobody.alive();
        assert_eq!(nobody.sign_every(), None);
        let other = supervisor(&[("WATCHDOG_USEC", "3000000"), ("WATCHDOG_PID", "1")]);
        assert_eq!(other.sign_every(), None);
        // A socket that is gone holds nobody up.
        supervisor(&[("NOTIFY_SOCKET", "/nonexistent/socket")]).ready();
    }
}
