//! What only the whole program can do, as console and API ask for it: which connectors there are, whether one works, and
//! how the machine is.
//!
//! The service itself knows neither connectors nor vaults. Whoever has them implements this once, over the functions of
//! its own commands. A command never comes in here: a connector is one of the program's, or one whose manifest its owner
//! has put into the data root.

use std::collections::BTreeMap;
use std::fmt;

/// A connector that can be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What it is called.
    pub connector: String,
    /// What identifies it everywhere.
    pub connector_id: String,
    /// Its name for people.
    pub display_name: String,
    /// Its version.
    pub version: String,
    /// What it needs, in words.
    pub needs: String,
    /// Whether it comes with the program.
    pub is_ours: bool,
    /// What it collects.
    pub streams: Vec<String>,
    /// What can be set.
    pub settings: Vec<OfferedField>,
    /// What it signs in with.
    pub credentials: Vec<OfferedField>,
}

/// Something to fill in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedField {
    /// Its name, as it comes back.
    pub name: String,
    /// What stands before it, if its author says so.
    pub label: Option<String>,
    /// What it is for.
    pub description: Option<String>,
}

/// A manifest that is there and cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotOffered {
    /// Where it is.
    pub file: String,
    /// Why.
    pub what: String,
}

/// A connection as its owner wants it.
#[derive(Clone, Default)]
pub struct Wish {
    /// The connector.
    pub connector: String,
    /// What the connection is called; nothing is the connector's own name.
    pub name: String,
    /// Values of settings, by name. What is empty is not set.
    pub settings: BTreeMap<String, String>,
    /// Secrets, by name. They go into the vault and to the connector, and nowhere else.
    pub credentials: BTreeMap<String, String>,
}

/// Without the secrets.
impl fmt::Debug for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wish").field("connector", &self.connector).field("name", &self.name).finish_non_exhaustive()
    }
}

/// What one cheap call to a service showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its service answered.
    Works,
    /// Its service did not accept the credentials.
    Refused(String),
    /// Some credentials are not there.
    Missing(String),
    /// Its service did not answer, or not with what was asked for.
    Trouble(String),
    /// The connector does not keep to the protocol, or gave up.
    Broken(String),
}

impl Verdict {
    /// For programs.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Refused(_) => "credentials_refused",
            Self::Missing(_) => "credentials_missing",
            Self::Trouble(_) => "service_trouble",
            Self::Broken(_) => "connector_broken",
        }
    }

    /// More than the word says.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Works => None,
            Self::Refused(detail) | Self::Missing(detail) | Self::Trouble(detail) | Self::Broken(detail) => {
                Some(detail)
            }
        }
    }

    /// What was found, in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Works => "It works: the service answered.".to_owned(),
            Self::Refused(detail) => format!("The service did not accept the credentials: {detail}."),
            Self::Missing(detail) => format!("It cannot sign in by itself: {detail}."),
            Self::Trouble(detail) => format!("The service gave no answer that tells: {detail}."),
            Self::Broken(detail) => format!("The connector does not work like this: {detail}."),
        }
    }

    /// What to do next.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Works => "Add it; its first run begins by itself or when you say so.",
            Self::Refused(_) => {
                "See whether they are complete and still hold, make new ones at the service if need be, and try again."
            }
            Self::Missing(_) => {
                "Fill in what is missing. What there is no field for is asked for in the inbox, when it runs."
            }
            Self::Trouble(_) => "See whether the address is right and the service is up, and try again later.",
            Self::Broken(_) => "See whether what you filled in is right; if it is, ask the connector's author.",
        }
    }
}

/// How something that was looked at is, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckVerdict {
    /// As it should be.
    Well,
    /// It works, and should be looked at.
    Warning,
    /// It does not work.
    Failed,
}

impl CheckVerdict {
    /// For programs and people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it is.
    pub name: &'static str,
    /// How it is.
    pub verdict: CheckVerdict,
    /// What was seen.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SetupError {
    /// Of which kind it is.
    pub kind: SetupErrorKind,
    /// What happened.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

/// Kinds of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupErrorKind {
    /// There is no such connector.
    NotThere,
    /// What was filled in makes no sense.
    Wrong,
    /// It cannot be done as things are.
    NotNow,
    /// The machine said no.
    Failed,
}

/// What the program can do beyond [`Actions`](crate::Actions). A method may take as long as a connector's first answer.
pub trait Setup: Send + Sync {
    /// The connectors that can be added, by name, and what is there and cannot.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    fn offers(&self) -> Result<(Vec<Offer>, Vec<NotOffered>), SetupError>;

    /// Tries a connection with one request. Nothing is kept.
    ///
    /// # Errors
    ///
    /// When there is nothing to try.
    fn check(&self, wish: &Wish) -> Result<Verdict, SetupError>;

    /// Adds a connection, and answers what it is called. It is not tried here.
    ///
    /// # Errors
    ///
    /// When there is one of this name, or it cannot be one.
    fn add(&self, wish: &Wish) -> Result<String, SetupError>;

    /// Looks at everything that a run depends on. Changes nothing.
    ///
    /// # Errors
    ///
    /// When nothing can be looked at.
    fn examine(&self) -> Result<Vec<Check>, SetupError>;
}
