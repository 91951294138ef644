//! Bodies that are too large, damaged, cut off, or decoded the wrong way round.

use crate::support::{Act, Answer, Provider, answer, builder, client, head};
use async_compression::Level;
use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
use futures_util::StreamExt;
use gleaner_http::GovernedClient;
use gleaner_http::client::{BodyFault, Error, Response};
use std::pin::pin;
use tokio::io::AsyncWriteExt;

const CODINGS: [&str; 4] = ["gzip", "deflate", "br", "zstd"];

async fn encoded(coding: &str, data: &[u8]) -> Vec<u8> {
    macro_rules! with {
        ($encoder:ident) => {{
            let mut encoder = $encoder::with_quality(Vec::new(), Level::Fastest);
            encoder.write_all(data).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }};
    }
    match coding {
        "gzip" => with!(GzipEncoder),
        "deflate" => with!(ZlibEncoder),
        "br" => with!(BrotliEncoder),
        "zstd" => with!(ZstdEncoder),
        _ => unreachable!("one of the above"),
    }
}

async fn get(client: &GovernedClient, answer: Answer) -> Response {
    let provider = Provider::always(answer).await;
    client.get(provider.url("/x?secret")).send().await.unwrap()
}

fn fault<T: std::fmt::Debug>(result: Result<T, Error>) -> BodyFault {
    match result {
        Err(Error::Body { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

/// How many bytes came out before the fault.
async fn drain(mut response: Response) -> (u64, BodyFault) {
    let mut bytes = 0;
    loop {
        match response.chunk().await {
            Ok(Some(piece)) => bytes += piece.len() as u64,
            Ok(None) => panic!("it ended after {bytes} bytes as if it were complete"),
            Err(Error::Body { fault, .. }) => return (bytes, fault),
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn every_coding_is_asked_for_and_undone() {
    let text = "{\"n\": [1, 2, 3]}".repeat(1000);
    let client = client("p");
    for coding in CODINGS {
        let body = encoded(coding, text.as_bytes()).await;
        let provider = Provider::always(answer(200, &[("content-encoding", coding)], &body)).await;
        let response = client.get(provider.url("/")).send().await.unwrap();
        assert_eq!(response.headers().get("content-encoding"), None);
        assert_eq!(response.text().await.unwrap(), text, "{coding}");
        assert_eq!(provider.received()[0].header("accept-encoding"), Some("gzip, br, zstd"));
    }
    let twice = encoded("br", &encoded("gzip", text.as_bytes()).await).await;
    let response = get(&client, answer(200, &[("content-encoding", "gzip"), ("content-encoding", "br")], twice)).await;
    assert_eq!(response.text().await.unwrap(), text);
}

#[tokio::test]
async fn members_after_each_other_are_one_body() {
    let body = [encoded("gzip", b"one ").await, encoded("gzip", b"two").await].concat();
    let response = get(&client("p"), answer(200, &[("content-encoding", "gzip")], body)).await;
    assert_eq!(response.text().await.unwrap(), "one two");
}

#[tokio::test]
async fn an_own_accept_encoding_and_a_range_are_left_alone() {
    let provider = Provider::always(answer(200, &[], "")).await;
    let client = client("p");
    client.get(provider.url("/")).header("accept-encoding", "identity").send().await.unwrap();
    client.get(provider.url("/")).header("range", "bytes=0-9").send().await.unwrap();
    let received = provider.received();
    assert_eq!(received[0].header("accept-encoding"), Some("identity"));
    assert_eq!(received[1].header("accept-encoding"), None);
}

#[tokio::test]
async fn a_bomb_is_stopped_by_the_ratio_of_its_sizes() {
    // A gigabyte of zeros: members of a megabyte after each other, since one stream of it takes long to make.
    let client = client("p");
    for coding in ["gzip", "br", "zstd"] {
        let body = encoded(coding, &vec![0; 1 << 20]).await.repeat(1024);
        let (bytes, fault) = drain(get(&client, answer(200, &[("content-encoding", coding)], body)).await).await;
        assert_eq!(fault, BodyFault::RatioTooHigh(200), "{coding}");
        assert!(bytes < 20 << 20, "{coding}: {bytes} bytes came out");
    }
}

#[tokio::test]
async fn a_bomb_inside_a_bomb_is_stopped_as_well() {
    let inner = encoded("gzip", &vec![0; 8 << 20]).await.repeat(128);
    let body = encoded("gzip", &inner).await;
    let response = get(&client("p"), answer(200, &[("content-encoding", "gzip, gzip")], body)).await;
    assert_eq!(fault(response.bytes().await), BodyFault::RatioTooHigh(200));
}

#[tokio::test]
async fn the_size_cap_holds_for_every_way_of_reading() {
    let limit = 3 << 20;
    let client = builder("p").max_decoded_bytes(limit).max_ratio(u32::MAX).build().unwrap();
    let too_large = BodyFault::TooLarge(limit);
    let plain = answer(200, &[], vec![b'x'; (limit + 1) as usize]);
    let body = encoded("gzip", &vec![b'x'; 1 << 20]).await.repeat(1024);
    let bomb = answer(200, &[("content-encoding", "gzip")], body);
    for kind in [plain, bomb] {
        assert_eq!(fault(get(&client, kind.clone()).await.bytes().await), too_large);
        assert_eq!(fault(get(&client, kind.clone()).await.text().await), too_large);
        assert_eq!(fault(get(&client, kind.clone()).await.json::<u32>().await), too_large);
        let (bytes, fault) = drain(get(&client, kind.clone()).await).await;
        assert_eq!(fault, too_large);
        assert!(bytes <= limit, "{bytes} bytes came out");
        let mut stream = pin!(get(&client, kind).await.bytes_stream());
        let mut last = None;
        while let Some(piece) = stream.next().await {
            last = Some(piece);
        }
        assert!(matches!(last, Some(Err(Error::Body { fault, .. })) if fault == too_large));
    }
    let exact = get(&client, answer(200, &[], vec![b'x'; limit as usize])).await;
    assert_eq!(exact.bytes().await.unwrap().len() as u64, limit);
}

#[tokio::test]
async fn a_short_repetitive_body_is_no_bomb() {
    let body = encoded("br", &vec![b' '; 1 << 20]).await;
    assert!((1 << 20) / body.len() > 200, "otherwise this test proves nothing");
    let response = get(&client("p"), answer(200, &[("content-encoding", "br")], body)).await;
    assert_eq!(response.bytes().await.unwrap().len(), 1 << 20);
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_never_a_shorter_body() {
    let client = client("p");
    let data: Vec<u8> = (0..50_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    for coding in CODINGS {
        let body = encoded(coding, &data).await;
        for cut in [1, body.len() / 2, body.len() - 1] {
            // The message is complete, the data in it is not.
            let response = get(&client, answer(200, &[("content-encoding", coding)], &body[..cut])).await;
            assert_eq!(drain(response).await.1, BodyFault::Corrupt, "{coding} {cut}");
        }
        let mut damaged = body.clone();
        let length = damaged.len();
        damaged[2..length.min(40)].fill(0xa5);
        let response = get(&client, answer(200, &[("content-encoding", coding)], damaged)).await;
        assert_eq!(drain(response).await.1, BodyFault::Corrupt, "{coding} damaged");
    }
}

#[tokio::test]
async fn a_message_that_breaks_off_is_an_error() {
    let client = client("p");
    let short = head(200, &[("content-length", "10")]).write("12345").then(Act::Close);
    let mut response = get(&client, short).await;
    assert_eq!(response.chunk().await.unwrap().unwrap(), "12345");
    assert_eq!(fault(response.chunk().await), BodyFault::Lost);
    assert_eq!(fault(response.chunk().await), BodyFault::Lost, "once broken, it stays so");
    let chunked = head(200, &[("transfer-encoding", "chunked")]).write("5\r\n12345\r\n").then(Act::Close);
    assert_eq!(fault(get(&client, chunked).await.bytes().await), BodyFault::Lost);
    let zipped = encoded("gzip", b"complete").await;
    let zipped = head(200, &[("content-length", "9999"), ("content-encoding", "gzip")]).write(zipped).then(Act::Close);
    assert_eq!(fault(get(&client, zipped).await.bytes().await), BodyFault::Lost);
}

#[tokio::test]
async fn codings_that_are_not_known_are_errors_when_the_body_is_read() {
    let client = client("p");
    let strange = get(&client, answer(200, &[("content-encoding", "rot13")], "x")).await;
    assert_eq!(strange.status(), 200);
    assert_eq!(fault(strange.bytes().await), BodyFault::UnknownCoding);
    let deep = get(&client, answer(200, &[("content-encoding", "gzip, gzip, gzip")], "x")).await;
    assert_eq!(fault(deep.bytes().await), BodyFault::TooManyCodings(2));
}

#[tokio::test]
async fn nothing_may_be_encoded_in_any_way() {
    let client = client("p");
    for coding in CODINGS {
        let empty = get(&client, answer(200, &[("content-encoding", coding)], "")).await;
        assert_eq!(empty.bytes().await.unwrap().len(), 0, "{coding}");
    }
    let lost = head(200, &[("content-encoding", "gzip"), ("content-length", "99")]).then(Act::Close);
    assert_eq!(fault(get(&client, lost).await.bytes().await), BodyFault::Lost, "nothing came, and something was due");
    let none = get(&client, head(204, &[("content-encoding", "gzip")])).await;
    assert_eq!(none.bytes().await.unwrap().len(), 0);
    let provider = Provider::always(head(200, &[("content-encoding", "gzip"), ("content-length", "99")])).await;
    let head = client.head(provider.url("/")).send().await.unwrap();
    assert_eq!(head.bytes().await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_peeked_body_is_still_whole() {
    let text: String = (0..20_000).map(|n| format!("{n} ")).collect();
    let body = encoded("gzip", text.as_bytes()).await;
    for status in [200, 404] {
        let client = builder("p").peek_body(5).build().unwrap();
        let response = get(&client, answer(status, &[("content-encoding", "gzip")], &body)).await;
        assert_eq!(response.text().await.unwrap(), text, "{status}");
    }
}

#[tokio::test]
async fn the_body_of_an_error_that_breaks_off_does_not_hide_its_status() {
    let broken = head(404, &[("content-length", "10")]).write("12345").then(Act::Close);
    let mut response = get(&client("p"), broken).await;
    assert_eq!((response.status().as_u16(), response.attempts()), (404, 1));
    assert_eq!(response.chunk().await.unwrap().unwrap(), "12345");
    assert_eq!(fault(response.chunk().await), BodyFault::Lost);
}

#[tokio::test]
async fn text_and_json_are_read_from_any_number_of_pieces() {
    let client = client("p");
    let marked = get(&client, answer(200, &[], b"\xef\xbb\xbfa\xffb")).await;
    assert_eq!(marked.text().await.unwrap(), "a\u{fffd}b");
    let pieces = head(200, &[("transfer-encoding", "chunked")]);
    let pieces = pieces.write("2\r\n[1\r\n").write("2\r\n,2\r\n").write("1\r\n]\r\n0\r\n\r\n");
    assert_eq!(get(&client, pieces).await.json::<Vec<u32>>().await.unwrap(), [1, 2]);
}

#[tokio::test]
async fn zstd_data_cannot_ask_for_more_memory_than_http_allows() {
    // A frame by hand: magic number, no options, the size of the window, and one raw block with an `x`.
    let frame = |window: u8| [0x28, 0xb5, 0x2f, 0xfd, 0x00, window, 0x09, 0x00, 0x00, b'x'];
    let (eight_mib, sixteen_mib) = (13 << 3, 14 << 3);
    let client = client("p");
    let zstd = |window| answer(200, &[("content-encoding", "zstd")], frame(window));
    assert_eq!(get(&client, zstd(eight_mib)).await.text().await.unwrap(), "x");
    assert_eq!(fault(get(&client, zstd(sixteen_mib)).await.text().await), BodyFault::Corrupt);
}

#[tokio::test]
async fn a_content_type_that_the_client_sets_by_default_is_kept() {
    let provider = Provider::always(answer(200, &[], "")).await;
    let client = builder("p").default_header("content-type", "application/vnd.api+json").build().unwrap();
    client.post(provider.url("/")).json(&[1]).send().await.unwrap();
    crate::support::client("q").post(provider.url("/")).json(&[1]).send().await.unwrap();
    let types: Vec<_> = provider.received().iter().map(|r| r.header("content-type").unwrap().to_owned()).collect();
    assert_eq!(types, ["application/vnd.api+json", "application/json"]);
}
