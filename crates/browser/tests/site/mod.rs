//! A small site on loopback, for the tests alone: pages that behave, and pages that do not.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use gleaner_browser::{BrowserRequest, EngineChoice, Limits, ProfileName, Window};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long things may take that take a moment. The machine may be busy.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) struct Site {
    pub(crate) url: String,
    /// What it was asked, as `METHOD PATH cookies`.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let heard = Arc::clone(&heard);
                thread::spawn(move || serve(stream, &heard));
            }
        });
        Self { url, asked }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A browser in a folder of the test's.
pub(crate) fn request(engine: EngineChoice, profiles: &Path, name: &str) -> BrowserRequest {
    let variable = |name: &str| std::env::var(name).ok();
    let mut request = BrowserRequest::new("test", None, &variable).unwrap();
    request.profiles = profiles.to_owned();
    request.profile = ProfileName::new(name).unwrap();
    request.engine = engine;
    request.driver = crate::engines::driver();
    request.window = Window::Headless;
    request.limits = Limits::default();
    request
}

fn serve(mut stream: TcpStream, heard: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    let (mut cookies, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.trim().split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "cookie" => cookies = value.trim().to_owned(),
            "content-length" => length = value.trim().parse().unwrap_or(0),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    let read = reader.read_exact(&mut body);
    let mut words = first.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    heard.lock().unwrap().push(format!("{method} {target} {cookies}").trim().to_owned());
    let path = target.split('?').next().unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let answer = if read.is_ok() { page(path, target, &cookies, &text) } else { return };
    drop(stream.write_all(&answer));
}

fn html(body: &str) -> Vec<u8> {
    respond("200 OK", "text/html; charset=utf-8", "", body.as_bytes())
}

fn respond(status: &str, kind: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn page(path: &str, target: &str, cookies: &str, body: &str) -> Vec<u8> {
    match path {
        "/" => html("<title>A shop</title><h1>Hello</h1><a href='/#more'>more</a>"),
        "/form" => html(
            "<title>Form</title><form action='/done'><input name=user value=old><input name=code type=password>\
             <button id=go type=button onclick=\"document.title = 'clicked ' + event.isTrusted\">Go</button><button>Send</button></form>\
             <script>document.forms[0].addEventListener('submit', e => { e.preventDefault(); document.title = 'sent' })\
             </script>",
        ),
        "/late" => html(
            "<p id=early style='display:none'>hidden</p><script>setTimeout(() => {\
             const late = document.createElement('p'); late.id = 'late'; late.textContent = 'here';\
             document.body.append(late) }, 300)</script>",
        ),
        "/set" => respond(
            "200 OK",
            "text/html",
            &format!("Set-Cookie: sid={}; Max-Age=100000; HttpOnly\r\n", target.split('=').nth(1).unwrap_or("x")),
            b"<title>set</title>",
        ),
        "/whoami" => respond(
            "200 OK",
            "application/json",
            "X-Shop: yes\r\n",
            format!("{{\"cookies\":{cookies:?},\"body\":{body:?}}}").as_bytes(),
        ),
        "/strict" => {
            respond("200 OK", "text/html", "Content-Security-Policy: default-src 'self'\r\n", b"<title>strict</title>")
        }
        "/refused" => respond("429 Too Many Requests", "application/json", "Retry-After: 7\r\n", b"{}"),
        "/redirect" => respond("302 Found", "text/html", "Location: /late\r\n", b""),
        "/js-redirect" => html("<script>location.href = '/form'</script>"),
        "/slow" => {
            thread::sleep(Duration::from_secs(20));
            html("slow")
        }
        "/wedge" => html("<title>Wedged</title><script>setTimeout(() => { while (true) {} }, 50)</script>"),
        "/dialogs" => html(
            "<title>Dialogs</title><button onclick='while (true) alert(1)'>x</button><script>setTimeout(() => { while (true) confirm('again?') }, 50)</script>",
        ),
        "/leave" => html(
            "<title>Stay</title><input><script>window.onbeforeunload = e => { e.preventDefault(); return 'stay' }</script>",
        ),
        "/ask" => html(
            "<title>Ask</title><script>window.answer = String(confirm('really?')) + String(prompt('name?'))</script>",
        ),
        "/popups" => html(
            "<title>Popups</title><button onclick=\"for (let i = 0; i < 30; i++) window.open('/?' + i, '_blank')\">x</button>",
        ),
        "/popup" => html("<title>Popup</title><button onclick=\"window.open('/form', '_blank')\">x</button>"),
        "/downloads" => html(
            "<title>Downloads</title><body><script>for (let i = 0; i < 40; i++) { const a = document.createElement('a');\
             a.href = '/file?' + i; a.download = '../../evil' + i + '.txt'; document.body.append(a); a.click() }</script>",
        ),
        "/file" => respond(
            "200 OK",
            "application/octet-stream",
            "Content-Disposition: attachment; filename=\"report.csv\"\r\n",
            b"a,b\n1,2\n",
        ),
        "/large" => {
            respond("200 OK", "application/octet-stream", "Content-Disposition: attachment\r\n", &vec![7; 3 << 20])
        }
        "/hog" => html(
            "<title>Hog</title><script>window.all = []; setInterval(() => { const a = new Uint8Array(64 << 20); for (let i = 0; i < a.length; i += 4096) a[i] = i; all.push(a) }, 20)</script>",
        ),
        "/crash" => html("<title>Crash</title>"),
        _ => restless(path),
    }
}

/// Pages that change what was there when they were looked at.
fn restless(path: &str) -> Vec<u8> {
    match path {
        "/moves" => html(
            "<title>Moves</title><style>html { overflow-anchor: none }</style><header style='height: 300px'>A shop</header>\
             <div style='height: 1500px'></div><button onclick=\"document.title = 'clicked'\">Go</button>\
             <div style='height: 1500px'></div><script>addEventListener('scroll', () => {\
             document.querySelector('header').style.height = 0 })</script>",
        ),
        "/storage" => html(
            "<title>Storage</title><script>caches.open('a').then(a => \
             a.put('/a', new Response(new Uint8Array(96 << 20))))</script>",
        ),
        _ => respond("404 Not Found", "text/html", "", b"<title>Nothing</title>"),
    }
}
