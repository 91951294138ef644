//! What the console asks of whoever collects: the owner's actions, and what comes next.
//!
//! The console reads the store and changes nothing in it. Everything that changes something goes through this trait, which
//! `gleaner serve` implements; calls may block, and are made on threads where that hurts nobody.

use gleaner_engine::WallTime;
use gleaner_protocol::RawJson;
use std::fmt;

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// There is no such thing, or no longer.
    NoSuchThing(Why),
    /// It cannot be done as things are.
    NotNow(Why),
    /// What was asked for makes no sense.
    BadWish(Why),
    /// It was tried, and failed.
    Failed(Why),
}

/// What happened, and what to do about it. Never with an answer of the owner's in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// What happened.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

impl Why {
    /// Both.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

/// When a connection runs, as its owner wants it. What is left out is as its manifest recommends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleWish {
    /// `automatic` or `manual`.
    pub mode: Option<String>,
    /// Once in so many seconds.
    pub every_seconds: Option<u64>,
    /// At the times of a cron pattern.
    pub cron: Option<String>,
    /// Hours in which nothing begins, as `22:00-07:00`.
    pub quiet: Option<String>,
    /// Whose hours those are, as `Europe/Berlin`.
    pub zone: Option<String>,
}

/// What a connection does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// When; absent when nothing happens by itself.
    pub at: Option<WallTime>,
    /// What kind of run: `full`, `recovery_only`, `probe` or `catch_up`; absent when nothing happens by itself.
    pub kind: Option<String>,
    /// Why then, or why not, as a stable code.
    pub code: String,
    /// The same for people.
    pub sentence: String,
}

/// An answer of the owner's to a question. It passes through and is kept nowhere.
pub enum OwnerAnswer {
    /// An object with a member per field.
    Given(RawJson<'static>),
    /// The owner does not answer.
    Declined,
}

/// Nothing of what is in it.
impl fmt::Debug for OwnerAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given(_) => "Given",
            Self::Declined => "Declined",
        })
    }
}

/// Whoever collects.
pub trait Actions: Send + Sync + fmt::Debug {
    /// Wants a run as soon as it can be.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or it may not run.
    fn run_now(&self, connection: &str) -> Result<(), NotDone>;

    /// Stops a run after its slice, or at once.
    ///
    /// # Errors
    ///
    /// When it does not go on, or cannot be reached.
    fn cancel(&self, run_id: &str, at_once: bool) -> Result<(), NotDone>;

    /// Answers a question.
    ///
    /// # Errors
    ///
    /// When it does not wait any more.
    fn answer(&self, question: i64, answer: OwnerAnswer) -> Result<(), NotDone>;

    /// Lets a gap be tried again with the next run, also one that was given up.
    ///
    /// # Errors
    ///
    /// When there is no such gap.
    fn retry_gap(&self, connection: &str, gap_id: &str) -> Result<(), NotDone>;

    /// Holds a connection back, or lets it go on.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    fn set_paused(&self, connection: &str, paused: bool) -> Result<(), NotDone>;

    /// Sets when a connection runs.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or the wish makes no sense.
    fn set_schedule(&self, connection: &str, wish: &ScheduleWish) -> Result<(), NotDone>;

    /// When a connection runs, as its owner said.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    fn schedule(&self, connection: &str) -> Result<ScheduleWish, NotDone>;

    /// What a connection does next; nothing when the scheduler does not know it yet.
    fn next(&self, connection: &str) -> Option<NextStep>;
}
