//! Pages that follow each other, pages that do not, and pages that never end.

use crate::support::{Answer, Provider, answer, builder, client};
use gleaner_http::client::{Error, Pages, PagingFault, Slice};
use serde_json::Value;
use std::sync::Arc;

async fn all(mut pages: Pages) -> (Vec<Slice>, Option<Error>) {
    let mut slices = Vec::new();
    loop {
        match pages.next().await {
            Ok(Some(slice)) => slices.push(slice),
            Ok(None) => return (slices, None),
            Err(error) => return (slices, Some(error)),
        }
    }
}

fn fault(error: Option<Error>) -> (u32, PagingFault) {
    match error {
        Some(Error::Paging { page, fault, .. }) => (page, fault),
        other => panic!("{other:?}"),
    }
}

fn linked(body: &str, link: &str) -> Answer {
    answer(200, &[("link", link)], body)
}

/// Three pages, each with a link to the next; relative and absolute.
async fn list() -> Provider {
    Provider::start(|request, _| match request.target.as_str() {
        "/list?limit=2" => linked("[1,2]", "<?limit=2&page=2>; rel=\"next\", <?page=1>; rel=first"),
        "/list?limit=2&page=2" => linked("[3,4]", "</list?limit=2&page=3>; rel=next"),
        "/list?limit=2&page=3" => linked("[5]", "</list?limit=2>; rel=first"),
        _ => answer(404, &[], ""),
    })
    .await
}

#[tokio::test]
async fn links_are_followed_to_the_last_page() {
    let provider = list().await;
    let client = builder("p").bearer("secret").build().unwrap();
    let request = client.get(provider.url("/list")).query(&[("limit", "2")]);
    let (slices, error) = all(client.pages(request).by_link()).await;
    assert!(error.is_none(), "{error:?}");
    let numbers: Vec<u32> = slices.iter().flat_map(|slice| slice.json::<Vec<u32>>().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert_eq!(slices.iter().map(|slice| slice.index).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(slices[1].cursor.is_some() && slices[2].cursor.is_none());
    assert!(provider.received().iter().all(|request| request.header("authorization") == Some("Bearer secret")));
}

#[tokio::test]
async fn a_cursor_resumes_after_its_slice() {
    let provider = list().await;
    let client = client("p");
    let request = client.get(provider.url("/list")).query(&[("limit", "2")]);
    let first = client.pages(request.clone()).by_link().next().await.unwrap().unwrap();
    let (rest, error) = all(client.pages(request).resume_after(first.cursor.unwrap()).by_link()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(rest.iter().map(|slice| slice.body.as_ref()).collect::<Vec<_>>(), [&b"[3,4]"[..], b"[5]"]);
}

#[tokio::test]
async fn a_link_to_another_origin_is_refused_after_its_page_was_handed_out() {
    let stranger = Arc::new(Provider::always(answer(200, &[], "[]")).await);
    let link = format!("<{}>; rel=next", stranger.url("/"));
    let provider = Provider::start(move |_, _| linked("[1]", &link)).await;
    let client = client("p");
    let (slices, error) = all(client.pages(client.get(provider.url("/"))).by_link()).await;
    assert_eq!((slices.len(), fault(error), stranger.count()), (1, (1, PagingFault::OtherOrigin), 0));
    let resumed = client.pages(client.get(provider.url("/"))).resume_after(stranger.url("/")).by_link();
    assert_eq!((fault(all(resumed).await.1), stranger.count()), ((0, PagingFault::OtherOrigin), 0));
}

#[tokio::test]
async fn pages_in_a_circle_are_a_loop() {
    let provider = Provider::start(|request, _| match request.target.as_str() {
        "/?p=1" => linked("1", "</?p=2>; rel=next"),
        "/?p=2" => linked("2", "</?p=1>; rel=next"),
        "/self" => linked("3", "</self>; rel=next"),
        _ => answer(200, &[], r#"{"next":"same"}"#),
    })
    .await;
    let client = client("p");
    for (path, pages) in [("/?p=1", 2), ("/self", 1)] {
        let (slices, error) = all(client.pages(client.get(provider.url(path))).by_link()).await;
        assert_eq!((slices.len(), fault(error)), (pages, (pages as u32, PagingFault::Loop)), "{path}");
    }
    let cursors = client.pages(client.get(provider.url("/c"))).by_page_token("/next", "cursor");
    let (slices, error) = all(cursors).await;
    assert_eq!((slices.len(), fault(error)), (2, (2, PagingFault::Loop)));
    let begun = client.pages(client.get(provider.url("/c?cursor=same"))).by_page_token("/next", "cursor");
    assert_eq!(all(begun).await.0.len(), 1);
}

#[tokio::test]
async fn pages_without_end_are_an_error_and_not_the_end() {
    let provider = Provider::start(|_, number| answer(200, &[], format!("{{\"next\":{number}}}"))).await;
    let client = client("p");
    let pages = client.pages(client.get(provider.url("/"))).max_pages(3).by_page_token("/next", "token");
    let (slices, error) = all(pages).await;
    assert_eq!((slices.len(), fault(error)), (3, (3, PagingFault::TooMany(3))));
}

#[tokio::test]
async fn a_cursor_is_found_by_a_closure_and_sent_as_a_parameter() {
    let provider = Provider::start(|request, _| match request.target.as_str() {
        "/?a=b" => answer(200, &[], r#"{"meta":{"cursor":"x&y"}}"#),
        "/?a=b&cursor=x%26y" => answer(200, &[], r#"{"meta":{"cursor":""}}"#),
        _ => answer(404, &[], ""),
    })
    .await;
    let client = client("p");
    let next = |page: &Value| page["meta"]["cursor"].as_str().map(str::to_owned);
    let (slices, error) = all(client.pages(client.get(provider.url("/?a=b"))).by_cursor(next, "cursor")).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(slices.iter().map(|slice| slice.cursor.as_deref()).collect::<Vec<_>>(), [Some("x&y"), None]);
}

#[tokio::test]
async fn a_page_that_failed_is_asked_for_again() {
    let provider = Provider::start(|_, number| match number {
        0 => answer(200, &[], r#"{"next":"b"}"#),
        1 => answer(404, &[], ""),
        2 => answer(200, &[], "not json"),
        _ => answer(200, &[], "{}"),
    })
    .await;
    let client = client("p");
    let mut pages = client.pages(client.get(provider.url("/"))).by_page_token("/next", "token");
    assert!(pages.next().await.unwrap().is_some());
    assert!(matches!(pages.next().await, Err(Error::Status { .. })));
    assert!(matches!(pages.next().await, Err(Error::Json { .. })));
    assert_eq!(pages.next().await.unwrap().map(|slice| slice.index), Some(1));
    assert!(pages.next().await.unwrap().is_none());
    let targets: Vec<_> = provider.received().into_iter().map(|request| request.target).collect();
    assert_eq!(targets, ["/", "/?token=b", "/?token=b", "/?token=b"]);
}

#[tokio::test]
async fn a_link_that_cannot_be_read_is_not_the_last_page() {
    let provider = Provider::always(linked("[1]", "</2; rel=next")).await;
    let client = client("p");
    let (slices, error) = all(client.pages(client.get(provider.url("/"))).by_link()).await;
    assert_eq!((slices.len(), fault(error)), (1, (1, PagingFault::MalformedLink)));
}

#[tokio::test]
async fn a_request_keeps_its_headers_when_another_client_pages_it() {
    let provider = Provider::always(answer(200, &[], "[]")).await;
    let author = builder("a").bearer("of-the-author").default_header("x-a", "1").build().unwrap();
    let pager = builder("b").bearer("of-the-pager").default_header("x-b", "1").build().unwrap();
    let mut pages = pager.pages(author.get(provider.url("/")).header("x-own", "1")).by_link();
    assert!(pages.next().await.unwrap().is_some());
    let received = &provider.received()[0];
    assert_eq!(received.header("authorization"), Some("Bearer of-the-author"));
    assert_eq!(["x-a", "x-own", "x-b"].map(|name| received.header(name)), [Some("1"), Some("1"), None]);
    assert_eq!((author.governor().status().sent, pager.governor().status().sent), (0, 1));
}
