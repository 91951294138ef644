//! Settings of a browser start: profile, program, window.

use crate::error::BrowserError;
use crate::limits::Limits;
use crate::profile::ProfileName;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// Default start timeout. It takes half a second; a busy machine takes ten times that.
const START_MAX: Duration = Duration::from_secs(30);

/// Values of the setting.
const ENGINES: [(&str, EngineChoice); 3] =
    [("auto", EngineChoice::Auto), ("pipe", EngineChoice::Pipe), ("patchright", EngineChoice::Patchright)];
const WINDOWS: [(&str, Window); 3] =
    [("auto", Window::Auto), ("headed", Window::Headed), ("headless", Window::Headless)];

/// Settings of one browser.
#[derive(Clone, Debug)]
pub struct BrowserRequest {
    /// The folder of all profiles.
    pub profiles: PathBuf,
    /// The profile.
    pub profile: ProfileName,
    /// The program; `None`: search for it.
    pub program: Option<PathBuf>,
    /// The engine.
    pub engine: EngineChoice,
    /// The folder of patchright's driver; `None`: search for it.
    pub driver: Option<PathBuf>,
    /// With or without a window.
    pub window: Window,
    /// Its limits.
    pub limits: Limits,
    /// Start timeout.
    pub start_within: Duration,
    /// Whether there is a display.
    pub has_display: bool,
}

/// Choice of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// Patchright if its driver is installed, otherwise our own.
    #[default]
    Auto,
    /// Our own, over a pipe.
    Pipe,
    /// Patchright's.
    Patchright,
}

/// Whether a browser has a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// With a window if there is a display.
    #[default]
    Auto,
    /// With a window.
    Headed,
    /// Without.
    Headless,
}

impl BrowserRequest {
    /// The browser of a connector, from its environment.
    ///
    /// `binding` is the value of `browser_profile`, `browser` or `browser_automation` in START: the runtime puts the
    /// connection's profile there. A connector started by hand has none, and uses the profile with its own name under
    /// the data root.
    ///
    /// # Errors
    ///
    /// A name or a setting is invalid.
    pub fn new(
        connector: &str,
        binding: Option<&Value>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, BrowserError> {
        let of_binding = |key: &str| binding.and_then(|binding| binding.get(key)).and_then(Value::as_str);
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let profile = match of_binding("profile_name") {
            Some(name) => ProfileName::new(name)?,
            None => ProfileName::of_connection(connector, connector)?,
        };
        let profiles = match of_binding("profiles_path") {
            Some(path) => PathBuf::from(path),
            None => data_root(&set)?.join("profiles"),
        };
        Ok(Self {
            profiles,
            profile,
            program: set("PDPP_BROWSER_PATH").map(PathBuf::from),
            driver: set("PDPP_PATCHRIGHT_DRIVER").map(PathBuf::from),
            engine: choice("PDPP_BROWSER_ENGINE", &set, ENGINES, "it may be auto, pipe or patchright")?,
            window: choice("PDPP_BROWSER_WINDOW", &set, WINDOWS, "it may be auto, headed or headless")?,
            limits: Limits::default(),
            start_within: START_MAX,
            has_display: set("DISPLAY").is_some() || set("WAYLAND_DISPLAY").is_some(),
        })
    }
}

/// The data root, found like the program does.
fn data_root(set: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, BrowserError> {
    let root =
        set("GLEANER_HOME").map(PathBuf::from).or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".pdpp")));
    root.ok_or(BrowserError::Setting {
        name: "GLEANER_HOME",
        value: String::new(),
        allowed: "set it to a folder for browser profiles",
    })
}

/// A setting with fixed values; the first is the default.
fn choice<T: Copy>(
    name: &'static str,
    set: &dyn Fn(&str) -> Option<String>,
    words: [(&str, T); 3],
    allowed: &'static str,
) -> Result<T, BrowserError> {
    let Some(value) = set(name) else { return Ok(words[0].1) };
    let known = words.into_iter().find(|(word, _)| *word == value);
    known.map(|(_, choice)| choice).ok_or(BrowserError::Setting { name, value, allowed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(binding: Option<&Value>, set: &[(&str, &str)]) -> Result<BrowserRequest, BrowserError> {
        let variable = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        BrowserRequest::new("shop", binding, &variable)
    }

    #[test]
    fn the_runtime_says_which_profile_and_a_connector_by_hand_has_one_of_its_own_name() {
        let by_hand = request(None, &[("HOME", "/home/ada")]).unwrap();
        assert_eq!((by_hand.profiles.to_str(), by_hand.profile.as_str()), (Some("/home/ada/.pdpp/profiles"), "shop"));
        let by_hand = request(None, &[("HOME", "/home/ada"), ("GLEANER_HOME", "/data")]).unwrap();
        assert_eq!(by_hand.profiles.to_str(), Some("/data/profiles"));
        let binding = json!({"profile_name": "shop--work", "profiles_path": "/data/profiles"});
        let told = request(Some(&binding), &[]).unwrap();
        assert_eq!((told.profiles.to_str(), told.profile.as_str()), (Some("/data/profiles"), "shop--work"));
        let traversal = json!({"profile_name": "../ada", "profiles_path": "/data/profiles"});
        assert!(matches!(request(Some(&traversal), &[]), Err(BrowserError::ProfileName { .. })));
        assert!(request(None, &[]).is_err(), "there is no data root");
    }

    #[test]
    fn settings_are_what_they_may_be_or_refused_by_name() {
        let home = ("HOME", "/home/ada");
        let plain = request(None, &[home, ("PDPP_BROWSER_ENGINE", "")]).unwrap();
        assert_eq!((plain.engine, plain.window, plain.has_display), (EngineChoice::Auto, Window::Auto, false));
        let named =
            request(None, &[home, ("PDPP_BROWSER_ENGINE", "patchright"), ("PDPP_PATCHRIGHT_DRIVER", "/d")]).unwrap();
        assert_eq!((named.engine, named.driver), (EngineChoice::Patchright, Some(PathBuf::from("/d"))));
        let set = [home, ("PDPP_BROWSER_ENGINE", "pipe"), ("PDPP_BROWSER_WINDOW", "headed"), ("DISPLAY", ":0")];
        let all = request(None, &set).unwrap();
        assert_eq!((all.engine, all.window, all.has_display), (EngineChoice::Pipe, Window::Headed, true));
        for name in ["PDPP_BROWSER_ENGINE", "PDPP_BROWSER_WINDOW"] {
            let error = request(None, &[home, (name, "telepathy")]).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("telepathy"), "{error}");
        }
    }
}
