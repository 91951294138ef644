//! Events of the driver, in its own words, and their consequences.

use super::*;

fn objects(limits: Limits) -> Objects {
    let mut objects = Objects::new(limits);
    created(&mut objects, "Browser", "browser@1", &json!({"version": "156"}));
    objects
}

fn created(objects: &mut Objects, kind: &str, guid: &str, about: &Value) -> Consequences {
    objects.on_event("__create__", &json!({"type": kind, "guid": guid, "initializer": about}), Some("parent@1"))
}

/// A page with its frame, as the driver tells of them: the frame first.
fn page(objects: &mut Objects, name: &str) -> Consequences {
    let states = json!(["commit", "domcontentloaded", "load"]);
    let frame = format!("frame@{name}");
    created(objects, "Frame", &frame, &json!({"url": "about:blank", "name": "", "loadStates": states}));
    created(objects, "Page", &format!("page@{name}"), &json!({"mainFrame": {"guid": frame}, "isClosed": false}))
}

fn methods(consequences: &Consequences) -> Vec<(Option<&str>, &str)> {
    consequences.orders.iter().map(|order| (order.to.as_deref(), order.method)).collect()
}

#[test]
fn pages_beyond_the_bound_are_closed_and_those_nobody_asked_for_are_handed_out_once() {
    let mut objects = objects(Limits { pages_max: 2, ..Limits::default() });
    assert!(page(&mut objects, "a").orders.is_empty() && page(&mut objects, "b").orders.is_empty());
    assert!(objects.pages.check_room().is_err());
    assert_eq!(methods(&page(&mut objects, "c")), [(Some("page@c"), "close")]);
    assert_eq!((objects.pages.counts.popups_closed, objects.pages.get("page@c").is_none()), (1, true));
    objects.pages.claim("page@a");
    assert_eq!(objects.pages.take_unclaimed(), ["page@b"]);
    assert!(objects.pages.take_unclaimed().is_empty());
}

#[test]
fn where_a_page_is_and_what_the_service_said_is_known_without_asking_it() {
    let mut objects = objects(Limits::default());
    page(&mut objects, "a");
    let inside = json!({"url": "https://ads.example/", "parentFrame": {"guid": "frame@a"}, "loadStates": []});
    created(&mut objects, "Frame", "frame@inside", &inside);
    created(&mut objects, "Response", "response@1", &json!({"request": {"guid": "request@1"}, "status": 404}));
    let to = |objects: &mut Objects, frame: &str, params: Value| objects.on_event("navigated", &params, Some(frame));
    objects.on_event("loadstate", &json!({"remove": "domcontentloaded"}), Some("frame@a"));
    assert!(!objects.is_loaded("page@a"));
    let document = json!({"request": {"guid": "request@1"}});
    to(&mut objects, "frame@a", json!({"url": "https://shop.example/", "newDocument": document}));
    to(&mut objects, "frame@inside", json!({"url": "https://ads.example/2", "newDocument": {}}));
    objects.on_event("loadstate", &json!({"add": "domcontentloaded"}), Some("frame@a"));
    assert!(objects.is_loaded("page@a"));
    to(&mut objects, "frame@a", json!({"url": "https://shop.example/#more"}));
    // One that did not come about.
    to(&mut objects, "frame@a", json!({"url": "https://other.example/", "newDocument": {}, "error": "net::ERR_X"}));
    assert_eq!(objects.url("page@a").as_deref(), Some("https://shop.example/#more"));
    assert_eq!(objects.status("page@a"), Some(404), "the place in a document is no other document");
    to(&mut objects, "frame@a", json!({"url": "about:blank", "newDocument": {}}));
    assert_eq!(objects.status("page@a"), None);
}

#[test]
fn dialogs_are_answered_and_end_a_page_that_floods_them() {
    let mut objects = objects(Limits { dialogs_max: 2, ..Limits::default() });
    page(&mut objects, "a");
    let ask = |objects: &mut Objects, kind: &str| {
        created(objects, "Dialog", "dialog@1", &json!({"page": {"guid": "page@a"}, "type": kind, "message": "x"}))
    };
    assert_eq!(methods(&ask(&mut objects, "beforeunload")), [(Some("dialog@1"), "accept")]);
    assert_eq!(methods(&ask(&mut objects, "confirm")), [(Some("dialog@1"), "dismiss")]);
    assert_eq!(methods(&ask(&mut objects, "alert")), [(Some("page@a"), "close")]);
    let lost = objects.on_event("close", &Value::Null, Some("page@a")).lost;
    let why = "it opened more than 2 dialogs".to_owned();
    assert_eq!(lost, [("page@a".to_owned(), why.clone()), ("frame@a".to_owned(), why.clone())]);
    assert!(objects.on_event("__dispose__", &json!({}), Some("page@a")).lost.is_empty());
    assert_eq!(
        (objects.pages.why_closed("page@a"), objects.pages.why_closed("unknown").as_str()),
        (why, "it was closed")
    );
    assert_eq!(objects.pages.counts.dialogs_dismissed, 2);
}

#[test]
fn a_renderer_that_dies_takes_its_page_and_a_browser_that_ends_takes_all() {
    let mut objects = objects(Limits::default());
    page(&mut objects, "a");
    let crashed = objects.on_event("crash", &Value::Null, Some("page@a"));
    assert_eq!((methods(&crashed), crashed.lost.len()), (vec![(Some("page@a"), "close")], 2));
    assert_eq!((objects.pages.why_closed("page@a").as_str(), crashed.gone), ("its renderer died", None));
    assert!(objects.on_event("close", &Value::Null, Some("browser@1")).gone.is_some());
}

#[test]
fn downloads_beyond_their_bound_are_cancelled_through_the_session_that_told_of_them() {
    let mut objects = objects(Limits { downloads_max: 0, ..Limits::default() });
    created(&mut objects, "CDPSession", "cdp-session@1", &json!({}));
    let told = json!({"method": "Browser.downloadWillBegin", "params": {"guid": "a1", "suggestedFilename": "x"}});
    assert!(objects.on_event("event", &told, Some("cdp-session@2")).orders.is_empty(), "somebody else's");
    let cancel = objects.on_event("event", &told, Some("cdp-session@1"));
    assert_eq!(cancel.orders[0].params, json!({"method": "Browser.cancelDownload", "params": {"guid": "a1"}}));
    assert_eq!((methods(&cancel), &cancel.delete), (vec![(Some("cdp-session@1"), "send")], &vec!["a1".to_owned()]));
}

#[test]
fn what_is_remembered_stays_small_and_nothing_that_a_driver_says_is_too_strange() {
    let mut objects = objects(Limits::default());
    for at in 0..1000 {
        page(&mut objects, &at.to_string());
        objects.on_event("close", &Value::Null, Some(&format!("page@{at}")));
        created(&mut objects, "Frame", &format!("frame@lost{at}"), &json!({"url": "", "loadStates": []}));
        let response = json!({"request": {"guid": format!("request@{at}")}, "status": 200});
        created(&mut objects, "Response", "response@1", &response);
    }
    assert!(objects.frames.len() <= FRAMES_MAX && objects.statuses.len() <= STATUSES_MAX);
    assert!(objects.pages.find(|_| true).is_none());
    page(&mut objects, "a");
    let methods = ["__create__", "__dispose__", "__adopt__", "close", "crash", "event", "navigated", "loadstate", "?"];
    let kinds = ["Page", "Frame", "Dialog", "Response", "Browser", "Playwright", "CDPSession", "Nobody"];
    let mut values = vec![json!(null), json!([]), json!("x"), json!({"url": 7, "newDocument": 7, "method": 7})];
    values.extend(kinds.map(|kind| json!({"type": kind, "guid": 5, "initializer": [kind]})));
    values.extend(kinds.map(|kind| json!({"type": kind, "initializer": {"mainFrame": 5, "status": -7, "page": {}}})));
    for method in methods {
        for params in &values {
            for about in [None, Some(""), Some("page@a"), Some("frame@a"), Some("other")] {
                objects.on_event(method, params, about);
            }
        }
    }
}

#[test]
fn why_a_browser_did_not_start_is_in_the_log() {
    let log = [
        "  - <launching> /bin/x",
        "  - [pid=7][err] profile is poisoned",
        "  - [pid=7] <process did exit: exitCode=9, signal=null>",
        "  - [pid=7] <gracefully close end>",
    ]
    .map(str::to_owned);
    assert_eq!(why_not_launched("closed", &log), "its process ended with code 9; it said: profile is poisoned");
    let killed = ["  - [pid=7] <process did exit: exitCode=null, signal=SIGSEGV>".to_owned()];
    assert_eq!(why_not_launched("closed", &killed), "its process was ended by signal SIGSEGV");
    assert_eq!(why_not_launched("Failed to launch: EACCES", &[]), "Failed to launch: EACCES");
}
