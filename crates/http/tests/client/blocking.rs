//! The blocking face: from several threads, and never inside an async runtime.

use crate::support::{Provider, answer, builder};
use gleaner_http::blocking::Client;
use gleaner_http::client::Error;
use std::io::Read;
use std::thread;
use tokio::runtime::Runtime;

/// A provider on a runtime of its own, as if it were another machine.
fn provider() -> (Runtime, Provider) {
    let runtime = Runtime::new().unwrap();
    let provider = runtime.block_on(Provider::start(|request, _| match request.target.as_str() {
        "/1" => answer(200, &[("link", "</2>; rel=next")], "[1]"),
        "/2" => answer(200, &[], "[2]"),
        _ => answer(200, &[], "x".repeat(100_000)),
    }));
    (runtime, provider)
}

#[test]
fn four_threads_share_one_client() {
    let (_runtime, provider) = provider();
    let client = builder("p").build_blocking().unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let response = client.get(provider.url("/")).send().unwrap();
                    assert_eq!(response.text().unwrap().len(), 100_000);
                }
            });
        }
    });
    assert_eq!((provider.count(), client.governor().status().sent), (20, 20));
}

#[test]
fn an_answer_can_be_read_like_a_file() {
    let (_runtime, provider) = provider();
    let client = builder("p").build_blocking().unwrap();
    let mut text = String::new();
    let mut response = client.get(provider.url("/")).send().unwrap();
    assert_eq!(response.read(&mut [0; 7]).unwrap(), 7);
    response.read_to_string(&mut text).unwrap();
    assert_eq!(text.len(), 100_000 - 7);
}

#[test]
fn pages_are_an_iterator() {
    let (_runtime, provider) = provider();
    let client = builder("p").build_blocking().unwrap();
    let pages = client.pages(client.get(provider.url("/1")), |paging| paging.by_link());
    let numbers: Vec<Vec<u32>> = pages.map(|slice| slice.unwrap().json().unwrap()).collect();
    assert_eq!(numbers, [[1], [2]]);
}

#[tokio::test]
async fn a_blocking_call_inside_an_async_runtime_is_an_error_and_no_panic() {
    let client: Client = builder("p").build_blocking().unwrap();
    let result = client.get("http://127.0.0.1:1/").send();
    assert!(matches!(result, Err(Error::BlockingInAsync)), "{result:?}");
    assert_eq!(client.governor().status().sent, 0);
    // Dropping its runtime here must not panic either.
    drop(client);
}
