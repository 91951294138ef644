//! A provider that answers from a script, below a layer, below a middleware, or behind a socket.

use bytes::Bytes;
use gleaner_http::governor::Config;
use gleaner_http::{
    CallReport, GovernedError, GovernedLayer, GovernedMiddleware, Governors, Key, SendGovernor, Settings,
};
use http::{Extensions, Method, Request, Response};
use reqwest::ResponseBuilderExt as _;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{pending, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;
use tower::{Layer as _, Service, ServiceExt as _};

/// One line of the script: a status, and what `Retry-After` says. Status 0 never answers.
pub(crate) type Line = (u16, Option<&'static str>);

/// Never answers.
pub(crate) const SILENCE: Line = (0, None);

/// Answers from its script, then 200 for ever, and remembers when it was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Provider {
    script: Arc<Mutex<VecDeque<Line>>>,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl Provider {
    pub(crate) fn new(script: &[Line]) -> Self {
        Self { script: Arc::new(Mutex::new(script.iter().copied().collect())), asked: Arc::default() }
    }

    /// When requests arrived.
    pub(crate) fn asked(&self) -> Vec<Instant> {
        self.asked.lock().unwrap().clone()
    }

    /// How many requests arrived.
    pub(crate) fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// `None`: no answer at all.
    pub(crate) fn answer(&self) -> Option<Response<Bytes>> {
        self.asked.lock().unwrap().push(Instant::now());
        let (status, retry_after) = self.script.lock().unwrap().pop_front().unwrap_or((200, None));
        let mut answer = Response::builder().status(if status == 0 { return None } else { status });
        if let Some(value) = retry_after {
            answer = answer.header("retry-after", value);
        }
        Some(answer.body(Bytes::from_static(b"answer")).unwrap())
    }
}

impl Service<Request<Bytes>> for Provider {
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<Bytes>) -> Self::Future {
        match self.answer() {
            Some(answer) => Box::pin(ready(Ok(answer))),
            None => Box::pin(pending()),
        }
    }
}

/// The end of a middleware stack that answers without a socket.
#[async_trait::async_trait]
impl Middleware for Provider {
    async fn handle(
        &self,
        request: reqwest::Request,
        _extensions: &mut Extensions,
        _next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        match self.answer() {
            Some(answer) => {
                // As reqwest itself says who answered.
                let mut from = Response::builder().url(request.url().clone()).body(Bytes::new()).unwrap();
                let (mut head, body) = answer.into_parts();
                std::mem::swap(&mut head.extensions, from.extensions_mut());
                Ok(Response::from_parts(head, body).into())
            }
            None => pending().await,
        }
    }
}

/// The caller's view, with any adapter.
pub(crate) type Seen = Result<(u16, CallReport), String>;

/// The two ways in, so that a rule is tested once for both.
pub(crate) enum Adapter {
    Layer(GovernedLayer),
    Middleware(GovernedMiddleware),
}

impl Adapter {
    /// Both, each with a governor of its own.
    pub(crate) fn both(settings: Settings) -> [Self; 2] {
        [Self::layer(governor("layer", settings)), Self::middleware(governor("middleware", settings))]
    }

    pub(crate) fn layer(governor: SendGovernor) -> Self {
        Self::Layer(GovernedLayer::with(governor))
    }

    pub(crate) fn middleware(governor: SendGovernor) -> Self {
        Self::Middleware(GovernedMiddleware::with(governor))
    }

    pub(crate) async fn ask(&self, method: Method, provider: &Provider) -> Seen {
        self.ask_with(method, provider, |_| {}).await
    }

    /// Asks with something in the request's extensions.
    pub(crate) async fn ask_with(&self, method: Method, provider: &Provider, put: fn(&mut Extensions)) -> Seen {
        match self {
            Self::Layer(layer) => {
                let mut request = Request::new(Bytes::from_static(b"question"));
                *request.method_mut() = method;
                put(request.extensions_mut());
                let answer = layer.layer(provider.clone()).oneshot(request).await;
                answer.map(|answer| seen(answer.status().as_u16(), answer.extensions())).map_err(|e| e.to_string())
            }
            Self::Middleware(middleware) => {
                let client = client().with(middleware.clone()).with(provider.clone()).build();
                let mut request = client.request(method, "http://provider.invalid/").body("question");
                put(request.extensions());
                let answer = request.send().await;
                answer.map(|answer| seen(answer.status().as_u16(), answer.extensions())).map_err(|e| e.to_string())
            }
        }
    }
}

fn seen(status: u16, extensions: &Extensions) -> (u16, CallReport) {
    (status, *extensions.get::<CallReport>().expect("every response has a report"))
}

/// A governor that shares with nobody.
pub(crate) fn governor(provider: &str, settings: Settings) -> SendGovernor {
    Governors::new().governor(&Key::new(provider), &settings).unwrap()
}

/// The opt-out: nothing is paced.
pub(crate) fn unpaced() -> Settings {
    let settings = Settings::default();
    Settings { config: Config { discovery_interval: Duration::ZERO, ..settings.config }, ..settings }
}

/// The start of a stack on a plain reqwest client.
pub(crate) fn client() -> ClientBuilder {
    // An error says that another test was first.
    let _theirs_if_any = rustls::crypto::ring::default_provider().install_default();
    ClientBuilder::new(reqwest::Client::builder().no_proxy().build().unwrap())
}

/// Asks through a stack whatever its middlewares are.
pub(crate) async fn get(client: &ClientWithMiddleware, url: &str) -> reqwest_middleware::Result<reqwest::Response> {
    client.get(url).send().await
}

/// Asks through a stack of layers.
pub(crate) async fn call<S>(service: S) -> Result<Response<Bytes>, GovernedError>
where
    S: Service<Request<Bytes>, Response = Response<Bytes>, Error = GovernedError>,
{
    service.oneshot(Request::new(Bytes::new())).await
}
