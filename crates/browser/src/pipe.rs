//! The engine that is our own: Chromium's DevTools protocol over two pipes, and only the dozen calls of it that we need.
//!
//! Why not a library: those generate code for the whole protocol, talk through a port that any program may attach to,
//! and wait for a page that hangs.

mod frames;
mod page;
mod world;

use crate::arguments::{self, Start};
use crate::browser::{Cookie, Download};
use crate::connection::Connection;
use crate::engine::{Deadline, Engine, EngineCounts, EngineKind, EnginePage};
use crate::error::BrowserError;
use crate::footprint;
use crate::limits::Limits;
use crate::process::BrowserProcess;
use page::PipePage;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use world::World;

/// Chromium reads from the third and writes to the fourth of its files. A shell puts them there, and becomes it.
const BECOME: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#;
/// How long a browser may take to end when it is dropped. What it knows is on the disk within a fifth of a second.
const FAREWELL_MAX: Duration = Duration::from_secs(2);

/// A browser that is driven through pipes.
#[derive(Debug)]
pub(crate) struct PipeEngine {
    connection: Connection<World>,
    process: Arc<BrowserProcess>,
    downloads: PathBuf,
    limits: Limits,
    /// A page that somebody asks for is not a popup that somebody else may take.
    opening: Mutex<()>,
}

impl PipeEngine {
    /// Starts a browser, and waits until it answers.
    pub(crate) fn start(
        program: &Path,
        start: Start<'_>,
        downloads: &Path,
        deadline: Deadline,
    ) -> Result<Self, BrowserError> {
        let mut words = arguments::arguments(start);
        words.push("--remote-debugging-pipe".into());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", BECOME]).arg(program).args(&words);
        let (process, from_it, to_it) = BrowserProcess::start(program, command, start.profile)?;
        let (process, limits) = (Arc::new(process), *start.limits);
        let connection = Connection::new(from_it, to_it, World::new(limits), downloads.to_owned());
        let engine = Self { connection, process, downloads: downloads.to_owned(), limits, opening: Mutex::new(()) };
        engine.greet(deadline).map_err(|error| engine.did_not_start(program, &error))?;
        let (connection, watched) = (engine.connection.clone(), Arc::downgrade(&engine.process));
        let profile = start.profile.to_owned();
        thread::spawn(move || footprint::watch(&connection, &watched, &profile, &limits));
        Ok(engine)
    }

    /// The first words: what is opened is ours before it runs, and where downloads go.
    fn greet(&self, deadline: Deadline) -> Result<(), BrowserError> {
        let call = |method, params: Value| self.connection.call(None, method, params, "start", deadline);
        call("Browser.getVersion", json!({}))?;
        let downloads = self.downloads.to_string_lossy();
        let behaviour = json!({"behavior": "allowAndName", "downloadPath": downloads, "eventsEnabled": true});
        call("Browser.setDownloadBehavior", behaviour)?;
        call("Target.setAutoAttach", json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true}))?;
        Ok(())
    }

    fn did_not_start(&self, program: &Path, error: &BrowserError) -> BrowserError {
        // A process that has ended says more than the pipe that was closed with it.
        self.process.wait(Duration::from_millis(200));
        let why = self.process.ended().unwrap_or_else(|| error.to_string());
        let said = self.process.last_words();
        let why = if said.is_empty() { why } else { format!("{why}; it said: {said}") };
        BrowserError::Start { program: program.to_owned(), why }
    }

    fn page(&self, target: String) -> Arc<dyn EnginePage> {
        Arc::new(PipePage { connection: self.connection.clone(), target })
    }
}

impl Engine for PipeEngine {
    fn kind(&self) -> EngineKind {
        EngineKind::Pipe
    }

    fn new_page(&self, deadline: Deadline) -> Result<Arc<dyn EnginePage>, BrowserError> {
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.connection.look(|world| world.is_full()) {
            return Err(BrowserError::TooMany { what: "pages open", max: self.limits.pages_max as u64 });
        }
        let params = json!({"url": "about:blank"});
        let answer = self.connection.call(None, "Target.createTarget", params, "open a page", deadline)?;
        let target = answer["targetId"].as_str().unwrap_or_default().to_owned();
        let attached = self.connection.wait(deadline, |world| {
            world.page(&target)?;
            world.claim(&target);
            Some(())
        })?;
        attached.ok_or_else(|| deadline.timed_out("open a page"))?;
        let page = self.page(target);
        // Once it answers, it tells what happens in it; before that, it might be somewhere else unnoticed.
        page.evaluate("0", deadline)?;
        Ok(page)
    }

    fn take_popups(&self) -> Vec<Arc<dyn EnginePage>> {
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let targets = self.connection.look(World::take_unclaimed);
        targets.into_iter().map(|target| self.page(target)).collect()
    }

    fn cookies(&self, deadline: Deadline) -> Result<Vec<Cookie>, BrowserError> {
        let answer = self.connection.call(None, "Storage.getCookies", json!({}), "read its cookies", deadline)?;
        let cookies = answer["cookies"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(cookies.iter().map(Cookie::from_json).collect())
    }

    fn downloads(&self) -> Vec<Download> {
        self.connection.look(|world| world.downloads().list(&self.downloads))
    }

    fn counts(&self) -> EngineCounts {
        self.connection.look(|world| world.counts())
    }

    fn gone(&self) -> Option<String> {
        self.connection.gone()
    }

    fn close(&self, deadline: Deadline) -> Result<(), BrowserError> {
        // It may be gone before it answers; whether it ended is what counts.
        drop(self.connection.call(None, "Browser.close", json!({}), "close", deadline));
        let ended = self.process.wait(deadline.left());
        self.connection.set_gone("it was closed");
        self.process.kill();
        if ended { Ok(()) } else { Err(deadline.timed_out("close")) }
    }
}

impl Drop for PipeEngine {
    fn drop(&mut self) {
        // A browser that was closed is gone already. One that was not is given the time to save what it knows.
        if self.connection.gone().is_none() {
            drop(self.close(Deadline::after(FAREWELL_MAX)));
        }
        self.process.kill();
    }
}
