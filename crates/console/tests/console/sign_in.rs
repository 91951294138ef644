//! The way in: a link that works once, a cookie that scripts cannot see, and what a stranger learns (F84, F86).

use crate::client::{Reply, Request};
use crate::world::{World, start};

fn code(link: &str) -> &str {
    link.split_once("/open?code=").expect("a link").1
}

fn exchange(world: &World, code: &str) -> Reply {
    let request = world.bare("POST", "/open").header("origin", &world.origin());
    world.send(&request.form(&format!("code={code}")))
}

/// The pair of name and value that a browser would send back.
fn cookie(reply: &Reply) -> String {
    reply.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned()
}

fn with_cookie(world: &World, method: &str, path: &str, cookie: &str) -> Request {
    world.bare(method, path).header("cookie", cookie)
}

#[test]
fn a_link_opens_a_session_once() {
    let world = World::new();
    let link = world.console().new_link().expect("a link");
    assert!(link.starts_with(&world.origin()), "{link}");
    let path = link.strip_prefix(&world.origin()).expect("ours").to_owned();
    for _ in 0..3 {
        let page = world.send(&world.bare("GET", &path));
        assert_eq!(page.status, 200);
        assert!(page.text().contains("method=\"post\""), "looking at a link does not use it up");
        assert!(page.header("set-cookie").is_none());
    }
    let reply = exchange(&world, code(&link));
    assert_eq!((reply.status, reply.header("location")), (303, Some("/")));
    let set = reply.header("set-cookie").expect("a cookie");
    for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(set.contains(word), "{set}");
    }
    assert_eq!(exchange(&world, code(&link)).status, 403, "once");
    let cookie = cookie(&reply);
    assert_eq!(world.send(&with_cookie(&world, "GET", "/api/v1/status", &cookie)).status, 200);
}

#[test]
fn a_cookie_changes_nothing_without_an_origin_and_ends_with_the_session() {
    let world = World::new();
    let cookie = cookie(&exchange(&world, code(&world.console().new_link().expect("a link"))));
    let pause = || with_cookie(&world, "POST", "/api/v1/connections/notes/pause", &cookie).json("{}");
    assert_eq!(world.send(&pause()).status, 403);
    assert_eq!(world.send(&pause().header("origin", "null")).status, 403);
    assert_eq!(world.send(&pause().header("origin", &world.origin())).status, 204);
    let again = start(world.root());
    let elsewhere = Request::new("GET", "/api/v1/status").header("host", &again.address().to_string());
    assert_eq!(elsewhere.header("cookie", &cookie).send(again.address()).status, 200, "a restart signs nobody out");
    let out = with_cookie(&world, "DELETE", "/api/v1/session", &cookie).header("origin", &world.origin());
    let reply = world.send(&out);
    assert_eq!(reply.status, 204);
    assert!(reply.header("set-cookie").expect("a cookie").contains("Max-Age=0"));
    assert_eq!(world.send(&with_cookie(&world, "GET", "/api/v1/status", &cookie)).status, 401);
}

#[test]
fn whoever_has_the_token_gets_links() {
    let world = World::new();
    let reply = world.act("POST", "/api/v1/links", "{}");
    assert_eq!(reply.status, 201);
    let link = reply.json()["link"].as_str().expect("a link").to_owned();
    assert_eq!(exchange(&world, code(&link)).status, 303);
}

#[test]
fn the_page_of_a_link_shows_nothing_that_it_was_given() {
    let world = World::new();
    for bad in ["%3Cscript%3E", "'onclick='", "a&b=c", "", &"a".repeat(200)] {
        let page = world.send(&world.bare("GET", &format!("/open?code={bad}")));
        assert!(!page.text().contains("<script") && !page.text().contains("form"), "{bad}");
    }
}

/// A path that is there, one that is not, and one that is there for another method: the same bytes.
#[test]
fn a_stranger_learns_nothing_from_a_path() {
    let world = World::new();
    let ask = |method: &str, path: &str| {
        let reply = world.bare(method, path).send(world.address);
        let headers = reply.headers.iter().filter(|(name, _)| name != "date").cloned().collect::<Vec<_>>();
        (reply.status, headers, reply.body)
    };
    let known = ask("GET", "/api/v1/status");
    assert_eq!(known.0, 401);
    for (method, path) in [
        ("GET", "/nothing"),
        ("GET", "/"),
        ("GET", "/metrics"),
        ("GET", "/api/v1/events"),
        ("POST", "/api/v1/status"),
        ("DELETE", "/healthz"),
        ("POST", "/api/v1/connections/notes/pause"),
        ("PATCH", "/api/v1/connections/notes/schedule"),
        ("GET", "/api/v1/connections/notes"),
        ("GET", "/api/v1/connections?limit=0"),
        ("GET", "/%FF"),
        ("OPTIONS", "/api/v1/status"),
    ] {
        assert_eq!(ask(method, path), known, "{method} {path}");
    }
    assert_eq!(world.send(&world.bare("GET", "/healthz")).text(), "alive\n");
}

/// A person is told how to get in, a program what is the matter; and neither what is there.
#[test]
fn a_browser_that_is_not_signed_in_gets_a_page_and_a_program_gets_json() {
    let world = World::new();
    let accepts = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let ask = |path: &str, accept: &str| world.bare("GET", path).header("accept", accept).send(world.address);
    let page = ask("/", accepts);
    assert_eq!((page.status, page.header("content-type")), (401, Some("text/html; charset=utf-8")));
    assert_eq!(page.header("www-authenticate"), Some("Bearer realm=\"gleaner\""));
    crate::world::has_every_header(&page);
    assert!(page.text().contains("gleaner serve") && page.text().contains("/api/v1/links"), "{}", page.text());
    assert!(!page.text().contains("<script"), "{}", page.text());
    for path in ["/gaps", "/nothing", "/api/v1/status", "/connections/notes"] {
        assert_eq!(ask(path, accepts).body, page.body, "{path}");
    }
    for program in ["*/*", "application/json", "application/xml", ""] {
        let reply = ask("/", program);
        assert_eq!((reply.status, reply.header("content-type")), (401, Some("application/json")), "{program}");
    }
    let posted = world.bare("POST", "/gaps").header("accept", accepts).send(world.address);
    assert_eq!(
        (posted.status, posted.header("content-type")),
        (401, Some("application/json")),
        "only what is looked at"
    );
    let style = ask("/open.css", "text/css,*/*;q=0.1");
    assert_eq!((style.status, style.header("content-type")), (200, Some("text/css; charset=utf-8")));
    assert!(page.text().contains("href=\"/open.css\"") && style.text().contains(".door"));
    let guess = |nth: usize| world.bare("GET", "/").header("cookie", &format!("gleaner_session={nth:064x}"));
    for nth in 0..20 {
        assert_eq!(guess(nth).send(world.address).status, 401);
    }
    let late = guess(21).header("accept", accepts).send(world.address);
    assert_eq!((late.status, late.header("retry-after")), (429, Some("60")));
    assert!(late.text().contains("Wait a minute"), "{}", late.text());
}

/// F86: guessing is told to wait, and never keeps the owner out.
#[test]
fn wrong_credentials_are_told_to_wait_and_right_ones_never_are() {
    let world = World::new();
    let guess = |nth: usize| world.bare("GET", "/api/v1/status").header("authorization", &format!("Bearer {nth:064x}"));
    let tries = if crate::world::full_size() { 100_000 } else { 60 };
    let statuses = (0..tries).map(|nth| guess(nth).send(world.address).status).collect::<Vec<_>>();
    assert!(statuses[..20].iter().all(|status| *status == 401), "{statuses:?}");
    assert!(statuses[20..60].iter().all(|status| *status == 429), "{statuses:?}");
    assert!(statuses.iter().all(|status| [401, 429].contains(status)));
    let reply = guess(1).send(world.address);
    assert_eq!(reply.header("retry-after"), Some("60"));
    assert_eq!(world.get("/api/v1/status").status, 200);
    assert_eq!(exchange(&world, "wrong").status, 429, "codes count too");
    assert_eq!(exchange(&world, code(&world.console().new_link().expect("a link"))).status, 303);
    // A credential that is none counts as a guess and is refused like one.
    for bad in ["Basic abc", "Bearer", "Bearer ", "Bearer a b"] {
        let status = world.bare("GET", "/api/v1/status").header("authorization", bad).send(world.address).status;
        assert_eq!(status, 429, "{bad}");
    }
}
