//! How much a browser may take. Each number has its reason; all of them bound what a page could do to us.

/// The bounds of one browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest message of the browser's. An answer to an in-page request and a screenshot come in one, as base64.
    pub message_bytes_max: usize,
    /// How many pages may be open; popups beyond it are closed. A sign-in with another service takes one popup.
    pub pages_max: usize,
    /// How many dialogs a page may open before it is closed. An ordinary page opens none.
    pub dialogs_max: u64,
    /// How many downloads a run may make.
    pub downloads_max: usize,
    /// How many bytes all of them may have together.
    pub download_bytes_max: u64,
    /// What the browser may keep of what it has seen. It is a cache: a run does not visit a page twice.
    pub cache_bytes_max: u64,
    /// What the profile may take on the disk: without its caches at the start, without its downloads at any time.
    pub profile_bytes_max: u64,
    /// What all its processes may take of the memory together. A browser with a heavy page takes 1 GB.
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
