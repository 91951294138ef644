//! The scenarios that ship with the program, compiled in, because a user's machine has no other copy.
//!
//! A manual list instead of a build script; a test checks that no file is missing.

use crate::scenario::{Scenario, ScenarioError};

macro_rules! embed {
    ($($name:literal),+ $(,)?) => {
        /// Names and texts, in the order of their names.
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),+];
    };
}

embed! {
    "bucket-503", "bucket-bare", "bucket-retry-after", "burst-of-one", "concurrency", "deep-burst",
    "fixed-window-bare", "fixed-window-retry-after", "github-like", "ietf-headers", "limit-falls", "limit-rises",
    "limit-rises-and-falls", "nested-buckets", "nginx-delay", "no-limit", "odd-window-bare", "one-per-20-seconds",
    "random-5xx", "reddit-like", "rejected-requests-count", "retry-after-date", "retry-after-too-long",
    "retry-after-too-short", "sliding-window-bare", "sliding-window-retry-after", "strava-like", "strikes",
    "stripe-100-per-second", "tarpit", "throttle-in-200", "tight-strikes", "ynab-hourly-rolling",
}

/// Every name.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|&(name, _)| name)
}

/// The scenario called `name`; `None` when there is none of that name.
pub fn find(name: &str) -> Option<Result<Scenario, ScenarioError>> {
    FILES
        .iter()
        .find(|&&(known, _)| known == name)
        .map(|(name, text)| Scenario::parse(&format!("built-in {name}"), text))
}

/// All of them, in order.
///
/// # Errors
///
/// One of them is invalid, which a test excludes.
pub fn all() -> Result<Vec<Scenario>, ScenarioError> {
    names().filter_map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn no_file_is_forgotten_and_each_is_named_like_its_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        assert_eq!(names().collect::<Vec<_>>(), files);
        let scenarios: Vec<String> = all().unwrap().into_iter().map(|scenario| scenario.name).collect();
        assert_eq!(scenarios, files);
    }
}
