//! Size of a profile, and deletion of its caches.

use crate::error::BrowserError;
use crate::limits::Limits;
use crate::notice::Notice;
use std::fs;
use std::path::Path;

/// Folders that Chromium recreates.
const CACHES: [&str; 9] = [
    "Default/Cache",
    "Default/Code Cache",
    "Default/GPUCache",
    "Default/Service Worker/CacheStorage",
    "Default/Service Worker/ScriptCache",
    "GPUPersistentCache",
    "GrShaderCache",
    "ShaderCache",
    "component_crx_cache",
];
/// A profile has some hundred files. More than this count as too large.
const FILES_MAX: u64 = 500_000;
/// A browser that cannot write loses data: with less free space none is started.
const FREE_BYTES_MIN: u64 = 64 * 1024 * 1024;

pub(super) fn check(profile: &Path, limits: &Limits) -> Result<Option<Notice>, BrowserError> {
    check_free(profile)?;
    let max = limits.profile_bytes_max;
    let before = size(profile);
    if before <= max {
        return Ok(None);
    }
    for name in CACHES {
        // Anything left is counted below.
        drop(fs::remove_dir_all(profile.join(name)));
    }
    let bytes = size(profile);
    if bytes > max {
        return Err(BrowserError::ProfileTooLarge { path: profile.to_owned(), bytes, max });
    }
    Ok(Some(Notice::CachesRemoved(before - bytes)))
}

fn check_free(profile: &Path) -> Result<(), BrowserError> {
    // An unknown free space counts as enough.
    let Ok(stat) = rustix::fs::statvfs(profile) else { return Ok(()) };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free >= FREE_BYTES_MIN {
        return Ok(());
    }
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    Err(BrowserError::file("use the disk of", profile)(full))
}

/// The bytes of all files, without following links.
pub(crate) fn size(folder: &Path) -> u64 {
    let (mut bytes, mut files) = (0_u64, 0);
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(data) = entry.metadata() else { continue };
            files += 1;
            if files > FILES_MAX {
                return u64::MAX;
            }
            if data.is_dir() {
                open.push(entry.path());
            } else {
                bytes = bytes.saturating_add(data.len());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_go_first_and_what_is_left_must_fit() {
        let folder = tempfile::tempdir().unwrap();
        let profile = folder.path();
        fs::create_dir_all(profile.join("Default/Cache/data")).unwrap();
        fs::write(profile.join("Default/Cache/data/a"), [0; 900]).unwrap();
        fs::write(profile.join("Default/Cookies"), [0; 500]).unwrap();
        let limits = |profile_bytes_max| Limits { profile_bytes_max, ..Limits::default() };
        assert_eq!(check(profile, &limits(1400)).unwrap(), None);
        assert_eq!(check(profile, &limits(1000)).unwrap(), Some(Notice::CachesRemoved(900)));
        assert!(profile.join("Default/Cookies").exists());
        let error = check(profile, &limits(400)).unwrap_err();
        assert!(matches!(error, BrowserError::ProfileTooLarge { bytes: 500, max: 400, .. }), "{error}");
    }
}
