//! The machine: its clock, how many files may be open, whether the terminal can show text, and which browser there is.

use super::{Check, failed, warning, well};
use crate::dates;
use gleaner_browser::{BrowserError, BrowserRequest, Outlook};
use gleaner_engine::WallTime;
use rustix::process::{Resource, getrlimit};

/// No copy of this program is older: 2026-01-01. A clock before it was never set.
const BUILT: WallTime = WallTime::from_unix_millis(1_767_225_600_000);
/// A run needs some twenty; a sidecar two for each caller.
const HANDLES_GOOD: u64 = 256;

pub(super) fn checks(newest: Option<WallTime>) -> Vec<Check> {
    let handles = getrlimit(Resource::Nofile).current;
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    vec![clock(dates::now(), newest), file_handles(handles), text(locale.as_deref()), browser(outlook())]
}

/// The browser of a connector that needs one, as it would be found from here.
fn outlook() -> Result<Outlook, BrowserError> {
    let variable = |name: &str| std::env::var(name).ok();
    gleaner_browser::outlook(&BrowserRequest::new("doctor", None, &variable)?)
}

fn clock(now: WallTime, newest: Option<WallTime>) -> Check {
    const NAME: &str = "clock";
    let hint = "set the clock of this machine, and let it be kept (NTP)";
    let shown = dates::rfc3339(now);
    match newest {
        _ if now < BUILT => failed(NAME, format!("it says {shown}"), hint),
        Some(newest) if now < newest => {
            failed(NAME, format!("it says {shown}, and a run was stored at {}", dates::rfc3339(newest)), hint)
        }
        Some(_) | None => well(NAME, shown),
    }
}

fn file_handles(limit: Option<u64>) -> Check {
    const NAME: &str = "file handles";
    match limit {
        Some(limit) if limit < HANDLES_GOOD => {
            warning(NAME, format!("{limit} may be open at a time"), format!("run: ulimit -n {HANDLES_GOOD}, or more"))
        }
        Some(limit) => well(NAME, format!("{limit} may be open at a time")),
        None => well(NAME, "as many as there are"),
    }
}

fn text(locale: Option<&str>) -> Check {
    const NAME: &str = "locale";
    let is_utf8 = |locale: &str| {
        let small = locale.to_ascii_lowercase();
        small.contains("utf-8") || small.contains("utf8")
    };
    match locale {
        Some(locale) if is_utf8(locale) => well(NAME, locale),
        Some(locale) => warning(NAME, format!("{locale} is not UTF-8"), "set LANG to one that is, for example C.UTF-8"),
        None => warning(NAME, "none is set", "set LANG, for example to C.UTF-8"),
    }
}

fn browser(found: Result<Outlook, BrowserError>) -> Check {
    const NAME: &str = "browser";
    match found {
        Ok(Outlook { program, engine, notice: None }) => {
            well(NAME, format!("{}, driven by {engine}", program.display()))
        }
        Ok(Outlook { notice: Some(notice), .. }) => {
            warning(NAME, notice.to_string(), "or set PDPP_BROWSER_ENGINE to pipe")
        }
        // Most connectors need none.
        Err(error) => warning(NAME, error.to_string(), "needed only by connections that sign in with a browser"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_clock_that_was_never_set_or_went_back_fails() {
        let at = |days: u64| WallTime::from_unix_millis(BUILT.as_unix_millis() + days * 86_400_000);
        assert_eq!(clock(WallTime::from_unix_millis(0), None).verdict, Verdict::Failed);
        assert_eq!(clock(at(1), Some(at(2))).verdict, Verdict::Failed);
        assert_eq!(clock(at(2), Some(at(1))).verdict, Verdict::Well);
        assert_eq!(clock(at(2), None).verdict, Verdict::Well);
    }

    #[test]
    fn few_handles_and_other_encodings_are_warned_about() {
        assert_eq!(file_handles(Some(64)).verdict, Verdict::Warning);
        assert_eq!(file_handles(Some(1024)).verdict, Verdict::Well);
        assert_eq!(text(Some("POSIX")).verdict, Verdict::Warning);
        assert_eq!(text(None).verdict, Verdict::Warning);
        assert_eq!(text(Some("de_DE.utf8")).verdict, Verdict::Well);
    }

    #[test]
    fn the_browser_is_named_with_what_would_drive_it() {
        let mut outlook = Outlook {
            program: "/usr/bin/chromium".into(),
            engine: gleaner_browser::EngineKind::Patchright,
            notice: None,
        };
        let check = browser(Ok(outlook.clone()));
        assert_eq!((check.verdict, check.what.as_str()), (Verdict::Well, "/usr/bin/chromium, driven by patchright"));
        outlook.notice = Some(gleaner_browser::Notice::DriverUnfit("it is version 1.50".to_owned()));
        let check = browser(Ok(outlook));
        assert!(check.verdict == Verdict::Warning && check.what.contains("1.50"), "{check:?}");
        let check = browser(Err(BrowserError::NoBrowser("everywhere".to_owned())));
        assert!(check.verdict == Verdict::Warning && check.what.contains("PDPP_BROWSER_PATH"), "{check:?}");
    }
}
