//! The thread of the run during a sign-in: checkpoints in, questions out, and an end in any case.
//!
//! Why not a timer beside the sign-in: only one thread may decide to give up and send the last message. So the flow
//! is on the other thread, where it may hang, and the run is here, where every wait has a timeout.

use super::capture::Captures;
use super::flow::{FlowMessage, SessionFlow};
use super::run_folder::RunFolder;
use super::watchdog::{Look, Phase, Watchdog, watchdog_limit};
use crate::{Browser, BrowserError, Page};
use gleaner_sdk::protocol::RecoveryAction;
use gleaner_sdk::{Collect, Failure, Stop};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Timeout for opening the first page.
const PAGE_WITHIN: Duration = Duration::from_secs(15);
/// Timeout for a normal close, which saves the session.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// Capacity of the channel from the flow. A flow awaits an answer to most of its messages.
const UNHEARD_MAX: usize = 16;

/// Settings of a sign-in.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The connector's name: prefix of its error codes.
    name: String,
    /// Longest time without a checkpoint.
    watchdog: Duration,
    /// Whether pages are captured.
    captures: bool,
    /// Folder for files of this run.
    folder: RunFolder,
}

impl SessionOptions {
    /// From the owner's settings: `PDPP_SESSION_ESTABLISH_WATCHDOG_MS`, and `PDPP_SESSION_CAPTURES` with `1`, `true`
    /// or `on`.
    pub fn read(run: &Collect<'_>, browser: &Browser) -> Self {
        let captures = run.setting("PDPP_SESSION_CAPTURES").unwrap_or_default();
        // A profile is two levels below the data root.
        let root = browser.profile().parent().and_then(Path::parent).unwrap_or_else(|| Path::new("."));
        Self {
            name: run.manifest().connector_key.clone(),
            watchdog: watchdog_limit(run.setting("PDPP_SESSION_ESTABLISH_WATCHDOG_MS").as_deref()),
            captures: ["1", "true", "on"].contains(&captures.trim().to_ascii_lowercase().as_str()),
            folder: RunFolder::new(root, run.run_id()),
        }
    }
}

/// Runs `flow` to sign in, and returns the browser with the page and the flow's result. In every other case the
/// browser is gone afterwards.
///
/// # Errors
///
/// The flow's error; `<name>_session_establish_timeout` when it made no progress for too long.
pub fn establish<T, F>(
    run: &mut Collect<'_>,
    browser: Browser,
    options: &SessionOptions,
    flow: F,
) -> Result<(Browser, Page, T), Stop>
where
    T: Send + 'static,
    F: FnOnce(&mut SessionFlow) -> Result<T, Stop> + Send + 'static,
{
    for notice in browser.notices() {
        run.say(notice.to_string())?;
    }
    let page = browser.new_page(PAGE_WITHIN)?;
    let mut watch = Watch::new(run, &page, options);
    let (to_run, heard) = sync_channel(UNHEARD_MAX);
    let seen = (page.clone(), browser.has_window(), options.folder.clone());
    let result = watch.checkpoint(&Phase::new("session_begin")).and_then(|()| {
        let signing_in = start(to_run, seen, flow)?;
        watch.listen(&heard)?;
        signing_in.join().unwrap_or_else(|_| {
            let message = "the connector's sign-in code panicked; see its stderr";
            Err(Stop::for_good(message, RecoveryAction::RetryOnConnectorUpgrade))
        })
    });
    // From here on each call of the flow ends it.
    drop(heard);
    match result {
        Ok(found) => watch.checkpoint(&Phase::new("session_established")).map(|()| (browser, page, found)),
        Err(stop) => {
            watch.finish();
            // An error means that it did not exit normally; it is gone all the same.
            drop(browser.close(CLOSE_WITHIN));
            Err(stop)
        }
    }
}

/// A browser error ends a run.
impl From<BrowserError> for Stop {
    fn from(error: BrowserError) -> Self {
        Self::Failed(Failure {
            message: error.to_string(),
            retryable: true,
            code: Some("browser_failed".to_owned()),
            action: Some(RecoveryAction::RetryByRuntime),
        })
    }
}

/// Starts the flow on its own thread. If it hangs there, the thread ends with the process.
fn start<T, F>(
    to_run: SyncSender<FlowMessage>,
    (page, has_window, folder): (Page, bool, RunFolder),
    flow: F,
) -> Result<JoinHandle<Result<T, Stop>>, Stop>
where
    T: Send + 'static,
    F: FnOnce(&mut SessionFlow) -> Result<T, Stop> + Send + 'static,
{
    let work = move || flow(&mut SessionFlow::new(page, has_window, folder, to_run));
    let started = thread::Builder::new().name("session".to_owned()).spawn(work);
    started.map_err(|error| Stop::failed(format!("no thread could be started to sign in: {error}")))
}

/// State of the run's thread during a sign-in.
struct Watch<'w, 'r> {
    run: &'w mut Collect<'r>,
    page: &'w Page,
    options: &'w SessionOptions,
    captures: Captures,
    watchdog: Watchdog,
}

impl<'w, 'r> Watch<'w, 'r> {
    fn new(run: &'w mut Collect<'r>, page: &'w Page, options: &'w SessionOptions) -> Self {
        let captures = Captures::new(options.folder.clone(), options.captures);
        let watchdog = Watchdog::new(options.watchdog, Phase::new("browser_ready"), Instant::now());
        Self { run, page, options, captures, watchdog }
    }

    /// Listens until the flow ends, or must end.
    fn listen(&mut self, heard: &Receiver<FlowMessage>) -> Result<(), Stop> {
        loop {
            let now = Instant::now();
            let wait = match self.watchdog.look(now) {
                Look::Fine { again } => again.map_or(Duration::MAX, |again| again.saturating_duration_since(now)),
                Look::Tripped { last, idle } => return Err(self.timed_out(&last, idle)),
            };
            match heard.recv_timeout(wait) {
                Ok(FlowMessage::Checkpoint(phase, answer)) => {
                    let result = self.checkpoint(&phase);
                    drop(answer.send(result.clone()));
                    result?;
                }
                Ok(FlowMessage::Ask(question, answer)) => {
                    self.watchdog.interaction_opened();
                    let reply = self.run.ask(&question);
                    self.watchdog.interaction_closed(Instant::now());
                    let values = reply.iter().flat_map(|reply| reply.values()).map(ToOwned::to_owned);
                    self.captures.keep_secret(values);
                    drop(answer.send(reply));
                }
                Ok(FlowMessage::Note(text)) => self.run.say(text)?,
                Ok(FlowMessage::Secrets(secrets)) => {
                    self.captures.keep_secret(secrets.iter().cloned());
                    self.run.mask(secrets);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn checkpoint(&mut self, phase: &Phase) -> Result<(), Stop> {
        self.run.say(format!("session: {}", phase.as_str()))?;
        self.watchdog.checkpoint(phase.clone(), Instant::now());
        self.capture(phase)?;
        self.watchdog.rearm(Instant::now());
        Ok(())
    }

    /// A failed capture is reported, and changes nothing.
    fn capture(&mut self, phase: &Phase) -> Result<(), Stop> {
        self.captures.take(self.page, phase).into_iter().try_for_each(|missed| self.run.say(missed))
    }

    /// The last capture before the browser ends. It has a timeout, and its result does not change how the run ends.
    fn finish(&mut self) {
        let last = Phase::new(&format!("ended_after_{}", self.watchdog.last.as_str()));
        drop(self.capture(&last));
    }

    fn timed_out(&self, last: &Phase, idle: Duration) -> Stop {
        let code = format!("{}_session_establish_timeout", Phase::new(&self.options.name).as_str());
        let (phase, seconds) = (last.as_str(), idle.as_secs_f64());
        Stop::Failed(Failure {
            message: format!(
                "{code}: signing in made no progress for {seconds:.1} s after \"{phase}\", and the browser was ended. \
                 Run again; with PDPP_SESSION_CAPTURES=1 the run's folder shows what the page looked like"
            ),
            retryable: true,
            code: Some(code),
            action: Some(RecoveryAction::RetryByRuntime),
        })
    }
}
