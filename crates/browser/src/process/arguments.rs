//! Arguments of a browser, as a pure function.
//!
//! None of them opens a port. The browser fetches and reports nothing on its own, asks the owner nothing, and does
//! not suspend pages in the background.

use crate::limits::Limits;
use std::ffi::OsString;
use std::path::Path;

/// For every browser.
const ALWAYS: [&str; 24] = [
    "--no-first-run",
    "--no-default-browser-check",
    "--no-startup-window",
    "--no-service-autorun",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-component-extensions-with-background-pages",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-extensions",
    "--disable-client-side-phishing-detection",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-search-engine-choice-screen",
    "--disable-features=OptimizationHints,MediaRouter,DialMediaRouteProvider,Translate,AutofillServerCommunication,\
     CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-dev-shm-usage",
    "--metrics-recording-only",
    // A keyring would prompt the owner. The profile is protected by the permissions of its folder.
    "--password-store=basic",
    "--use-mock-keychain",
    // An ordinary window size.
    "--window-size=1280,900",
];

/// Arguments that differ between browsers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'a> {
    pub(crate) profile: &'a Path,
    pub(crate) has_window: bool,
    pub(crate) is_root: bool,
    pub(crate) limits: &'a Limits,
}

/// All arguments except those of the engine.
pub(crate) fn arguments(start: Start<'_>) -> Vec<OsString> {
    let mut words = ALWAYS.map(OsString::from).to_vec();
    let mut profile = OsString::from("--user-data-dir=");
    profile.push(start.profile);
    words.push(profile);
    words.push(format!("--disk-cache-size={}", start.limits.cache_bytes_max).into());
    words.push(format!("--media-cache-size={}", start.limits.cache_bytes_max).into());
    if !start.has_window {
        words.push("--headless=new".into());
        words.push("--hide-scrollbars".into());
        words.push("--mute-audio".into());
    }
    if start.is_root {
        // Chromium refuses to start otherwise. A notice tells the owner.
        words.push("--no-sandbox".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(has_window: bool, is_root: bool) -> Vec<String> {
        let start =
            Start { profile: Path::new("/data/profiles/shop"), has_window, is_root, limits: &Limits::default() };
        arguments(start).into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn no_browser_has_a_port_or_goes_without_its_sandbox_unasked() {
        for (has_window, is_root) in [(true, true), (true, false), (false, true), (false, false)] {
            let words = words(has_window, is_root);
            assert!(!words.iter().any(|word| word.contains("remote-debugging-port")), "{words:?}");
            assert_eq!(words.iter().any(|word| word == "--no-sandbox"), is_root);
            assert_eq!(words.iter().any(|word| word.starts_with("--headless")), !has_window);
            assert!(words.contains(&"--user-data-dir=/data/profiles/shop".to_owned()));
            assert!(words.contains(&"--disable-background-networking".to_owned()));
        }
    }
}
