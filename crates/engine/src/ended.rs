//! How a run ended, in a sentence: the cause comes first, in the connector's own words. The same on the terminal, in the
//! console and in the API.
//!
//! The texts in here are from outside. Who prints them makes them harmless.

use crate::run::Exit;
use gleaner_protocol::{TerminalReason, ViolationCode};
use std::fmt;

/// The signal that no process can ignore.
const SIGKILL: i32 = 9;

/// What is known about the end of a run.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// Why it is over.
    pub reason: TerminalReason,
    /// The breach that ended it: its code, and after it the place.
    pub violation: Option<&'a str>,
    /// What the connector said went wrong.
    pub message: Option<&'a str>,
    /// How its process ended.
    pub exit: Option<Exit>,
    /// The last lines of its stderr, masked. Absent where nobody kept them.
    pub stderr: Option<&'a str>,
    /// What failed on this machine.
    pub runtime_error: Option<&'a str>,
}

impl Ended<'_> {
    /// The cause.
    #[must_use]
    pub fn cause(&self) -> String {
        let what = self.reason.wording().what;
        let said = self.message.map(str::trim).filter(|said| !said.is_empty());
        match self.reason {
            TerminalReason::ConnectorFailed => said.map_or_else(
                || "The connector failed without a message.".to_owned(),
                |said| format!("Connector failed: {said}"),
            ),
            TerminalReason::ConnectorCrashed => self.crash(),
            TerminalReason::ProtocolViolation => self.breach(),
            TerminalReason::BudgetReached => match self.exit {
                Some(exit @ Exit::Signal(SIGKILL)) => {
                    let what = "The connector did not stop when the time for the run was over";
                    format!("{what}, ignored the request to stop, and was killed ({exit}).")
                }
                _ => what.to_owned(),
            },
            TerminalReason::RuntimeError => {
                let error = self.runtime_error.or(said);
                error.map_or_else(|| what.to_owned(), |error| format!("Gleaner stopped the run: {error}"))
            }
            TerminalReason::Succeeded | TerminalReason::Interrupted | TerminalReason::Superseded => what.to_owned(),
            _ => said.map_or_else(|| what.to_owned(), |said| format!("{}: {said}", what.trim_end_matches('.'))),
        }
    }

    /// What to do next.
    #[must_use]
    pub fn next(&self) -> &'static str {
        let breach = self.violation_code().filter(|_| self.reason == TerminalReason::ProtocolViolation);
        breach.map_or_else(|| self.reason.wording().next, |code| code.wording().next)
    }

    fn crash(&self) -> String {
        let how = self.exit.map(|exit| format!(" ({exit})")).unwrap_or_default();
        let lines = self.stderr.map(|text| text.lines().rev().map(str::trim).find(|line| !line.is_empty()));
        match lines {
            Some(Some(line)) => format!("Connector crashed{how}: {line}"),
            Some(None) => format!("Connector crashed{how}. It wrote nothing to stderr."),
            None => format!("Connector crashed{how}."),
        }
    }

    fn breach(&self) -> String {
        let Some(violation) = self.violation else { return self.reason.wording().what.to_owned() };
        let code = self.violation_code();
        let what = code.map_or("The connector broke the rules of the protocol.", |code| code.wording().what);
        format!("{} ({violation}).", what.trim_end_matches('.'))
    }

    /// Its code is what a violation begins with.
    fn violation_code(&self) -> Option<ViolationCode> {
        ViolationCode::from_code(self.violation?.split([' ', ',']).next()?)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signal = match self {
            Self::Code(code) => return write!(f, "exit code {code}"),
            Self::Signal(signal) => *signal,
        };
        // Those that have one number on every system.
        let name = match signal {
            1 => "SIGHUP",
            2 => "SIGINT",
            3 => "SIGQUIT",
            4 => "SIGILL",
            6 => "SIGABRT",
            8 => "SIGFPE",
            9 => "SIGKILL",
            11 => "SIGSEGV",
            13 => "SIGPIPE",
            14 => "SIGALRM",
            15 => "SIGTERM",
            _ => return write!(f, "signal {signal}"),
        };
        write!(f, "signal {signal}, {name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(reason: TerminalReason) -> Ended<'static> {
        Ended { reason, violation: None, message: None, exit: None, stderr: None, runtime_error: None }
    }

    #[test]
    fn the_cause_comes_first_in_the_connectors_own_words() {
        let failed = Ended { message: Some("no table #accounts"), ..ended(TerminalReason::ConnectorFailed) };
        assert_eq!(failed.cause(), "Connector failed: no table #accounts");
        assert_eq!(ended(TerminalReason::ConnectorFailed).cause(), "The connector failed without a message.");
        let refused = Ended { message: Some("401 for /me"), ..ended(TerminalReason::CredentialsRefused) };
        assert_eq!(refused.cause(), "The credentials of this connection were refused: 401 for /me");
        let full = Ended { runtime_error: Some("the disk is full"), ..ended(TerminalReason::RuntimeError) };
        assert_eq!(full.cause(), "Gleaner stopped the run: the disk is full");
    }

    #[test]
    fn a_crash_names_signal_or_code_and_the_last_line_of_stderr() {
        let crashed = |exit, stderr| Ended { exit, stderr, ..ended(TerminalReason::ConnectorCrashed) }.cause();
        let trace = Some("Traceback (most recent call last):\n  File \"x\"\nKeyError: 'accounts'\n\n");
        assert_eq!(crashed(Some(Exit::Code(1)), trace), "Connector crashed (exit code 1): KeyError: 'accounts'");
        let silent = "Connector crashed (signal 9, SIGKILL). It wrote nothing to stderr.";
        assert_eq!(crashed(Some(Exit::Signal(9)), Some("")), silent);
        assert_eq!(crashed(Some(Exit::Signal(64)), None), "Connector crashed (signal 64).");
    }

    #[test]
    fn a_connector_that_was_killed_after_its_time_is_not_called_a_planned_stop() {
        let over = |exit| Ended { exit: Some(exit), ..ended(TerminalReason::BudgetReached) }.cause();
        assert!(over(Exit::Signal(9)).ends_with("and was killed (signal 9, SIGKILL)."), "{}", over(Exit::Signal(9)));
        assert!(over(Exit::Signal(15)).ends_with("so Gleaner stopped it."), "{}", over(Exit::Signal(15)));
    }

    #[test]
    fn a_breach_is_told_in_words_with_its_place_and_its_own_advice() {
        let violation = Some("bad_json at line 1, byte 0");
        let broken = Ended { violation, ..ended(TerminalReason::ProtocolViolation) };
        let cause = "The connector wrote a line that is not valid JSON (bad_json at line 1, byte 0).";
        assert_eq!(broken.cause(), cause);
        assert_eq!(broken.next(), ViolationCode::BadJson.wording().next);
    }
}
