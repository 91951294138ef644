//! A server on loopback: as much of HTTP/1.1 as a test needs, one request per connection, with bounds.

use percent_encoding::percent_decode_str;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A head longer than this is nobody's that we test.
const HEAD_BYTES_MAX: u64 = 64 * 1024;
const BODY_BYTES_MAX: u64 = 1024 * 1024;
/// A browser opens connections that it does not use.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// A server that answers each request on a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts it on a port of its own.
    ///
    /// # Panics
    ///
    /// When loopback cannot be listened on: without it there is nothing to test.
    pub fn start(answer: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback can be listened on");
        let address = listener.local_addr().expect("a listener has an address");
        let (is_over, answer) = (Arc::new(AtomicBool::new(false)), Arc::new(answer));
        let ends = Arc::clone(&is_over);
        let listening = thread::spawn(move || {
            while !ends.load(Ordering::SeqCst) {
                let Ok((stream, _)) = listener.accept() else { return };
                let answer = Arc::clone(&answer);
                thread::spawn(move || serve(&stream, &*answer));
            }
        });
        Self { address, is_over, listening: Some(listening) }
    }

    /// Where it is, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // A last caller wakes it up.
        drop(TcpStream::connect(self.address));
        if let Some(listening) = self.listening.take() {
            drop(listening.join());
        }
    }
}

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path with its query, as it came.
    pub target: String,
    /// The path without its query.
    pub path: String,
    /// The query, with `%` and `+` undone.
    pub query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    /// The body, as text.
    pub body: String,
}

impl Request {
    /// A header, whatever the case of its name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// A cookie.
    #[must_use]
    pub fn cookie(&self, name: &str) -> Option<&str> {
        let mut cookies = self.header("cookie")?.split("; ").filter_map(|cookie| cookie.split_once('='));
        cookies.find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// A part of the query.
    #[must_use]
    pub fn asked_for(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// A field of the form that was sent.
    #[must_use]
    pub fn field(&self, name: &str) -> String {
        pairs(&self.body).into_iter().find(|(own, _)| own == name).map(|(_, value)| value).unwrap_or_default()
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Response {
    /// A status with a body.
    pub fn of(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: vec![("Content-Type", kind.to_owned())], body: body.into() }
    }

    /// A page.
    pub fn page(html: impl Into<Vec<u8>>) -> Self {
        Self::of(200, "text/html; charset=utf-8", html)
    }

    /// A status and nothing else.
    #[must_use]
    pub const fn bare(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// The way to another page.
    #[must_use]
    pub fn redirect(to: &str) -> Self {
        Self::bare(302).with("Location", to)
    }

    /// The same with a header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Reads one request and answers it. Whoever says nothing or nonsense gets nothing.
fn serve(stream: &TcpStream, answer: impl FnOnce(&Request) -> Response) {
    // Without a time-out a thread would be left behind; what fails here fails below, too.
    drop(stream.set_read_timeout(Some(SILENCE_MAX)));
    let Some(request) = read(stream) else { return };
    let response = answer(&request);
    drop(write(stream, &response));
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream.take(HEAD_BYTES_MAX + BODY_BYTES_MAX));
    let mut line = String::new();
    lines.read_line(&mut line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (path, query) = (path.to_owned(), pairs(query));
    let mut request = Request { method, target, path, query, ..Request::default() };
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        request.headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0).min(BODY_BYTES_MAX);
    let mut body = Vec::new();
    lines.take(length).read_to_end(&mut body).ok()?;
    request.body = String::from_utf8_lossy(&body).into_owned();
    Some(request)
}

fn write(mut stream: &TcpStream, response: &Response) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\nCache-Control: no-store\r\n", response.status);
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", response.body.len()));
    stream.write_all(head.as_bytes())?;
    stream.write_all(&response.body)?;
    stream.flush()
}

/// `a=b&c=d`, with `%` and `+` undone.
fn pairs(text: &str) -> Vec<(String, String)> {
    let plain = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let parts = text.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_it_was_typed() {
        let request = Request { body: "email=ada%40site.example&password=a+b%26c%".to_owned(), ..Request::default() };
        assert_eq!((request.field("email"), request.field("password")), ("ada@site.example".into(), "a b&c%".into()));
        assert_eq!(request.field("absent"), "");
    }
}
