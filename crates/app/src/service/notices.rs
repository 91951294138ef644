//! What the owner has to be told of a connection, out of what is known about it. Pure.
//!
//! An event has a name that stays the same for as long as it is so, and is told once. Its text is ours: nothing that a
//! connector or a provider said is in it, so no secret can be.

use crate::view::connection_view::ConnectionView;
use gleaner_engine::{BLOCKED_FROM, Rest};
use gleaner_protocol::RecoveryAction;
use gleaner_schedule::{Detained, Held, Next};

/// A connection could not be started so often before somebody hears of it.
const COULD_NOT_START_FROM: u32 = 3;

/// Something that the owner is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The connection.
    pub(crate) connection: String,
    /// What it is, by a name that stays.
    pub(crate) event: String,
    /// What is the matter, and what to do.
    pub(crate) message: String,
}

/// Everything about this connection that only its owner can help.
pub(crate) fn notices(view: &ConnectionView) -> Vec<Notice> {
    let facts = &view.facts;
    let mut all = Vec::new();
    let mut tell = |event: String, message: String| {
        all.push(Notice { connection: facts.connection.clone(), event, message });
    };
    for id in view.questions.iter().map(|question| question.id) {
        tell(format!("question {id}"), format!("A question waits for you. Answer with: gleaner answer {id}"));
    }
    let outlook = view.outlook();
    let next = outlook.next;
    if matches!(next, Next::Held(Held::SignIn | Held::Owner(_) | Held::Action(_) | Held::Blocked(_))) {
        let what_to_do = outlook.what_to_do().unwrap_or_default();
        let what = outlook.why();
        tell(format!("held {}", outlook.code()), format!("It does not run automatically: {what} To do: {what_to_do}"));
    }
    let runs_by_itself = facts.plan.held_back.is_none();
    if runs_by_itself && matches!(next, Next::Run { .. }) {
        if facts.failures.count >= BLOCKED_FROM {
            let times = facts.failures.count;
            tell("failing".to_owned(), format!("It failed {times} times in a row; its service may be down."));
        }
        if let Rest::NeedsAttention { cycles, .. } = view.rest {
            let text =
                format!("Its provider rate-limited it {cycles} times in a row; it is tested with single requests now.");
            tell("rested too often".to_owned(), text);
        }
        for action in &view.evidence.hints {
            if matches!(action, RecoveryAction::RefreshCredentials | RecoveryAction::ManualActionRequired) {
                let wording = action.wording();
                tell(format!("asks {}", action.code()), format!("{} {}", wording.what, wording.next));
            }
        }
    }
    if let Some(Detained::CouldNotStart { times, .. }) = facts.detained
        && times >= COULD_NOT_START_FROM
    {
        tell("could not start".to_owned(), format!("It could not be started, {times} times; the log says why."));
    }
    all
}
