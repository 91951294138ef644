//! How one connection stands, gathered from the read model: what the list, the page of one and the figures are made of.

use crate::date;
use crate::problem::Problem;
use gleaner_engine::{CooldownPolicy, Health};
use gleaner_protocol::{Manifest, ManifestOrigin};
use gleaner_store::{ConnectionState, Evidence, HeldBy, Holder, LeaseOn, OpenQuestion, Reader, StoreError};

/// One connection.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) evidence: Evidence,
    /// Absent where the stored manifest is no longer valid, or the connection is no longer collected.
    pub(crate) health: Option<Health>,
    pub(crate) manifest: Option<Manifest>,
    /// The process that works on it.
    pub(crate) holder: Option<HeldBy>,
}

/// Who asks, for judging leases; always this process.
pub(crate) fn ourselves() -> Result<Holder, Problem> {
    Holder::current().map_err(|error| StoreError::Holder(error).into())
}

impl Standing {
    /// Gathers it. `waiting` are the questions whose run still waits.
    pub(crate) fn of(reader: &Reader, name: &str, waiting: &[OpenQuestion]) -> Result<Self, Problem> {
        let now = date::now();
        let mut evidence = reader.evidence(name)?;
        // A question of a run that was killed waits for nobody.
        evidence.summary.question_open = waiting.iter().any(|question| question.connection == name);
        let text = reader.manifest_text(name)?;
        let manifest = Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).ok();
        let is_collected = matches!(evidence.summary.state, ConnectionState::Active | ConnectionState::Paused);
        let health = manifest.as_ref().filter(|_| is_collected).map(|manifest| {
            let policy = CooldownPolicy::of(None, manifest.refresh_policy.as_ref());
            evidence.health(manifest, policy, now)
        });
        let holder = reader.held_by(LeaseOn::Connection(name), &ourselves()?, now)?;
        Ok(Self { evidence, health, manifest, holder })
    }
}

/// The questions whose run still waits.
pub(crate) fn waiting(reader: &Reader) -> Result<Vec<OpenQuestion>, Problem> {
    let waiting = reader.waiting_questions(&ourselves()?, date::now())?;
    Ok(waiting.into_iter().map(|(question, _)| question).collect())
}
