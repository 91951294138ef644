//! A browser with a window, and an owner who uses it: keys come from the display's own keyboard, as a person's do, and
//! neither the connector nor its browser is told of them in any other way.

use crate::by_hand::Setting;
use gleaner_test_support::site::{Site, World};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than a window takes to come on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// A display that nobody looks at.
struct Display {
    server: Child,
    name: String,
}

impl Display {
    fn start() -> Self {
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1400x1000x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb is there: scripts/test installs it");
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { server, name: format!(":{}", line.trim()) }
    }

    /// What the owner's hand does; the answer, when it worked.
    fn hand(&self, words: &[&str]) -> Option<String> {
        let output = Command::new("xdotool").args(words).env("DISPLAY", &self.name).output();
        let output = output.expect("xdotool is there: scripts/test installs it");
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    /// Goes to the window with this title.
    fn go_to(&self, title: &str) {
        wait_for(&format!("a window called {title}"), || {
            let found = self.hand(&["search", "--onlyvisible", "--name", title])?;
            self.hand(&["windowfocus", "--sync", found.lines().next()?])
        });
    }

    /// Types into whatever has the focus, and sends it.
    fn enter(&self, text: &str) {
        self.hand(&["type", "--delay", "5", text]).unwrap();
        self.hand(&["key", "Return"]).unwrap();
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let ends = Instant::now() + SOON;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < ends, "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_owner_signs_in_by_hand_in_the_window_and_the_run_goes_on() {
    let display = Display::start();
    let site = Site::start(World::with(2));
    let owner = site.world().owner.clone();
    let setting = Setting::new(&site).with("PDPP_BROWSER_WINDOW", "auto").with("DISPLAY", &display.name);
    let mut run = setting.start();
    let question = run.until("INTERACTION");
    assert_eq!(question["kind"], "manual_action", "with a window nobody is asked for a password: {question}");
    let message = question["message"].as_str().unwrap();
    assert!(message.contains("browser window of this connection") && message.contains("/auth/login"), "{message}");
    assert_eq!(setting.files().len(), 0, "there is no picture of what the owner sees anyway");
    assert_eq!(site.world().sessions_signed_in(), 0);

    display.go_to("Sign in");
    display.enter(&owner.email);
    display.go_to("Enter your password");
    display.enter(&owner.password);
    wait_for("the session", || (site.world().sessions_signed_in() == 1).then_some(()));

    run.answer(&question, &json!({}));
    let done = run.done();
    assert_eq!((done["status"].as_str(), run.keys("messages").len()), (Some("succeeded"), 6), "{done}");
    assert_eq!(run.of_type("INTERACTION").len(), 1, "and nothing else was asked");
    let said = run.said.iter().map(|(_, message)| message.to_string()).collect::<String>();
    assert!(!said.contains(&owner.password), "it was never ours");
}
