//! The engine that is patchright's: its driver, a node program, starts and drives the Chromium; we speak to the driver,
//! over its input and output, and only the few calls of it that we need.
//!
//! Isolation stays ours. The profile, its lock and the words that the browser is started with are those of the other
//! engine: the driver is told to add none of its own. It speaks to the browser through a pipe, too.
//!
//! Why not a library: see ARCHITECTURE.md.

pub(crate) mod driver;
mod frames;
mod objects;
mod page;
mod value;

use crate::arguments::{self, Start};
use crate::browser::{Cookie, Download};
use crate::connection::Connection;
use crate::engine::{Deadline, Engine, EngineCounts, EngineKind, EnginePage};
use crate::error::BrowserError;
use crate::footprint;
use crate::limits::Limits;
use crate::process::BrowserProcess;
use driver::Driver;
use objects::{LAUNCH, Objects};
use page::PatchrightPage;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a browser may take to end when it is dropped. What it knows is on the disk within a fifth of a second.
const FAREWELL_MAX: Duration = Duration::from_secs(2);
/// How long the driver may take to answer at all. It takes a second; a machine that is busy takes ten times that.
const GREETING_MAX: Duration = Duration::from_secs(20);
/// What makes node or the driver do other things than we think: open a port, load code, write down what is typed.
const UNWANTED: [&str; 7] = ["NODE_", "DEBUG", "PW_", "PWDEBUG", "PWTEST", "PLAYWRIGHT_", "SELENIUM_"];
/// The one of them that names certificates, and changes nothing else.
const WANTED: &str = "NODE_EXTRA_CA_CERTS";

/// A browser that is driven through patchright.
#[derive(Debug)]
pub(crate) struct PatchrightEngine {
    connection: Connection<Objects>,
    process: Arc<BrowserProcess>,
    context: String,
    downloads: PathBuf,
    limits: Limits,
    /// A page that somebody asks for is not a popup that somebody else may take.
    opening: Mutex<()>,
}

impl PatchrightEngine {
    /// Starts the driver, has it start a browser, and waits until both answer.
    pub(crate) fn start(
        driver: &Driver,
        program: &Path,
        start: Start<'_>,
        downloads: &Path,
        deadline: Deadline,
    ) -> Result<Self, BrowserError> {
        let launched = launch_params(program, start, downloads)?;
        let (process, from_it, to_it) = BrowserProcess::start(&driver.node, command(driver), start.profile)
            // It is the driver that did not start: no reason to think ill of the profile.
            .map_err(|error| unfit(error.to_string()))?;
        let (process, limits) = (Arc::new(process), *start.limits);
        let connection = Connection::new(from_it, to_it, Objects::new(limits), downloads.to_owned());
        // From here on, leaving ends the driver.
        let chromium = greet(&connection, deadline).map_err(|error| does_not_answer(driver, &process, &error))?;
        let context = launch(&connection, &chromium, &launched, deadline)
            .and_then(|context| prepare(&connection, &context, downloads, deadline).map(|()| context))
            .map_err(|error| match process.ended() {
                // A driver that ended in the middle of it says nothing about the profile.
                Some(_) => does_not_answer(driver, &process, &error),
                None => did_not_start(program, &error),
            })?;
        let (watching, watched) = (connection.clone(), Arc::downgrade(&process));
        let profile = start.profile.to_owned();
        thread::spawn(move || footprint::watch(&watching, &watched, &profile, &limits));
        let opening = Mutex::new(());
        Ok(Self { connection, process, context, downloads: downloads.to_owned(), limits, opening })
    }

    fn page(&self, page: String) -> Arc<dyn EnginePage> {
        Arc::new(PatchrightPage { connection: self.connection.clone(), page })
    }
}

impl Engine for PatchrightEngine {
    fn kind(&self) -> EngineKind {
        EngineKind::Patchright
    }

    fn new_page(&self, deadline: Deadline) -> Result<Arc<dyn EnginePage>, BrowserError> {
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let too_many = || BrowserError::TooMany { what: "pages open", max: self.limits.pages_max as u64 };
        if self.connection.look(|objects| objects.is_full()) {
            return Err(too_many());
        }
        let answer = self.connection.call(Some(&self.context), "newPage", json!({}), "open a page", deadline)?;
        let page = answer["page"]["guid"].as_str().unwrap_or_default().to_owned();
        // Another one may have been faster: then this was one too many, and is closed already.
        let is_open = self.connection.look(|objects| {
            objects.claim(&page);
            objects.page(&page).is_some()
        });
        if is_open { Ok(self.page(page)) } else { Err(too_many()) }
    }

    fn take_popups(&self) -> Vec<Arc<dyn EnginePage>> {
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = self.connection.look(Objects::take_unclaimed);
        pages.into_iter().map(|page| self.page(page)).collect()
    }

    fn cookies(&self, deadline: Deadline) -> Result<Vec<Cookie>, BrowserError> {
        let params = json!({"urls": []});
        let answer = self.connection.call(Some(&self.context), "cookies", params, "read its cookies", deadline)?;
        let cookies = answer["cookies"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(cookies.iter().map(Cookie::from_json).collect())
    }

    fn downloads(&self) -> Vec<Download> {
        self.connection.look(|objects| objects.downloads().list(&self.downloads))
    }

    fn counts(&self) -> EngineCounts {
        self.connection.look(|objects| objects.counts())
    }

    fn gone(&self) -> Option<String> {
        self.connection.gone()
    }

    fn close(&self, deadline: Deadline) -> Result<(), BrowserError> {
        let browser = self.connection.look(|objects| objects.browser());
        // The driver may tell that the browser is gone while that is still saving what it knows: whether its process
        // ended is what counts.
        drop(self.connection.call(browser.as_deref(), "close", json!({}), "close", deadline));
        let ended = self.process.wait_for_browser(deadline.left());
        self.connection.set_gone("it was closed");
        self.process.kill();
        if ended { Ok(()) } else { Err(deadline.timed_out("close")) }
    }
}

impl Drop for PatchrightEngine {
    fn drop(&mut self) {
        // A browser that was closed is gone already. One that was not is given the time to save what it knows.
        if self.connection.gone().is_none() {
            drop(self.close(Deadline::after(FAREWELL_MAX)));
        }
        self.process.kill();
    }
}

/// How the driver is started: so that nothing of our surroundings opens a port in it, or makes it write down what it hears.
fn command(driver: &Driver) -> Command {
    let mut command = Command::new(&driver.node);
    // A signal would open a port for debugging otherwise.
    command.arg("--disable-sigusr1").arg(&driver.script).arg("run-driver");
    for (name, _) in std::env::vars_os() {
        let is_unwanted = |name: &str| name != WANTED && UNWANTED.iter().any(|unwanted| name.starts_with(unwanted));
        if name.to_str().is_some_and(is_unwanted) {
            command.env_remove(name);
        }
    }
    // Its texts are made well formed for those whose language insists on it, as ours does.
    command.env("PW_LANG_NAME", "gleaner");
    command
}

/// The first words. What can start a Chromium is the answer.
fn greet(connection: &Connection<Objects>, deadline: Deadline) -> Result<String, BrowserError> {
    let deadline = Deadline::after(deadline.left().min(GREETING_MAX));
    let params = json!({"sdkLanguage": "python"});
    connection.call(None, "initialize", params, "start its driver", deadline)?;
    connection.look(|objects| objects.chromium()).ok_or_else(|| BrowserError::Protocol {
        method: "initialize".to_owned(),
        why: "the driver has no Chromium".to_owned(),
    })
}

/// What the driver is told about the browser. It speaks JSON, which has no other texts than Unicode.
fn launch_params(program: &Path, start: Start<'_>, downloads: &Path) -> Result<Value, BrowserError> {
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| BrowserError::Driver {
            why: format!("{} is not written in UTF-8", path.display()),
            remedy: "set PDPP_BROWSER_ENGINE to pipe, or use another path".to_owned(),
        })
    };
    let mut words = arguments::arguments(start);
    words.push("--remote-debugging-pipe".into());
    // What patchright itself adds so that pages find no driven browser.
    words.push("--disable-blink-features=AutomationControlled".into());
    let words = words.iter().map(|word| text(Path::new(word))).collect::<Result<Vec<_>, _>>()?;
    let downloads = text(downloads)?;
    Ok(json!({
        "executablePath": text(program)?, "userDataDir": text(start.profile)?,
        "args": words, "ignoreAllDefaultArgs": true,
        "headless": !start.has_window, "noDefaultViewport": true,
        // Otherwise it makes a folder elsewhere, and may leave it behind. We look after downloads ourselves.
        "artifactsDir": downloads, "downloadsPath": downloads, "acceptDownloads": "internal-browser-default",
        "handleSIGINT": false, "handleSIGTERM": false, "handleSIGHUP": false,
    }))
}

fn launch(
    connection: &Connection<Objects>,
    chromium: &str,
    params: &Value,
    deadline: Deadline,
) -> Result<String, BrowserError> {
    let answer = connection.call(Some(chromium), LAUNCH, params.clone(), "start", deadline)?;
    let context = answer["context"]["guid"].as_str().map(str::to_owned);
    let missing = || BrowserError::Protocol { method: LAUNCH.to_owned(), why: "there is no context".to_owned() };
    context.ok_or_else(missing)
}

/// Before any page: dialogs are ours to answer, and where downloads go.
fn prepare(
    connection: &Connection<Objects>,
    context: &str,
    downloads: &Path,
    deadline: Deadline,
) -> Result<(), BrowserError> {
    let call = |to: &str, method, params: Value| connection.call(Some(to), method, params, "start", deadline);
    call(context, "updateSubscription", json!({"event": "dialog", "enabled": true}))?;
    let browser = connection.look(|objects| objects.browser()).unwrap_or_default();
    let answer = call(&browser, "newBrowserCDPSession", json!({}))?;
    let session = answer["session"]["guid"].as_str().unwrap_or_default().to_owned();
    let behaviour =
        json!({"behavior": "allowAndName", "downloadPath": downloads.to_string_lossy(), "eventsEnabled": true});
    call(&session, "send", json!({"method": "Browser.setDownloadBehavior", "params": behaviour})).map(drop)
}

fn does_not_answer(driver: &Driver, process: &BrowserProcess, error: &BrowserError) -> BrowserError {
    // A process that has ended says more than the pipe that was closed with it.
    process.wait(Duration::from_millis(200));
    let why = process.ended().unwrap_or_else(|| error.to_string());
    let said = process.last_words();
    let said = if said.is_empty() { said } else { format!("; it said: {said}") };
    unfit(format!("{} (version {}) does not answer: {why}{said}", driver.script.display(), driver.version))
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
