//! Blocking client for programs without an async runtime.
//!
//! It owns a small runtime: one thread for the sockets, while calls run on the threads of their callers. All
//! decisions are in [`crate::client`]. Inside an async runtime a call returns [`Error::BlockingInAsync`] instead of
//! blocking the runtime.
//!
//! ```no_run
//! use gleaner_http::blocking::Client;
//!
//! # fn main() -> Result<(), gleaner_http::Error> {
//! let github = Client::new("github")?;
//! let repository: serde_json::Value = github.get("https://api.github.com/repos/rust-lang/rust").send()?.json()?;
//! println!("{}", repository["stargazers_count"]);
//! # Ok(())
//! # }
//! ```

use crate::client::{self, ClientBuilder, Error, GovernedClient, Slice, request_methods};
use crate::send_governor::SendGovernor;
use bytes::Bytes;
use http::Method;
use serde::de::DeserializeOwned;
use std::io;
use std::sync::Arc;
use tokio::runtime::{Builder, Handle, Runtime};

/// A [`GovernedClient`] whose calls block. Cheap to clone, and usable by many threads.
#[derive(Clone, Debug)]
pub struct Client {
    client: GovernedClient,
    engine: Engine,
}

impl Client {
    /// A client with default settings for the provider `name`.
    ///
    /// # Errors
    /// See [`GovernedClient::new`]; also when no thread can be started.
    pub fn new(name: &str) -> Result<Self, Error> {
        Self::builder(name).build_blocking()
    }

    /// A builder for other settings; end it with [`ClientBuilder::build_blocking`].
    pub fn builder(name: &str) -> ClientBuilder {
        GovernedClient::builder(name)
    }

    pub(crate) fn around(client: GovernedClient) -> Result<Self, Error> {
        Ok(Self { client, engine: Engine::start()? })
    }

    /// The send governor of this client's key.
    #[must_use]
    pub fn governor(&self) -> &SendGovernor {
        self.client.governor()
    }

    request_methods! { get GET, post POST, put PUT, patch PATCH, delete DELETE, head HEAD }

    /// A request with any method.
    pub fn request(&self, method: Method, url: impl AsRef<str>) -> RequestBuilder {
        client::RequestBuilder(self.client.request(method, url).0, self.engine.clone())
    }

    /// Loads pages starting with `request`; `ways` selects the kind of paging.
    ///
    /// ```no_run
    /// # fn example(client: gleaner_http::blocking::Client) -> Result<(), gleaner_http::Error> {
    /// let request = client.get("https://api.github.com/users/octocat/repos");
    /// for slice in client.pages(request, |paging| paging.by_link()) {
    ///     println!("{} bytes", slice?.body.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn pages(&self, request: RequestBuilder, ways: impl FnOnce(client::Paging) -> client::Pages) -> Pages {
        Pages {
            pages: ways(self.client.pages(client::RequestBuilder(request.0, ()))),
            engine: self.engine.clone(),
            is_over: false,
        }
    }
}

/// A request under construction.
pub type RequestBuilder = client::RequestBuilder<Engine>;

impl RequestBuilder {
    /// Sends the request, and retries while that helps and is safe.
    ///
    /// # Errors
    /// As the asynchronous one, and inside an async runtime.
    pub fn send(self) -> Result<Response, Error> {
        let Self(draft, engine) = self;
        let response = engine.run(client::RequestBuilder(draft, ()).send())?;
        Ok(response.driven_by(engine).0)
    }
}

/// The answer to a request. It can be [read](io::Read) like a file.
pub type Response = client::Response<Engine>;

impl Response {
    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// The body cannot be read further.
    pub fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.engine.clone().run(self.next_chunk())
    }

    /// The whole body.
    ///
    /// # Errors
    /// The body cannot be read to its end.
    pub fn bytes(self) -> Result<Bytes, Error> {
        let (response, engine) = self.driven_by(());
        engine.run(response.bytes())
    }

    /// The whole body as UTF-8.
    ///
    /// # Errors
    /// The body cannot be read to its end.
    pub fn text(self) -> Result<String, Error> {
        let (response, engine) = self.driven_by(());
        engine.run(response.text())
    }

    /// The whole body as JSON.
    ///
    /// # Errors
    /// The body cannot be read to its end, or is not the expected JSON.
    pub fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let (response, engine) = self.driven_by(());
        engine.run(response.json())
    }
}

impl io::Read for Response {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        // A piece may be empty without being the end.
        let mut piece = Bytes::new();
        while piece.is_empty() {
            match self.chunk().map_err(io::Error::other)? {
                Some(next) => piece = next,
                None => return Ok(0),
            }
        }
        let read = piece.split_to(buffer.len().min(piece.len()));
        buffer[..read.len()].copy_from_slice(&read);
        // The rest of the piece comes with the next read.
        self.answer.body.front = piece;
        Ok(read.len())
    }
}

/// An iterator over pages. It ends after the last page or the first error.
#[derive(Debug)]
pub struct Pages {
    pages: client::Pages,
    engine: Engine,
    is_over: bool,
}

impl Iterator for Pages {
    type Item = Result<Slice, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let result = self.engine.run(self.pages.next()).transpose();
        self.is_over = !matches!(result, Some(Ok(_)));
        result
    }
}

/// The runtime behind all clones of a client.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Running>);

#[derive(Debug)]
struct Running {
    /// `None` only after drop.
    runtime: Option<Runtime>,
}

impl Engine {
    pub(crate) fn start() -> Result<Self, Error> {
        // The runtime panics if its thread cannot be started. Without one, calls drive it on their own threads.
        let has_thread = std::thread::Builder::new().spawn(|| ()).is_ok_and(|thread| thread.join().is_ok());
        Self::start_with(has_thread)
    }

    fn start_with(thread: bool) -> Result<Self, Error> {
        let mut builder = if thread { Builder::new_multi_thread() } else { Builder::new_current_thread() };
        let runtime = builder.worker_threads(1).thread_name("gleaner-http").enable_all().build();
        let runtime = runtime.map_err(|error| Error::Setup { what: "it cannot be started", source: error.into() })?;
        Ok(Self(Arc::new(Running { runtime: Some(runtime) })))
    }

    /// Waits for `call` on this thread.
    pub(crate) fn run<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        if Handle::try_current().is_ok() {
            return Err(Error::BlockingInAsync);
        }
        match &self.0.runtime {
            // Not through its handle: that would not drive a runtime without a thread.
            Some(runtime) => runtime.block_on(call),
            None => Err(Error::BlockingInAsync),
        }
    }
}

impl Drop for Running {
    /// In the background: the last client may be dropped inside an async runtime, where waiting for the threads would
    /// panic.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn without_a_thread_of_its_own_calls_are_driven_by_whoever_waits() {
        let engine = Engine::start_with(false).unwrap();
        std::thread::scope(|scope| {
            // A timer that fires shows that somebody drives it.
            let wait = || {
                engine.run(async {
                    let expired = tokio::time::timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
                    Ok(expired.is_err())
                })
            };
            let threads = [(); 4].map(|()| scope.spawn(wait));
            assert!(threads.into_iter().all(|thread| matches!(thread.join().unwrap(), Ok(true))));
        });
    }
}
