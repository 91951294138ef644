//! A provider on this machine: one thread, one answer per request.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

/// Answers every request with what `answer` says for its path: a status line, and a body. Ends with the process.
pub(crate) fn serve(mut answer: impl FnMut(&str) -> (&'static str, String) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let Some(first) = lines.next() else { continue };
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let (status, body) = answer(first.split(' ').nth(1).unwrap_or_default());
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let written = (&stream).write_all(format!("{head}{body}").as_bytes());
            drop(written);
        }
    });
    format!("http://{address}")
}
