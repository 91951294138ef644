//! A provider of a few lines: it reads a request, writes it down, and answers with the bytes it is told.

use gleaner_http::client::ClientBuilder;
use gleaner_http::governor::{BackoffConfig, Config};
use gleaner_http::{GovernedClient, Governors, Settings};
use std::fmt::Write as _;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Requests that a provider received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) at: Instant,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Behavior of a provider.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Write(Vec<u8>),
    Pause(Duration),
    /// Nothing more, and the connection stays open.
    Hang,
    /// The connection ends.
    Close,
}

/// An answer: acts in order; afterwards the connection is kept, unless one of them ended it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer(Vec<Act>);

/// A complete answer.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let mut headers = headers.to_vec();
    let length = body.len().to_string();
    headers.push(("content-length", &length));
    head(status, &headers).write(body)
}

/// The head of an answer; what follows is up to the test.
pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> Answer {
    let mut head = format!("HTTP/1.1 {status} x\r\n");
    headers.iter().for_each(|(name, value)| write!(head, "{name}: {value}\r\n").unwrap());
    Answer::default().write(head + "\r\n")
}

pub(crate) fn redirect(status: u16, to: &str) -> Answer {
    answer(status, &[("location", to)], "")
}

impl Answer {
    pub(crate) fn write(self, bytes: impl AsRef<[u8]>) -> Self {
        self.then(Act::Write(bytes.as_ref().to_vec()))
    }

    pub(crate) fn then(mut self, act: Act) -> Self {
        self.0.push(act);
        self
    }
}

/// Waits without the sleep that this crate forbids itself.
pub(crate) async fn pass(time: Duration) {
    assert!(tokio::time::timeout(time, pending::<()>()).await.is_err());
}

/// A running provider; it ends with the test.
pub(crate) struct Provider {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

type Script = Arc<dyn Fn(&Received, usize) -> Answer + Send + Sync>;

impl Provider {
    /// `script` gets each request and its number, counted from 0.
    pub(crate) async fn start(script: impl Fn(&Received, usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::default();
        let task = tokio::spawn(serve(listener, Arc::new(script), Arc::clone(&received)));
        Self { address, received, task }
    }

    pub(crate) async fn always(answer: Answer) -> Self {
        Self::start(move |_, _| answer.clone()).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.received.lock().unwrap().len()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, script: Script, received: Arc<Mutex<Vec<Received>>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(talk(stream, Arc::clone(&script), Arc::clone(&received)));
    }
}

/// `None` when the client goes away.
async fn talk(stream: TcpStream, script: Script, received: Arc<Mutex<Vec<Received>>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let request = read(&mut stream).await?;
        let number = {
            let mut received = received.lock().unwrap();
            received.push(request.clone());
            received.len() - 1
        };
        for act in script(&request, number).0 {
            match act {
                Act::Write(bytes) => stream.write_all(&bytes).await.ok()?,
                Act::Pause(time) => pass(time).await,
                Act::Hang => pending().await,
                Act::Close => return None,
            }
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut words = lines.first()?.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let headers: Vec<_> = lines[1..].iter().filter_map(|line| line.split_once(": ")).collect();
    let headers: Vec<_> = headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut received = Received { method, target, headers, body: String::new(), at: Instant::now() };
    let length = received.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    received.body = String::from_utf8(body).unwrap();
    Some(received)
}

/// Settings that find a loopback provider's pace within milliseconds.
pub(crate) fn brisk() -> Settings {
    let backoff = BackoffConfig { base: Duration::from_millis(5), cap: Duration::from_millis(50), attempts: 4 };
    let interval = Duration::from_millis(1);
    let config = Config {
        discovery_interval: interval,
        ceiling_interval: interval,
        max_concurrency: 16,
        backoff,
        ..Config::default()
    };
    Settings { config, max_waiting: 1000, ..Settings::default() }
}

/// A client with a registry of its own, so that tests do not slow each other down.
pub(crate) fn builder(name: &str) -> ClientBuilder {
    GovernedClient::builder(name).governors(Governors::new()).settings(brisk())
}

pub(crate) fn client(name: &str) -> GovernedClient {
    builder(name).build().unwrap()
}
