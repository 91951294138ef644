//! The console of the service: the link that it prints, the token in the data root, and an action that the service heeds.

use super::{NAMES, Served};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

const WORKS: &str = "record(1); done(1); end()";

/// One request, and the whole answer.
pub(super) fn ask(address: &str, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n");
    socket.write_all(format!("{head}{headers}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_link_signs_in_once_and_a_run_that_is_wanted_begins_at_once() {
    let mut served = Served::new();
    served.add(NAMES[0], WORKS);
    let mut command = served.place.command(&["serve", "--notify-desktop=no", "--listen=127.0.0.1:0"]);
    let mut service = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(service.stderr.take().unwrap()).lines().map_while(Result::ok);
    served.service = Some(service);
    let link = said.find_map(|line| line.strip_prefix("console: http://").map(str::to_owned)).unwrap();
    // Nobody is kept waiting by what we do not read.
    std::thread::spawn(move || said.for_each(drop));
    let (address, rest) = link.split_once('/').unwrap();
    let code = rest.strip_prefix("open?").unwrap();
    let headers = format!("origin: http://{address}\r\ncontent-type: application/x-www-form-urlencoded\r\n");
    let first = ask(address, "POST", "/open", &headers, code);
    assert!(first.starts_with("HTTP/1.1 303 ") && first.contains("HttpOnly; SameSite=Strict"), "{first}");
    assert!(ask(address, "POST", "/open", &headers, code).starts_with("HTTP/1.1 403 "), "once");
    assert!(!served.log().contains(code), "the log has no link");

    served.wait("the first run", || served.reasons(NAMES[0]).len() == 1);
    let token = served.place.read("home/console/token");
    let headers = format!("authorization: Bearer {}\r\ncontent-type: application/json\r\n", token.trim());
    let path = format!("/api/v1/connections/{}/run", NAMES[0]);
    assert!(ask(address, "POST", &path, &headers, "{}").starts_with("HTTP/1.1 202 "));
    served.wait("the run that was asked for", || served.reasons(NAMES[0]).len() == 2);
    assert!(ask(address, "GET", "/api/v1/status", "", "").starts_with("HTTP/1.1 401 "));
    let (address, stopped) = (address.to_owned(), served.stop());
    assert!(TcpStream::connect(&address).is_err(), "it is gone with the service, after {stopped:?}");
}

#[test]
fn an_address_that_is_taken_stops_only_who_asked_for_it() {
    let mut served = Served::new();
    served.add(NAMES[0], WORKS);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("--listen={}", taken.local_addr().unwrap());
    let refused = served.place.gleaner(&["serve", "--notify-desktop=no", &address]);
    assert!(refused.code == 1 && refused.stderr.contains("cannot listen on"), "{refused:?}");
    let elsewhere = served.place.gleaner(&["serve", "--notify-desktop=no", "--listen=0.0.0.0:0"]);
    assert!(elsewhere.code == 1 && elsewhere.stderr.contains("can be reached from other machines"), "{elsewhere:?}");
    served.serve(&["--listen=off"]);
    served.wait("a run", || served.reasons(NAMES[0]).len() == 1);
    assert!(!served.place.home().join("console").exists(), "no console, no token");
}

#[test]
fn what_is_configured_about_the_reach_of_the_console_is_heeded_or_refused_in_words() {
    let mut served = Served::new();
    let config =
        |text: &str| std::fs::write(served.place.home().join("config.toml"), format!("[serve]\n{text}")).unwrap();
    assert_eq!(served.place.gleaner(&["init"]).code, 0);
    let elsewhere = "listen = \"0.0.0.0:0\"\nallow_host = \"gleaner.test\"\n";
    let nowhere = served.place.home().join("none.pem").display().to_string();
    let refused = [
        (format!("tls_certificate = \"{nowhere}\""), 2, "one of the two is not given"),
        (format!("tls_certificate = \"{nowhere}\"\ntls_key = \"{nowhere}\""), 1, "none.pem: No such file"),
        (elsewhere.to_owned(), 1, "neither TLS nor a proxy with TLS is configured"),
        ("listen = \"0.0.0.0:0\"\nbehind_proxy = \"yes\"".to_owned(), 1, "no name was given"),
        ("base_path = \"gleaner\"".to_owned(), 2, "line 2: serve.base_path"),
    ];
    for (text, code, says) in refused {
        config(&text);
        let answer = served.place.gleaner(&["serve", "--notify-desktop=no"]);
        assert!(answer.code == code && answer.stderr.contains(says), "{text}: {answer:?}");
        assert!(!served.place.home().join("console/token").exists(), "{text}: no console, no token");
    }
    config(
        "listen = \"127.0.0.1:0\"\nbase_path = \"/my/gleaner\"\nallow_host = \"gleaner.test\"\nbehind_proxy = \"yes\"",
    );
    let mut command = served.place.command(&["serve", "--notify-desktop=no"]);
    let mut service = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(service.stderr.take().unwrap()).lines().map_while(Result::ok);
    served.service = Some(service);
    let link = said.find_map(|line| line.strip_prefix("console: ").map(str::to_owned)).unwrap();
    assert!(link.starts_with("https://gleaner.test/my/gleaner/open?code="), "{link}");
    std::thread::spawn(move || said.for_each(drop));
    served.stop();
}

/// Browsers leave pages all the time: that is no fault of ours, and nobody is told to report it.
#[test]
fn a_page_that_nobody_waits_for_is_no_defect() {
    let mut served = Served::new();
    served.add(NAMES[0], "for n in range(4000): record(n)\ndone(4000); end()");
    let ran = served.place.gleaner(&["run", NAMES[0]]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut command = served.place.command(&["serve", "--notify-desktop=no", "--listen=127.0.0.1:0"]);
    let mut service = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(service.stderr.take().unwrap()).lines().map_while(Result::ok);
    served.service = Some(service);
    let link = said.find_map(|line| line.strip_prefix("console: http://").map(str::to_owned)).unwrap();
    let rest = std::thread::spawn(move || said.collect::<Vec<_>>());
    let (address, code) = link.split_once("/open?").unwrap();
    let headers = format!("origin: http://{address}\r\ncontent-type: application/x-www-form-urlencoded\r\n");
    let signed_in = ask(address, "POST", "/open", &headers, code);
    let cookie = signed_in.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("cookie: {}\r\n", cookie.split(';').next().unwrap());
    let path = format!("/data/{}/orders?q=nowhere", NAMES[0]);
    assert!(ask(address, "GET", &path, &cookie, "").starts_with("HTTP/1.1 200 "));
    for n in 0..60 {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n{cookie}\r\n").as_bytes()).unwrap();
        // It goes away while it is answered, sooner or later.
        std::thread::sleep(std::time::Duration::from_millis(n % 20));
        drop(socket);
    }
    assert!(ask(address, "GET", &path, &cookie, "").starts_with("HTTP/1.1 200 "), "and others are answered as before");
    served.stop();
    let (said, log) = (rest.join().unwrap().join("\n"), served.log());
    for text in [said, log] {
        assert!(!text.contains("defect of Gleaner") && !text.contains("could not read the store"), "{text}");
    }
}
