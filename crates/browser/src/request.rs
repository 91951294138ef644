//! What browser is asked for: whose profile, which program, with or without a window.

use crate::error::BrowserError;
use crate::limits::Limits;
use crate::profile::ProfileName;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// How long a browser may take to start. It takes half a second; a machine that is busy takes ten times that.
const START_MAX: Duration = Duration::from_secs(30);

/// What the owner may set.
const ENGINES: [(&str, EngineChoice); 3] =
    [("auto", EngineChoice::Auto), ("pipe", EngineChoice::Pipe), ("patchright", EngineChoice::Patchright)];
const WINDOWS: [(&str, Window); 3] =
    [("auto", Window::Auto), ("headed", Window::Headed), ("headless", Window::Headless)];

/// One browser.
#[derive(Clone, Debug)]
pub struct BrowserRequest {
    /// The folder of all profiles.
    pub profiles: PathBuf,
    /// Which of them.
    pub profile: ProfileName,
    /// The program, if it is not to be looked for.
    pub program: Option<PathBuf>,
    /// What drives it.
    pub engine: EngineChoice,
    /// The folder of patchright's driver, if it is not to be looked for.
    pub driver: Option<PathBuf>,
    /// With or without a window.
    pub window: Window,
    /// How much it may take.
    pub limits: Limits,
    /// How long it may take to start.
    pub start_within: Duration,
    /// Whether somebody looks at a display here.
    pub has_display: bool,
}

/// What is to drive the browser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// Patchright when its driver is there, and our own otherwise.
    #[default]
    Auto,
    /// Our own, over a pipe.
    Pipe,
    /// Patchright's.
    Patchright,
}

/// Whether a browser shows itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// With a window when there is a display.
    #[default]
    Auto,
    /// With a window.
    Headed,
    /// Without.
    Headless,
}

impl BrowserRequest {
    /// The browser of a connector, as its surroundings say.
    ///
    /// `binding` is what START says under `browser_profile`, `browser` or `browser_automation`: the runtime puts the
    /// connection's profile there. A connector that is started by hand has none, and uses the profile of its own name
    /// under the data root.
    ///
    /// # Errors
    ///
    /// When a name or a setting is none.
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

/// As the program finds it.
fn data_root(set: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, BrowserError> {
    let root =
        set("GLEANER_HOME").map(PathBuf::from).or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".pdpp")));
    root.ok_or(BrowserError::Setting {
        name: "GLEANER_HOME",
        value: String::new(),
        allowed: "set it to a folder of yours: browser profiles are kept there",
    })
}

/// One of the words that a setting may be; the first is the one that is meant without it.
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
