//! Our own engine: a dozen calls of Chromium's DevTools protocol over two pipes.
//!
//! Why not a library: those generate code for the whole protocol, use a port that any program may attach to, and wait
//! for a page that hangs.

mod frames;
mod page;
mod world;

use crate::engine::connection::Connection;
use crate::engine::driven::{Drive, Driven};
use crate::engine::{Deadline, EngineKind, EnginePage};
use crate::error::BrowserError;
use crate::process::BrowserProcess;
use crate::process::arguments::{self, Start};
use page::PipePage;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
pub(crate) use world::World;

/// Chromium reads from file descriptor 3 and writes to 4. A shell sets them up and execs it.
const BECOME: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#;

/// Starts a browser driven through pipes, and waits until it answers.
pub(crate) fn start(
    program: &Path,
    start: Start<'_>,
    downloads: &Path,
    deadline: Deadline,
) -> Result<Driven<World>, BrowserError> {
    let mut words = arguments::arguments(start);
    words.push("--remote-debugging-pipe".into());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", BECOME]).arg(program).args(&words);
    let (process, from_it, to_it) = BrowserProcess::start(program, command, start.profile)?;
    let connection = Connection::new(from_it, to_it, World::new(*start.limits), downloads.to_owned());
    let driven = Driven::new(connection, Arc::new(process));
    greet(&driven.connection, deadline).map_err(|error| did_not_start(&driven.process, program, &error))?;
    Ok(driven.watched(start.profile))
}

/// The first calls: attach to new pages before they run, and set the download folder.
fn greet(connection: &Connection<World>, deadline: Deadline) -> Result<(), BrowserError> {
    let call = |method, params: Value| connection.call(None, method, params, "start", deadline);
    call("Browser.getVersion", json!({}))?;
    let downloads = connection.downloads_folder().to_string_lossy();
    let behaviour = json!({"behavior": "allowAndName", "downloadPath": downloads, "eventsEnabled": true});
    call("Browser.setDownloadBehavior", behaviour)?;
    call("Target.setAutoAttach", json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})).map(drop)
}

fn did_not_start(process: &BrowserProcess, program: &Path, error: &BrowserError) -> BrowserError {
    BrowserError::Start { program: program.to_owned(), why: process.why_silent(error) }
}

impl Drive for World {
    const KIND: EngineKind = EngineKind::Pipe;

    fn open_page(connection: &Connection<Self>, deadline: Deadline) -> Result<String, BrowserError> {
        let params = json!({"url": "about:blank"});
        let answer = connection.call(None, "Target.createTarget", params, "open a page", deadline)?;
        let target = answer["targetId"].as_str().unwrap_or_default().to_owned();
        let attached = connection
            .wait(deadline, |world| world.pages.get(&target).is_some().then(|| world.pages.claim(&target)))?;
        attached.ok_or_else(|| deadline.timed_out("open a page"))?;
        // Once it answers, it reports its events; before that it could navigate unnoticed.
        Self::page(connection.clone(), target.clone()).evaluate("0", deadline)?;
        Ok(target)
    }

    fn page(connection: Connection<Self>, target: String) -> Arc<dyn EnginePage> {
        Arc::new(PipePage { connection, target })
    }

    fn end(connection: &Connection<Self>, process: &BrowserProcess, deadline: Deadline) -> bool {
        // It may be gone before it answers; only its end counts.
        drop(connection.call(None, "Browser.close", json!({}), "close", deadline));
        process.wait(deadline.left())
    }
}
