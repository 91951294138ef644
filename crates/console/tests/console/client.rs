//! Requests as they go over the wire, one connection each, with any header that a test wants to send.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        // A number that no `Value` can hold is data, and goes out as it was stored.
        let text = self.text().replace("1e400", "1");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

/// A request that is being put together.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: None }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn json(self, body: &str) -> Self {
        let with = self.header("content-type", "application/json");
        Self { body: Some(body.as_bytes().to_vec()), ..with }
    }

    pub(crate) fn form(self, body: &str) -> Self {
        let with = self.header("content-type", "application/x-www-form-urlencoded");
        Self { body: Some(body.as_bytes().to_vec()), ..with }
    }

    fn head(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nconnection: close\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// As it goes over the wire.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.head(), self.body.clone().unwrap_or_default()].concat()
    }

    /// Sends it and reads the whole answer.
    pub(crate) fn send(&self, to: SocketAddr) -> Reply {
        let mut socket = connect(to);
        socket.write_all(&self.head()).expect("a head");
        // A server that refuses hangs up before it has read the body.
        let _refused = self.body.as_ref().map(|body| socket.write_all(body));
        read_reply(&mut socket)
    }

    /// The same; nothing when the server hung up at once.
    pub(crate) fn try_send(&self, to: SocketAddr) -> Option<Reply> {
        let mut socket = connect(to);
        let _refused = socket.write_all(&self.head());
        let mut bytes = Vec::new();
        let _ended = socket.read_to_end(&mut bytes);
        (!bytes.is_empty()).then(|| parse(&bytes))
    }

    /// Sends it and leaves the answer on the wire.
    pub(crate) fn open(&self, to: SocketAddr) -> TcpStream {
        let mut socket = connect(to);
        socket.write_all(&self.head()).expect("a head");
        socket
    }
}

pub(crate) fn connect(to: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(to).expect("it listens");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    socket
}

pub(crate) fn read_reply(socket: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    // What came before a reset counts.
    let _ended = socket.read_to_end(&mut bytes);
    let reply = parse(&bytes);
    let in_pieces = reply.header("transfer-encoding") == Some("chunked");
    if in_pieces { Reply { body: joined(&reply.body), ..reply } } else { reply }
}

/// A body out of its pieces, which must come to its end.
fn joined(mut pieces: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let line = pieces.windows(2).position(|part| part == b"\r\n").expect("the length of a piece");
        let length = std::str::from_utf8(&pieces[..line]).expect("text");
        let length = usize::from_str_radix(length, 16).expect("a number");
        let piece = pieces.get(line + 2..line + 2 + length).expect("a whole piece");
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(piece);
        pieces = &pieces[line + 4 + length..];
    }
}

pub(crate) fn parse(bytes: &[u8]) -> Reply {
    let end = bytes.windows(4).position(|part| part == b"\r\n\r\n").unwrap_or_else(|| {
        panic!("no head in {:?}", String::from_utf8_lossy(bytes));
    });
    let head = std::str::from_utf8(&bytes[..end]).expect("a head of text");
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status").parse().expect("a number");
    let pair = |line: &str| {
        let (name, value) = line.split_once(':').expect("a header");
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    Reply { status, headers: lines.map(pair).collect(), body: bytes[end + 4..].to_vec() }
}
