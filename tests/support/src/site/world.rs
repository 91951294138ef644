//! State of the site: its owner, sessions, limit, and requests.

use super::bucket::{Bucket, Limit};
use super::history::History;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The one who has an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The name to sign in with.
    pub email: String,
    /// The password.
    pub password: String,
    /// The one-time code, if the site asks for one.
    pub code: Option<String>,
}

/// One request, as the site saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When, from the start of the site.
    pub at: Duration,
    /// The method.
    pub method: String,
    /// The path, without its query.
    pub path: String,
    /// The query and the body as they came.
    pub query: Vec<(String, String)>,
    /// The session that asked, if any.
    pub session: Option<String>,
    /// The answer.
    pub status: u16,
}

/// State of the site, which tests may change at any time.
#[derive(Clone, Debug)]
pub struct World {
    /// Users who may sign in.
    pub owner: Owner,
    /// Whether a challenge comes after the sign-in.
    pub has_challenge: bool,
    /// Challenges that a person has passed; a page that waits goes on by itself.
    pub is_challenge_passed: bool,
    /// Conversations.
    pub history: History,
    /// Most items on a page of the list.
    pub page_max: usize,
    /// After so many requests to the API every session and token ends, once.
    pub expires_after: Option<u64>,
    /// After so many requests to the API the tokens end, once; sessions do not.
    pub tokens_expire_after: Option<u64>,
    /// Details that are listed and answered with 404.
    pub lost: BTreeSet<String>,
    /// Details that are refused for pressure, so many times each, with a second to wait.
    pub refused: BTreeMap<String, u32>,
    /// After so many requests to the list the two newest conversations are deleted, once.
    pub deletes_after_lists: Option<u64>,
    /// The sign-in page whose button does nothing.
    pub is_stalled: bool,
    /// A caller that asks a page of the challenge for its title never gets an answer from its renderer.
    pub is_title_wedged: bool,
    /// How long every page takes to come.
    pub delay: Duration,
    /// The page after the sign-in wedges its renderer.
    pub wedges_after_sign_in: bool,
    /// How long after it was shown the page after the sign-in wedges its renderer.
    pub wedges_later: Option<Duration>,
    /// Every other request of the page after the sign-in leaves it so much later than it was made.
    pub sends_late: Option<Duration>,
    /// How many dialogs, downloads and popups the page after the sign-in opens, one after the other.
    pub storm: Option<u32>,
    /// Everything that was asked.
    pub asked: Vec<Asked>,
    /// Internal state of the site.
    pub books: Books,
}

/// Internal state of the site.
#[derive(Clone, Debug, Default)]
pub struct Books {
    pub(crate) bucket: Option<Bucket>,
    pub(crate) sessions: BTreeMap<String, Step>,
    pub(crate) tokens: BTreeSet<String>,
    pub(crate) named: u64,
    pub(crate) api_requests: u64,
    pub(crate) list_requests: u64,
}

/// How far somebody is with signing in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Password,
    Code,
    Challenge,
    SignedIn,
}

impl Default for World {
    fn default() -> Self {
        let owner = Owner { email: "ada@site.example".into(), password: "correct horse battery".into(), code: None };
        Self {
            owner,
            has_challenge: false,
            is_challenge_passed: false,
            history: History::default(),
            page_max: 100,
            expires_after: None,
            tokens_expire_after: None,
            lost: BTreeSet::new(),
            refused: BTreeMap::new(),
            deletes_after_lists: None,
            is_stalled: false,
            is_title_wedged: false,
            delay: Duration::ZERO,
            wedges_after_sign_in: false,
            wedges_later: None,
            sends_late: None,
            storm: None,
            asked: Vec::new(),
            books: Books::default(),
        }
    }
}

impl World {
    /// A site with so many conversations.
    #[must_use]
    pub fn with(conversations: usize) -> Self {
        Self { history: History::of(conversations), ..Self::default() }
    }

    /// The same behind a limit.
    #[must_use]
    pub fn limited(mut self, limit: Limit) -> Self {
        self.books.bucket = Some(Bucket::new(limit));
        self
    }

    /// The same, asking for a one-time code.
    #[must_use]
    pub fn with_code(mut self, code: &str) -> Self {
        self.owner.code = Some(code.to_owned());
        self
    }

    /// Ends every session and token.
    pub fn expire_sessions(&mut self) {
        self.books.sessions.clear();
        self.books.tokens.clear();
    }

    /// How many sessions are signed in.
    #[must_use]
    pub fn sessions_signed_in(&self) -> usize {
        self.books.sessions.values().filter(|step| **step == Step::SignedIn).count()
    }

    /// A name that was not there before.
    pub(crate) fn name(&mut self, kind: &str) -> String {
        self.books.named += 1;
        format!("{kind}-{}", self.books.named)
    }

    /// The step after a passed one.
    pub(crate) fn after(&self, step: Step) -> Step {
        match step {
            Step::Password if self.owner.code.is_some() => Step::Code,
            Step::Password | Step::Code if self.has_challenge && !self.is_challenge_passed => Step::Challenge,
            Step::Password | Step::Code | Step::Challenge | Step::SignedIn => Step::SignedIn,
        }
    }
}
