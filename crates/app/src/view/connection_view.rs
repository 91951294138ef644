//! Everything that is known about one connection, gathered in one place: `status`, `why`, the pages, the API and the
//! scheduler all read a [`ConnectionView`].
//!
//! A run whose process is gone has no end in the store until the next one begins; here it counts as interrupted from the
//! moment at which nobody holds its lease, and its question waits for nobody.

use super::facts;
use super::outlook::Outlook;
use crate::actions::schedule_change;
use crate::app::ourselves;
use crate::dates;
use gleaner_engine::{Cooldown, Health, Rest, WallTime};
use gleaner_protocol::{Assistance, Manifest, ManifestOrigin, Waiting};
use gleaner_schedule::Facts;
use gleaner_store::{
    ConnectionState, Evidence, HeldBy, Holder, LeaseOn, LeaseStanding, OpenQuestion, OwnerSchedule, Reader, StoreError,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One look at a store: what is the same for every connection in it.
#[derive(Debug)]
pub struct Look {
    pub now: WallTime,
    /// The questions whose run still waits, the oldest first.
    pub waiting: Vec<OpenQuestion>,
    ourselves: Holder,
    /// Manifests that were read before: they are long, and seldom change.
    manifests: BTreeMap<String, (String, Option<Arc<Manifest>>)>,
    /// Keyed hashes of credentials as they are now, where somebody has looked: finding one may ask a password manager.
    pub credentials: BTreeMap<String, String>,
}

impl Look {
    /// A look now.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn new(reader: &Reader) -> Result<Self, StoreError> {
        Self::at(reader, dates::now())
    }

    /// A look at another time.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn at(reader: &Reader, now: WallTime) -> Result<Self, StoreError> {
        let (manifests, credentials) = (BTreeMap::new(), BTreeMap::new());
        let mut look = Self { now, waiting: Vec::new(), ourselves: ourselves()?, manifests, credentials };
        look.again(reader, now)?;
        Ok(look)
    }

    /// Looks again, with what was read before.
    pub(crate) fn again(&mut self, reader: &Reader, now: WallTime) -> Result<(), StoreError> {
        self.now = now;
        let waiting = reader.waiting_questions(&self.ourselves, now)?;
        self.waiting = waiting.into_iter().map(|(question, _)| question).collect();
        Ok(())
    }

    /// Every connection that is collected; one that is paused is, too.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn views(&mut self, reader: &Reader) -> Result<Vec<ConnectionView>, StoreError> {
        let known = reader.connections()?.into_iter().filter(|known| is_collected(known.state));
        known.map(|known| ConnectionView::load(reader, self, &known.name)).collect()
    }

    /// Whether a process works on a connection.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn is_running(&self, reader: &Reader, name: &str) -> Result<bool, StoreError> {
        Ok(reader.held_by(LeaseOn::Connection(name), &self.ourselves, self.now)?.is_some())
    }

    /// The service of this data root, if one runs.
    pub(crate) fn serving(&self, reader: &Reader) -> Result<Option<HeldBy>, StoreError> {
        reader.held_by(LeaseOn::Serve, &self.ourselves, self.now)
    }

    /// All leases of the store.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn leases(&self, reader: &Reader) -> Result<Vec<LeaseStanding>, StoreError> {
        reader.leases(&self.ourselves, self.now)
    }

    /// Forgets connections that are no longer there.
    pub(crate) fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.manifests.retain(|name, _| is_there(name));
        self.credentials.retain(|name, _| is_there(name));
    }

    pub(super) fn manifest(&mut self, name: &str, text: String) -> Option<Arc<Manifest>> {
        match self.manifests.get(name) {
            Some((known, manifest)) if *known == text => manifest.clone(),
            _ => {
                let manifest = Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).ok().map(Arc::new);
                self.manifests.insert(name.to_owned(), (text, manifest.clone()));
                manifest
            }
        }
    }
}

/// Whether a connection is collected, or will be when its owner resumes it.
#[must_use]
pub const fn is_collected(state: ConnectionState) -> bool {
    matches!(state, ConnectionState::Active | ConnectionState::Paused)
}

/// What is known about one connection.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// When it was looked at.
    pub now: WallTime,
    pub evidence: Evidence,
    /// Its connector; absent where the stored manifest is no longer accepted.
    pub manifest: Option<Arc<Manifest>>,
    /// Absent where there is no manifest, or the connection is no longer collected.
    pub health: Option<Health>,
    /// Its cooldown.
    pub rest: Rest,
    /// The process that works on it.
    pub holder: Option<HeldBy>,
    /// What its run waits for its owner to answer.
    pub questions: Vec<OpenQuestion>,
    /// What its connector asks for that blocks nothing.
    pub help: Vec<Assistance>,
    /// What its schedule is decided by.
    pub facts: Facts,
    /// What of its schedule the owner set.
    pub set: OwnerSchedule,
    /// Why what the owner set could not be read, if it could not.
    pub setting_fault: Option<String>,
}

impl ConnectionView {
    /// Gathers it.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or the store cannot be read.
    pub fn load(reader: &Reader, look: &mut Look, name: &str) -> Result<Self, StoreError> {
        let now = look.now;
        let mut evidence = reader.evidence(name)?;
        let manifest = look.manifest(name, reader.manifest_text(name)?);
        let holder = reader.held_by(LeaseOn::Connection(name), &look.ourselves, now)?;
        // The lease of this moment counts: what asked may have ended since the questions were read.
        let asked_here = |question: &&OpenQuestion| holder.is_some() && question.connection == name;
        let questions = look.waiting.iter().filter(asked_here).cloned().collect::<Vec<_>>();
        evidence.summary.question_open = !questions.is_empty();
        let set = reader.schedule(name)?;
        let wish = schedule_change::wish(&set, evidence.summary.state);
        let setting_fault = wish.as_ref().err().map(ToString::to_string);
        let plan = facts::plan_of(manifest.as_deref(), &wish.unwrap_or_default(), evidence.summary.state);
        let policy = facts::cooldown_policy(manifest.as_deref(), &plan, now);
        let known = facts::Known {
            now,
            evidence: &evidence,
            manifest: manifest.as_deref(),
            holder: holder.as_ref(),
            credential: look.credentials.get(name).map(String::as_str),
        };
        let facts = facts::facts(reader, name, &known, plan, policy)?;
        let collected = manifest.as_ref().filter(|_| is_collected(evidence.summary.state));
        Ok(Self {
            now,
            health: collected.map(|manifest| evidence.health(manifest, policy, now)),
            rest: Cooldown::answer(evidence.cooldown.as_ref(), now, policy),
            help: reader.open_help(name, now)?,
            evidence,
            manifest,
            holder,
            questions,
            facts,
            set,
            setting_fault,
        })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.evidence.summary.name
    }

    /// What its run waits for now. A run whose process is gone waits for nothing.
    #[must_use]
    pub fn waits(&self) -> Option<(&Waiting, WallTime)> {
        self.evidence.waiting_at(self.now).filter(|_| self.holder.is_some())
    }

    /// What it does next, and why.
    #[must_use]
    pub fn outlook(&self) -> Outlook {
        Outlook::of(self)
    }
}
