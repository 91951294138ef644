//! Terminal reasons: one reason per run, from a fixed list.
//!
//! Why a list here and not a string in the runtime: stores, consoles and scripts compare it, and each must be able to
//! name all of it. A connector that stops at its own budget succeeds, and its gaps describe the rest; one that has to
//! be stopped is here.

use crate::words::vocabulary::vocabulary;

vocabulary! {
    /// Why a run ended.
    pub enum TerminalReason {
        /// All requested records were collected or have a gap.
        Succeeded = "succeeded",
            "The run finished.",
            "Everything it listed is stored, or is named in a gap.",
            "Nothing to do.";
        /// The connector reported a failure.
        ConnectorFailed = "connector_failed",
            "The connector failed.",
            "It met an error that it could not get around.",
            "Run it again to continue from the last saved slice.";
        /// The connector's process died.
        ConnectorCrashed = "connector_crashed",
            "The connector crashed.",
            "Its process ended by a signal or with an error before it had finished.",
            "Run it again to continue from the last saved slice; if it crashes again, tell the connector's author.";
        /// Some streams failed, and the others are saved.
        StreamCollectionFailed = "stream_collection_failed",
            "Some streams could not be collected; the others are saved.",
            "The connector says which streams failed and why.",
            "Run it again to retry them.";
        /// The connector ended because of a provider's limit, and the cooldown begins.
        SourceCooldown = "source_cooldown",
            "The provider turned requests away, so the run ended early and a cooldown began.",
            "The reason is recorded with the run.",
            "The first run after the cooldown continues.";
        /// The connector broke the contract.
        ProtocolViolation = "protocol_violation",
            "The connector broke the rules of the protocol.",
            "Its output could not be trusted, so the run was stopped.",
            "Report it to the connector's author.";
        /// It was stopped on request.
        Cancelled = "cancelled",
            "The run was cancelled.",
            "You, a program on your behalf, or the connector stopped it before it had finished.",
            "Run it again to continue from the last saved slice.";
        /// Gleaner itself failed.
        RuntimeError = "runtime_error",
            "Gleaner could not go on with the run.",
            "Something failed on this machine, for instance the disk.",
            "Fix the cause, then run it again: it continues from the last saved slice.";
        /// Gleaner was killed while it ran.
        Interrupted = "interrupted",
            "The run was interrupted.",
            "Gleaner was killed, the machine went down, or the end could not be written, for instance to a full disk.",
            "Nothing to do: the next run continues from the last saved slice.";
        /// Another process took over.
        Superseded = "superseded",
            "Another process took this run over.",
            "This one had been silent for too long, so its lease went to the other.",
            "Nothing to do: the other one goes on.";
        /// The owner's permission ended.
        GrantExpired = "grant_expired",
            "The run ended because its permission ended.",
            "The grant of this connection has an end, and that is past.",
            "Renew the grant to go on; what was saved stays.";
        /// A question was not answered.
        InteractionExpired = "interaction_expired",
            "The run ended because a question was not answered in time.",
            "The connector needed something from you to go on.",
            "Start it again when you can answer.";
        /// Credentials are missing, and nobody can be asked.
        CredentialsMissing = "credentials_missing",
            "The run could not sign in.",
            "A credential is missing, and nobody could be asked for it.",
            "Add the credential to this connection.";
        /// The provider did not accept the credentials.
        CredentialsRefused = "credentials_refused",
            "The credentials of this connection were refused.",
            "They are wrong, have expired, or were taken back.",
            "Check them and add them again; the run is not repeated until then.";
        /// The sign-in made no progress.
        SessionEstablishTimeout = "session_establish_timeout",
            "Signing in got stuck.",
            "Signing in made no progress for too long.",
            "Run it again; if it happens again, tell the connector's author.";
        /// The run's time was over, and the connector did not stop.
        BudgetReached = "budget_reached",
            "The connector did not stop when the time for the run was over, so Gleaner stopped it.",
            "You set how long a run may take, and the connector did not heed it.",
            "Run it again to continue from the last saved slice; if it happens again, tell the connector's author.";
        /// The connector sent nothing.
        NoProgress = "no_progress",
            "The connector stopped making progress.",
            "It wrote nothing for too long, so it was ended.",
            "Nothing to do: the next run continues from the last saved slice.";
        /// A required binding is missing.
        BindingUnavailable = "binding_unavailable",
            "The run was not started: the connector needs something that is not there.",
            "Its manifest requires a binding that this machine does not offer.",
            "Run it where that is available, or install what is missing.";
        /// The manifest is invalid.
        ManifestRejected = "manifest_rejected",
            "The run was not started: the connector's manifest is wrong.",
            "It breaks a rule that keeps collected data accountable.",
            "Look at the listed faults, and report them to the connector's author.";
        /// The scope is invalid.
        ScopeRejected = "scope_rejected",
            "The run was not started: what it was asked for makes no sense.",
            "The scope is empty, has a wildcard, or names a stream that does not exist.",
            "Correct the scope of this connection.";
    }
}

impl TerminalReason {
    /// Whether the run succeeded.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Succeeded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_reason_is_a_success() {
        let successes = TerminalReason::ALL.iter().filter(|reason| reason.is_success()).count();
        assert_eq!(successes, 1);
    }
}
