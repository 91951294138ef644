//! Every route of API and pages with every mixture of name, origin, site, credential and method, over the wire: exactly the expected answers
//! (F84, F85). What is expected is computed here, from the rule and not from the guard.

use crate::client::{Request, connect, parse};
use crate::world::{World, full_size, has_every_header};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

/// Cases that are left out between two by default. A prime that divides none of the lists' lengths, so that every
/// value meets every other.
const STRIDE: usize = 13;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Credential {
    None,
    Token,
    Session,
}

struct Case<'a> {
    method: &'a str,
    path: &'a str,
    host: &'a str,
    origin: Option<&'a str>,
    site: Option<&'a str>,
    credential: Credential,
}

/// Passes the guard, or is refused with this status and code.
fn expected(case: &Case<'_>, ours: &str) -> Result<(), (u16, &'static str)> {
    let safe = ["GET", "HEAD", "OPTIONS"].contains(&case.method);
    if case.host != ours {
        return Err((421, "not_our_name"));
    }
    let own = format!("http://{ours}");
    let site = match case.site {
        None | Some("same-origin") => true,
        Some("none") => safe,
        Some(_) => false,
    };
    if !site || case.origin.is_some_and(|origin| origin != own) {
        return Err((403, "foreign_site"));
    }
    let without = match (case.method, case.path) {
        ("GET", "/healthz" | "/open" | "/open.css") => return Ok(()),
        ("POST", "/open") => true,
        _ => match case.credential {
            Credential::None => return Err((401, "not_signed_in")),
            Credential::Token => false,
            Credential::Session => !safe,
        },
    };
    if without && case.origin.is_none() { Err((403, "no_origin")) } else { Ok(()) }
}

#[test]
fn every_mixture_gets_exactly_the_expected_answer() {
    let world = World::new();
    let ours = world.host();
    let things = Things::of(&world);
    let mut allowed = BTreeMap::<String, Vec<String>>::new();
    for (method, path) in gleaner_console::routes().into_iter().chain(gleaner_console::page_routes()) {
        allowed.entry(things.filled(path)).or_default().push(method);
    }
    assert!(allowed.keys().all(|path| !path.contains('{')), "{allowed:?}");
    for nothing in ["/nothing/here", "/api/v1", "/static/app.js", "/-"] {
        allowed.insert(nothing.to_owned(), Vec::new());
    }
    let port = world.address.port();
    let hosts = [ours.clone(), format!("evil.test:{port}"), "127.0.0.1".to_owned()];
    let own = world.origin();
    let origins = [None, Some(own.as_str()), Some("http://evil.test"), Some("null"), Some("http://127.0.0.1:3000")];
    let sites = [None, Some("same-origin"), Some("none"), Some("same-site"), Some("cross-site")];
    let credentials = [Credential::None, Credential::Token, Credential::Session];
    let methods = ["GET", "POST", "PATCH", "DELETE", "OPTIONS"];
    let mut session = sign_in(&world);
    let (mut counted, mut nth) = (BTreeMap::new(), 0);
    for (path, methods_of_path) in &allowed {
        for host in &hosts {
            for origin in origins {
                for site in sites {
                    for credential in credentials {
                        for method in methods {
                            nth += 1;
                            if !full_size() && nth % STRIDE != 0 {
                                continue;
                            }
                            let case = Case { method, path, host, origin, site, credential };
                            let expected = expected(&case, &ours);
                            let inside = inside(&case, methods_of_path);
                            check(&world, &case, &session, (expected, inside));
                            *counted.entry(format!("{expected:?}")).or_insert(0) += 1;
                            if path == "/api/v1/session" && method == "DELETE" && expected.is_ok() {
                                session = sign_in(&world);
                            }
                        }
                    }
                }
            }
        }
    }
    println!("{} cases of {} paths: {counted:?}", counted.values().sum::<i32>(), allowed.len());
    assert_eq!(counted.len(), 5, "each answer occurs: {counted:?}");
}

/// What is answered to whoever is let in. No request has a body here, so nothing is changed but the session.
fn inside(case: &Case<'_>, methods: &[String]) -> u16 {
    if methods.is_empty() {
        return 404;
    }
    if !methods.iter().any(|method| method == case.method) {
        return 405;
    }
    match (case.method, case.path) {
        ("POST" | "PATCH", _) => 415,
        ("DELETE", "/api/v1/session") => 204,
        // It is not ignored.
        ("DELETE", _) => 409,
        // They want to know which.
        (_, path) if path.ends_with("/record") || path.ends_with("/history") => 400,
        // Nothing waits, so there is nothing to see.
        (_, path) if path.ends_with("/picture") => 404,
        _ => 200,
    }
}

fn check(world: &World, case: &Case<'_>, session: &str, (expected, inside): (Result<(), (u16, &str)>, u16)) {
    let mut request = Request::new(case.method, case.path).header("host", case.host);
    let token = format!("Bearer {}", world.token);
    let credential = match case.credential {
        Credential::None => None,
        Credential::Token => Some(("authorization", token.as_str())),
        Credential::Session => Some(("cookie", session)),
    };
    let headers = [case.origin.map(|origin| ("origin", origin)), case.site.map(|site| ("sec-fetch-site", site))];
    for (name, value) in headers.into_iter().flatten().chain(credential) {
        request = request.header(name, value);
    }
    // Only the head, since one of them is a stream without an end.
    let mut socket = request.open(world.address);
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while !bytes.windows(4).any(|part| part == b"\r\n\r\n") {
        let read = socket.read(&mut buffer).expect("an answer");
        assert!(read > 0, "an answer");
        bytes.extend_from_slice(&buffer[..read]);
    }
    let reply = parse(&bytes);
    if !(case.path.starts_with("/assets/") && reply.status == 200) {
        has_every_header(&reply);
    }
    let about = format!(
        "{} {} host {} origin {:?} site {:?} {:?}",
        case.method, case.path, case.host, case.origin, case.site, case.credential
    );
    match expected {
        Err((status, code)) => {
            assert_eq!(reply.status, status, "{about}");
            assert!(reply.text().contains(&format!("\"code\":\"{code}\"")), "{about}: {}", reply.text());
        }
        Ok(()) => assert_eq!(reply.status, inside, "{about}: {}", String::from_utf8_lossy(&reply.body)),
    }
}

/// What is there to be asked for.
struct Things(Vec<(&'static str, String)>);

impl Things {
    fn of(world: &World) -> Self {
        let first = |path: &str, field: &str| {
            let items = world.json(&format!("/api/v1/connections/notes/{path}"))["items"].clone();
            items[0][field].as_str().expect("a name").to_owned()
        };
        let page = world.request("GET", "/").send(world.address);
        let style = page.text().split("href=\"/assets/").nth(1).expect("a style").split('"').next().expect("its end");
        let (hash, name) = style.split_once('/').expect("two parts");
        Self(vec![
            ("{connection}", "notes".to_owned()),
            ("{connector}", "ical".to_owned()),
            ("{stream}", "items".to_owned()),
            ("{run}", first("runs", "run_id")),
            ("{gap}", first("gaps", "gap_id")),
            ("{interaction}", "1".to_owned()),
            ("{question}", "1".to_owned()),
            ("{hash}", hash.to_owned()),
            ("{name}", name.to_owned()),
        ])
    }

    fn filled(&self, path: &str) -> String {
        self.0.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value))
    }
}

fn sign_in(world: &World) -> String {
    let link = world.console().new_link().expect("a link");
    let code = link.split_once("code=").expect("a code").1;
    let request = world.bare("POST", "/open").header("origin", &world.origin()).form(&format!("code={code}"));
    let reply = request.send(world.address);
    reply.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned()
}

/// What no client library would send.
#[test]
fn heads_that_are_none_are_refused_without_a_word_about_what_is_there() {
    let world = World::new();
    let ours = world.host();
    let token = &world.token;
    for (head, expected) in [
        (format!("GET /api/v1/status HTTP/1.0\r\nauthorization: Bearer {token}\r\n\r\n"), 421),
        (
            format!(
                "GET /api/v1/status HTTP/1.1\r\nhost: {ours}\r\nhost: {ours}\r\nauthorization: Bearer {token}\r\n\r\n"
            ),
            421,
        ),
        (
            format!(
                "GET http://evil.test/api/v1/status HTTP/1.1\r\nhost: {ours}\r\nauthorization: Bearer {token}\r\n\r\n"
            ),
            421,
        ),
        (
            format!(
                "GET /api/v1/status HTTP/1.1\r\nhost: {ours}\r\nauthorization: Bearer {token}\r\norigin: a\r\norigin: b\r\n\r\n"
            ),
            403,
        ),
        (format!("GET /api/v1/status HTTP/1.1\r\nhost: {ours}\r\nx: {}\r\n\r\n", "a".repeat(100_000)), 431),
        (format!("GET /api/v1/status HTTP/1.1\r\nhost: {ours}\r\n{}\r\n", "x: y\r\n".repeat(200)), 431),
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n".to_owned(), 400),
    ] {
        let mut socket = connect(world.address);
        // It may hang up before the whole head is there.
        let _refused = socket.write_all(head.as_bytes());
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = socket.read(&mut buffer) {
            bytes.extend_from_slice(&buffer[..read]);
            if bytes.windows(4).any(|part| part == b"\r\n\r\n") {
                break;
            }
        }
        // A reset can overtake the answer to a head that was too long.
        let status = if bytes.is_empty() { 431 } else { parse(&bytes).status };
        assert_eq!(status, expected, "{}", &head[..head.len().min(120)]);
    }
    assert_eq!(world.get("/api/v1/status").status, 200);
}
