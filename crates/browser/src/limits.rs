//! Limits of a browser, each with its reason; they protect us from pages.

/// Limits of one browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a message from the browser. An in-page answer and a screenshot come in one, as base64.
    pub message_bytes_max: usize,
    /// Maximum of open pages; further popups are closed. A sign-in through another service takes one popup.
    pub pages_max: usize,
    /// Maximum of dialogs of a page before it is closed. An ordinary page opens none.
    pub dialogs_max: u64,
    /// Maximum of downloads per run.
    pub downloads_max: usize,
    /// Maximum of bytes of all downloads together.
    pub download_bytes_max: u64,
    /// Maximum of the browser's cache: a run does not visit a page twice.
    pub cache_bytes_max: u64,
    /// Maximum size of the profile: without caches at the start, without downloads later.
    pub profile_bytes_max: u64,
    /// Maximum memory of all its processes. A browser with a heavy page takes 1 GB.
    pub memory_bytes_max: u64,
}

const MIB: u64 = 1024 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 64 * MIB as usize,
            pages_max: 8,
            dialogs_max: 200,
            downloads_max: 100,
            download_bytes_max: 1024 * MIB,
            cache_bytes_max: 64 * MIB,
            profile_bytes_max: 2048 * MIB,
            memory_bytes_max: 4096 * MIB,
        }
    }
}
