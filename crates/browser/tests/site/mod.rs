//! A small site on loopback, for the tests alone: pages that behave, and pages that do not.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use gleaner_browser::{Browser, BrowserRequest, EngineChoice, Limits, PageRequest, ProfileName, Window};
use gleaner_test_support::http::{Request, Response, Server};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long things may take that take a moment. The machine may be busy.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) struct Site {
    server: Server,
    /// Its requests, as `METHOD PATH cookies`.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub(crate) fn start() -> Self {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&asked);
        let server = Server::start(move |request| {
            let cookies = request.header("cookie").unwrap_or_default();
            let line = format!("{} {} {cookies}", request.method, request.target);
            heard.lock().unwrap().push(line.trim().to_owned());
            page(request, cookies)
        });
        Self { server, asked }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.server.url())
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// The cookies that a browser sends to this machine, whatever the port.
pub(crate) fn cookies_of(browser: &Browser) -> String {
    let (site, page) = (Site::start(), browser.new_page(SOON).unwrap());
    page.navigate(&site.at("/"), SOON).unwrap();
    let answer = page.fetch(&PageRequest::get("/whoami"), SOON).unwrap().json::<serde_json::Value>().unwrap();
    page.close(SOON).unwrap();
    answer["cookies"].as_str().unwrap().to_owned()
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

fn html(body: &str) -> Response {
    Response::page(body)
}

fn page(request: &Request, cookies: &str) -> Response {
    match request.path.as_str() {
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
        "/set" => {
            let sid = request.asked_for("sid").unwrap_or("x");
            html("<title>set</title>").with("Set-Cookie", format!("sid={sid}; Max-Age=100000; HttpOnly"))
        }
        "/whoami" => {
            let body = format!("{{\"cookies\":{cookies:?},\"body\":{:?}}}", request.body);
            Response::of(200, "application/json", body).with("X-Shop", "yes")
        }
        "/strict" => html("<title>strict</title>").with("Content-Security-Policy", "default-src 'self'"),
        "/refused" => Response::of(429, "application/json", "{}").with("Retry-After", "7"),
        "/redirect" => Response::redirect("/late"),
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
        "/file" => Response::of(200, "application/octet-stream", "a,b\n1,2\n")
            .with("Content-Disposition", "attachment; filename=\"report.csv\""),
        "/large" => {
            Response::of(200, "application/octet-stream", vec![7; 3 << 20]).with("Content-Disposition", "attachment")
        }
        "/hog" => html(
            "<title>Hog</title><script>window.all = []; setInterval(() => { const a = new Uint8Array(64 << 20); for (let i = 0; i < a.length; i += 4096) a[i] = i; all.push(a) }, 20)</script>",
        ),
        "/crash" => html("<title>Crash</title>"),
        path => restless(path),
    }
}

/// Pages that change what was there when they were looked at.
fn restless(path: &str) -> Response {
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
        _ => Response::of(404, "text/html", "<title>Nothing</title>"),
    }
}
