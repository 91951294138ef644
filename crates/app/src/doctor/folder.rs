//! The data root: whose it is, what it stands on, and what was left in it.

use super::{Check, all_well, failed, warning, well};
use crate::app::App;
use gleaner_vault::Vault;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Below this a run may end in the middle of a large slice.
const SPACE_MIN: u64 = 100 * 1024 * 1024;
/// Below this it is time to think of it.
const SPACE_GOOD: u64 = 1024 * 1024 * 1024;
/// Entries of the folder that are looked at for leftovers; there are a dozen.
const ENTRIES_MAX: usize = 10_000;

pub(super) fn data_root(app: &App) -> Check {
    const NAME: &str = "data root";
    let root = app.root();
    let shown = root.display();
    let metadata = match fs::metadata(root) {
        Ok(metadata) if metadata.is_dir() => metadata,
        Ok(_) => return failed(NAME, format!("{shown} is no folder"), "give another one: --home DIR"),
        Err(error) => return failed(NAME, format!("{shown}: {error}"), "run: gleaner init"),
    };
    let (owner, us) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner != us {
        return failed(
            NAME,
            format!("{shown} belongs to user {owner}, you are {us}"),
            "give one of your own: --home DIR",
        );
    }
    match metadata.mode() & 0o777 {
        0o700 => well(NAME, format!("{shown} is yours alone")),
        mode => failed(NAME, format!("{shown} has mode {mode:03o}"), format!("run: chmod 700 '{shown}'")),
    }
}

pub(super) fn checks(app: &App) -> Vec<Check> {
    let mut checks = Vec::new();
    // What does not exist has no file system.
    if app.root().is_dir() {
        checks.extend([file_system(app.root()), free_space(app.root()), credential_key(app), leftovers(app)]);
        checks.push(connector_folder(app));
    }
    checks
}

fn file_system(root: &Path) -> Check {
    const NAME: &str = "file system";
    #[cfg(target_os = "linux")]
    if let Ok(found) = rustix::fs::statfs(root) {
        // Its type differs between machines; the numbers do not.
        return judge_file_system(NAME, found.f_type as u64 & 0xffff_ffff);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = root;
    well(NAME, "its kind is not told here")
}

/// File systems over a network, by the numbers in statfs(2). A write-ahead log needs memory that all
/// processes share, and other machines do not.
#[cfg(target_os = "linux")]
fn judge_file_system(name: &'static str, kind: u64) -> Check {
    const NETWORK: [(u64, &str); 9] = [
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x0102_1997, "9P"),
        (0x5346_414f, "AFS"),
        (0x00c3_6400, "Ceph"),
        (0x0bd0_0bd0, "Lustre"),
        (0x6573_5546, "FUSE"),
    ];
    let hint = "move the data root to a disk of this machine: --home DIR, or GLEANER_HOME";
    match NETWORK.iter().find(|(known, _)| *known == kind) {
        // It may be a local one.
        Some((_, "FUSE")) => warning(name, "the data root is on a FUSE file system", hint),
        Some((_, kind)) => failed(name, format!("the data root is on {kind}, which loses what is saved"), hint),
        None => well(name, format!("it is one of this machine (0x{kind:x})")),
    }
}

fn free_space(root: &Path) -> Check {
    match rustix::fs::statvfs(root) {
        Ok(found) => judge_space(found.f_bavail.saturating_mul(found.f_frsize)),
        Err(error) => failed("free space", format!("cannot be told: {error}"), "check the disk"),
    }
}

fn judge_space(free: u64) -> Check {
    const NAME: &str = "free space";
    let what = format!("{} MiB are free", free / (1024 * 1024));
    let hint = "free some space, or move the data root: --home DIR";
    match free {
        0..SPACE_MIN => failed(NAME, what, hint),
        SPACE_MIN..SPACE_GOOD => warning(NAME, what, hint),
        _ => well(NAME, what),
    }
}

/// Where the key is, plainly. Nothing is made: without the folder there are no credentials.
fn credential_key(app: &App) -> Check {
    const NAME: &str = "credential key";
    let folder = app.root().join("secrets");
    if fs::symlink_metadata(folder.join("key")).is_err() {
        let sealed = fs::read_dir(&folder).into_iter().flatten().flatten();
        let sealed = sealed.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "sealed")).count();
        if sealed == 0 {
            return well(NAME, "no credentials are stored yet");
        }
    }
    match Vault::open(app.root()) {
        Ok(vault) => well(NAME, vault.key_place().to_string()),
        Err(error) => failed(NAME, error.to_string(), "the message says what to do"),
    }
}

/// Those that can be added by name.
fn connector_folder(app: &App) -> Check {
    const NAME: &str = "connector folder";
    let catalog = app.catalog();
    if catalog.faulty.is_empty() {
        return well(NAME, format!("{} can be added by name", catalog.connectors.len()));
    }
    let faults = catalog.faulty.iter().map(|faulty| faulty.what.as_str()).collect::<Vec<_>>();
    warning(NAME, faults.join("; "), "correct the manifests, or ask the connectors' authors to")
}

/// What processes left that were killed: harmless, and worth knowing.
fn leftovers(app: &App) -> Check {
    let folders = [app.root().to_owned(), app.control_folder()];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let found = entries.take(ENTRIES_MAX).map(|entry| entry.path());
    let mut left = found.filter(|path| is_left_over(path)).collect::<Vec<PathBuf>>();
    left.sort();
    if left.is_empty() {
        return well("leftovers", "nothing was left behind");
    }
    let names = left.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    let what = names.collect::<Vec<_>>().join(", ");
    warning("leftovers", what, "nobody uses these any more; remove them from the data root")
}

fn is_left_over(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // `store.db.seen.PID` and `store.db.PID.unfinished`.
    let of = |part: Option<&str>| part.and_then(|pid| pid.parse::<u32>().ok());
    let unfinished = name.split_once(".unfinished").and_then(|(rest, _)| of(rest.rsplit('.').next()));
    let note = of(name.strip_prefix("store.db.seen."));
    let is_socket = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    unfinished.or(note).is_some_and(gleaner_base::atomic::is_dead) || (is_socket && UnixStream::connect(path).is_err())
}

/// Modes of what is in the folder.
pub(super) fn modes(app: &App) -> Check {
    let files = ["store.db", "store.db-wal", "store.db-shm", "store.db.seen"];
    let open = |name: &&str| {
        let mode = fs::metadata(app.root().join(name)).ok()?.mode() & 0o777;
        (mode & 0o077 != 0).then(|| format!("{name} has mode {mode:03o}"))
    };
    let faults = files.iter().filter_map(open).collect::<Vec<_>>();
    let hint = format!("run: chmod 600 '{}'/store.db*", app.root().display());
    all_well("file modes", &faults, "the store is yours alone", &hint)
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_network_file_system_fails_and_fuse_is_a_warning() {
        assert_eq!(judge_file_system("f", 0x6969).verdict, Verdict::Failed);
        assert_eq!(judge_file_system("f", 0xff53_4d42).verdict, Verdict::Failed);
        assert_eq!(judge_file_system("f", 0x6573_5546).verdict, Verdict::Warning);
        assert_eq!(judge_file_system("f", 0xef53).verdict, Verdict::Well, "ext4");
        assert_eq!(judge_file_system("f", 0x9123_683e).verdict, Verdict::Well, "btrfs");
    }

    #[test]
    fn little_space_is_a_warning_and_hardly_any_fails() {
        assert_eq!(judge_space(0).verdict, Verdict::Failed);
        assert_eq!(judge_space(SPACE_MIN - 1).verdict, Verdict::Failed);
        assert_eq!(judge_space(SPACE_MIN).verdict, Verdict::Warning);
        assert_eq!(judge_space(SPACE_GOOD).verdict, Verdict::Well);
    }
}
