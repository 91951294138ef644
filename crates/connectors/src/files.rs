//! What connectors for the owner's own files share: finding files beneath one folder, noticing what changed since the
//! last run, and reading what was added.
//!
//! | for | see |
//! |---|---|
//! | a setting of the owner's, or a place beneath the home folder | [`setting`], [`Place`] |
//! | a folder, the files beneath it, and opening one of them | [`Root`], [`Listing`], [`Found`], [`FilePath`] |
//! | what was read of a file, and what became of it since | [`Mark`], [`Change`] |
//! | all marks of a source, as they lie on a cursor | [`Marks`], [`scope_word`] |
//! | lines of a file that somebody else is writing | [`Lines`], [`Line`] |
//! | what could not be read: a gap each, until it can | [`Troubles`], [`Trouble`], [`Spot`] |
//! | all of it together, for files with one JSON object per line | [`jsonl`] |
//!
//! It never writes, locks, or follows a link beneath the folder that the owner named.

pub(crate) mod jsonl;
mod lines;
mod mark;
mod marks;
mod path;
mod root;
mod setting;
mod trouble;
mod walk;

pub(crate) use lines::{LINE_BYTES_MAX, Line, Lines, ReadAt};
pub(crate) use mark::Mark;
pub(crate) use marks::{Marks, scope_word};
pub(crate) use path::FilePath;
pub(crate) use root::{Opened, Root, Stamp};
pub(crate) use setting::{Place, setting, time_zone};
pub(crate) use trouble::{Failed, Spot, Trouble, Troubles};
pub(crate) use walk::{Found, Listing};
