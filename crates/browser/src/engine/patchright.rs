//! The patchright engine: its driver, a Node program, starts and drives Chromium; we use the few calls of the driver
//! that we need, over its input and output.
//!
//! Isolation stays ours. The profile, its lock and the browser's arguments are those of the other engine: the driver
//! adds none of its own. It also uses a pipe to the browser.
//!
//! Why not a library: see ARCHITECTURE.md.

pub(crate) mod driver;
mod frames;
mod objects;
mod page;
mod value;

use crate::engine::connection::Connection;
use crate::engine::driven::{Drive, Driven};
use crate::engine::{Deadline, EngineKind, EnginePage};
use crate::error::BrowserError;
use crate::process::BrowserProcess;
use crate::process::arguments::{self, Start};
use driver::Driver;
use objects::{LAUNCH, Objects};
use page::PatchrightPage;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Timeout for the driver's first answer. It takes a second; a busy machine takes ten times that.
const GREETING_MAX: Duration = Duration::from_secs(20);
/// Variables that change node or the driver: open a port, load code, log typed text.
const UNWANTED: [&str; 7] = ["NODE_", "DEBUG", "PW_", "PWDEBUG", "PWTEST", "PLAYWRIGHT_", "SELENIUM_"];
/// The one of them that only names certificates.
const WANTED: &str = "NODE_EXTRA_CA_CERTS";

/// Starts the driver and a browser, and waits until both answer.
pub(crate) fn start(
    driver: &Driver,
    program: &Path,
    start: Start<'_>,
    downloads: &Path,
    deadline: Deadline,
) -> Result<Driven<Objects>, BrowserError> {
    let launched = launch_params(program, start, downloads)?;
    let (process, from_it, to_it) = BrowserProcess::start(&driver.node, command(driver), start.profile)
        // The driver failed to start: the profile is not the cause.
        .map_err(|error| unfit(error.to_string()))?;
    let process = Arc::new(process);
    let connection = Connection::new(from_it, to_it, Objects::new(*start.limits), downloads.to_owned());
    // From here on an early return ends the driver.
    let chromium = greet(&connection, deadline).map_err(|error| does_not_answer(driver, &process, &error))?;
    launch(&connection, &chromium, launched, deadline).and_then(|()| prepare(&connection, deadline)).map_err(
        |error| match process.ended() {
            // A driver that ended during the start says nothing about the profile.
            Some(_) => does_not_answer(driver, &process, &error),
            None => did_not_start(program, &error),
        },
    )?;
    Ok(Driven::new(connection, process).watched(start.profile))
}

impl Drive for Objects {
    const KIND: EngineKind = EngineKind::Patchright;

    fn open_page(connection: &Connection<Self>, deadline: Deadline) -> Result<String, BrowserError> {
        let answer = call_context(connection, "newPage", json!({}), "open a page", deadline)?;
        let page = answer["page"]["guid"].as_str().unwrap_or_default().to_owned();
        // Another page may have been faster: then this one exceeded the limit and is closed already.
        connection.look(|objects| {
            let is_open = objects.pages.claim(&page);
            if is_open { Ok(()) } else { Err(objects.pages.too_many()) }
        })?;
        Ok(page)
    }

    fn page(connection: Connection<Self>, page: String) -> Arc<dyn EnginePage> {
        Arc::new(PatchrightPage { connection, page })
    }

    fn end(connection: &Connection<Self>, process: &BrowserProcess, deadline: Deadline) -> bool {
        let browser = connection.look(|objects| objects.browser.clone());
        // The driver may report the browser as gone while it still saves its state: only the end of its process
        // counts.
        drop(connection.call(browser.as_deref(), "close", json!({}), "close", deadline));
        process.wait_for_browser(deadline.left())
    }
}

/// Calls the browser context, which holds all pages and cookies.
fn call_context(
    connection: &Connection<Objects>,
    method: &'static str,
    params: Value,
    what: &'static str,
    deadline: Deadline,
) -> Result<Value, BrowserError> {
    let context = connection.look(|objects| objects.context.clone());
    connection.call(Some(&context), method, params, what, deadline)
}

/// Command of the driver: nothing of our environment may open a port in it, or make it log what it hears.
fn command(driver: &Driver) -> Command {
    let mut command = Command::new(&driver.node);
    // Otherwise a signal would open a debugging port.
    command.arg("--disable-sigusr1").arg(&driver.script).arg("run-driver");
    for (name, _) in std::env::vars_os() {
        let is_unwanted = |name: &str| name != WANTED && UNWANTED.iter().any(|unwanted| name.starts_with(unwanted));
        if name.to_str().is_some_and(is_unwanted) {
            command.env_remove(name);
        }
    }
    // Makes the driver send well-formed texts, which our parser requires.
    command.env("PW_LANG_NAME", "gleaner");
    command
}

/// The first call. Returns the id of the object that starts Chromium.
fn greet(connection: &Connection<Objects>, deadline: Deadline) -> Result<String, BrowserError> {
    let deadline = Deadline::after(deadline.left().min(GREETING_MAX));
    let params = json!({"sdkLanguage": "python"});
    connection.call(None, "initialize", params, "start its driver", deadline)?;
    let chromium = connection.look(|objects| objects.chromium.clone());
    chromium.ok_or_else(|| BrowserError::protocol("initialize", "the driver has no Chromium"))
}

/// Launch parameters. JSON allows only Unicode texts.
fn launch_params(program: &Path, start: Start<'_>, downloads: &Path) -> Result<Value, BrowserError> {
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| BrowserError::Driver {
            why: format!("{} is not written in UTF-8", path.display()),
            remedy: "set PDPP_BROWSER_ENGINE to pipe, or use another path".to_owned(),
        })
    };
    let mut words = arguments::arguments(start);
    words.push("--remote-debugging-pipe".into());
    // Patchright itself adds this, so that pages do not detect automation.
    words.push("--disable-blink-features=AutomationControlled".into());
    let words = words.iter().map(|word| text(Path::new(word))).collect::<Result<Vec<_>, _>>()?;
    let downloads = text(downloads)?;
    Ok(json!({
        "executablePath": text(program)?, "userDataDir": text(start.profile)?,
        "args": words, "ignoreAllDefaultArgs": true,
        "headless": !start.has_window, "noDefaultViewport": true,
        // Otherwise it creates a folder elsewhere, and may leave it behind. We handle downloads ourselves.
        "artifactsDir": downloads, "downloadsPath": downloads, "acceptDownloads": "internal-browser-default",
        "handleSIGINT": false, "handleSIGTERM": false, "handleSIGHUP": false,
    }))
}

fn launch(
    connection: &Connection<Objects>,
    chromium: &str,
    params: Value,
    deadline: Deadline,
) -> Result<(), BrowserError> {
    let answer = connection.call(Some(chromium), LAUNCH, params, "start", deadline)?;
    let context = answer["context"]["guid"].as_str();
    let context = context.ok_or_else(|| BrowserError::protocol(LAUNCH, "there is no context"))?;
    connection.look(|objects| context.clone_into(&mut objects.context));
    Ok(())
}

/// Before any page: takes over dialogs and the download folder.
fn prepare(connection: &Connection<Objects>, deadline: Deadline) -> Result<(), BrowserError> {
    let call = |to: &str, method, params: Value| connection.call(Some(to), method, params, "start", deadline);
    call_context(connection, "updateSubscription", json!({"event": "dialog", "enabled": true}), "start", deadline)?;
    let browser = connection.look(|objects| objects.browser.clone()).unwrap_or_default();
    let answer = call(&browser, "newBrowserCDPSession", json!({}))?;
    let session = answer["session"]["guid"].as_str().unwrap_or_default().to_owned();
    let downloads = connection.downloads_folder().to_string_lossy();
    let behaviour = json!({"behavior": "allowAndName", "downloadPath": downloads, "eventsEnabled": true});
    call(&session, "send", json!({"method": "Browser.setDownloadBehavior", "params": behaviour})).map(drop)
}

fn does_not_answer(driver: &Driver, process: &BrowserProcess, error: &BrowserError) -> BrowserError {
    let (script, version, why) = (driver.script.display(), &driver.version, process.why_silent(error));
    unfit(format!("{script} (version {version}) does not answer: {why}"))
}

fn unfit(why: String) -> BrowserError {
    BrowserError::Driver { why, remedy: format!("install it anew, or set {} to another one", driver::VARIABLE) }
}

fn did_not_start(program: &Path, error: &BrowserError) -> BrowserError {
    let why = match error {
        BrowserError::Protocol { why, .. } => why.clone(),
        error => error.to_string(),
    };
    BrowserError::Start { program: program.to_owned(), why }
}
