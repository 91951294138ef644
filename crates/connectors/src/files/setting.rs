//! Where the owner's files are: what was set, or the usual place beneath the home folder.
//!
//! The one file here that reads the environment.

use super::root::Root;
use gleaner_sdk::Stop;
use gleaner_sdk::protocol::RecoveryAction;
use jiff::tz::TimeZone;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// What the owner set: an environment variable that is not empty.
pub(crate) fn setting(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

/// The time zone that a variable names, or that of this machine: times without a zone are the owner's own.
pub(crate) fn time_zone(variable: &str) -> Result<TimeZone, Stop> {
    let Some(name) = setting(variable) else { return Ok(TimeZone::try_system().unwrap_or(TimeZone::UTC)) };
    let name = name.to_string_lossy();
    TimeZone::get(&name).map_err(|_| {
        needs_owner(format!("{variable} is {name:?}, which is no time zone; give a name like Europe/Berlin"))
    })
}

/// A place of files, and who named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The path.
    pub(crate) path: PathBuf,
    /// The environment variable that names it.
    pub(crate) variable: &'static str,
    /// Whether it was set, and is not the usual one.
    pub(crate) is_set: bool,
}

impl Place {
    /// The place that a variable names, or the usual one, relative to the home folder.
    pub(crate) fn find(variable: &'static str, usual: &str) -> Result<Self, Stop> {
        let home = setting("HOME").map(PathBuf::from);
        Self::resolve(variable, setting(variable).map(PathBuf::from), home.as_deref(), Some(usual))
    }

    /// The place that a variable names, if it is set.
    pub(crate) fn set(variable: &'static str) -> Result<Option<Self>, Stop> {
        let home = setting("HOME").map(PathBuf::from);
        let find = |path| Self::resolve(variable, Some(PathBuf::from(path)), home.as_deref(), None);
        setting(variable).map(find).transpose()
    }

    fn resolve(
        variable: &'static str,
        set: Option<PathBuf>,
        home: Option<&Path>,
        usual: Option<&str>,
    ) -> Result<Self, Stop> {
        let is_set = set.is_some();
        let path = match (set, usual, home) {
            (Some(set), _, home) => match (set.strip_prefix("~"), home) {
                // A shell leaves a tilde alone behind an equals sign.
                (Ok(rest), Some(home)) => home.join(rest),
                _ => set,
            },
            (None, Some(usual), Some(home)) => home.join(usual),
            (None, _, _) => return Err(needs_owner(format!("it is not known where to look; set {variable}"))),
        };
        if path.is_absolute() {
            return Ok(Self { path, variable, is_set });
        }
        let shown = path.display();
        Err(needs_owner(format!("{variable} is {shown}, which depends on where one stands; give the whole path")))
    }

    /// The same with a folder beneath it.
    pub(crate) fn join(mut self, name: &str) -> Self {
        self.path.push(name);
        self
    }

    /// Opens the folder.
    pub(crate) fn open(&self) -> Result<Root, Stop> {
        Root::open(&self.path).map_err(|error| self.fault(&error))
    }

    /// Why it cannot be read, and what to do about it.
    pub(crate) fn fault(&self, error: &io::Error) -> Stop {
        let (path, variable) = (self.path.display(), self.variable);
        let who = if self.is_set { format!("{variable} names it") } else { "that is the usual place".to_owned() };
        needs_owner(match error.kind() {
            io::ErrorKind::NotFound => {
                format!("{path} is not there ({who}); if it is elsewhere, set {variable} to that place")
            }
            io::ErrorKind::PermissionDenied => {
                format!("{path} may not be read by this user ({who}); allow it, or set {variable} to another place")
            }
            io::ErrorKind::NotADirectory => {
                format!("{path} is not a folder ({who}); set {variable} to the folder that has the files")
            }
            _ => format!("{path} cannot be read: {error} ({who})"),
        })
    }
}

/// Every run fails like this until the owner does something.
fn needs_owner(message: String) -> Stop {
    Stop::for_good(message, RecoveryAction::ManualActionRequired)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(set: Option<&str>, home: Option<&str>) -> Result<PathBuf, String> {
        let place = Place::resolve("X_HOME", set.map(PathBuf::from), home.map(Path::new), Some(".x"));
        place.map(|place| place.path).map_err(|stop| match stop {
            Stop::Failed(failure) => failure.message,
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn what_is_set_wins_and_the_usual_place_is_beneath_the_home_folder() {
        assert_eq!(resolve(None, Some("/h")), Ok("/h/.x".into()));
        assert_eq!(resolve(Some("/e"), Some("/h")), Ok("/e".into()));
        assert_eq!(resolve(Some("~/e"), Some("/h")), Ok("/h/e".into()));
        assert!(resolve(Some("e"), Some("/h")).unwrap_err().contains("the whole path"));
        assert!(resolve(None, None).unwrap_err().contains("set X_HOME"));
    }
}
