//! Redirects on the wire: what the second server sees, and which one is never asked.

use crate::support::{Provider, answer, builder, client, redirect};
use gleaner_http::client::{Error, RedirectFault};
use gleaner_http::{Governors, Key, Settings};
use std::sync::{Arc, OnceLock};

fn fault(result: Result<gleaner_http::client::Response, Error>) -> RedirectFault {
    match result {
        Err(Error::Redirect { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_redirect_within_the_origin_keeps_credentials_and_is_admitted_by_the_same_key() {
    let provider = Provider::start(|request, _| match request.target.as_str() {
        "/old?a=1" => redirect(302, "new"),
        _ => answer(200, &[], "here"),
    })
    .await;
    let client = builder("p").bearer("secret").build().unwrap();
    let response = client.get(provider.url("/old")).query(&[("a", "1")]).send().await.unwrap();
    assert_eq!((response.redirects(), response.attempts(), response.url().path()), (1, 2, "/new"));
    assert_eq!(response.text().await.unwrap(), "here");
    assert_eq!(provider.received()[1].header("authorization"), Some("Bearer secret"));
    assert_eq!(client.governor().status().sent, 2);
}

#[tokio::test]
async fn a_redirected_post_becomes_a_get_without_its_body() {
    let provider = Provider::start(|request, _| match request.target.as_str() {
        "/302" => redirect(302, "/end"),
        "/307" => redirect(307, "/end"),
        _ => answer(200, &[], ""),
    })
    .await;
    let client = client("p");
    for path in ["/302", "/307"] {
        client.post(provider.url(path)).json(&[1]).send().await.unwrap();
    }
    let seen: Vec<_> = provider.received().into_iter().map(|request| (request.method, request.body)).collect();
    let expected = [("POST", "[1]"), ("GET", ""), ("POST", "[1]"), ("POST", "[1]")];
    assert_eq!(seen, expected.map(|(method, body)| (method.to_owned(), body.to_owned())));
    assert_eq!(provider.received()[1].header("content-type"), None);
}

#[tokio::test]
async fn credentials_never_cross_origins() {
    let stranger = Arc::new(Provider::always(answer(200, &[], "x")).await);
    let to = stranger.url("/elsewhere");
    let provider = Provider::start(move |_, _| redirect(302, &to)).await;
    let client = builder("p")
        .bearer("secret")
        .default_header("x-api-key", "secret")
        .default_header("accept", "application/json")
        .allow_private_redirects(true)
        .build()
        .unwrap();
    let request = client.get(provider.url("/")).header("cookie", "sid=secret").header("x-other", "secret");
    request.send().await.unwrap();
    let mut names: Vec<_> = stranger.received()[0].headers.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"]);
    assert!(!format!("{:?}", stranger.received()).contains("secret"));
    assert_eq!(provider.received()[0].header("x-api-key"), Some("secret"), "otherwise this test proves nothing");
}

#[tokio::test]
async fn a_body_is_not_sent_to_another_origin() {
    let stranger = Arc::new(Provider::always(answer(200, &[], "")).await);
    let to = stranger.url("/");
    let provider = Provider::start(move |_, _| redirect(307, &to)).await;
    let client = builder("p").allow_private_redirects(true).build().unwrap();
    let result = client.post(provider.url("/")).body("private").send().await;
    assert_eq!((fault(result), stranger.count()), (RedirectFault::BodyToOtherOrigin, 0));
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_not_followed() {
    let neighbour = Arc::new(Provider::always(answer(200, &[], "")).await);
    // By number, by name (which only the resolver can tell), and in other clothes.
    let port = neighbour.port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0.0.0.0"] {
        let to = format!("http://{host}:{port}/");
        let provider = Provider::start(move |_, _| redirect(302, &to)).await;
        let client = builder("p").build().unwrap();
        assert_eq!(fault(client.get(provider.url("/")).send().await), RedirectFault::PrivateTarget, "{host}");
        assert_eq!((provider.count(), neighbour.count()), (1, 0), "{host}");
    }
}

#[tokio::test]
async fn a_hop_elsewhere_is_admitted_by_the_key_of_that_host() {
    let stranger = Arc::new(Provider::always(answer(200, &[], "")).await);
    let to = stranger.url("/");
    let provider = Provider::start(move |_, _| redirect(302, &to)).await;
    let governors = Governors::new();
    let client = builder("p").governors(governors.clone()).allow_private_redirects(true).credential("me");
    let client = client.build().unwrap();
    client.get(provider.url("/")).send().await.unwrap();
    let other = governors.known_or(&Key::new(&format!("127.0.0.1:{}", stranger.port())), &Settings::default()).unwrap();
    assert_eq!((client.governor().status().sent, other.status().sent), (1, 1));
}

#[tokio::test]
async fn a_host_that_is_governed_with_intent_keeps_its_settings() {
    let stranger = Arc::new(Provider::always(answer(200, &[], "")).await);
    let to = stranger.url("/");
    let provider = Provider::start(move |_, _| redirect(302, &to)).await;
    let governors = Governors::new();
    let key = Key::new(&format!("127.0.0.1:{}", stranger.port()));
    let known = governors.governor(&key, &Settings::default()).unwrap();
    let client = builder("p").governors(governors).allow_private_redirects(true).build().unwrap();
    client.get(provider.url("/")).send().await.unwrap();
    assert_eq!(known.status().sent, 1);
}

#[tokio::test]
async fn loops_ends_and_missing_targets_are_errors() {
    let provider = Provider::start(|request, _| {
        let number = request.target.trim_start_matches('/').parse::<u32>();
        match (request.target.as_str(), number) {
            ("/a", _) => redirect(302, "/b"),
            ("/b", _) => redirect(302, "/a"),
            ("/nowhere", _) => answer(302, &[], ""),
            ("/broken", _) => redirect(302, "http://[broken"),
            ("/file", _) => redirect(302, "file:///etc/passwd"),
            (_, Ok(0)) => answer(200, &[], "end"),
            (_, Ok(number)) => redirect(302, &format!("/{}", number - 1)),
            _ => answer(404, &[], ""),
        }
    })
    .await;
    let client = client("p");
    for (path, expected) in [
        ("/a", RedirectFault::Loop),
        ("/nowhere", RedirectFault::NoLocation),
        ("/broken", RedirectFault::InvalidLocation),
        ("/file", RedirectFault::Scheme),
        ("/11", RedirectFault::TooMany(10)),
    ] {
        assert_eq!(fault(client.get(provider.url(path)).send().await), expected, "{path}");
    }
    assert_eq!(client.get(provider.url("/10")).send().await.unwrap().redirects(), 10);
    let unfollowed = builder("p").max_redirects(0).build().unwrap().get(provider.url("/3")).send().await.unwrap();
    assert_eq!(unfollowed.status(), 302);
}

#[tokio::test]
async fn cookies_are_kept_and_sent_back_to_where_they_came_from() {
    let script = |request: &crate::support::Received, _| match request.header("cookie") {
        None => answer(302, &[("location", request.target.as_str()), ("set-cookie", "sid=1; Path=/")], ""),
        Some(_) => answer(200, &[], ""),
    };
    let provider = Provider::start(script).await;
    client("p").get(provider.url("/")).send().await.unwrap();
    assert_eq!(provider.received()[1].header("cookie"), Some("sid=1"));
    let without = builder("p").cookie_store(false).max_redirects(3).build().unwrap();
    assert_eq!(fault(without.get(provider.url("/")).send().await), RedirectFault::TooMany(3));
}

#[tokio::test]
async fn what_was_dropped_at_another_origin_is_not_sent_home_again() {
    let home_url = Arc::new(OnceLock::<String>::new());
    let back = Arc::clone(&home_url);
    let stranger = Provider::start(move |_, _| redirect(302, back.get().unwrap())).await;
    let away = stranger.url("/");
    let home = Provider::start(move |request, _| match request.target.as_str() {
        "/" => redirect(302, "/within"),
        "/within" => redirect(302, &away),
        _ => answer(200, &[], ""),
    })
    .await;
    home_url.set(home.url("/back")).unwrap();
    let client = builder("p").bearer("secret").default_header("x-api-key", "secret").allow_private_redirects(true);
    client.build().unwrap().get(home.url("/")).send().await.unwrap();
    let [first, within, back] = &home.received()[..] else { panic!("{:?}", home.received()) };
    for before in [first, within] {
        assert_eq!(
            (before.header("authorization"), before.header("x-api-key")),
            (Some("Bearer secret"), Some("secret"))
        );
    }
    assert_eq!(back.target, "/back");
    assert!(!format!("{back:?} {:?}", stranger.received()).contains("secret"));
}

#[tokio::test]
async fn cookies_go_to_where_they_came_from_and_nowhere_else() {
    let stranger = Arc::new(Provider::always(answer(200, &[], "")).await);
    // Cookies do not tell ports apart, so it needs another name.
    let away = format!("http://localhost:{}/", stranger.port());
    let provider = Provider::start(move |_, number| match number {
        0 => answer(302, &[("location", &away), ("set-cookie", "sid=secret; Path=/"), ("set-cookie", "b=2")], ""),
        _ => answer(200, &[], ""),
    })
    .await;
    let client = builder("p").allow_private_redirects(true).build().unwrap();
    client.get(provider.url("/")).send().await.unwrap();
    assert_eq!((stranger.count(), stranger.received()[0].header("cookie")), (1, None));
    client.get(provider.url("/")).send().await.unwrap();
    let mut kept: Vec<_> = provider.received()[1].header("cookie").unwrap().split("; ").map(str::to_owned).collect();
    kept.sort();
    assert_eq!(kept, ["b=2", "sid=secret"]);
    client.get(provider.url("/")).header("cookie", "own=1").send().await.unwrap();
    assert_eq!(provider.received()[2].header("cookie"), Some("own=1"));
}
