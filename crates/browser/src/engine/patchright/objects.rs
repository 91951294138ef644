//! State of the driver's objects. Pure: an event in, orders out.
//!
//! The driver names everything: pages, frames, requests, dialogs. Only pages, their main frames, and the statuses of
//! the last documents are kept, each within a limit.

use super::frames::{LengthFirst, framed};
use crate::engine::connection::{Consequences, Counterpart, Order};
use crate::engine::message::Refusal;
use crate::engine::open_pages::OpenPages;
use crate::error::BrowserError;
use crate::limits::Limits;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;

/// Maximum of frames. Each page has one that matters; a failed page leaves one behind.
const FRAMES_MAX: usize = 64;
/// Maximum of statuses: a page needs that of its last document.
const STATUSES_MAX: usize = 64;
/// The call that starts a browser.
pub(crate) const LAUNCH: &str = "launchPersistentContext";

#[derive(Debug)]
pub(crate) struct Objects {
    /// Ids of the browser type, the browser, its context, and the session of its downloads.
    pub(crate) chromium: Option<String>,
    pub(crate) browser: Option<String>,
    pub(crate) context: String,
    downloads_session: Option<String>,
    /// Each page with the id of its main frame.
    pub(crate) pages: OpenPages<String>,
    frames: VecDeque<(String, FrameState)>,
    /// Statuses of document requests.
    statuses: VecDeque<(String, u16)>,
}

#[derive(Debug, Default)]
struct FrameState {
    url: String,
    is_loaded: bool,
    request: Option<String>,
}

impl Objects {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            chromium: None,
            browser: None,
            context: String::new(),
            downloads_session: None,
            pages: OpenPages::new(limits),
            frames: VecDeque::new(),
            statuses: VecDeque::new(),
        }
    }

    /// The address of a page.
    pub(crate) fn url(&self, page: &str) -> Option<String> {
        self.frame_of(page).map(|frame| frame.url.clone())
    }

    /// Whether the document of a page is loaded.
    pub(crate) fn is_loaded(&self, page: &str) -> bool {
        self.frame_of(page).is_some_and(|frame| frame.is_loaded)
    }

    /// The HTTP status of a page's document, if any.
    pub(crate) fn status(&self, page: &str) -> Option<u16> {
        let request = self.frame_of(page)?.request.as_ref()?;
        self.statuses.iter().rev().find(|(of, _)| of == request).map(|(_, status)| *status)
    }

    fn on_created(&mut self, kind: &str, object: &str, about: &Value) -> Consequences {
        let named = |key: &str| about[key]["guid"].as_str().unwrap_or_default().to_owned();
        match kind {
            "Playwright" => self.chromium = Some(named("chromium")),
            "Browser" => self.browser = Some(object.to_owned()),
            "CDPSession" => self.downloads_session = Some(object.to_owned()),
            // Frames inside a page are never waited for.
            "Frame" if about["parentFrame"].is_null() => self.on_frame(object, about),
            "Page" => return self.on_page(object, named("mainFrame")),
            "Dialog" => return self.on_dialog(object, &named("page"), about["type"].as_str().unwrap_or_default()),
            "Response" => self.on_response(named("request"), &about["status"]),
            _ => {}
        }
        Consequences::default()
    }

    fn on_frame(&mut self, frame: &str, about: &Value) {
        let url = about["url"].as_str().unwrap_or_default().to_owned();
        let is_loaded =
            about["loadStates"].as_array().is_some_and(|states| states.iter().any(|state| state == "domcontentloaded"));
        self.frames.push_back((frame.to_owned(), FrameState { url, is_loaded, request: None }));
        if self.frames.len() > FRAMES_MAX {
            self.frames.pop_front();
        }
    }

    fn on_page(&mut self, page: &str, frame: String) -> Consequences {
        let orders = if self.pages.add(page, frame) { Vec::new() } else { vec![close(page)] };
        Consequences { orders, ..Consequences::default() }
    }

    fn on_response(&mut self, request: String, status: &Value) {
        let Some(status) = status.as_u64().and_then(|status| u16::try_from(status).ok()) else { return };
        self.statuses.push_back((request, status));
        if self.statuses.len() > STATUSES_MAX {
            self.statuses.pop_front();
        }
    }

    fn on_dialog(&mut self, dialog: &str, page: &str, kind: &str) -> Consequences {
        if !self.pages.allows_dialog(page) {
            return Consequences { orders: vec![close(page)], ..Consequences::default() };
        }
        // "Do you want to leave": yes. Anything else: no.
        let method = if kind == "beforeunload" { "accept" } else { "dismiss" };
        let answer = Order { to: Some(dialog.to_owned()), method, params: json!({}) };
        Consequences { orders: vec![answer], ..Consequences::default() }
    }

    fn on_lost(&mut self, page: &str, why: &str) -> Consequences {
        let Some((frame, why)) = self.pages.lose(page, why) else { return Consequences::default() };
        self.frames.retain(|(known, _)| *known != frame);
        let lost = [page.to_owned(), frame].map(|lost| (lost, why.clone()));
        Consequences { lost: lost.to_vec(), ..Consequences::default() }
    }

    fn on_crashed(&mut self, page: &str) -> Consequences {
        // The rest of it shows an error page to nobody.
        Consequences { orders: vec![close(page)], ..self.on_lost(page, "its renderer died") }
    }

    fn on_navigated(&mut self, frame: &str, params: &Value) {
        // A failed navigation left the page unchanged.
        if params.get("error").is_some() {
            return;
        }
        let Some((_, state)) = self.frames.iter_mut().find(|(known, _)| known == frame) else { return };
        params["url"].as_str().unwrap_or_default().clone_into(&mut state.url);
        if let Some(document) = params.get("newDocument") {
            state.request = document["request"]["guid"].as_str().map(str::to_owned);
        }
    }

    fn on_load_state(&mut self, frame: &str, params: &Value) {
        let Some((_, state)) = self.frames.iter_mut().find(|(known, _)| known == frame) else { return };
        if params["add"] == "domcontentloaded" {
            state.is_loaded = true;
        } else if params["remove"] == "domcontentloaded" {
            state.is_loaded = false;
        }
    }

    fn on_download(&mut self, params: &Value) -> Consequences {
        let method = params["method"].as_str().unwrap_or_default();
        let to = self.downloads_session.clone();
        self.pages.on_download(method, &params["params"], |guid| {
            let params = json!({"method": "Browser.cancelDownload", "params": {"guid": guid}});
            Order { to, method: "send", params }
        })
    }

    fn frame_of(&self, page: &str) -> Option<&FrameState> {
        let frame = self.pages.get(page)?;
        self.frames.iter().find(|(known, _)| known == frame).map(|(_, state)| state)
    }
}

impl Counterpart for Objects {
    type Framer = LengthFirst;
    type Page = String;
    const ENDED: &'static str = "the process of its driver ended";

    fn framer(message_bytes_max: usize) -> LengthFirst {
        LengthFirst::new(message_bytes_max)
    }

    fn pages(&mut self) -> &mut OpenPages<String> {
        &mut self.pages
    }

    fn encode(id: u64, order: &Order, within: Duration) -> Vec<u8> {
        // Zero would mean no limit.
        let timeout = (within.as_secs_f64() * 1000.0).max(1.0);
        let message = json!({
            "id": id, "guid": order.to.as_deref().unwrap_or_default(), "method": order.method, "params": order.params,
            "metadata": {"timeout": timeout},
        });
        framed(&message.to_string())
    }

    /// The driver's messages for a page that navigated during a script, and for one that is gone.
    fn refused(method: &'static str, refusal: &Refusal) -> BrowserError {
        const ELSEWHERE: [&str; 3] = ["Execution context was destroyed", "Cannot find context", "Frame was detached"];
        const CLOSED: [&str; 4] = ["has been closed", "Target crashed", "Page crashed", "no object with guid"];
        let Refusal { name, message, log } = refusal;
        let first = message.lines().next().unwrap_or_default();
        if method == LAUNCH {
            return BrowserError::protocol(method, why_not_launched(first, log));
        }
        if ELSEWHERE.iter().any(|words| first.starts_with(words)) {
            return BrowserError::Replaced;
        }
        if name == "TargetClosedError" || CLOSED.iter().any(|words| first.contains(words)) {
            return BrowserError::PageGone("it was closed".to_owned());
        }
        BrowserError::protocol(method, first.chars().take(300).collect::<String>())
    }

    fn on_event(&mut self, method: &str, params: &Value, about: Option<&str>) -> Consequences {
        let about = about.unwrap_or_default();
        let is = |object: &Option<String>| object.as_deref() == Some(about);
        match method {
            "__create__" => {
                let (kind, object) = (params["type"].as_str(), params["guid"].as_str());
                self.on_created(kind.unwrap_or_default(), object.unwrap_or_default(), &params["initializer"])
            }
            "close" | "__dispose__" if is(&self.browser) => {
                Consequences { gone: Some("its process ended".to_owned()), ..Consequences::default() }
            }
            "close" | "__dispose__" => self.on_lost(about, "it was closed"),
            "crash" => self.on_crashed(about),
            "event" if is(&self.downloads_session) => self.on_download(params),
            "navigated" => {
                self.on_navigated(about, params);
                Consequences::default()
            }
            "loadstate" => {
                self.on_load_state(about, params);
                Consequences::default()
            }
            _ => Consequences::default(),
        }
    }
}

/// Why a browser did not start: the driver's log has its output and exit code.
fn why_not_launched(first: &str, log: &[String]) -> String {
    let after = |words: &str| log.iter().rev().find_map(|line| Some(line.split_once(words)?.1));
    let ended = after("<process did exit: exitCode=").map(|rest| match rest.split_once(", signal=") {
        Some(("null", signal)) => format!("its process was ended by signal {}", signal.trim_end_matches('>')),
        Some((code, _)) => format!("its process ended with code {code}"),
        None => "its process ended".to_owned(),
    });
    let why = ended.unwrap_or_else(|| first.to_owned());
    let why = after("[err] ").map_or_else(|| why.clone(), |said| format!("{why}; it said: {said}"));
    why.chars().take(300).collect()
}

fn close(page: &str) -> Order {
    Order { to: Some(page.to_owned()), method: "close", params: json!({}) }
}

#[cfg(test)]
#[path = "objects_tests.rs"]
mod tests;
