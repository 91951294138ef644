//! Hosts of a few lines on 127.0.0.x, and a fetch from them.

use gleaner_fetch::{Event, FetchError, List, ResultLine, Settings, Stop, Summary, fetch};
use gleaner_http::governor::Strategy;
use gleaner_http::governor::keyed::RegistryConfig;
use std::fmt::Write as _;
use std::fs;
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Requests that a host received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) if_none_match: Option<String>,
    pub(crate) user_agent: Option<String>,
}

/// Behavior of a host.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Whole(Vec<u8>),
    /// These bytes again and again.
    Endless(Vec<u8>, &'static [u8]),
    /// Nothing, and the connection stays open.
    Hang,
    Close,
}

/// An answer with its length.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let mut head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| write!(head, "{name}: {value}\r\n").unwrap());
    Reply::Whole([(head + "\r\n").as_bytes(), body].concat())
}

/// Waits without the sleep that this crate forbids itself.
pub(crate) async fn pass(time: Duration) {
    assert!(tokio::time::timeout(time, pending::<()>()).await.is_err());
}

type Script = Arc<dyn Fn(&Received, usize) -> Reply + Send + Sync>;

/// A running host; it ends with the test.
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

impl Host {
    /// `script` gets each request and its number, counted from 0; `latency` is before each answer.
    pub(crate) async fn start(
        number: u8,
        latency: Duration,
        script: impl Fn(&Received, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, number], 0))).await.unwrap();
        let address = listener.local_addr().unwrap();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let (log, script): (_, Script) = (Arc::clone(&received), Arc::new(script));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&log), latency));
            }
        });
        Self { address, received, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, script: Script, log: Arc<Mutex<Vec<Received>>>, latency: Duration) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let number = {
            let mut log = log.lock().unwrap();
            log.push(request.clone());
            log.len() - 1
        };
        if !latency.is_zero() {
            pass(latency).await;
        }
        match script(&request, number) {
            Reply::Whole(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Reply::Endless(head, piece) => {
                let mut left = stream.write_all(&head).await;
                while left.is_ok() {
                    left = stream.write_all(piece).await;
                }
                return;
            }
            Reply::Hang => pending().await,
            Reply::Close => return,
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut received = Received::default();
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let text = line.trim_end();
        if text.is_empty() {
            return Some(received);
        }
        if received.path.is_empty() {
            received.path = text.split(' ').nth(1)?.to_owned();
        } else if let Some((name, value)) = text.split_once(": ") {
            match name.to_ascii_lowercase().as_str() {
                "if-none-match" => received.if_none_match = Some(value.to_owned()),
                "user-agent" => received.user_agent = Some(value.to_owned()),
                _ => {}
            }
        }
    }
}

/// Settings without robots.txt and with a pace that does not hold a test up.
pub(crate) fn settings(folder: &Path) -> Settings {
    let mut governor = RegistryConfig::default();
    governor.key.strategy = Strategy::Fixed;
    governor.key.discovery_interval = Duration::from_millis(2);
    governor.key.ceiling_interval = Duration::from_millis(2);
    Settings { obeys_robots: false, governor, ..Settings::new(folder.join("out")) }
}

/// Fetches `urls` into `folder`/out.
pub(crate) async fn fetched(urls: &[String], settings: Settings) -> (Vec<ResultLine>, Summary) {
    let mut lines = Vec::new();
    let summary = told(urls, settings, Stop::default(), |line| lines.push(line.clone())).await.unwrap();
    (lines, summary)
}

pub(crate) async fn told(
    urls: &[String],
    settings: Settings,
    stop: Stop,
    mut on_line: impl FnMut(&ResultLine),
) -> Result<Summary, FetchError> {
    fs::create_dir_all(&settings.out).unwrap();
    let list = settings.out.with_file_name("list.txt");
    fs::write(&list, urls.join("\n")).unwrap();
    let listen = |event: Event<'_>| {
        if let Event::Line(line, _) = event {
            on_line(line);
        }
        Ok(())
    };
    fetch(List::File(list), settings, stop, listen).await
}

pub(crate) fn line<'a>(lines: &'a [ResultLine], end: &str) -> &'a ResultLine {
    lines.iter().find(|line| line.url.ends_with(end)).unwrap_or_else(|| panic!("no line for {end}"))
}
