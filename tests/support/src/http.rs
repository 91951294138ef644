//! As much of HTTP/1.1 as a browser needs from a test: one request per connection, with bounds.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A head longer than this is nobody's that we test.
const HEAD_BYTES_MAX: u64 = 64 * 1024;
const BODY_BYTES_MAX: u64 = 1024 * 1024;
/// A browser opens connections that it does not use.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// What was asked.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without its query.
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let mut cookies = self.header("cookie")?.split("; ").filter_map(|cookie| cookie.split_once('='));
        cookies.find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    pub(crate) fn asked_for(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// A field of the form that was sent.
    pub(crate) fn field(&self, name: &str) -> String {
        pairs(&self.body).into_iter().find(|(own, _)| own == name).map(|(_, value)| value).unwrap_or_default()
    }
}

/// What is answered.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn of(status: u16, kind: &str, body: impl Into<String>) -> Self {
        Self { status, headers: vec![("Content-Type", kind.to_owned())], body: body.into() }
    }

    pub(crate) fn page(html: impl Into<String>) -> Self {
        Self::of(200, "text/html; charset=utf-8", html)
    }

    /// A status and nothing else.
    pub(crate) const fn bare(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new() }
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self { status: 302, headers: vec![("Location", to.to_owned())], body: String::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Reads one request and answers it. Whoever says nothing or nonsense gets nothing.
pub(crate) fn serve(stream: &TcpStream, answer: impl FnOnce(&Request) -> Response) {
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
    let mut request = Request { method, path: path.to_owned(), query: pairs(query), ..Request::default() };
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
    stream.write_all(response.body.as_bytes())?;
    stream.flush()
}

/// `a=b&c=d`, with `%` and `+` undone.
fn pairs(text: &str) -> Vec<(String, String)> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

fn plain(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, others @ ..] = rest {
        let hex = others.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match (first, hex.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            (b'+', _) => {
                bytes.push(b' ');
                rest = others;
            }
            (byte, _) => {
                bytes.push(*byte);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
