//! Everything that came out of this process, wherever it went.
//!
//! A process that leaves its group and its parent is still found: orphans are given to us by the
//! kernel once we ask for it, so they stay in the tree. Where there is no `/proc`, only direct
//! children are known, and the guard falls back to the group.

use gleaner_base::process::{Process, processes};
use rustix::process::{Pid, WaitOptions, getpid, waitpid};
use std::collections::BTreeMap;
use std::io;

/// Lets orphans of our children become ours.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    Ok(())
}

/// Takes notice of orphans that have ended, so that they are not found again.
pub(crate) fn reap() {
    while matches!(waitpid(None, WaitOptions::NOHANG), Ok(Some(_))) {}
}

/// All that descend from us and still live.
pub(crate) fn descendants() -> Vec<Pid> {
    let mut children = BTreeMap::<i32, Vec<i32>>::new();
    for Process { pid, parent, .. } in processes() {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut open = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = open.pop() {
        for pid in children.remove(&parent).unwrap_or_default() {
            open.push(pid);
            found.extend(Pid::from_raw(pid));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn children_of_children_are_found_and_the_dead_are_not() {
        let mut child = Command::new("sh").args(["-c", "sleep 100 & wait"]).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let of_child = || descendants().iter().any(|found| found.as_raw_nonzero().get() == pid);
        while descendants().len() < 2 {
            std::thread::yield_now();
        }
        assert!(of_child());
        for found in descendants() {
            rustix::process::kill_process(found, rustix::process::Signal::KILL).unwrap();
        }
        child.wait().unwrap();
        assert!(!of_child());
    }
}
