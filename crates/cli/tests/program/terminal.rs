//! A terminal for the program: somebody who types when something is asked, and presses Ctrl-C.
//!
//! Python has pseudo-terminals in its standard library, so nothing has to be installed. The terminal is the
//! controlling one of a session of its own: what a test machine happens to have is not asked.

use crate::place::python;
use crate::support::Answer;
use std::process::Command;

/// Runs a command on a terminal. Each `(text, keys)` types the keys once the text has appeared after the one before.
/// Says at the end whether the terminal still shows what is typed.
const TERMINAL: &str = r#"
import json, os, pty, sys, termios, time
plan, command = json.loads(sys.argv[1]), sys.argv[2:]
ours, theirs = pty.openpty()
child = os.fork()
if child == 0:
    os.close(ours)
    os.setsid()
    import fcntl
    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
    for stream in range(3): os.dup2(theirs, stream)
    os.execvp(command[0], command)
seen = b""
def look():
    import select
    global seen
    while select.select([ours], [], [], 0.02)[0]:
        seen += os.read(ours, 65536)
place, began, code = 0, time.monotonic(), None
while code is None:
    look()
    if plan and plan[0][0].encode() in seen[place:]:
        place = seen.index(plan[0][0].encode(), place) + len(plan[0][0])
        # Who reads without showing it throws away what was typed before it was asked.
        time.sleep(0.2)
        os.write(ours, plan.pop(0)[1].encode())
        began = time.monotonic()
    if time.monotonic() - began > 30:
        sys.stderr.write("nothing more happens\n"); os.kill(child, 9)
    done, status = os.waitpid(child, os.WNOHANG)
    if done: code = os.waitstatus_to_exitcode(status)
took = time.monotonic() - began
look()
echo = bool(termios.tcgetattr(theirs)[3] & termios.ECHO)
sys.stderr.write(json.dumps({"shows_what_is_typed": echo, "seconds": took, "planned": len(plan)}) + "\n")
sys.stdout.buffer.write(seen)
sys.exit(code if code >= 0 else 128 - code)
"#;

/// What the program showed, how it ended, and how it left the terminal.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) code: i32,
    pub(crate) screen: String,
    /// Whether what is typed is shown again.
    pub(crate) is_as_before: bool,
    /// From the last key to the end.
    pub(crate) seconds: f64,
}

/// Runs a command on a terminal, and types as planned.
pub(crate) fn on_a_terminal(command: &Command, plan: &[(&str, &str)]) -> Session {
    let mut terminal = Command::new(python());
    terminal.args(["-c", TERMINAL, &serde_json::to_string(plan).unwrap()]);
    terminal.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => terminal.env(name, value),
            None => terminal.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        terminal.current_dir(folder);
    }
    let Answer { code, stdout, stderr } = crate::place::answer(&mut terminal);
    let end = crate::place::last_line(&stderr);
    assert_eq!(end["planned"], 0, "not everything was asked: {stdout}\n{stderr}");
    let is_as_before = end["shows_what_is_typed"] == true;
    Session { code, screen: stdout, is_as_before, seconds: end["seconds"].as_f64().unwrap() }
}

/// Ctrl-C.
pub(crate) const CTRL_C: &str = "\u{3}";
