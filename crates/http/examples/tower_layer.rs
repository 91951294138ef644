//! A tower stack that finds the limit of a provider nobody has told it about.
//!
//! The provider is a server of this program that allows ten requests per second and answers 429 to
//! others. The client is hyper's, with one layer on it, and knows nothing of that.
//!
//! `cargo run -p gleaner-http --features tower --example tower_layer`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use bytes::Bytes;
use gleaner_http::{CallReport, GovernedLayer, Governors, Key, Settings};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tower::{Service as _, ServiceBuilder, ServiceExt as _};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let provider = start_provider().await?;

    // `GovernedLayer::new("provider")` does this too; here we want to look at the governor afterwards.
    let governor = Governors::global().governor(&Key::new("provider"), &Settings::default())?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let mut service = ServiceBuilder::new().layer(GovernedLayer::with(governor.clone())).service(client);

    for number in 1..=60 {
        let request = Request::get(format!("http://{provider}/items/{number}")).body(Full::default())?;
        let response = service.ready().await?.call(request).await?;
        let report = response.extensions().get::<CallReport>().ok_or("every response has a report")?;
        let (attempts, waited) = (report.attempts, report.waited.as_millis());
        println!("item {number:2}: {}, sent {attempts} time(s), waited {waited} ms", response.status());
    }
    let status = governor.status();
    println!(
        "rate: {:.1} per second; refused: {} of {}",
        status.rate_per_s.unwrap_or(0.0),
        status.rejected,
        status.sent
    );
    Ok(())
}

/// One request per this long, and five at once.
const INTERVAL: Duration = Duration::from_millis(100);
const BURST: u32 = 5;

/// A provider with a limit, as many are: it allows a burst, and then a rate.
async fn start_provider() -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let full_at = Arc::new(Mutex::new(Instant::now()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let full_at = Arc::clone(&full_at);
            let service = hyper::service::service_fn(move |_| {
                let answer = answer(&mut full_at.lock().unwrap_or_else(PoisonError::into_inner));
                async move { Ok::<_, Infallible>(answer) }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(address)
}

/// Lets a request pass unless more than the burst would be owed.
fn answer(full_at: &mut Instant) -> Response<Full<Bytes>> {
    let now = Instant::now();
    let next = (*full_at).max(now) + INTERVAL;
    let mut answer = Response::new(Full::from("an item"));
    if next.duration_since(now) > INTERVAL * BURST {
        *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    } else {
        *full_at = next;
    }
    answer
}
