//! From elsewhere: TLS with real handshakes, a base path, names, and what is refused at the start.

use crate::client::{Reply, Request, parse};
use crate::world::{collect, has_every_header, root, start_at, start_with};
use gleaner_console::{BasePath, BindPolicy, Console, ConsoleError, TlsFiles, token_of};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A certificate for these names with its key, in two files.
struct Own {
    files: TlsFiles,
    certificate: CertificateDer<'static>,
}

fn own(folder: &Path, name: &str, until: i32) -> Own {
    let mut params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("names");
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    let files =
        TlsFiles { certificate: folder.join(format!("{name}.pem")), key: folder.join(format!("{name}.key.pem")) };
    fs::write(&files.certificate, certificate.pem()).expect("a file");
    fs::write(&files.key, key.serialize_pem()).expect("a file");
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o600)).expect("private");
    Own { files, certificate: certificate.der().clone() }
}

fn with_tls(files: &TlsFiles) -> BindPolicy {
    BindPolicy { tls: Some(files.clone()), ..BindPolicy::default() }
}

/// Speaks TLS, and believes in this certificate alone.
fn send(request: &Request, to: SocketAddr, trusted: &CertificateDer<'static>) -> Reply {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let socket = TcpStream::connect(to).expect("it listens");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    let mut stream = StreamOwned::new(connection, socket);
    stream.write_all(&request.bytes()).expect("sent");
    let mut bytes = Vec::new();
    // Some servers end without a word; what came before counts.
    let _ended = stream.read_to_end(&mut bytes);
    parse(&bytes)
}

fn sign_in(console: &Console, origin: &str, ask: impl Fn(&Request) -> Reply, base: &str) -> Reply {
    let link = console.new_link().expect("a link");
    let code = link.strip_prefix(&format!("{origin}{base}/open?code=")).unwrap_or_else(|| panic!("{link}"));
    let host = origin.split_once("://").expect("an origin").1;
    let form = Request::new("POST", &format!("{base}/open")).header("host", host).header("origin", origin);
    ask(&form.form(&format!("code={code}")))
}

#[test]
fn by_tls_a_browser_signs_in_with_a_cookie_that_goes_no_other_way() {
    let root = root();
    collect(root.path(), "notes", include_str!("../sample/first.jsonl"));
    let own = own(root.path(), "own", 2040);
    let console = start_with(root.path(), with_tls(&own.files), &[]).expect("a console");
    let (host, origin) = (console.address().to_string(), format!("https://{}", console.address()));
    let ask = |request: &Request| send(request, console.address(), &own.certificate);
    let token = token_of(root.path()).expect("a token");
    let status = Request::new("GET", "/api/v1/status").header("host", &host);
    let reply = ask(&status.clone().header("authorization", &format!("Bearer {token}")));
    assert_eq!(reply.status, 200);
    has_every_header(&reply);
    assert_eq!(ask(&status).status, 401, "never without a credential");
    let signed_in = sign_in(&console, &origin, ask, "");
    assert_eq!((signed_in.status, signed_in.header("location")), (303, Some("/")));
    let cookie = signed_in.header("set-cookie").expect("a cookie");
    for word in ["HttpOnly", "SameSite=Strict", "Path=/;", "; Secure"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let pair = cookie.split(';').next().expect("a pair");
    let pause = |origin: &str| {
        let request = Request::new("POST", "/api/v1/connections/notes/pause").header("host", &host);
        ask(&request.header("cookie", pair).header("origin", origin).json("{}")).status
    };
    assert_eq!((pause(&origin), pause(&format!("http://{host}"))), (204, 403), "only a page of TLS is ours");
    // In the clear nothing is said at all.
    let mut plain = status.header("authorization", &format!("Bearer {token}")).open(console.address());
    let mut said = Vec::new();
    let _ended = plain.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP"), "answered in the clear: {said:?}");
}

/// Whoever says nothing after they came is let go, and keeps no place.
#[test]
fn a_handshake_that_does_not_go_on_is_let_go() {
    let root = root();
    let own = own(root.path(), "own", 2040);
    let console = start_with(root.path(), with_tls(&own.files), &[]).expect("a console");
    let mut silent = TcpStream::connect(console.address()).expect("it listens");
    silent.set_read_timeout(Some(Duration::from_secs(40))).expect("a limit");
    let mut nonsense = TcpStream::connect(console.address()).expect("it listens");
    nonsense.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    let mut said = Vec::new();
    let _ended = nonsense.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
    let mut byte = [0];
    assert!(matches!(silent.read(&mut byte), Ok(0)), "it is hung up on after ten seconds");
}

#[test]
fn what_is_wrong_with_certificate_and_key_is_said_at_the_start() {
    let root = root();
    let (good, other, old) =
        (own(root.path(), "good", 2040), own(root.path(), "other", 2040), own(root.path(), "old", 2021));
    let at = |name: &str, text: &str| {
        let path = root.path().join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("private");
        path
    };
    let (certificate, key) = (good.files.certificate.clone(), good.files.key.clone());
    let open = root.path().join("open.pem");
    fs::copy(&key, &open).expect("a file");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).expect("for everybody");
    let cases = [
        ((root.path().join("none.pem"), key.clone()), "none.pem: No such file"),
        ((certificate.clone(), root.path().join("none.key")), "none.key: No such file"),
        ((root.path().to_owned(), key.clone()), "it is no file"),
        ((at("empty.pem", ""), key.clone()), "empty.pem holds no certificate"),
        (
            (at("bad.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), key.clone()),
            "bad.pem holds no certificate",
        ),
        ((key.clone(), key.clone()), "holds no certificate"),
        ((certificate.clone(), at("empty.key", "")), "empty.key holds no private key"),
        (
            (certificate.clone(), at("bad.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")),
            "bad.key holds no private key",
        ),
        ((certificate.clone(), open), "open.pem can be read by others"),
        ((certificate, other.files.key), "other.key.pem does not fit the certificate"),
        ((old.files.certificate, old.files.key), "old.pem expired on Jan  1"),
    ];
    for ((certificate, key), says) in cases {
        let error = start_with(root.path(), with_tls(&TlsFiles { certificate, key }), &[]).expect_err(says);
        assert!(error.to_string().contains(says), "{error}");
        assert!(!error.hint().is_empty());
    }
    assert!(start_with(root.path(), with_tls(&good.files), &[]).is_ok());
}

#[test]
fn another_address_is_refused_without_a_name_and_in_the_clear() {
    let root = root();
    let own = own(root.path(), "own", 2040);
    let start = |policy: BindPolicy, names: &[&str]| start_at("0.0.0.0:0", root.path(), policy, names);
    let name = &["gleaner.test"];
    assert!(matches!(start(BindPolicy::default(), &[]), Err(ConsoleError::NotLoopback(_))));
    assert!(matches!(start(BindPolicy::default(), name), Err(ConsoleError::InTheClear(_))));
    assert!(!root.path().join("console/token").exists(), "whoever may not listen leaves no token behind");
    assert!(start(with_tls(&own.files), &[]).is_err());
    let console = start(with_tls(&own.files), name).expect("a console");
    assert!(console.new_link().expect("a link").starts_with("https://gleaner.test/open?code="));
    let here = SocketAddr::from(([127, 0, 0, 1], console.address().port()));
    let ask = |host: &str| send(&Request::new("GET", "/").header("host", host), here, &own.certificate).status;
    assert_eq!((ask("gleaner.test"), ask(&here.to_string())), (401, 421), "by its name, and with a credential");
}

#[test]
fn behind_a_proxy_the_link_is_the_proxys_and_the_cookie_is_secure() {
    let root = root();
    let reach = BindPolicy { behind_proxy: true, base: BasePath::new("/g").expect("a path"), ..BindPolicy::default() };
    let console = start_with(root.path(), reach, &["gleaner.test"]).expect("a console");
    let ask = |request: &Request| request.send(console.address());
    let reply = sign_in(&console, "https://gleaner.test", ask, "/g");
    assert_eq!((reply.status, reply.header("location")), (303, Some("/g/")));
    let cookie = reply.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("Path=/g;") && cookie.ends_with("; Secure"), "{cookie}");
}

#[test]
fn below_a_base_path_everything_has_it_and_nothing_is_beside_it() {
    let root = root();
    collect(root.path(), "notes", include_str!("../sample/first.jsonl"));
    let reach = BindPolicy { base: BasePath::new("/my/gleaner").expect("a path"), ..BindPolicy::default() };
    let console = start_with(root.path(), reach, &[]).expect("a console");
    let (host, origin) = (console.address().to_string(), format!("http://{}", console.address()));
    let token = token_of(root.path()).expect("a token");
    let bare = |path: &str| Request::new("GET", path).header("host", &host);
    let get = |path: &str| bare(path).header("authorization", &format!("Bearer {token}")).send(console.address());
    assert_eq!(bare("/my/gleaner/healthz").send(console.address()).text(), "alive\n");
    for beside in ["/healthz", "/open", "/open.css", "/", "/api/v1/status", "/my/gleanerx/healthz", "/my"] {
        assert_eq!(bare(beside).send(console.address()).status, 401, "{beside}");
        assert_eq!(get(beside).status, 404, "{beside}");
    }
    assert_eq!(get("/my/gleaner/api/v1/status").status, 200);
    for path in
        ["/my/gleaner", "/my/gleaner/", "/my/gleaner/connections/notes", "/my/gleaner/gaps", "/my/gleaner/data/sql"]
    {
        let page = get(path);
        assert_eq!(page.status, 200, "{path}");
        has_every_header(&page);
        let text = page.text();
        for attribute in ["href=\"", "src=\"", "action=\"", "hx-get=\"", "data-events=\"", "data-chart=\""] {
            for value in text.split(&format!(" {attribute}")).skip(1) {
                let value = value.split('"').next().expect("its end");
                let is_ours = value.starts_with("/my/gleaner/") || value == "/my/gleaner" || value.starts_with('#');
                assert!(is_ours, "{path}: {attribute}{value}");
            }
        }
    }
    let signed_in = sign_in(&console, &origin, |request| request.send(console.address()), "/my/gleaner");
    assert_eq!((signed_in.status, signed_in.header("location")), (303, Some("/my/gleaner/")));
    let cookie = signed_in.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("Path=/my/gleaner;") && !cookie.contains("Secure"), "{cookie}");
    let cookies = signed_in.headers.iter().filter(|(name, _)| name == "set-cookie").map(|(_, value)| value.as_str());
    let cookies = cookies.collect::<Vec<_>>();
    assert!(cookies.len() == 2 && cookies[1].contains("Path=/; Max-Age=0"), "one from before the base: {cookies:?}");
    let pair = cookie.split(';').next().expect("a pair");
    let form = Request::new("POST", "/my/gleaner/connections/notes/pause").header("host", &host).header("cookie", pair);
    let paused = form.header("origin", &origin).form("").send(console.address());
    assert_eq!(paused.header("location"), Some("/my/gleaner/connections/notes?done=paused"));
}
