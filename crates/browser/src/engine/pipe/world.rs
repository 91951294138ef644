//! State of the browser's pages. Pure: an event in, orders out.

use super::frames::ZeroEnded;
use crate::engine::connection::{Consequences, Counterpart, Order};
use crate::engine::message::Refusal;
use crate::engine::open_pages::OpenPages;
use crate::error::BrowserError;
use crate::limits::Limits;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;

/// Remembered documents of a page: enough for a chain of redirects.
const COMMITS_MAX: usize = 32;
/// Longest remembered address. Pages may have megabytes in theirs.
const URL_BYTES_MAX: usize = 8 * 1024;
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) pages: OpenPages<PageState>,
}

/// A page that is open.
#[derive(Debug, Default)]
pub(crate) struct PageState {
    pub(crate) session: String,
    /// Its last known address.
    pub(crate) url: String,
    commits: VecDeque<String>,
    ready: Option<String>,
}

impl World {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { pages: OpenPages::new(limits) }
    }

    fn on_attached(&mut self, params: &Value) -> Consequences {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let info = &params["targetInfo"];
        let target = info["targetId"].as_str().unwrap_or_default().to_owned();
        let told = |method, params| Order { to: Some(session.clone()), method, params };
        let resume = told("Runtime.runIfWaitingForDebugger", json!({}));
        if info["type"] != "page" {
            // Workers and the like run on unattended.
            let leave = Order { to: None, method: "Target.detachFromTarget", params: json!({"sessionId": session}) };
            return Consequences { orders: vec![resume, leave], ..Consequences::default() };
        }
        if !self.pages.add(&target, PageState { session: session.clone(), ..PageState::default() }) {
            let close = Order { to: None, method: "Target.closeTarget", params: json!({"targetId": target}) };
            return Consequences { orders: vec![resume, close], ..Consequences::default() };
        }
        let orders = vec![
            told("Page.enable", json!({})),
            told("Page.setLifecycleEventsEnabled", json!({"enabled": true})),
            told("Inspector.enable", json!({})),
            resume,
        ];
        Consequences { orders, ..Consequences::default() }
    }

    fn on_lost(&mut self, session: &str, why: &str) -> Consequences {
        let lost = self.target_of(session).and_then(|target| self.pages.lose(&target, why));
        let lost = lost.map(|(page, why)| (page.session, why));
        Consequences { lost: lost.into_iter().collect(), ..Consequences::default() }
    }

    fn on_dialog(&mut self, session: &str, kind: &str) -> Consequences {
        let Some(target) = self.target_of(session) else { return Consequences::default() };
        if !self.pages.allows_dialog(&target) {
            return Consequences { orders: end_page(session, &target), ..Consequences::default() };
        }
        // "Do you want to leave": yes. Anything else: no.
        let answer = json!({"accept": kind == "beforeunload"});
        let dismiss = Order { to: Some(session.to_owned()), method: "Page.handleJavaScriptDialog", params: answer };
        Consequences { orders: vec![dismiss], ..Consequences::default() }
    }

    fn on_moved(&mut self, session: &str, frame: &Value, url: &Value) -> Consequences {
        if let Some(target) = self.target_of(session)
            && *frame == target
            && let Some(url) = url.as_str().filter(|url| url.len() <= URL_BYTES_MAX)
            && let Some(page) = self.pages.get_mut(&target)
        {
            url.clone_into(&mut page.url);
        }
        Consequences::default()
    }

    /// Tracks a page's document and whether it is loaded. The browser also reports events from before the request.
    fn on_lifecycle(&mut self, session: &str, params: &Value) -> Consequences {
        let Some(target) = self.target_of(session) else { return Consequences::default() };
        // The main frame has the id of its page; inner frames are never waited for.
        if let Some(loader) = params["loaderId"].as_str()
            && params["frameId"] == target
            && let Some(page) = self.pages.get_mut(&target)
        {
            let is_ready = params["name"] == "DOMContentLoaded";
            // A new document starts with `init`, an existing one is reported with `commit`.
            if is_ready || params["name"] == "init" || params["name"] == "commit" {
                page.commit(loader);
            }
            if is_ready {
                page.ready = Some(loader.to_owned());
            }
        }
        Consequences::default()
    }

    fn on_download(&mut self, method: &str, params: &Value) -> Consequences {
        let cancel = |guid: &str| Order { to: None, method: "Browser.cancelDownload", params: json!({"guid": guid}) };
        self.pages.on_download(method, params, cancel)
    }

    fn target_of(&self, session: &str) -> Option<String> {
        self.pages.find(|page| page.session == session)
    }
}

impl Counterpart for World {
    type Framer = ZeroEnded;
    type Page = PageState;
    const ENDED: &'static str = "its process ended";

    fn framer(message_bytes_max: usize) -> ZeroEnded {
        ZeroEnded::new(message_bytes_max)
    }

    fn pages(&mut self) -> &mut OpenPages<PageState> {
        &mut self.pages
    }

    fn encode(id: u64, order: &Order, _: Duration) -> Vec<u8> {
        let Order { to, method, params } = order;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = to {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        bytes
    }

    /// The browser's messages for a page that navigated during a script.
    fn refused(method: &'static str, refusal: &Refusal) -> BrowserError {
        const ELSEWHERE: [&str; 4] = [
            "navigated or closed",
            "context was destroyed",
            "Cannot find context",
            "Cannot find default execution context",
        ];
        const CLOSED: [&str; 3] = ["Session with given id not found", "No target with given id", "Target crashed"];
        let why = &refusal.message;
        if ELSEWHERE.iter().any(|words| why.contains(words)) {
            return BrowserError::Replaced;
        }
        if CLOSED.iter().any(|words| why.contains(words)) {
            return BrowserError::PageGone("it was closed".to_owned());
        }
        BrowserError::protocol(method, why.chars().take(300).collect::<String>())
    }

    fn on_event(&mut self, method: &str, params: &Value, session: Option<&str>) -> Consequences {
        let text = |key: &str| params[key].as_str().unwrap_or_default();
        let session = session.unwrap_or_default();
        match method {
            "Target.attachedToTarget" => self.on_attached(params),
            "Target.detachedFromTarget" => self.on_lost(text("sessionId"), "it was closed"),
            "Inspector.targetCrashed" => self.on_lost(session, "its renderer died"),
            "Page.javascriptDialogOpening" => self.on_dialog(session, text("type")),
            "Page.frameNavigated" => self.on_moved(session, &params["frame"]["id"], &params["frame"]["url"]),
            "Page.navigatedWithinDocument" => self.on_moved(session, &params["frameId"], &params["url"]),
            "Page.lifecycleEvent" => self.on_lifecycle(session, params),
            "Browser.downloadWillBegin" | "Browser.downloadProgress" => self.on_download(method, params),
            _ => Consequences::default(),
        }
    }
}

impl PageState {
    fn commit(&mut self, loader: &str) {
        if self.commits.back().is_some_and(|last| last == loader) {
            return;
        }
        self.commits.push_back(loader.to_owned());
        if self.commits.len() > COMMITS_MAX {
            self.commits.pop_front();
        }
    }

    /// Whether the document of this loader, or its replacement, is loaded.
    pub(crate) fn is_ready(&self, loader: &str) -> bool {
        let is_last_ready = self.ready.is_some() && self.ready == self.commits.back().cloned();
        is_last_ready && self.commits.iter().any(|commit| commit == loader)
    }
}

/// Ends a page with a hanging renderer: crashes it from outside and closes the rest.
fn end_page(session: &str, target: &str) -> Vec<Order> {
    let crash = Order { to: Some(session.to_owned()), method: "Page.crash", params: json!({}) };
    vec![crash, Order { to: None, method: "Target.closeTarget", params: json!({"targetId": target}) }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(limits: Limits) -> World {
        World::new(limits)
    }

    fn attach(world: &mut World, name: &str, kind: &str) -> Vec<&'static str> {
        let params = json!({"sessionId": format!("s-{name}"), "targetInfo": {"targetId": name, "type": kind}});
        world.on_event("Target.attachedToTarget", &params, None).orders.iter().map(|order| order.method).collect()
    }

    fn lifecycle(world: &mut World, page: &str, frame: &str, loader: &str, name: &str) {
        let params = json!({"frameId": frame, "loaderId": loader, "name": name});
        world.on_event("Page.lifecycleEvent", &params, Some(&format!("s-{page}")));
    }

    #[test]
    fn what_is_opened_is_prepared_before_it_runs_and_what_is_no_page_is_let_go() {
        let mut world = world(Limits { pages_max: 2, ..Limits::default() });
        let orders = attach(&mut world, "a", "page");
        assert_eq!(orders.last(), Some(&"Runtime.runIfWaitingForDebugger"), "{orders:?}");
        assert!(orders.contains(&"Page.enable"));
        assert_eq!(
            attach(&mut world, "w", "service_worker"),
            ["Runtime.runIfWaitingForDebugger", "Target.detachFromTarget"]
        );
        attach(&mut world, "b", "page");
        assert!(world.pages.check_room().is_err());
        assert!(attach(&mut world, "c", "page").contains(&"Target.closeTarget"));
        assert_eq!((world.pages.counts.popups_closed, world.pages.get("c").is_none()), (1, true));
        world.pages.claim("a");
        assert_eq!(world.pages.take_unclaimed(), ["b"]);
    }

    #[test]
    fn a_document_is_there_when_it_or_what_took_its_place_is_complete() {
        let mut world = world(Limits::default());
        attach(&mut world, "a", "page");
        lifecycle(&mut world, "a", "a", "one", "init");
        lifecycle(&mut world, "a", "inner", "one", "DOMContentLoaded");
        assert!(!world.pages.get("a").unwrap().is_ready("one"), "a frame inside is not the page");
        lifecycle(&mut world, "a", "a", "two", "init");
        assert!(!world.pages.get("a").unwrap().is_ready("one"));
        lifecycle(&mut world, "a", "a", "two", "DOMContentLoaded");
        let page = world.pages.get("a").unwrap();
        assert!(page.is_ready("one") && page.is_ready("two") && !page.is_ready("three"));
    }

    #[test]
    fn a_page_that_is_lost_ends_its_calls_with_the_first_reason() {
        let mut world = world(Limits { dialogs_max: 1, ..Limits::default() });
        attach(&mut world, "a", "page");
        let dialog = |world: &mut World, kind| {
            world.on_event("Page.javascriptDialogOpening", &json!({"type": kind}), Some("s-a"))
        };
        assert_eq!(dialog(&mut world, "beforeunload").orders[0].params, json!({"accept": true}));
        let orders = dialog(&mut world, "alert").orders;
        assert_eq!(orders.iter().map(|order| order.method).collect::<Vec<_>>(), ["Page.crash", "Target.closeTarget"]);
        let lost = world.on_event("Inspector.targetCrashed", &json!({}), Some("s-a")).lost;
        assert_eq!(lost, [("s-a".to_owned(), "it opened more than 1 dialogs".to_owned())]);
        assert!(world.on_event("Target.detachedFromTarget", &json!({"sessionId": "s-a"}), None).lost.is_empty());
        assert_eq!(world.pages.why_closed("a"), "it opened more than 1 dialogs");
        assert_eq!(world.pages.why_closed("unknown"), "it was closed");
    }

    #[test]
    fn nothing_that_a_browser_says_is_too_strange() {
        let mut world = world(Limits::default());
        attach(&mut world, "a", "page");
        let methods = [
            "Target.attachedToTarget",
            "Target.detachedFromTarget",
            "Inspector.targetCrashed",
            "Page.javascriptDialogOpening",
            "Page.frameNavigated",
            "Page.navigatedWithinDocument",
            "Page.lifecycleEvent",
            "Browser.downloadWillBegin",
            "Browser.downloadProgress",
            "Nobody.knows",
        ];
        let values = [
            json!(null),
            json!([]),
            json!("x"),
            json!({"guid": 5, "frame": 7, "sessionId": {}}),
            json!({"guid": "a", "receivedBytes": -1e300}),
        ];
        for method in methods {
            for params in &values {
                for session in [None, Some(""), Some("s-a"), Some("other")] {
                    world.on_event(method, params, session);
                }
            }
        }
    }
}
