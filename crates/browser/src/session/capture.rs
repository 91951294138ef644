//! Captures of a page at a checkpoint, to find out why signing in failed: its document and a screenshot.
//!
//! Best effort with limits: a hanging page costs its timeout, a run writes a limited number of files, and no failure
//! here fails the run. Typed text is removed: fields are emptied in the document and covered in the screenshot,
//! scripts are removed, and the owner's answers are masked. Without covered fields no screenshot is taken.

use super::run_folder::RunFolder;
use super::watchdog::Phase;
use crate::{BrowserError, Page};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout of one capture, document and screenshot together. From the contract.
const WITHIN: Duration = Duration::from_secs(10);
/// Maximum of captures per run. A sign-in has about ten checkpoints.
const COUNT_MAX: u32 = 32;
/// Maximum size of a document. Its beginning matters most.
const HTML_BYTES_MAX: usize = 1024 * 1024;
/// Maximum size of a screenshot. An ordinary window takes a tenth.
const PNG_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Share of the time for the document, so that time is left for the screenshot.
const HTML_SHARE: u32 = 2;
/// Delay before another try while a page is being replaced.
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// Shorter answers occur in every text.
const SECRET_BYTES_MIN: usize = 4;

/// A copy of the document without typed text and scripts.
const DOCUMENT: &str = "(() => { const copy = document.documentElement.cloneNode(true); \
     for (const field of copy.querySelectorAll('input, textarea, select, option')) { \
       field.removeAttribute('value'); field.removeAttribute('selected'); field.removeAttribute('checked'); \
       if (field.tagName === 'TEXTAREA') field.textContent = ''; } \
     for (const code of copy.querySelectorAll('script, noscript, template, meta, link')) code.remove(); \
     for (const any of copy.querySelectorAll('*')) for (const a of [...any.attributes]) \
       if (a.name.startsWith('on') || a.name.startsWith('data-') || a.name === 'href' || a.name === 'src' || a.name === 'action') \
         any.setAttribute(a.name, a.value.split(/[?#]/)[0].slice(0, 200)); \
     return copy.outerHTML.slice(0, LENGTH) })()";
/// Covers fields, and answers when that is drawn.
const COVER: &str = "(async () => { const style = document.createElement('style'); style.id = 'gleaner-cover'; \
     style.textContent = 'input, textarea, select, [contenteditable] { color: transparent !important; \
       -webkit-text-fill-color: transparent !important; text-shadow: none !important; background-image: none !important }'; \
     document.documentElement.append(style); \
     return document.getElementById('gleaner-cover') !== null })()";
const UNCOVER: &str = "(() => { document.getElementById('gleaner-cover')?.remove(); return true })()";

/// Takes captures of one run.
#[derive(Debug)]
pub(super) struct Captures {
    folder: RunFolder,
    is_on: bool,
    taken: u32,
    secrets: Vec<String>,
}

impl Captures {
    pub(super) const fn new(folder: RunFolder, is_on: bool) -> Self {
        Self { folder, is_on, taken: 0, secrets: Vec::new() }
    }

    /// Masks these from now on.
    pub(super) fn keep_secret(&mut self, secrets: impl IntoIterator<Item = String>) {
        self.secrets.extend(secrets.into_iter().filter(|secret| secret.len() >= SECRET_BYTES_MIN));
    }

    /// Captures the page. Returns what failed, one line each.
    pub(super) fn take(&mut self, page: &Page, phase: &Phase) -> Vec<String> {
        if !self.is_on || self.taken >= COUNT_MAX {
            return Vec::new();
        }
        self.taken += 1;
        let ends = Instant::now() + WITHIN;
        let (number, phase) = (self.taken, phase.as_str());
        let stem = format!("{number:02}-{phase}");
        let html = again(ends - WITHIN / HTML_SHARE, |within| self.document(page, within));
        let html = html
            .map_err(|error| error.to_string())
            .and_then(|text| self.keep(&format!("{stem}.html"), text.as_bytes()));
        let png = again(ends, |within| picture(page, within));
        let png = png.map_err(|error| error.to_string()).and_then(|bytes| self.keep(&format!("{stem}.png"), &bytes));
        let missed = |what: &str, had: Result<PathBuf, String>| {
            had.err().map(|why| format!("capture of {phase}: no {what}: {why}"))
        };
        missed("document", html).into_iter().chain(missed("picture", png)).collect()
    }

    fn document(&self, page: &Page, within: Duration) -> Result<String, BrowserError> {
        let script = DOCUMENT.replace("LENGTH", &HTML_BYTES_MAX.to_string());
        let text = page.evaluate::<String>(&script, within)?;
        let text = self.secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), "***"));
        Ok(text[..text.floor_char_boundary(HTML_BYTES_MAX)].to_owned())
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        self.folder.write(name, bytes).map_err(|error| error.to_string())
    }
}

/// Retries while a page is being replaced: a step at a checkpoint often navigates.
pub(super) fn again<T>(ends: Instant, had: impl Fn(Duration) -> Result<T, BrowserError>) -> Result<T, BrowserError> {
    loop {
        let result = had(ends.saturating_duration_since(Instant::now()));
        let is_passing = matches!(result, Err(BrowserError::Replaced | BrowserError::Script(_)));
        if !is_passing || ends.saturating_duration_since(Instant::now()) <= TRY_AGAIN {
            return result;
        }
        thread::sleep(TRY_AGAIN);
    }
}

/// A screenshot with covered fields, or an error.
pub(super) fn picture(page: &Page, within: Duration) -> Result<Vec<u8>, BrowserError> {
    let ends = Instant::now() + within;
    let left = || ends.saturating_duration_since(Instant::now());
    if !page.evaluate::<bool>(COVER, within / 3)? {
        return Err(BrowserError::Script("fields could not be covered".to_owned()));
    }
    let bytes = page.screenshot(left());
    // In any case the page continues with its fields as they were.
    let uncovered = page.evaluate::<bool>(UNCOVER, left());
    let bytes = bytes?;
    uncovered?;
    if bytes.len() > PNG_BYTES_MAX {
        return Err(BrowserError::TooLarge { what: "the picture", max: PNG_BYTES_MAX as u64 });
    }
    Ok(bytes)
}
