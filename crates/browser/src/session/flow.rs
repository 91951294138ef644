//! Interface for a connector's sign-in code: page, checkpoints, questions to the owner.
//!
//! It runs on its own thread, and all its messages go to the thread of the run. Once that has given up, each of these
//! calls ends the flow.

use super::capture::{again, picture};
use super::page_facts::PageFacts;
use super::run_folder::RunFolder;
use super::watchdog::Phase;
use crate::Page;
use gleaner_sdk::{Question, Reply, Stop};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout of a screenshot for the owner.
const PICTURE_WITHIN: Duration = Duration::from_secs(5);
const SHOW_WITHIN: Duration = Duration::from_secs(2);

/// Messages of a flow to the run.
pub(super) enum FlowMessage {
    Checkpoint(Phase, SyncSender<Result<(), Stop>>),
    Ask(Box<Question>, SyncSender<Result<Reply, Stop>>),
    Note(String),
    Secrets(Vec<String>),
}

/// A sign-in, as a connector's code sees it.
pub struct SessionFlow {
    page: Page,
    has_window: bool,
    folder: RunFolder,
    actions: u32,
    to_run: SyncSender<FlowMessage>,
}

gleaner_base::debug_only!(SessionFlow, |it| has_window = it.has_window);

/// The run has ended without the flow. Nobody reads this.
fn given_up() -> Stop {
    Stop::failed("the run has given up on signing in")
}

impl SessionFlow {
    pub(super) const fn new(page: Page, has_window: bool, folder: RunFolder, to_run: SyncSender<FlowMessage>) -> Self {
        Self { page, has_window, folder, actions: 0, to_run }
    }

    fn say(&self, said: FlowMessage) -> Result<(), Stop> {
        self.to_run.send(said).map_err(|_| given_up())
    }

    /// Sends a message, and waits for the answer.
    fn answer_to<T>(&self, said: impl FnOnce(SyncSender<Result<T, Stop>>) -> FlowMessage) -> Result<T, Stop> {
        let (answer, answered) = sync_channel(1);
        self.say(said(answer))?;
        answered.recv().map_err(|_| given_up())?
    }

    /// The page.
    pub const fn page(&self) -> &Page {
        &self.page
    }

    /// Whether the owner can see and use the browser.
    pub const fn has_window(&self) -> bool {
        self.has_window
    }

    /// Reports a reached phase. Only this counts as progress.
    ///
    /// # Errors
    ///
    /// The run has given up.
    pub fn checkpoint(&self, phase: &str) -> Result<(), Stop> {
        self.answer_to(|answer| FlowMessage::Checkpoint(Phase::new(phase), answer))
    }

    /// Asks the owner. The time of the answer does not count as idle time.
    ///
    /// # Errors
    ///
    /// See [`Collect::ask`](gleaner_sdk::Collect::ask); also when the run has given up.
    pub fn ask(&self, question: Question) -> Result<Reply, Stop> {
        self.answer_to(|answer| FlowMessage::Ask(Box::new(question), answer))
    }

    /// Adds a note for debugging.
    ///
    /// # Errors
    ///
    /// The run has given up.
    pub fn note(&self, text: impl Into<String>) -> Result<(), Stop> {
        self.say(FlowMessage::Note(text.into()))
    }

    /// Masks these from now on, in messages and captures.
    ///
    /// # Errors
    ///
    /// The run has given up.
    pub fn mask(&self, secrets: impl IntoIterator<Item = String>) -> Result<(), Stop> {
        self.say(FlowMessage::Secrets(secrets.into_iter().collect()))
    }

    /// Asks the owner to do something on the page, and waits for the confirmation. The question has the page's
    /// address and title, if they can be read in time; without a window it names a screenshot.
    ///
    /// # Errors
    ///
    /// As [`ask`](Self::ask).
    pub fn act(&mut self, what: &str) -> Result<(), Stop> {
        let facts = PageFacts::read(&self.page);
        for diagnostic in &facts.diagnostics {
            self.note(diagnostic.as_str())?;
        }
        let page = facts.in_words().map(|words| format!(" The page is {words}.")).unwrap_or_default();
        let (place, picture) = if self.has_window { (self.window()?, None) } else { self.picture()? };
        let question = Question::action(format!("{what}{page} {place} Answer when it is done."));
        let question = picture.into_iter().fold(question, Question::shown_in);
        self.ask(question).map(drop)
    }

    fn window(&self) -> Result<String, Stop> {
        if let Err(error) = self.page.show(SHOW_WITHIN) {
            self.note(format!("the page could not be brought to the front: {error}"))?;
        }
        Ok("It is open in the browser window of this connection.".to_owned())
    }

    /// Text about where the page can be seen, and the name of the screenshot.
    fn picture(&mut self) -> Result<(String, Option<String>), Stop> {
        self.actions += 1;
        let name = format!("action-{}.png", self.actions);
        let picture = again(Instant::now() + PICTURE_WITHIN, |within| picture(&self.page, within));
        let kept = picture
            .map_err(|error| error.to_string())
            .and_then(|bytes| self.folder.write(&name, &bytes).map_err(|error| error.to_string()));
        match kept {
            Ok(path) => {
                let words = format!(
                    "There is no window here; {} shows it. To use the page itself, run this connection where there is a display.",
                    path.display()
                );
                Ok((words, Some(name)))
            }
            Err(why) => {
                self.note(format!("there is no picture of the page: {why}"))?;
                Ok(("There is no window here; run this connection where there is a display.".to_owned(), None))
            }
        }
    }

    /// Waits before the next poll.
    pub fn pause(&self, wait: Duration) {
        thread::sleep(wait);
    }
}
