//! One line in a `reqwest-middleware` stack, and every request is governed, each host by itself.
//!
//! `cargo run -p gleaner-http --features reqwest-middleware --example reqwest_middleware -- URL...`
//!
//! Without a URL it asks a server of its own, which refuses every third request for a second.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use bytes::Bytes;
use gleaner_http::{CallLimits, CallReport, GovernedMiddleware, Refused};
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        urls = vec![start_provider().await?; 6];
    }
    let client = client()?;
    for url in urls {
        match client.get(&url).send().await {
            Ok(response) => {
                let report = response.extensions().get::<CallReport>().ok_or("every response has a report")?;
                let (attempts, waited) = (report.attempts, report.waited.as_millis());
                println!("{url}: {}, sent {attempts} time(s), waited {waited} ms", response.status());
            }
            Err(reqwest_middleware::Error::Middleware(error)) if error.is::<Refused>() => println!("{error}"),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn client() -> Result<ClientWithMiddleware, Box<dyn Error>> {
    // A program that builds reqwest with a TLS of its own choice does not need this line.
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "TLS is set up already")?;
    let call_limits = CallLimits { max_wait: Some(Duration::from_secs(30)), ..CallLimits::default() };
    let governed = GovernedMiddleware::per_host().call_limits(call_limits);
    Ok(ClientBuilder::new(reqwest::Client::new()).with(governed).build())
}

/// Refuses every third request, and says for how long.
async fn start_provider() -> Result<String, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let count = Arc::new(AtomicU32::new(0));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            let service = hyper::service::service_fn(move |_| {
                let answer = answer(count.fetch_add(1, Ordering::Relaxed));
                async move { Ok::<_, Infallible>(answer) }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(url)
}

fn answer(number: u32) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from("hello"));
    if number % 3 == 2 {
        *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        answer.headers_mut().insert("retry-after", http::HeaderValue::from_static("1"));
    }
    answer
}
