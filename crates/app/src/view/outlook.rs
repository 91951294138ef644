//! What a connection does next and why, in words and as codes: what `status`, `why`, `schedule`, the API and the console
//! show. Every code has a sentence, and what only the owner can change says how.

use super::connection_view::ConnectionView;
use gleaner_engine::WallTime;
use gleaner_protocol::TerminalReason;
use gleaner_schedule::{Because, Cadence, Held, HeldBack, Kind, Next, Plan};
use gleaner_store::{HeldBy, OwnerSchedule};
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

impl Outlook {
    pub(super) fn of(view: &ConnectionView) -> Self {
        Self {
            connection: view.name().to_owned(),
            running: view.holder.clone(),
            next: Next::steady(&view.facts, view.now),
            history: Next::history(&view.facts, view.now),
            plan: view.facts.plan.clone(),
            set: view.set.clone(),
            setting_fault: view.setting_fault.clone(),
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

    fn words(&self) -> (&'static str, String) {
        match self.next {
            Next::Run { because, .. } => because_words(because),
            Next::Held(held) => held_words(held),
        }
    }

    /// Why then, or why not, as a code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.words().0
    }

    /// Why then, or why not, as a sentence.
    #[must_use]
    pub fn why(&self) -> String {
        self.words().1
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

/// Why a run begins then, as a code and as a sentence.
fn because_words(because: Because) -> (&'static str, String) {
    let text = |text: &str| text.to_owned();
    match because {
        Because::OwnerAsked => ("owner_asked", text("you asked for it")),
        Because::First => ("first_run", text("it has not run yet")),
        Because::Cadence => ("cadence", text("it is time by then")),
        Because::Remainder => ("remainder", text("the last run stopped at its own budget and left something")),
        Because::CutShort => ("cut_short", text("the last run was interrupted; it will resume")),
        Because::Renewed => ("renewed", text("what made it fail has changed")),
        Because::BackAgain => ("back_again", text("one request has worked: the service is there again")),
        Because::QuietHours => ("quiet_hours", text("it would be time before, but for your quiet hours")),
        Because::AtWork => ("at_work", text("a run is in progress")),
        Because::History => ("history", text("a part of its history is left")),
        Because::FailedBefore(times) => {
            ("failure_back_off", format!("it failed the same way {times} times in a row, so it runs less often"))
        }
        Because::MayBeUp(times) => {
            let outage = format!("it failed {times} times as it does when a service is down");
            ("probe_after_failures", format!("{outage}; one request will show whether it is up"))
        }
        Because::RestOver(why) => ("rest_over", format!("its rest is over by then. {}", why.wording().what)),
        Because::MayBeBack(why) => {
            let what = why.wording().what;
            ("probe_while_resting", format!("one request will show whether its rest can end. {what}"))
        }
        Because::OtherGaps(why) => {
            let text = "it rests, and gaps that have nothing to do with that are recovered";
            ("recovery_while_resting", format!("{text}. {}", why.wording().what))
        }
        Because::CouldNotStart(times) => {
            ("could_not_start", format!("it could not be started, {times} times in a row"))
        }
    }
}

/// Why no run begins, as a code and as a sentence.
fn held_words(held: Held) -> (&'static str, String) {
    let (code, text) = match held {
        Held::Blocked(times) => {
            let text = format!("it failed the same way {times} times in a row, and trying again helps nobody");
            return ("blocked", text);
        }
        Held::Back(HeldBack::Paused) => ("paused", "you paused it"),
        Held::Back(HeldBack::ManualByOwner) => ("manual_by_owner", "you want to start it yourself"),
        Held::Back(HeldBack::ManualByManifest) => {
            ("manual_by_manifest", "its connector does not recommend automatic runs")
        }
        Held::Back(HeldBack::NotSafeInTheBackground) => {
            ("not_background_safe", "its author says that somebody must be there")
        }
        Held::Question => ("question", "a question waits for you"),
        Held::SignIn => ("sign_in", "it runs automatically only while you are signed in"),
        Held::Owner(reason) => (reason.code(), reason.wording().what),
        Held::Action(action) => (action.code(), action.wording().what),
        Held::NothingToDo => ("nothing_to_do", "nothing is left to do"),
    };
    (code, text.to_owned())
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
