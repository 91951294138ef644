//! Finds the browser program.

use crate::error::BrowserError;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Supported programs by preference: first those that are nobody's daily browser.
const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"];
/// Their locations outside the PATH.
const PLACES: [&str; 6] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
    "/snap/bin/chromium",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/// The named program, or the first one found.
pub(crate) fn find(named: Option<&Path>, path_variable: Option<&str>) -> Result<PathBuf, BrowserError> {
    if let Some(named) = named {
        // A named program that does not exist is never replaced by another.
        return if is_program(named) {
            Ok(named.to_owned())
        } else {
            Err(BrowserError::NoBrowser(format!("PDPP_BROWSER_PATH is {}", named.display())))
        };
    }
    let in_path = path_variable.into_iter().flat_map(std::env::split_paths);
    let in_path = in_path.flat_map(|folder| NAMES.map(|name| folder.join(name)));
    let mut candidates = in_path.chain(PLACES.map(PathBuf::from));
    candidates
        .find(|path| is_program(path))
        .ok_or_else(|| BrowserError::NoBrowser(format!("{} in the PATH and the usual places", NAMES.join(", "))))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_named_program_is_used_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("chromium");
        fs::write(&program, "").unwrap();
        let path = folder.path().to_str();
        assert!(find(Some(&program), path).is_err(), "it cannot be started");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(Some(&program), None).unwrap(), program);
        assert_eq!(find(None, path).unwrap(), program);
        let error = find(Some(Path::new("/nowhere/chromium")), path).unwrap_err();
        assert!(error.to_string().contains("/nowhere/chromium"), "{error}");
    }
}
