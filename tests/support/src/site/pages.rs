//! The pages, as text. Fields have the names and types that the services of this kind use, and the cursor, as there.

use super::world::World;
use std::time::Duration;

/// A page with a title.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!("<!doctype html><html><head><meta charset=utf-8><title>{title}</title></head><body>{body}</body></html>")
}

pub(crate) fn home(session: &str, world: &World) -> String {
    let wedge = world
        .wedges_later
        .map(|later| format!("<script>setTimeout(() => {{ for (;;) {{}} }}, {})</script>", later.as_millis()));
    let late = world.sends_late.map(sends_late);
    let body = format!(
        "<main id=app data-session=\"{session}\"><textarea id=prompt-textarea></textarea></main>\
         <script>localStorage.setItem('seen', '{session}')</script>{}{}{}",
        wedge.unwrap_or_default(),
        late.unwrap_or_default(),
        world.storm.map(storm_script).unwrap_or_default(),
    );
    page("Chat", &body)
}

pub(crate) fn email() -> String {
    let form = "<form method=post action=/auth/login>\
        <input type=email name=email autocomplete=username autofocus><button type=submit>Continue</button></form>";
    page("Sign in", form)
}

pub(crate) fn password(wrong: bool) -> String {
    let note = if wrong { "<p role=alert>Incorrect email address or password</p>" } else { "" };
    let form = "<form method=post action=/auth/password>\
        <input type=password name=password autocomplete=current-password autofocus><button type=submit>Continue</button></form>";
    page("Enter your password", &format!("{note}{form}"))
}

pub(crate) fn code(wrong: bool) -> String {
    let note = if wrong { "<p role=alert>That code is not right</p>" } else { "" };
    let form = "<form method=post action=/auth/code>\
        <input type=text name=code inputmode=numeric autocomplete=one-time-code><button type=submit>Continue</button></form>";
    page("Check your phone", &format!("{note}{form}"))
}

/// The page for a person who has to prove that they are one. It polls every 200 ms.
pub(crate) fn challenge() -> String {
    let body = "<div id=challenge>Verify that you are human</div>\
        <script>setTimeout(() => location.href = '/', 200)</script>";
    page("Just a moment...", body)
}

/// The same, with a renderer that hangs as soon as anybody reads the title.
pub(crate) fn wedged_title() -> String {
    let body = "<div id=challenge>Verify that you are human</div>\
        <script>Object.defineProperty(document, 'title', {get() { for (;;) {} }})</script>";
    page("Just a moment...", body)
}

/// A sign-in whose button does nothing.
pub(crate) fn stalled() -> String {
    let form = "<form onsubmit='return false'>\
        <input type=email name=email autocomplete=username><button type=submit>Continue</button></form>";
    page("Sign in", form)
}

/// Its renderer never comes back.
pub(crate) fn wedge() -> String {
    page("Wedged", "<p id=here>here</p><script>for (;;) {}</script>")
}

/// Every other request of the page leaves it so much later than it was made.
fn sends_late(by: Duration) -> String {
    format!(
        "<script>const send = window.fetch; let sent = 0; window.fetch = (...request) =>\
         new Promise(done => setTimeout(done, sent++ % 2 ? 0 : {})).then(() => send(...request))</script>",
        by.as_millis()
    )
}

/// Dialogs, downloads and popups, so many of each.
fn storm_script(rounds: u32) -> String {
    format!(
        "<script>function round(n) {{\
         if (n >= {rounds}) return;\
         alert('dialog ' + n);\
         const a = document.createElement('a'); a.href = '/storm/file?n=' + n; a.download = 'file' + n; a.click();\
         window.open('/storm/popup?n=' + n);\
         setTimeout(() => round(n + 1), 5); }}\
         addEventListener('beforeunload', e => {{ e.preventDefault(); e.returnValue = 'stay'; }});\
         setTimeout(() => round(0), 300);</script>"
    )
}
