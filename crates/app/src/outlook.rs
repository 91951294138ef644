//! What a connection does next and why, in words and as codes: what `status`, `why`, `schedule`, the API and the console
//! show. Every code has a sentence, and what only the owner can change says how.

use crate::gather::{Asking, Gathered, Manifests, gather};
use gleaner_engine::WallTime;
use gleaner_protocol::TerminalReason;
use gleaner_schedule::{Because, Cadence, Held, HeldBack, Kind, Next, Plan};
use gleaner_store::{HeldBy, Holder, OwnerSchedule, Reader, StoreError};
use std::time::Duration;

/// What a connection does next.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// The connection.
    pub connection: String,
    /// Who works on it, if anybody does: the next run is the one after that.
    pub running: Option<HeldBy>,
    /// The next steady run, or why there is none.
    pub next: Next,
    /// The next part of the history, where some is left.
    pub history: Next,
    /// How it is run.
    pub plan: Plan,
    /// What of that the owner set.
    pub set: OwnerSchedule,
    /// Why what the owner set is not heeded, if it cannot be read.
    pub setting_fault: Option<String>,
}

/// What a connection does next, as far as the store tells.
///
/// # Errors
///
/// When there is no such connection, or the store cannot be read.
pub fn outlook(reader: &Reader, connection: &str, now: WallTime) -> Result<Outlook, StoreError> {
    let ourselves = Holder::current().map_err(StoreError::Holder)?;
    let asking = Asking { now, ourselves: &ourselves, credential: None };
    let gathered = gather(reader, connection, &mut Manifests::default(), asking)?;
    Ok(Outlook::of(&gathered, reader.schedule(connection)?, now))
}

impl Outlook {
    /// What follows from what is known.
    #[must_use]
    pub fn of(gathered: &Gathered, set: OwnerSchedule, now: WallTime) -> Self {
        let facts = &gathered.facts;
        Self {
            connection: facts.connection.clone(),
            running: gathered.holder.clone(),
            next: Next::of(facts, now),
            history: Next::of_history(facts, now),
            plan: facts.plan.clone(),
            set,
            setting_fault: gathered.setting_fault.clone(),
        }
    }

    /// When the next run begins, if one does by itself.
    #[must_use]
    pub const fn at(&self) -> Option<WallTime> {
        match self.next {
            Next::Run { at, .. } => Some(at),
            Next::Held(_) => None,
        }
    }

    /// Why then, or why not, as a code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self.next {
            Next::Run { because, .. } => because_code(because),
            Next::Held(held) => held_code(held),
        }
    }

    /// Why then, or why not, as a sentence.
    #[must_use]
    pub fn why(&self) -> String {
        match self.next {
            Next::Run { because, .. } => because_text(because),
            Next::Held(held) => held_text(held),
        }
    }

    /// What the owner can do about it, where only the owner can.
    #[must_use]
    pub fn what_to_do(&self) -> Option<String> {
        match self.next {
            Next::Run { .. } => None,
            Next::Held(held) => what_to_do(held, &self.connection),
        }
    }

    /// How often it runs by itself, and when not.
    #[must_use]
    pub fn cadence(&self) -> String {
        let often = match &self.plan.cadence {
            Cadence::Every(every) => format!("every {}", span(every.length())),
            Cadence::Cron(pattern) => format!("at {pattern}"),
        };
        let quiet = self.set.quiet.as_ref().map(|hours| format!(", not {hours}")).unwrap_or_default();
        let zone = self.set.zone.as_ref().map(|zone| format!(" ({zone})")).unwrap_or_default();
        format!("{often}{quiet}{zone}")
    }
}

/// What a kind of run is called.
#[must_use]
pub const fn kind_code(kind: Kind) -> &'static str {
    match kind {
        Kind::Full => "full",
        Kind::RecoveryOnly => "recovery_only",
        Kind::Probe => "probe",
        Kind::CatchUp => "catch_up",
    }
}

const fn because_code(because: Because) -> &'static str {
    match because {
        Because::OwnerAsked => "owner_asked",
        Because::First => "first_run",
        Because::Cadence => "cadence",
        Because::Remainder => "remainder",
        Because::CutShort => "cut_short",
        Because::FailedBefore(_) => "failure_back_off",
        Because::MayBeUp(_) => "probe_after_failures",
        Because::Renewed => "renewed",
        Because::BackAgain => "back_again",
        Because::RestOver(_) => "rest_over",
        Because::MayBeBack(_) => "probe_while_resting",
        Because::OtherGaps(_) => "recovery_while_resting",
        Because::QuietHours => "quiet_hours",
        Because::AtWork => "at_work",
        Because::CouldNotStart(_) => "could_not_start",
        Because::History => "history",
    }
}

fn because_text(because: Because) -> String {
    match because {
        Because::OwnerAsked => "you asked for it".to_owned(),
        Because::First => "it has not run yet".to_owned(),
        Because::Cadence => "it is time by then".to_owned(),
        Because::Remainder => "the last run stopped at its own budget and left something".to_owned(),
        Because::CutShort => "the last run was cut short, and is gone on with".to_owned(),
        Because::FailedBefore(times) => format!("it failed the same way {times} times in a row, so it runs less often"),
        Because::MayBeUp(times) => {
            format!("it failed {times} times as it does when a service is down; one request will show whether it is up")
        }
        Because::Renewed => "what made it fail has changed".to_owned(),
        Because::BackAgain => "one request has worked: the service is there again".to_owned(),
        Because::RestOver(why) => format!("its rest is over by then. {}", why.wording().what),
        Because::MayBeBack(why) => format!("one request will show whether its rest can end. {}", why.wording().what),
        Because::OtherGaps(why) => {
            format!("it rests, and gaps that have nothing to do with that are recovered. {}", why.wording().what)
        }
        Because::QuietHours => "it would be time before, but for your quiet hours".to_owned(),
        Because::AtWork => "a run goes on".to_owned(),
        Because::CouldNotStart(times) => format!("it could not be started, {times} times in a row"),
        Because::History => "a part of its history is left".to_owned(),
    }
}

const fn held_code(held: Held) -> &'static str {
    match held {
        Held::Back(HeldBack::Paused) => "paused",
        Held::Back(HeldBack::ManualByOwner) => "manual_by_owner",
        Held::Back(HeldBack::ManualByManifest) => "manual_by_manifest",
        Held::Back(HeldBack::NotSafeInTheBackground) => "not_background_safe",
        Held::Question => "question",
        Held::SignIn => "sign_in",
        Held::Owner(reason) => reason.code(),
        Held::Action(action) => action.code(),
        Held::Blocked(_) => "blocked",
        Held::NothingToDo => "nothing_to_do",
    }
}

fn held_text(held: Held) -> String {
    match held {
        Held::Back(HeldBack::Paused) => "you paused it".to_owned(),
        Held::Back(HeldBack::ManualByOwner) => "you want to start it yourself".to_owned(),
        Held::Back(HeldBack::ManualByManifest) => "its connector does not recommend automatic runs".to_owned(),
        Held::Back(HeldBack::NotSafeInTheBackground) => "its author says that somebody must be there".to_owned(),
        Held::Question => "a question waits for you".to_owned(),
        Held::SignIn => "it runs by itself only while your sign-in lasts".to_owned(),
        Held::Owner(reason) => reason.wording().what.to_owned(),
        Held::Action(action) => action.wording().what.to_owned(),
        Held::Blocked(times) => format!("it failed the same way {times} times in a row, and trying again helps nobody"),
        Held::NothingToDo => "nothing is left to do".to_owned(),
    }
}

fn what_to_do(held: Held, name: &str) -> Option<String> {
    Some(match held {
        Held::Back(HeldBack::Paused) => format!("gleaner resume {name}"),
        Held::Back(HeldBack::ManualByOwner | HeldBack::ManualByManifest) => {
            format!("gleaner run {name}, or gleaner schedule {name} --mode automatic")
        }
        Held::Back(HeldBack::NotSafeInTheBackground) => format!("gleaner run {name}"),
        Held::Question => "gleaner answer".to_owned(),
        Held::SignIn => format!("gleaner run {name}, and sign in"),
        Held::Owner(TerminalReason::CredentialsMissing | TerminalReason::CredentialsRefused) => {
            format!("gleaner check {name} --sign-in")
        }
        Held::Owner(TerminalReason::GrantExpired) => format!("gleaner resume {name} --expires TIME"),
        Held::Owner(_) => format!("gleaner run {name}, when you can answer"),
        Held::Action(action) => format!("{} Then: gleaner run {name}", action.wording().next),
        Held::Blocked(_) => format!("see gleaner why {name}; then gleaner run {name}, or update the connector"),
        Held::NothingToDo => return None,
    })
}

/// `90 min`, `6 h`, `2 days`: exact, because it is what somebody set.
fn span(length: Duration) -> String {
    let seconds = length.as_secs();
    let units = [(86_400, "days"), (3600, "h"), (60, "min")];
    let whole = units.into_iter().find(|(unit, _)| seconds >= *unit && seconds.is_multiple_of(*unit));
    match whole {
        Some((86_400, _)) if seconds == 86_400 => "day".to_owned(),
        Some((unit, name)) => format!("{} {name}", seconds / unit),
        None => format!("{seconds} s"),
    }
}
