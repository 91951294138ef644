//! No query, header, body or credential in what a person or a log gets to see.

use crate::support::{Act, Answer, Provider, answer, builder, head, redirect};
use gleaner_http::client::Error;
use std::error::Error as _;
use std::time::Duration;

/// Everything that an error can be made to say.
fn said(error: &Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(" {cause} {cause:?}");
        source = cause.source();
    }
    text
}

#[tokio::test]
async fn no_error_tells_a_secret() {
    let provider = Provider::start(|request, _| match request.target.split('?').next().unwrap() {
        "/throttled" => answer(429, &[("retry-after", "0.01"), ("x-echo", "hush")], "hush"),
        "/hangs" => Answer::default().then(Act::Hang),
        "/closes" => Answer::default().then(Act::Close),
        "/broken" => head(200, &[("content-length", "99")]).write("hush").then(Act::Close),
        "/garbage" => Answer::default().write("hush hush hush\r\n\r\n").then(Act::Close),
        "/unzippable" => answer(200, &[("content-encoding", "gzip")], "hush hush hush hush"),
        "/redirect" => redirect(302, "http://127.0.0.1:1/elsewhere?token=hush"),
        "/missing" => answer(404, &[], "hush"),
        _ => answer(200, &[("x-echo", "hush")], "\"hush\""),
    })
    .await;
    let client =
        builder("p").bearer("hush").default_header("x-key", "hush").attempt_timeout(Duration::from_millis(100));
    let client = client.attempts(2).build().unwrap();
    let mut told = 0;
    for path in
        ["/throttled", "/hangs", "/closes", "/broken", "/garbage", "/unzippable", "/redirect", "/missing", "/json"]
    {
        let request = client.post(provider.url(path)).query(&[("token", "hush")]).body("hush").header("cookie", "hush");
        assert!(!format!("{request:?} {client:?}").contains("hush"));
        let result = match request.send().await {
            Ok(response) => {
                assert!(!format!("{response:?}").contains("hush"));
                match response.error_for_status() {
                    Ok(response) => response.json::<u32>().await.map(drop),
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        };
        let said = said(&result.unwrap_err());
        assert!(!said.contains("hush"), "{path}: {said}");
        told += usize::from(said.contains("http://127.0.0.1:"));
    }
    assert_eq!(told, 8, "all but the terminal one say where");
}

#[tokio::test]
async fn a_password_in_the_url_is_sent_as_a_header_and_shown_nowhere() {
    let provider = Provider::always(answer(200, &[], "")).await;
    let url = provider.url("/x").replace("http://", "http://me:hush@");
    let request = builder("p").build().unwrap().get(url);
    assert!(!format!("{request:?}").contains("hush"));
    let response = request.send().await.unwrap();
    assert!(!response.url().as_str().contains("hush"));
    assert_eq!(provider.received()[0].header("authorization"), Some("Basic bWU6aHVzaA=="));
}

#[tokio::test]
async fn a_request_that_cannot_be_sent_says_so_without_sending() {
    let client = builder("p").build().unwrap();
    for (request, text) in [
        (
            client.get("gopher://a.example/"),
            "the request cannot be sent: its URL begins with neither http:// nor https://",
        ),
        (client.get("http://"), "the request cannot be sent: its URL is invalid: empty host"),
        (
            client.get("http://127.0.0.1/").header("x-key", "hush\n"),
            "the request cannot be sent: its header \"x-key\" has a name or a value that HTTP does not allow",
        ),
    ] {
        assert_eq!(request.send().await.unwrap_err().to_string(), text);
    }
    assert_eq!(client.governor().status().sent, 0);
    assert!(matches!(builder("p").bearer("a\nb").build(), Err(Error::Request(_))));
}
