//! Checks of every start, whatever it is for: no credential in its output or errors, no process left.

use crate::observed::Observed;
use crate::report::Board;

/// Judges one start. `has_secrets`: whether there is anything to look for.
pub(crate) fn judge(run: &Observed, redactor: &gleaner_runtime::Redactor, has_secrets: bool, board: &mut Board<'_>) {
    let left = run
        .leftovers
        .first()
        .map(|name| (run.say(&format!("{} processes outlived it, one is called {name:?}", run.leftovers.len())), None));
    if cfg!(target_os = "linux") {
        board.judge("no_processes_left", left);
    } else {
        board.skip("no_processes_left", "processes can be looked for on Linux only");
    }
    if !has_secrets {
        for id in ["no_credentials_in_errors", "no_credentials_in_output"] {
            board.skip(id, "it was given no credentials");
        }
        return;
    }
    let errors = String::from_utf8_lossy(&run.errors);
    let at = errors.lines().position(|line| redactor.reveals(line));
    let place = |at: usize| (run.say(&format!("line {} of its errors has a credential", at + 1)), None);
    board.judge("no_credentials_in_errors", at.map(place));
    // The runtime masks a credential in a message for people; its connector must not send it.
    let line = run.lines.iter().find(|line| redactor.reveals(&String::from_utf8_lossy(&line.bytes)));
    if let Some(line) = line {
        board.fail("no_credentials_in_output", run.say("a message has a credential"), Some(line.number));
    } else if run.violation().is_none() && !run.lines.is_empty() {
        board.pass("no_credentials_in_output");
    }
}
