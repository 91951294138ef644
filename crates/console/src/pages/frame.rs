//! What all pages have around them: title, navigation, and a line about what was just done.

use super::{assets, words};
use askama::filters::Safe;
use gleaner_app::{Look, dates};
use gleaner_engine::WallTime;

/// The parts of the console that the navigation names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Overview,
    Gaps,
    Inbox,
    Data,
    Settings,
}

const PARTS: [(Part, &str, &str); 5] = [
    (Part::Overview, "Overview", "/"),
    (Part::Inbox, "Inbox", "/inbox"),
    (Part::Gaps, "Gaps", "/gaps"),
    (Part::Data, "Data", "/data"),
    (Part::Settings, "Settings", "/settings"),
];

/// What is around a page.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) title: String,
    pub(crate) part: Part,
    /// The address of this page, from where its live part is asked for again.
    pub(crate) here: String,
    /// Questions that wait.
    pub(crate) questions: usize,
    /// When the page was made.
    pub(crate) now: WallTime,
    /// What was just done. It went well: otherwise there would be another page.
    pub(crate) notice: Option<&'static str>,
}

impl Frame {
    pub(crate) fn new(title: impl Into<String>, part: Part, here: String, look: &Look) -> Self {
        Self { title: title.into(), part, here, questions: look.waiting.len(), now: look.now, notice: None }
    }

    /// Around a page for which nobody could look into the store.
    pub(crate) fn of_error(title: &str) -> Self {
        let (title, here) = (title.to_owned(), "/".to_owned());
        Self { title, part: Part::Overview, here, questions: 0, now: dates::now(), notice: None }
    }

    /// With a line about what was done, by the code that stands in the address after a form was sent.
    pub(crate) fn after(self, done: Option<&str>) -> Self {
        Self { notice: done.and_then(notice), ..self }
    }

    /// A moment, as far from now as it is.
    pub(crate) fn when(&self, at: WallTime) -> Safe<String> {
        words::when(at, self.now)
    }

    /// How long something still waits.
    pub(crate) fn until(&self, at: WallTime) -> Safe<String> {
        words::until(at, self.now)
    }

    /// When something happens by itself.
    pub(crate) fn due(&self, at: WallTime) -> Safe<String> {
        words::due(at, self.now)
    }

    /// The parts with their names and addresses.
    #[expect(clippy::unused_self, reason = "templates reach it through the frame")]
    pub(crate) fn parts(&self) -> &'static [(Part, &'static str, &'static str)] {
        &PARTS
    }

    #[expect(clippy::unused_self, reason = "templates reach it through the frame")]
    pub(crate) fn asset(&self, name: &str) -> &'static str {
        assets::address_of(name)
    }
}

/// Only known codes say something, so an address cannot put words into our mouth.
fn notice(done: &str) -> Option<&'static str> {
    Some(match done {
        "added" => "Connection added. Its first run starts on schedule, or with “Run now”.",
        "run" => "Run queued.",
        "paused" => "It is paused: no run begins until you let it go on.",
        "resumed" => "Resumed: automatic runs start again.",
        "scheduled" => "The schedule is saved.",
        "cancelled" => "The run was told to stop. What it has stored stays.",
        "retried" => "The gap will be tried again by the next run.",
        "ignored" => "The gap is ignored: it stays on record as missing, and nobody tries it until you take it back.",
        "taken-back" => "The gap is wanted again, and the next run tries it.",
        "answered" => "Your answer was handed to the run. It is stored nowhere.",
        "declined" => "The question was declined. The run was told so.",
        _ => return None,
    })
}
