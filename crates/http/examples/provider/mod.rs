//! A provider on loopback for the examples: so many requests per second and account, and 429 for the rest.
//!
//! Threads and the standard library only, so that an example without an async runtime is really without.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// Starts a provider that allows `per_second` requests to each account, and returns its URL. It says
/// nothing about its limit, as most do.
pub(crate) fn start(per_second: f64) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let limit = Arc::new(Limit { per_second, accounts: Mutex::default() });
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let limit = Arc::clone(&limit);
            thread::spawn(move || talk(stream, &limit));
        }
    });
    Ok(url)
}

/// A bucket per account, two requests deep.
struct Limit {
    per_second: f64,
    accounts: Mutex<HashMap<String, (f64, Instant)>>,
}

/// Requests that an account may make at once.
const BURST: f64 = 2.0;

impl Limit {
    fn allows(&self, account: &str) -> bool {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, at) = accounts.entry(account.to_owned()).or_insert_with(|| (BURST, Instant::now()));
        *left = (*left + at.elapsed().as_secs_f64() * self.per_second).min(BURST);
        *at = Instant::now();
        let allowed = *left >= 1.0;
        *left -= f64::from(u8::from(allowed));
        allowed
    }
}

/// Answers until the client goes away.
fn talk(stream: TcpStream, limit: &Limit) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let mut account = String::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("authorization") => value.clone_into(&mut account),
                _ if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let (status, body) = if limit.allows(&account) { ("200 OK", "{\"ok\":true}") } else { ("429 Too Many", "") };
        let length = body.len();
        write!(stream.get_mut(), "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}")?;
    }
}
