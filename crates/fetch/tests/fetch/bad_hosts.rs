//! Hosts that send what nobody should: each ends as a line with an error, and the others are fetched.

use crate::support::{Host, Reply, answer, fetched, line, settings};
use std::fs;
use std::time::Duration;

const ZEROS: &[u8] = &[0; 64 * 1024];

#[tokio::test]
async fn loops_bombs_endless_and_broken_bodies_end_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(10, Duration::ZERO, |request, _| match request.path.as_str() {
        "/loop" => answer(302, &[("location", "/loop")], ""),
        "/away" => answer(302, &[("location", "ftp://elsewhere.example/")], ""),
        "/nowhere" => answer(302, &[], ""),
        path if path.starts_with("/deeper/") => answer(301, &[("location", &format!("{path}x"))], ""),
        "/endless" => Reply::Endless(b"HTTP/1.1 200 x\r\n\r\n".to_vec(), ZEROS),
        "/2gb" => Reply::Endless(b"HTTP/1.1 200 x\r\ncontent-length: 2147483648\r\n\r\n".to_vec(), ZEROS),
        "/notgzip" => answer(200, &[("content-encoding", "gzip")], "this is no gzip"),
        "/unknown" => answer(200, &[("content-encoding", "rot13")], "uryyb"),
        "/short" => Reply::Whole(b"HTTP/1.1 200 x\r\nconnection: close\r\ncontent-length: 100\r\n\r\nshort".to_vec()),
        "/nonsense" => Reply::Whole(b"\0\xff not http at all\r\n\r\n".to_vec()),
        "/close" => Reply::Close,
        "/304" => answer(304, &[], ""),
        _ => answer(200, &[], "good"),
    })
    .await;
    let paths = [
        "/loop",
        "/away",
        "/nowhere",
        "/deeper/",
        "/endless",
        "/2gb",
        "/notgzip",
        "/unknown",
        "/nonsense",
        "/close",
        "/304",
        "/good",
    ];
    let urls: Vec<String> = paths.iter().map(|path| host.url(path)).collect();
    let mut settings = settings(folder.path());
    settings.body_bytes_max = 1024 * 1024;
    settings.governor.key.backoff.attempts = 1;
    let (lines, summary) = fetched(&urls, settings).await;
    assert_eq!((summary.fetched, summary.failed), (1, paths.len() as u64 - 1), "{lines:#?}");
    for (path, why) in [
        ("/loop", "redirected before"),
        ("/away", "something else than http"),
        ("/nowhere", "has no Location"),
        ("/deeper/", "redirect limit of 10"),
        ("/endless", "larger than 1048576 bytes"),
        ("/2gb", "larger than 1048576 bytes"),
        ("/notgzip", "damaged"),
        ("/unknown", "unknown Content-Encoding"),
        ("/nonsense", "the connection broke"),
        ("/close", "the connection broke"),
        ("/304", "unconditional request"),
    ] {
        let error = line(&lines, path).error.as_deref().unwrap();
        assert!(error.contains(why), "{path}: {error}");
    }
    let left = fs::read_dir(folder.path().join("out/bodies/unfinished")).unwrap().count();
    assert_eq!(left, 0, "nothing half-written is left");
}

#[tokio::test]
async fn a_body_that_broke_off_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(11, Duration::ZERO, |_, number| match number {
        0 => Reply::Whole(
            b"HTTP/1.1 200 x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel\r\n0\r\n".to_vec(),
        ),
        _ => answer(200, &[], "hello"),
    })
    .await;
    let (lines, summary) = fetched(&[host.url("/")], settings(folder.path())).await;
    assert_eq!((summary.fetched, lines[0].attempts, lines[0].bytes), (1, 2, Some(5)), "{lines:?}");
}

#[tokio::test]
async fn rules_that_never_end_are_read_to_their_bound() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(12, Duration::ZERO, |request, _| match request.path.as_str() {
        "/robots.txt" => {
            Reply::Endless(b"HTTP/1.1 200 x\r\n\r\nuser-agent: gleaner\ndisallow: /no\n".to_vec(), b"# and so on\n")
        }
        _ => answer(200, &[], "good"),
    })
    .await;
    let mut settings = settings(folder.path());
    settings.obeys_robots = true;
    let (lines, summary) = fetched(&[host.url("/yes"), host.url("/no")], settings).await;
    assert_eq!((summary.fetched, summary.failed), (1, 1), "{lines:?}");
    assert_eq!(line(&lines, "/no").error.as_deref(), Some("robots.txt does not allow it"));
}
