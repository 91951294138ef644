//! Who a process is, so that a lease can tell whether its holder still lives, and the clock of leases.
//!
//! Why more than a pid: pids are used again. A pid with the time at which its process started, in one
//! boot and one namespace, is one process. Why the clock counts from the machine's start: leases must
//! not move when somebody sets the calendar, and all processes of a machine read the same value; it
//! goes on while the machine sleeps, so a lease does not outlive a closed lid. Where the system does
//! not tell (no `/proc`), nobody is declared dead and leases end by their time alone.

use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::io;

/// One process of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    pub(crate) started: u64,
    pub(crate) boot: String,
    pub(crate) pid_namespace: String,
}

impl Holder {
    /// This process.
    ///
    /// # Errors
    ///
    /// When the system does not tell what it should.
    pub fn current() -> io::Result<Self> {
        let pid = std::process::id();
        Ok(Self { pid, started: started(pid).unwrap_or(0), boot: boot()?, pid_namespace: pid_namespace() })
    }

    /// Whether this process, seen from `from`, is certainly no longer there.
    pub(crate) fn is_dead_for(&self, from: &Self) -> bool {
        if self.boot != from.boot {
            return true;
        }
        // In another container, or where processes cannot be seen at all: we do not know.
        if self.pid_namespace != from.pid_namespace || self.pid_namespace.is_empty() || self.started == 0 {
            return false;
        }
        match stat(self.pid) {
            Ok(stat) => parse_started(&stat) != Some(self.started),
            // Anything else, such as no file handle left, tells about us and not about it.
            Err(error) => is_nobody(&error),
        }
    }
}

/// When a process started, in ticks since the boot; `None` when there is no such process.
fn started(pid: u32) -> Option<u64> {
    parse_started(&stat(pid).ok()?)
}

fn stat(pid: u32) -> io::Result<String> {
    fs::read_to_string(format!("/proc/{pid}/stat"))
}

/// Whether this says that there is no such process: it was not there, or ended while it was read.
fn is_nobody(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// The 22nd field; the second is a name in parentheses that may hold anything, blanks and
/// parentheses included. A zombie holds nothing any more.
fn parse_started(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn boot() -> io::Result<String> {
    match fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Ok(id) => Ok(id.trim().to_owned()),
        // Another system: then a clock that went back tells of a restart.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

fn pid_namespace() -> String {
    fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Milliseconds since the machine started, sleep included.
pub(crate) fn boot_millis() -> u64 {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;
    let time = clock_gettime(CLOCK);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_alive_until_it_is_gone() {
        let us = Holder::current().unwrap();
        assert!(!us.is_dead_for(&us));
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let started = started(child.id()).unwrap();
        let other = Holder { pid: child.id(), started, ..us.clone() };
        assert!(!other.is_dead_for(&us));
        let reused = Holder { started: started - 1, ..other.clone() };
        assert!(reused.is_dead_for(&us), "the pid belongs to another process now");
        child.kill().unwrap();
        // Even before it is reaped.
        while !other.is_dead_for(&us) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(other.is_dead_for(&us));
    }

    #[test]
    fn a_holder_of_another_boot_is_dead_and_one_of_another_container_is_not_known_to_be() {
        let us = Holder::current().unwrap();
        let other_boot = Holder { boot: "x".to_owned(), ..us.clone() };
        assert!(other_boot.is_dead_for(&us));
        let container = Holder { pid: 1, started: 1, pid_namespace: "pid:[1]".to_owned(), ..us.clone() };
        assert!(!container.is_dead_for(&us));
    }

    #[test]
    fn who_cannot_look_does_not_know() {
        assert!(is_nobody(&stat(u32::MAX).unwrap_err()));
        assert!(is_nobody(&rustix::io::Errno::SRCH.into()));
        for ours in [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE, rustix::io::Errno::ACCESS] {
            assert!(!is_nobody(&ours.into()), "{ours}");
        }
    }

    #[test]
    fn a_name_with_parentheses_does_not_move_the_fields() {
        let fields = (3..=30).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let stat = |state: &str| format!("7 (a) b (c)) {state} {}", fields.split_once(' ').unwrap().1);
        assert_eq!(parse_started(&stat("S")), Some(22));
        assert_eq!(parse_started(&stat("Z")), None);
        assert_eq!(parse_started(""), None);
    }
}
