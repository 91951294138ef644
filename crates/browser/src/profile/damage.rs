//! Detects a damaged profile, and quarantines it.
//!
//! Why we check ourselves: Chromium silently deletes an unreadable cookie file. The owner would have to sign in again
//! without knowing why, and no evidence would be left.

use crate::error::BrowserError;
use gleaner_base::{clock, date};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The two locations of Chromium's cookies.
const COOKIES: [&str; 2] = ["Default/Cookies", "Default/Network/Cookies"];
/// Settings read at every start.
const SETTINGS: [&str; 2] = ["Local State", "Default/Preferences"];
const SQLITE: &[u8; 16] = b"SQLite format 3\0";
/// Settings have about 100 KB. Larger files are not checked.
const SETTINGS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Damaged profiles kept of each: the last two.
const KEPT_MAX: usize = 2;
/// Suffix of a quarantined profile. No profile name has a dot.
const SUFFIX: &str = ".damaged-";

/// The first damaged file.
pub(super) fn find(profile: &Path) -> Option<PathBuf> {
    let cookies = COOKIES.map(|name| profile.join(name)).into_iter().find(|path| !is_database(path));
    cookies.or_else(|| SETTINGS.map(|name| profile.join(name)).into_iter().find(|path| !is_json(path)))
}

/// Chromium creates absent and empty files.
fn is_database(path: &Path) -> bool {
    is_sound(path, SQLITE.len() as u64, |first| first == SQLITE)
}

fn is_json(path: &Path) -> bool {
    let is_json = |text: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok();
    path.metadata().is_ok_and(|data| data.len() > SETTINGS_BYTES_MAX) || is_sound(path, SETTINGS_BYTES_MAX, is_json)
}

/// Whether a file is absent, empty, or valid.
fn is_sound(path: &Path, bytes_max: u64, is_it: impl Fn(&[u8]) -> bool) -> bool {
    let Ok(file) = File::open(path) else { return !path.exists() };
    let mut first = Vec::new();
    let read = file.take(bytes_max).read_to_end(&mut first);
    read.is_ok_and(|count| count == 0 || is_it(&first))
}

/// Quarantines a profile, and returns its new path. Of earlier ones the newest is kept.
pub(super) fn quarantine(profile: &Path) -> Result<PathBuf, BrowserError> {
    let name = profile.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let since = date::rfc3339_millis(clock::unix_millis()).replace(':', "");
    let kept = profile.with_file_name(format!("{name}{SUFFIX}{since}"));
    fs::rename(profile, &kept).map_err(BrowserError::file("put aside", profile))?;
    let folder = profile.parent().unwrap_or_else(|| Path::new("."));
    let entries = fs::read_dir(folder).map_err(BrowserError::file("look into", folder))?;
    let prefix = format!("{name}{SUFFIX}");
    let of_this = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix));
    let mut old = entries.flatten().map(|entry| entry.path()).filter(of_this).collect::<Vec<_>>();
    // Their dates sort as text.
    old.sort();
    let surplus = old.len().saturating_sub(KEPT_MAX);
    for path in &old[..surplus] {
        fs::remove_dir_all(path).map_err(BrowserError::file("remove", path))?;
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_file_that_is_no_database_is_damage_and_a_new_profile_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let profile = folder.path();
        assert_eq!(find(profile), None);
        fs::create_dir_all(profile.join("Default")).unwrap();
        let put = |name: &str, bytes: &[u8]| fs::write(profile.join(name), bytes).unwrap();
        put("Local State", b"{\"a\":1}");
        put("Default/Cookies", b"SQLite format 3\0 and more");
        put("Default/Preferences", b"");
        assert_eq!(find(profile), None);
        put("Local State", b"{\"a\":");
        assert_eq!(find(profile), Some(profile.join("Local State")));
        put("Local State", b"{}");
        put("Default/Cookies", b"SQLite format 2\0 and more");
        assert_eq!(find(profile), Some(profile.join("Default/Cookies")));
        fs::remove_file(profile.join("Default/Cookies")).unwrap();
        fs::create_dir(profile.join("Default/Cookies")).unwrap();
        assert_eq!(find(profile), Some(profile.join("Default/Cookies")), "a folder is no file");
    }

    #[test]
    fn a_damaged_profile_is_kept_and_older_ones_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let profile = folder.path().join("shop");
        let mut kept = Vec::new();
        for round in 0..3 {
            fs::create_dir(&profile).unwrap();
            fs::write(profile.join("round"), [round]).unwrap();
            kept.push(quarantine(&profile).unwrap());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert!(!profile.exists() && !kept[0].exists());
        assert_eq!(fs::read(kept[1].join("round")).unwrap(), [1]);
        assert_eq!(fs::read(kept[2].join("round")).unwrap(), [2]);
    }
}
