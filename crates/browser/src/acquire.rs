//! Starts a browser.

use crate::browser::Browser;
use crate::engine::Deadline;
use crate::engine::choice;
use crate::error::BrowserError;
use crate::notice::Notice;
use crate::process::arguments::Start;
use crate::process::program;
use crate::profile::HeldProfile;
use crate::request::{BrowserRequest, Window};

/// Starts a browser for this run, with a profile that no other process can use until it is dropped.
///
/// # Errors
///
/// The profile is in use (names the process) or not private, there is no browser, or it does not start.
pub fn acquire_isolated_browser(request: &BrowserRequest) -> Result<Browser, BrowserError> {
    let path = std::env::var("PATH").ok();
    let program = program::find(request.program.as_deref(), path.as_deref())?;
    let (chosen, of_choice) = choice::choose(request)?;
    let window = window(request);
    let is_root = rustix::process::geteuid().is_root();
    let mut notices = of_choice.into_iter().collect::<Vec<_>>();
    if is_root {
        notices.push(Notice::NoSandbox);
    }
    if window == Window::Headless && request.window == Window::Auto {
        notices.push(Notice::NoDisplay);
    }
    let (mut held, of_profile) = HeldProfile::take(&request.profiles, &request.profile, &request.limits)?;
    notices.extend(of_profile);
    let start = |held: &HeldProfile| {
        let start =
            Start { profile: &held.path, has_window: window == Window::Headed, is_root, limits: &request.limits };
        chosen.start(&program, start, &held.downloads(), Deadline::after(request.start_within))
    };
    let engine = match start(&held) {
        Ok(engine) => engine,
        // A driver that does not answer has not touched the profile.
        Err(error) if held.is_new || matches!(error, BrowserError::Driver { .. }) => return Err(error),
        Err(error) => {
            let (engine, kept) = start_anew(&mut held, error, start)?;
            notices.push(Notice::ProfileQuarantined(kept));
            engine
        }
    };
    let profile = held.path.clone();
    Ok(Browser { engine, notices, window, profile, _held: held })
}

/// If the browser does not start with a used profile, it is tried with an empty one. If that works, the profile was
/// damaged; otherwise the profile is put back.
fn start_anew<E>(
    held: &mut HeldProfile,
    error: BrowserError,
    start: impl Fn(&HeldProfile) -> Result<E, BrowserError>,
) -> Result<(E, std::path::PathBuf), BrowserError> {
    let kept = held.quarantine()?;
    match start(held) {
        Ok(engine) => Ok((engine, kept)),
        Err(_) => {
            held.put_back(&kept)?;
            Err(error)
        }
    }
}

fn window(request: &BrowserRequest) -> Window {
    match request.window {
        Window::Auto if request.has_display => Window::Headed,
        Window::Auto => Window::Headless,
        asked => asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_has_a_window_when_there_is_a_display_and_when_it_is_asked_for() {
        let set = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let mut request = BrowserRequest::new("shop", None, &set).unwrap();
        let cases = [
            (Window::Auto, true, Window::Headed),
            (Window::Auto, false, Window::Headless),
            (Window::Headless, true, Window::Headless),
            (Window::Headed, false, Window::Headed),
        ];
        for (asked, has_display, expected) in cases {
            (request.window, request.has_display) = (asked, has_display);
            assert_eq!(window(&request), expected);
        }
    }
}
