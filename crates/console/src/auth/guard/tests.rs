//! The guard alone, against what an independent statement of the rule says, for any mixture of good and bad.

use super::*;
use http::request::Request;
use proptest::prelude::*;

const HOSTS: [Option<&str>; 9] = [
    Some("127.0.0.1:8716"),
    Some("LOCALHOST:8716"),
    Some("127.0.0.1"),
    Some("127.0.0.1:8717"),
    Some("evil.test:8716"),
    Some("127.0.0.1:8716.evil.test"),
    Some("[::1]:8716"),
    Some(""),
    None,
];
const ORIGINS: [Option<&str>; 8] = [
    None,
    Some("http://127.0.0.1:8716"),
    Some("http://localhost:8716"),
    Some("https://127.0.0.1:8716"),
    Some("http://127.0.0.1:3000"),
    Some("http://evil.test"),
    Some("null"),
    Some("http://127.0.0.1:8716.evil.test"),
];
const SITES: [Option<&str>; 6] =
    [None, Some("same-origin"), Some("none"), Some("same-site"), Some("cross-site"), Some("Same-Origin")];
const AUTHS: [(Option<&str>, Option<&str>); 8] = [
    (None, None),
    (Some("Bearer good"), None),
    (Some("bearer  good"), None),
    (Some("Bearer bad"), None),
    (Some("Basic Z29vZA=="), None),
    (None, Some("a=b; gleaner_session=good")),
    (None, Some("gleaner_session=bad")),
    (None, Some("gleaner_session=good; gleaner_session=good")),
];
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "DELETE", "OPTIONS", "BREW"];
const PATHS: [&str; 6] = ["/healthz", "/open", "/open.css", "/", "/api/v1/status", "/nothing/here"];

fn names() -> Names {
    Names::of("127.0.0.1:8716".parse().unwrap(), &[], false)
}

fn verdict(request: &Parts) -> Result<(), Refusal> {
    judge(&Asked::of(request), &names(), |presented| match presented {
        Presented::Bearer("good") | Presented::Session("good") => Known::Yes,
        Presented::Bearer(_) => Known::NoAndTooOften,
        Presented::Nothing | Presented::Session(_) | Presented::Unclear => Known::No,
    })
}

use http::request::Parts;

fn request(
    method: &str,
    path: &str,
    host: Option<&str>,
    origin: Option<&str>,
    site: Option<&str>,
    auth: (Option<&str>, Option<&str>),
) -> Parts {
    let mut request = Request::builder().method(method).uri(path);
    let headers =
        [("host", host), ("origin", origin), ("sec-fetch-site", site), ("authorization", auth.0), ("cookie", auth.1)];
    for (name, value) in headers {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    request.body(()).unwrap().into_parts().0
}

#[test]
fn the_whole_matrix_is_answered_as_the_rule_says() {
    let mut seen = Vec::new();
    for host in HOSTS {
        for origin in ORIGINS {
            for site in SITES {
                for auth in AUTHS {
                    for method in METHODS {
                        for path in PATHS {
                            let parts = request(method, path, host, origin, site, auth);
                            let expected = expected(method, path, host, origin, site, auth);
                            assert_eq!(
                                verdict(&parts),
                                expected,
                                "{method} {path} host {host:?} origin {origin:?} site {site:?} auth {auth:?}"
                            );
                            if !seen.contains(&expected) {
                                seen.push(expected);
                            }
                        }
                    }
                }
            }
        }
    }
    // Each answer occurs, or the matrix would prove nothing about it.
    assert_eq!(seen.len(), 6, "{seen:?}");
}

/// The rule once more, from the other end: what must hold for a request to pass.
fn expected(
    method: &str,
    path: &str,
    host: Option<&str>,
    origin: Option<&str>,
    site: Option<&str>,
    auth: (Option<&str>, Option<&str>),
) -> Result<(), Refusal> {
    let safe = ["GET", "HEAD", "OPTIONS"].contains(&method);
    let own = match host {
        Some("127.0.0.1:8716") => "http://127.0.0.1:8716",
        Some("LOCALHOST:8716") => "http://localhost:8716",
        _ => return Err(Refusal::NotOurName),
    };
    let site_is_ours = site.is_none() || site == Some("same-origin") || (safe && site == Some("none"));
    if !site_is_ours || origin.is_some_and(|origin| origin != own) {
        return Err(Refusal::ForeignSite);
    }
    let looks = ["GET", "HEAD"].contains(&method);
    if (path == "/healthz" || path == "/open.css") && looks {
        return Ok(());
    }
    if path == "/open" && (looks || method == "POST") {
        return if looks || origin.is_some() { Ok(()) } else { Err(Refusal::NoOrigin) };
    }
    match auth {
        (Some("Bearer good" | "bearer  good"), _) => Ok(()),
        (Some("Bearer bad"), _) => Err(Refusal::TooManyGuesses),
        (None, Some("a=b; gleaner_session=good")) if safe || origin.is_some() => Ok(()),
        (None, Some("a=b; gleaner_session=good")) => Err(Refusal::NoOrigin),
        _ => Err(Refusal::NotSignedIn),
    }
}

#[test]
fn a_header_that_is_there_twice_is_good_for_nothing() {
    for name in ["host", "origin", "sec-fetch-site", "authorization", "cookie"] {
        let good = request(
            "GET",
            "/",
            Some("127.0.0.1:8716"),
            Some("http://127.0.0.1:8716"),
            Some("same-origin"),
            (Some("Bearer good"), Some("gleaner_session=good")),
        );
        assert_eq!(verdict(&good), Ok(()));
        let mut twice = good.clone();
        if name == "cookie" {
            twice.headers.remove("authorization");
        }
        let value = good.headers.get(name).unwrap().clone();
        twice.headers.append(name, value);
        assert!(verdict(&twice).is_err(), "{name}");
    }
}

#[test]
fn a_request_line_with_a_whole_address_cannot_say_another_name() {
    let with = |uri: &str| {
        let request =
            Request::builder().uri(uri).header("host", "127.0.0.1:8716").header("authorization", "Bearer good");
        verdict(&request.body(()).unwrap().into_parts().0)
    };
    assert_eq!(with("http://127.0.0.1:8716/"), Ok(()));
    assert_eq!(with("http://evil.test/"), Err(Refusal::NotOurName));
}

#[test]
fn the_names_are_those_of_the_address_and_what_the_owner_adds() {
    let has = |names: &Names, host: &str| names.find(&Said::Once(host)).is_some();
    let port_80 = Names::of("127.0.0.1:80".parse().unwrap(), &[], false);
    assert!(has(&port_80, "127.0.0.1") && has(&port_80, "localhost") && !has(&port_80, "127.0.0.1:81"));
    let six = Names::of("[::1]:9".parse().unwrap(), &[], false);
    assert!(has(&six, "[::1]:9") && has(&six, "localhost:9") && !has(&six, "127.0.0.1:9"));
    let everywhere = Names::of("0.0.0.0:9".parse().unwrap(), &[OtherName::new("Gleaner.example").unwrap()], false);
    assert!(has(&everywhere, "gleaner.example") && !has(&everywhere, "0.0.0.0:9") && !has(&everywhere, "localhost:9"));
    let name = everywhere.find(&Said::Once("gleaner.example")).unwrap();
    assert!(name.is_origin("https://gleaner.example") && !name.is_origin("ftp://gleaner.example"));
    let by_tls = Names::of("127.0.0.1:443".parse().unwrap(), &[OtherName::new("a.example").unwrap()], true);
    for host in ["127.0.0.1", "localhost", "a.example"] {
        let name = by_tls.find(&Said::Once(host)).unwrap();
        assert!(name.is_origin(&format!("https://{host}")) && !name.is_origin(&format!("http://{host}")), "{host}");
    }
    for no_name in ["", "a b", "a/b", "*", "ä.example"] {
        assert_eq!(OtherName::new(no_name), None, "{no_name:?}");
    }
}

proptest! {
    /// Whatever the texts are: nothing gets inside without our name and a known credential, and nothing is changed
    /// with a foreign origin.
    #[test]
    fn whatever_passes_is_ours(
        host in "[ -~]{0,40}", origin in proptest::option::of("[ -~]{0,40}"), site in proptest::option::of("[ -~]{0,12}"),
        auth in proptest::option::of("[ -~]{0,40}"), cookie in proptest::option::of("[ -~]{0,60}"),
        method in proptest::sample::select(METHODS.to_vec()), path in proptest::sample::select(PATHS.to_vec()),
    ) {
        let parts = request(method, path, Some(&host), origin.as_deref(), site.as_deref(),
                            (auth.as_deref(), cookie.as_deref()));
        if verdict(&parts).is_ok() {
            prop_assert!(names().find(&Said::Once(host.as_str())).is_some());
            let own = format!("http://{host}");
            prop_assert!(origin.is_none_or(|origin| origin.eq_ignore_ascii_case(&own)));
        }
    }
}
