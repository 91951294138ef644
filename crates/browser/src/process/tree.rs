//! All processes of a browser.
//!
//! Most are in the browser's group. Crash reporters leave it and their parent, and a browser started by a driver is
//! in another group. Those are found by arguments and variables that name the profile, which no other browser uses.

use crate::process::MARK;
use gleaner_base::process::{Process, processes};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(10);
const USER_DATA_DIR: &[u8] = b"--user-data-dir=";

/// The leader and all its living descendants. A driver's browser is in its own group, and without a living driver it
/// has no parent of ours: then its profile identifies it.
pub(crate) fn members(leader: Pid, profile: &Path) -> Vec<Pid> {
    let leader = leader.as_raw_nonzero().get();
    let ourselves = rustix::process::getpid().as_raw_nonzero().get();
    let all = processes().into_iter().filter(|one| one.pid != ourselves).collect::<Vec<_>>();
    let is_root = |one: &Process| one.group == leader || one.pid == leader || names(one.pid, profile);
    let mut found = all.iter().filter(|one| is_root(one)).map(|one| one.pid).collect::<Vec<_>>();
    let mut next = 0;
    // Children, and members of groups that they lead.
    while let Some(&one) = found.get(next) {
        let of_it = |other: &&Process| (other.parent == one || other.group == one) && !found.contains(&other.pid);
        let more = all.iter().filter(of_it).map(|other| other.pid).collect::<Vec<_>>();
        found.extend(more);
        next += 1;
    }
    found.into_iter().filter_map(Pid::from_raw).collect()
}

/// Kills all of them until none is left, or a timeout. The leader must not have been reaped, or its id may be reused.
pub(crate) fn kill(leader: Pid, profile: &Path, within: Duration) -> bool {
    let began = Instant::now();
    loop {
        let left = members(leader, profile);
        if left.is_empty() {
            return true;
        }
        for pid in left {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        if began.elapsed() > within {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Whether the browser itself runs, whoever started it: the process with the profile in its own argument.
#[cfg(feature = "patchright")]
pub(crate) fn browser_runs(profile: &Path) -> bool {
    let profile = profile.as_os_str().as_bytes();
    let is_it =
        |words: &[u8]| words.split(|&byte| byte == 0).any(|word| word.strip_prefix(USER_DATA_DIR) == Some(profile));
    processes().iter().any(|one| is_it(&fs::read(format!("/proc/{}/cmdline", one.pid)).unwrap_or_default()))
}

/// Memory of all of them, each shared page counted once.
pub(crate) fn memory(leader: Pid, profile: &Path) -> u64 {
    members(leader, profile).into_iter().filter_map(|pid| proportional(pid.as_raw_nonzero().get())).sum()
}

fn proportional(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Whether a process belongs to a browser with this profile: by an argument that names a path in it, or by our
/// variable ([`crate::process::MARK`]).
fn names(pid: i32, profile: &Path) -> bool {
    let read = |what: &str| fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
    let profile = profile.as_os_str().as_bytes();
    in_words(&read("cmdline"), profile) || in_variables(&read("environ"), profile)
}

fn in_words(words: &[u8], profile: &[u8]) -> bool {
    const OPTIONS: [&[u8]; 2] = [USER_DATA_DIR, b"--database="];
    let is_inside = |value: &[u8], ends: &[u8]| {
        value.strip_prefix(profile).is_some_and(|rest| rest.first().is_none_or(|next| ends.contains(next)))
    };
    let words = words.strip_suffix(b"\0").unwrap_or(words);
    if words.contains(&0) {
        let value = |word: &'_ [u8]| {
            OPTIONS.iter().any(|option| word.strip_prefix(*option).is_some_and(|v| is_inside(v, b"/")))
        };
        return words.split(|&byte| byte == 0).any(value);
    }
    // Chromium's children join all arguments into one. A profile name has no space.
    let starts = (0..words.len()).filter_map(|at| words[at..].strip_prefix(OPTIONS[0]));
    starts.into_iter().any(|value| is_inside(value, b"/ "))
}

fn in_variables(variables: &[u8], profile: &[u8]) -> bool {
    let place = |variable: &'_ [u8]| {
        let value = variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=")?;
        value.strip_prefix(profile).filter(|rest| rest.first() == Some(&b'/')).map(drop)
    };
    variables.split(|&byte| byte == 0).any(|variable| place(variable).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    #[test]
    fn what_left_the_group_is_found_by_the_profile_that_it_names() {
        let profile = Path::new("/data/profiles/of this test");
        let mut leader = Command::new("sleep").arg("100").process_group(0).spawn().unwrap();
        let stray = |word: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", "read -r nothing", word]).stdin(Stdio::piped()).process_group(0).spawn().unwrap()
        };
        let mut ours = stray("--database=/data/profiles/of this test/Crash Reports");
        let mut marked = Command::new("sleep");
        marked.arg("100").env(MARK, profile.join("Crash Reports")).process_group(0);
        let mut marked = marked.spawn().unwrap();
        let ours_leads = ours.id().try_into().unwrap();
        let mut in_its_group = Command::new("sleep").arg("100").process_group(ours_leads).spawn().unwrap();
        let mut others = stray("--database=/data/profiles/of this test 2/Crash Reports");
        let pid = |child: &std::process::Child| Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let found = members(pid(&leader), profile);
        assert!(
            found.contains(&pid(&leader)) && found.contains(&pid(&ours)) && !found.contains(&pid(&others)),
            "{found:?}"
        );
        assert!(found.contains(&pid(&in_its_group)) && found.contains(&pid(&marked)), "{found:?}");
        assert!(memory(pid(&leader), profile) > 0);
        assert!(kill(pid(&leader), profile, Duration::from_secs(5)));
        assert!(leader.wait().is_ok() && ours.wait().is_ok() && in_its_group.wait().is_ok() && marked.wait().is_ok());
        assert!(others.try_wait().unwrap().is_none(), "somebody else's goes on");
        others.kill().unwrap();
        others.wait().unwrap();
    }

    #[test]
    fn a_profile_is_named_by_an_option_by_all_words_in_one_or_by_a_variable() {
        let of = |words: &str| in_words(words.as_bytes(), b"/data/profiles/shop");
        assert!(of("chromium\0--user-data-dir=/data/profiles/shop\0about:blank\0"));
        assert!(of("handler\0--database=/data/profiles/shop/Crash Reports\0"));
        assert!(of("chromium --type=zygote --user-data-dir=/data/profiles/shop --no-sandbox\0"));
        assert!(of("chromium --type=zygote --user-data-dir=/data/profiles/shop\0"));
        assert!(!of("chromium --type=zygote --user-data-dir=/data/profiles/shop2 --no-sandbox\0"));
        assert!(
            !of("vi\0/data/profiles/shop\0") && !of("") && !of("chromium\0--user-data-dir=/data/profiles/shop 2\0")
        );
        let of = |variables: &str| in_variables(variables.as_bytes(), b"/data/profiles/shop");
        assert!(of("HOME=/\0BREAKPAD_DUMP_LOCATION=/data/profiles/shop/Crash Reports\0"));
        assert!(!of("BREAKPAD_DUMP_LOCATION=/data/profiles/shop2/Crash Reports\0"));
        assert!(!of("OTHER=/data/profiles/shop/x\0") && !of(""));
    }
}
