//! Who holds the write lock of a database, for an error that names somebody.
//!
//! Why by reading `/proc/locks` and not by asking the file: a process that opens a file and closes it
//! again loses all its locks on it, and they are what keeps the store whole. This reads a list and
//! never opens the database. Where there is no such list, nobody is named.

use crate::open::beside;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where SQLite keeps the lock of the one writer: this byte of the `-shm` file.
const WRITE_LOCK_BYTE: &str = "120";

pub(crate) fn of(database: &Path) -> Option<u32> {
    let inode = fs::metadata(beside(database, "-shm")).ok()?.ino();
    find(&fs::read_to_string("/proc/locks").ok()?, inode, std::process::id())
}

/// `1: POSIX  ADVISORY  WRITE 1234 08:01:5678 120 120`
fn find(locks: &str, inode: u64, ourselves: u32) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words = line.split_whitespace().collect::<Vec<_>>();
        // Those that only wait have an arrow in the second place.
        let [_, "POSIX", _, "WRITE", pid, file, WRITE_LOCK_BYTE, WRITE_LOCK_BYTE] = words[..] else { return None };
        let same = file.rsplit(':').next()?.parse() == Ok(inode);
        pid.parse().ok().filter(|&pid| same && pid != ourselves)
    })
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_writer_is_found_by_its_byte_and_file() {
        let locks = "1: POSIX  ADVISORY  READ  10 08:01:77 123 123\n\
                     2: POSIX  ADVISORY  WRITE 11 08:01:78 120 120\n\
                     3: -> POSIX  ADVISORY  WRITE 12 08:01:77 120 120\n\
                     4: POSIX  ADVISORY  WRITE 13 08:01:77 120 120\n";
        assert_eq!(find(locks, 77, 1), Some(13));
        assert_eq!(find(locks, 79, 1), None);
        assert_eq!(find(locks, 77, 13), None, "our own lock is not what we wait for");
        assert_eq!(find("garbage", 77, 1), None);
    }
}
