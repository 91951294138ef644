//! `gleaner proxy`: how it starts, what it prints, how it ends, what survives, and what a crowd costs.

use crate::proxy_support::{Sidecar, Upstream, body, caller, send, until};
use crate::support::gleaner;
use gleaner_http::governor::{Learned, WallTime};
use gleaner_http::{Governors, Settings};
use http_body_util::BodyExt as _;
use hyper::{Response, Version};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

fn ok() -> Upstream {
    Upstream::start(None, |_, _| Response::new(body("ok")))
}

fn refused(arguments: &[&str], code: i32, parts: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let all = [&["proxy", "--home", home.path().to_str().unwrap()], arguments].concat();
    let answer = gleaner(&all);
    assert_eq!((answer.code, answer.stdout.as_str()), (code, ""), "{answer:?}");
    for part in parts {
        assert!(answer.stderr.contains(part), "no {part:?} in:\n{}", answer.stderr);
    }
    assert!(!answer.stderr.contains("hunter2"), "{}", answer.stderr);
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_hint() {
    refused(&[], 2, &["--upstream"]);
    refused(&["--upstream", "api.example.com"], 2, &["--upstream: not a URL", "hint: "]);
    refused(&["--upstream", "https://me:hunter2@api.example.com"], 2, &["process list", "hint: leave it out"]);
    refused(&["--upstream", "https://api.example.com?key=hunter2"], 2, &["must not have a query"]);
    refused(&["--upstream", "http://192.0.2.1"], 2, &["plain http", "hint: use https", "--allow-insecure-upstream"]);
    refused(&["--upstream", "https://api.example.com", "--max-in-flight", "0"], 2, &["--max-in-flight"]);
    refused(&["--upstream", "https://api.example.com", "--ceiling-interval-ms", "0"], 2, &["--ceiling-interval-ms"]);
    refused(&["--upstream", "https://api.example.com", "--max-waiting", "0"], 2, &["--max-waiting"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(
        &["--upstream", "http://localhost:9", "--listen", &address],
        1,
        &["cannot listen on", "hint: another program"],
    );
    refused(&["--upstream", "http://localhost:9", "--home", "/dev/null/x"], 2, &["cannot be used multiple times"]);
    let answer = gleaner(&["proxy", "--upstream", "http://localhost:9", "--home", "/dev/null/x"]);
    assert!(
        answer.code == 1 && answer.stderr.contains("/dev/null/x") && answer.stderr.contains("hint: "),
        "{answer:?}"
    );
}

#[tokio::test]
async fn it_says_where_it_listens_and_ends_as_it_is_told() {
    let upstream = ok();
    for (signal, code) in [("TERM", 0), ("INT", 130)] {
        let home = tempfile::tempdir().unwrap();
        let mut sidecar = Sidecar::start(&upstream.url(), home.path(), &[]);
        let greeting = format!("http://{} stands for {};", sidecar.address, upstream.url());
        assert!(sidecar.printed().contains(&greeting), "{}", sidecar.printed());
        assert_eq!(send(&caller(), sidecar.request("/"), "").await.text, "ok");
        sidecar.signal(signal);
        assert_eq!(sidecar.wait().code(), Some(code));
        assert_eq!(sidecar.printed().lines().count(), 1, "no live line where nobody watches: {}", sidecar.printed());
        let remembered = std::fs::read_dir(home.path().join("pacing")).unwrap().count();
        assert!(remembered >= 2, "a secret and what was learned");
    }
}

#[test]
fn an_address_that_others_reach_is_warned_about() {
    let home = tempfile::tempdir().unwrap();
    let mut open = std::process::Command::new(env!("CARGO_BIN_EXE_gleaner"))
        .args(["proxy", "-q", "--upstream", "http://127.0.0.1:9", "--listen", "0.0.0.0:0", "--home"])
        .arg(home.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(open.stderr.take().unwrap()), &mut line).unwrap();
    open.kill().unwrap();
    open.wait().unwrap();
    assert!(line.starts_with("warning: 0.0.0.0:") && line.contains("open to other machines"), "{line:?}");
}

#[tokio::test]
async fn a_credential_is_neither_printed_nor_written() {
    let upstream = Upstream::start(None, |_, _| {
        Response::builder().status(429).header("retry-after", "60").body(body("no")).unwrap()
    });
    let home = tempfile::tempdir().unwrap();
    let mut sidecar = Sidecar::start(&upstream.url(), home.path(), &["-v", "--per-authorization"]);
    for _ in 0..2 {
        let request = sidecar.request("/bot-hunter2/x?key=hunter2").header("authorization", "Bearer hunter2");
        assert_eq!(send(&caller(), request.header("gleaner-max-wait", "0"), "hunter2").await.status, 429);
    }
    let mut shown = sidecar.status().await.to_string();
    assert!(shown.contains('#'), "the key holds a fingerprint: {shown}");
    sidecar.signal("TERM");
    sidecar.wait();
    until("everything is printed", || async { sidecar.printed().contains("max_wait") }).await;
    shown += &sidecar.printed();
    shown += &files(home.path());
    assert!(!shown.contains("hunter2"), "{shown}");
}

/// Names and contents of all files below `folder`.
fn files(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        all += &path.display().to_string();
        all += &if path.is_dir() {
            files(&path)
        } else {
            String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()
        };
    }
    all
}

/// Asks with eight callers at a time, for as long.
async fn traffic(sidecar: &Sidecar, lasting: Duration) {
    let end = Instant::now() + lasting;
    let callers = (0..8).map(|_| {
        let (caller, address) = (caller(), sidecar.address);
        tokio::spawn(async move {
            while Instant::now() < end {
                let request =
                    hyper::Request::builder().uri(format!("http://{address}/")).header("gleaner-max-wait", "2");
                send(&caller, request, "").await;
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

#[tokio::test]
async fn a_rate_that_was_learned_survives_a_kill() {
    let upstream = ok();
    let home = tempfile::tempdir().unwrap();
    // From nothing in full size; otherwise with the beginning of the climb behind it.
    if !is_full_size() {
        remember(home.path(), &upstream, Duration::from_millis(50));
    }
    let sidecar = Sidecar::start(&upstream.url(), home.path(), &[]);
    traffic(&sidecar, Duration::from_secs(if is_full_size() { 20 } else { 3 })).await;
    let learned = sidecar.status().await["keys"][0]["rate_per_s"].as_f64().unwrap();
    assert!(learned > 3.0, "something was learned: {learned}");
    sidecar.kill();

    let before = upstream.arrivals().len();
    let sidecar = Sidecar::start(&upstream.url(), home.path(), &[]);
    traffic(&sidecar, Duration::from_secs(2)).await;
    let back = sidecar.status().await["keys"][0]["rate_per_s"].as_f64().unwrap();
    // The last second before the kill may not have been written down.
    assert!(back >= 0.7 * learned, "{back} of {learned}");
    let sent = upstream.arrivals().len() - before;
    assert!(sent as f64 >= 0.5 * 2.0 * learned, "{sent} in two seconds at {learned}/s");
}

#[tokio::test]
async fn a_gate_survives_a_kill() {
    let upstream = Upstream::start(None, |n, _| match n {
        0 => Response::builder().status(429).header("retry-after", "4").body(body("no")).unwrap(),
        _ => Response::new(body("ok")),
    });
    let home = tempfile::tempdir().unwrap();
    let sidecar = Sidecar::start(&upstream.url(), home.path(), &[]);
    let request = sidecar.request("/").header("gleaner-max-wait", "0");
    assert_eq!(send(&caller(), request, "").await.status, 429);
    sidecar.kill();

    let sidecar = Sidecar::start(&upstream.url(), home.path(), &[]);
    assert!(sidecar.status().await["keys"][0]["gate_until"].is_string());
    let told = send(&caller(), sidecar.request("/").header("gleaner-max-wait", "0.5"), "").await;
    assert_eq!((told.status, told.headers["gleaner-reason"].as_bytes()), (429, b"max_wait".as_slice()));
    let told: u64 = told.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((2..=5).contains(&told), "{told}");
    assert_eq!(send(&caller(), sidecar.request("/"), "").await.status, 200);
    let arrivals = upstream.arrivals();
    let between = arrivals[1].0 - arrivals[0].0;
    // The calendar has milliseconds, and the answer was read a moment after the request arrived.
    assert!(between >= Duration::from_millis(3990) && arrivals.len() == 2, "{between:?}");
}

/// An acceptor for `localhost`, and the authority behind it.
fn certificate() -> (TlsAcceptor, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let pem = authority.self_signed(&authority_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())))
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (TlsAcceptor::from(Arc::new(config)), pem)
}

#[tokio::test]
async fn an_upstream_with_tls_is_spoken_to_in_http_2_and_only_when_it_is_trusted() {
    let (tls, pem) = certificate();
    let upstream = Upstream::start(Some(tls), |_, request| {
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        Response::builder().header("location", format!("https://{host}/next")).body(body(host)).unwrap()
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, pem).unwrap();
    let url = format!("https://localhost:{}", upstream.address.port());
    let trusted = [("SSL_CERT_FILE", file.to_str().unwrap())];
    let sidecar = Sidecar::start_with(&url, folder.path(), &[], &trusted);
    let got = send(&caller(), sidecar.request("/").method("POST"), "data").await;
    assert_eq!((got.status, format!("https://{}", got.text)), (200, url.clone()));
    assert_eq!(got.headers["location"], format!("http://{}/next", sidecar.address));
    assert_eq!(upstream.arrivals()[0].1, Version::HTTP_2);

    let home = tempfile::tempdir().unwrap();
    let (_, other) = certificate();
    std::fs::write(&file, other).unwrap();
    let sidecar = Sidecar::start_with(&url, home.path(), &[], &trusted);
    let got = send(&caller(), sidecar.request("/"), "").await;
    assert_eq!((got.status, got.headers["gleaner-reason"].as_bytes()), (502, b"certificate_not_trusted".as_slice()));
    assert_eq!(got.headers["gleaner-attempts"], "1", "the next try would meet the same certificate");
    assert_eq!(upstream.arrivals().len(), 1);
    assert_eq!(sidecar.status().await["keys"][0]["rejected"], 0, "and it says nothing about our speed");
}

#[tokio::test]
async fn large_bodies_are_not_gathered_in_memory() {
    const LARGE: usize = 128 * 1024 * 1024;
    let large = hyper::body::Bytes::from(vec![7; LARGE]);
    let answer = large.clone();
    let upstream = Upstream::start(None, move |_, _| Response::new(body(answer.clone())));
    let home = tempfile::tempdir().unwrap();
    let sidecar = Sidecar::start(&upstream.url(), home.path(), &[]);
    let request = sidecar.request("/").method("POST").body(body(large)).unwrap();
    let mut answer = caller().request(request).await.unwrap().into_body();
    let mut sum = 0;
    while let Some(frame) = answer.frame().await {
        sum += frame.unwrap().into_data().unwrap().len();
    }
    assert_eq!(sum, LARGE);
    let peak = sidecar.peak_memory();
    assert!(peak < 48 * 1024 * 1024, "{peak}");
}

/// Full size with `scripts/test --all`.
fn is_full_size() -> bool {
    std::env::var_os("GLEANER_TEST_ALL").is_some()
}

/// As if a former run had found out that `interval` is fine.
fn remember(home: &Path, upstream: &Upstream, interval: Duration) {
    let governors = Governors::remembering(&home.join("pacing")).unwrap();
    let key = governors.key(&upstream.address.to_string(), None);
    let governor = governors.governor(&key, &Settings::default()).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    governor.restore(&Learned::from_interval(interval, WallTime::from_unix_millis(now.try_into().unwrap())));
    governors.save();
}

const CEILING: Duration = Duration::from_millis(5);

#[tokio::test]
async fn a_crowd_with_slow_and_vanishing_callers_loses_nothing_and_breaks_nothing() {
    let callers = if is_full_size() { 1000 } else { 100 };
    let large = hyper::body::Bytes::from(vec![7; 512 * 1024]);
    let upstream = Upstream::start(None, move |_, request| match request.uri().path() {
        "/large" => Response::new(body(large.clone())),
        _ => Response::new(body("ok")),
    });
    let home = tempfile::tempdir().unwrap();
    remember(home.path(), &upstream, Duration::from_millis(20));
    let sidecar = Sidecar::start(&upstream.url(), home.path(), &["--ceiling-interval-ms", "5"]);
    let address = sidecar.address;
    let crowd: Vec<_> = (0..callers)
        .map(|n| {
            tokio::spawn(async move {
                match n % 10 {
                    0 => leave_while_waiting(address).await,
                    1 => upload_slowly(address, n % 20 == 1).await,
                    2 => read_slowly(address).await,
                    _ => ask_twice(address).await,
                }
            })
        })
        .collect();
    for caller in crowd {
        caller.await.unwrap();
    }
    until("everything came back", || async {
        let status = sidecar.status().await;
        let key = &status["keys"][0];
        key["waiting"] == 0 && key["in_flight"] == 0 && status["requests"] == 0
    })
    .await;
    let peak = sidecar.peak_memory();
    let allowed = 48 * 1024 * 1024 + callers * 128 * 1024;
    assert!(peak < allowed, "{peak} bytes for {callers} callers");
    assert_ceiling(&upstream.arrivals().iter().map(|arrival| arrival.0).collect::<Vec<_>>());
}

/// Of any two arrivals, those between them had time for themselves. What the network and the scheduler do to
/// an arrival is allowed for: 60 ms on a machine with two busy cores.
fn assert_ceiling(arrivals: &[Instant]) {
    let noise = Duration::from_millis(60);
    for (i, first) in arrivals.iter().enumerate() {
        for (j, last) in arrivals.iter().enumerate().skip(i + 1) {
            let least = CEILING * u32::try_from(j - i).unwrap();
            assert!(last.duration_since(*first) + noise >= least, "{} within {:?}", j - i, last.duration_since(*first));
        }
    }
}

async fn connect(address: std::net::SocketAddr, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn leave_while_waiting(address: std::net::SocketAddr) {
    let stream = connect(address, "GET /left HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    drop(stream);
}

async fn upload_slowly(address: std::net::SocketAddr, ends: bool) {
    let head = "POST /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n";
    let mut stream = connect(address, head).await;
    for _ in 0..10 {
        stream.write_all(&[7; 9000]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    if ends {
        stream.write_all(&[7; 10_000]).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

async fn read_slowly(address: std::net::SocketAddr) {
    let head = "GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut stream = connect(address, head).await;
    let (mut sum, mut part) = (0, vec![0; 64 * 1024]);
    loop {
        let count = stream.read(&mut part).await.unwrap();
        sum += count;
        if count == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(sum > 512 * 1024, "{sum}");
}

async fn ask_twice(address: std::net::SocketAddr) {
    let caller = caller();
    for _ in 0..2 {
        let request = hyper::Request::builder().uri(format!("http://{address}/")).body(body("")).unwrap();
        let answer = caller.request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
    }
}
