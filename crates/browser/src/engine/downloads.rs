//! Downloads of a run, within limits. Pure: browser events in, downloads to cancel out.
//!
//! Both engines pass on the browser's own events.

use crate::browser::Download;
use crate::limits::Limits;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Downloads of a run by the browser's id, which is also the file name.
#[derive(Debug)]
pub(crate) struct Downloads {
    limits: Limits,
    states: BTreeMap<String, DownloadState>,
}

/// A download beyond the limits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unwanted {
    /// It must be canceled.
    Coming(String),
    /// It was complete before the cancellation.
    Complete(String),
}

#[derive(Debug)]
struct DownloadState {
    suggested_name: String,
    bytes: u64,
    is_complete: bool,
}

impl Downloads {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self { limits, states: BTreeMap::new() }
    }

    /// Downloads for a connector, with their paths.
    pub(crate) fn list(&self, folder: &Path) -> Vec<Download> {
        let download = |(guid, state): (&String, &DownloadState)| Download {
            suggested_name: state.suggested_name.clone(),
            path: folder.join(guid),
            bytes: state.bytes,
            is_complete: state.is_complete,
        };
        self.states.iter().map(download).collect()
    }

    #[cfg(test)]
    const fn states(&self) -> &BTreeMap<String, DownloadState> {
        &self.states
    }

    /// Applies an event, and returns a download that must go because of it.
    pub(crate) fn on_event(&mut self, method: &str, params: &Value) -> Option<Unwanted> {
        let text = |key: &str| params[key].as_str().unwrap_or_default();
        match method {
            "Browser.downloadWillBegin" => self.on_begin(text("guid"), text("suggestedFilename")),
            "Browser.downloadProgress" => self.on_progress(params),
            _ => None,
        }
    }

    fn on_begin(&mut self, guid: &str, suggested_name: &str) -> Option<Unwanted> {
        if !is_guid(guid) {
            return None;
        }
        if self.states.len() >= self.limits.downloads_max {
            return Some(Unwanted::Coming(guid.to_owned()));
        }
        let state =
            DownloadState { suggested_name: suggested_name.chars().take(255).collect(), bytes: 0, is_complete: false };
        self.states.insert(guid.to_owned(), state);
        None
    }

    fn on_progress(&mut self, params: &Value) -> Option<Unwanted> {
        let guid = params["guid"].as_str().unwrap_or_default();
        let number = |key: &str| params[key].as_f64().map_or(0, |number| number as u64);
        let others = self.states.iter().filter(|(known, _)| *known != guid).map(|(_, state)| state.bytes).sum::<u64>();
        let word = params["state"].as_str().unwrap_or_default();
        let Some(state) = self.states.get_mut(guid) else {
            return (word == "completed" && is_guid(guid)).then(|| Unwanted::Complete(guid.to_owned()));
        };
        if word == "canceled" {
            self.states.remove(guid);
            return None;
        }
        state.bytes = number("receivedBytes");
        state.is_complete = word == "completed";
        // The announced size counts like received bytes, so that an oversized download is canceled early.
        let expected = state.bytes.max(number("totalBytes"));
        if others.saturating_add(expected) > self.limits.download_bytes_max {
            self.states.remove(guid);
            return Some(Unwanted::Coming(guid.to_owned()));
        }
        None
    }
}

/// It becomes a file name.
fn is_guid(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn downloads_have_a_bound_in_number_and_size_and_names_that_lead_nowhere() {
        let mut all = Downloads::new(Limits { downloads_max: 2, download_bytes_max: 100, ..Limits::default() });
        let begin = |all: &mut Downloads, guid: &str| {
            all.on_event("Browser.downloadWillBegin", &json!({"guid": guid, "suggestedFilename": "../x"}))
        };
        let progress = |all: &mut Downloads, guid: &str, got: u32, total: u32, state: &str| {
            let params = json!({"guid": guid, "receivedBytes": got, "totalBytes": total, "state": state});
            all.on_event("Browser.downloadProgress", &params)
        };
        begin(&mut all, "../../etc");
        assert!(all.states().is_empty(), "no name of ours");
        assert_eq!((begin(&mut all, "a1"), begin(&mut all, "b2")), (None, None));
        assert_eq!(begin(&mut all, "c3"), Some(Unwanted::Coming("c3".to_owned())));
        assert_eq!(progress(&mut all, "c3", 1, 9, "inProgress"), None);
        assert_eq!(progress(&mut all, "c3", 9, 9, "completed"), Some(Unwanted::Complete("c3".to_owned())));
        assert_eq!(progress(&mut all, "../../etc", 9, 9, "completed"), None);
        assert_eq!(progress(&mut all, "a1", 60, 60, "completed"), None);
        assert!(all.states()["a1"].is_complete);
        assert_eq!(progress(&mut all, "b2", 1, 41, "inProgress"), Some(Unwanted::Coming("b2".to_owned())));
        assert_eq!(all.states().len(), 1);
    }
}
