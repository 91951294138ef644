//! What could not be read: each is a gap with its place and its reason, so that nothing is left out silently.
//!
//! A gap names the file (or folder, or row) in its locator and never its content. The next run is served the gap, reads
//! the file again, and either reports the gap again or closes it. So a gap closes when the file becomes readable, when
//! it is gone, or when a later version of the connector understands it. The number of gaps is bounded: a broken disk
//! makes a million faults.

use super::path::FilePath;
use gleaner_sdk::protocol::{AbsenceReason, DetailGap, GapReason, LastError, RawJson, ServedGap};
use gleaner_sdk::{Collect, Emitter, Stop};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Gaps of one kind in one file that are reported one by one. One more stands for the rest of them.
const IN_A_FILE_MAX: u64 = 20;
/// Gaps of one run. One more stands for the rest; the files of that rest are not marked as read.
const IN_A_RUN_MAX: u64 = 20_000;

/// What is wrong, as a code and as a sentence that ends before the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Trouble {
    /// The code: the class of the gap's error.
    pub(crate) reason: &'static str,
    /// The sentence.
    pub(crate) text: &'static str,
}

impl Trouble {
    /// A file or folder that cannot be opened or read.
    pub(crate) const UNREADABLE: Self = Self::new("file_unreadable", "the file or folder cannot be read");
    /// A line longer than is held.
    pub(crate) const LINE_TOO_LONG: Self = Self::new("line_too_long", "a line is longer than 16 MiB and was left out");
    /// A line that is not what it should be.
    pub(crate) const NOT_READABLE: Self = Self::new("line_not_readable", "a line cannot be read and was left out");
    /// A line of which a part has no name by which it could be stored.
    pub(crate) const PART_LEFT_OUT: Self = Self::new("part_without_id", "a part of a line has no id and was left out");
    /// Bytes that are no text in the encoding of the file, and were replaced.
    pub(crate) const WRONG_ENCODING: Self = Self::new("wrong_encoding", "bytes that are not UTF-8 were replaced");
    /// A record that does not fit its schema, or is longer than a line of the protocol.
    pub(crate) const REJECTED: Self =
        Self::new("record_rejected", "a record does not fit its schema or is longer than 16 MiB and was left out");
    /// There are more files than are looked at.
    pub(crate) const TOO_MANY_FILES: Self =
        Self::new("too_many_files", "there are more files than are looked at; the rest was left out");
    /// A folder deeper than is looked at.
    pub(crate) const TOO_DEEP: Self = Self::new("folder_too_deep", "a folder lies too deep and was left out");
    /// A link out of the folder that the owner named.
    pub(crate) const LINK: Self = Self::new("link_not_followed", "a link leads out of the folder and was not followed");
    /// More gaps than one run reports.
    const TOO_MANY_GAPS: Self = Self::new("too_many_gaps", "there are more places that cannot be read than are listed");

    /// A kind of trouble.
    pub(crate) const fn new(reason: &'static str, text: &'static str) -> Self {
        Self { reason, text }
    }
}

/// Where something is wrong. It becomes the locator of the gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// What kind of thing it is: `file`, `folder`, `calendar`, or the name of a table.
    thing: &'static str,
    /// Its name.
    name: String,
    /// The byte of the file, or the number of the row.
    at: Option<(&'static str, i64)>,
}

impl Spot {
    /// A whole file.
    pub(crate) fn file(path: &FilePath) -> Self {
        Self { thing: FILE, name: path.text(), at: None }
    }

    /// A line of a file, by its first byte.
    pub(crate) fn line(path: &FilePath, byte: u64) -> Self {
        Self { thing: FILE, name: path.text(), at: Some(("byte", i64::try_from(byte).unwrap_or(i64::MAX))) }
    }

    /// Something that is no file: a folder, a calendar.
    pub(crate) fn other(thing: &'static str, name: &str) -> Self {
        Self { thing, name: name.to_owned(), at: None }
    }

    /// A row of a table.
    pub(crate) fn row(table: &str, number: i64) -> Self {
        Self { thing: TABLE, name: table.to_owned(), at: Some(("row", number)) }
    }

    /// The gap's locator. Two spots with the same text are the same gap.
    fn locator(&self, why: &str, rest: bool) -> String {
        let mut fields = BTreeMap::from([("kind", json!("file")), ("why", json!(why)), (self.thing, json!(self.name))]);
        match self.at {
            _ if rest => fields.insert("rest", json!(true)),
            Some((name, number)) => fields.insert(name, json!(number)),
            None => None,
        };
        json!(fields).to_string()
    }

    fn shown(&self) -> String {
        let name = &self.name;
        self.at.map_or_else(|| name.clone(), |(what, number)| format!("{name}, {what} {number}"))
    }
}

const FILE: &str = "file";
const TABLE: &str = "table";

/// A gap of an earlier run.
#[derive(Debug)]
struct Served {
    gap: ServedGap,
    locator: Value,
}

impl Served {
    fn text(&self, name: &str) -> Option<&str> {
        self.locator.get(name)?.as_str()
    }
}

/// Why a file was left: it, or all of it.
pub(crate) enum Failed {
    /// It.
    File(io::Error),
    /// All of it.
    Stop(Stop),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<Stop> for Failed {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// Reports gaps, and closes those of earlier runs whose cause is gone.
#[derive(Debug)]
pub(crate) struct Troubles {
    /// The stream whose gaps these are.
    stream: String,
    counts: BTreeMap<&'static str, u64>,
    /// Gaps of earlier runs that this run has not reported again, by locator. A run of one stream alone leaves its gaps
    /// in that one, so there may be several.
    served: BTreeMap<String, Vec<Served>>,
    /// Files with gaps of earlier runs.
    concerned: BTreeSet<String>,
    /// How many gaps of each kind the present file has.
    present: (String, BTreeMap<&'static str, u64>),
    told: u64,
    /// The gap for the rest of the run was written.
    is_full: bool,
}

impl Troubles {
    /// For one stream of a run, with the gaps that earlier runs left in any of these.
    pub(crate) fn take(run: &mut Collect<'_>, stream: &str, streams: &[&str]) -> Result<Self, Stop> {
        let mut gaps = Vec::new();
        for stream in streams {
            gaps.extend(run.take_gaps(stream)?);
        }
        Ok(Self::new(stream, gaps))
    }

    fn new(stream: &str, gaps: Vec<ServedGap>) -> Self {
        let mut served = BTreeMap::<String, Vec<Served>>::new();
        let mut concerned = BTreeSet::new();
        for gap in gaps {
            let Some(text) = gap.detail_locator.as_ref().map(|locator| locator.as_str().to_owned()) else { continue };
            let Ok(locator) = serde_json::from_str(&text) else { continue };
            let one = Served { gap, locator };
            concerned.extend(one.text(FILE).map(ToOwned::to_owned));
            served.entry(text).or_default().push(one);
        }
        let present = (String::new(), BTreeMap::new());
        Self { stream: stream.to_owned(), counts: BTreeMap::new(), served, concerned, present, told: 0, is_full: false }
    }

    /// Whether an earlier run left a gap in this file: then it is read again although nobody wrote to it.
    pub(crate) fn concern(&self, path: &FilePath) -> bool {
        !self.concerned.is_empty() && self.concerned.contains(&path.text())
    }

    /// Whether there is any gap of an earlier run that this run has neither reported again nor closed.
    pub(crate) fn has_served(&self) -> bool {
        !self.served.is_empty()
    }

    /// The rows of a table with gaps of earlier runs.
    pub(crate) fn rows(&self, table: &str) -> Vec<i64> {
        let of_table = self.served.values().flatten().filter(|served| served.text(TABLE) == Some(table));
        of_table.filter_map(|served| served.locator.get("row")?.as_i64()).collect()
    }

    /// Whether a gap of an earlier run stands for many rows of a table, so that all of it is read again.
    pub(crate) fn has_rest(&self, table: &str) -> bool {
        let mut served = self.served.values().flatten();
        served.any(|served| served.text(TABLE) == Some(table) && served.locator.get("row").is_none())
    }

    /// Reports something as missing; `false` when the gap for the rest of this run stands for it, so that the file must
    /// not be marked as read.
    pub(crate) fn tell(&mut self, emitter: &mut Emitter<'_>, trouble: Trouble, spot: &Spot) -> Result<bool, Stop> {
        self.tell_why(emitter, trouble, spot, None)
    }

    /// A file or folder that could not be opened or read.
    pub(crate) fn unreadable(
        &mut self,
        emitter: &mut Emitter<'_>,
        path: &FilePath,
        why: io::ErrorKind,
    ) -> Result<(), Stop> {
        self.tell_why(emitter, Trouble::UNREADABLE, &Spot::file(path), Some(&why.to_string())).map(drop)
    }

    /// The same with the cause in its own words.
    pub(crate) fn tell_why(
        &mut self,
        emitter: &mut Emitter<'_>,
        trouble: Trouble,
        spot: &Spot,
        why: Option<&str>,
    ) -> Result<bool, Stop> {
        *self.counts.entry(trouble.reason).or_default() += 1;
        if self.present.0 != spot.name {
            self.present = (spot.name.clone(), BTreeMap::new());
        }
        let in_file = self.present.1.entry(trouble.reason).or_default();
        *in_file += 1;
        let (in_file, locator) = (*in_file, spot.locator(trouble.reason, false));
        let was_served = self.served.contains_key(&locator);
        let because = why.map(|why| format!(" ({why})")).unwrap_or_default();
        if was_served || (in_file <= IN_A_FILE_MAX && self.told < IN_A_RUN_MAX) {
            let message = format!("{}{because}: {}", trouble.text, spot.shown());
            return self.gap(emitter, trouble, locator, &message).map(|()| true);
        }
        if self.told >= IN_A_RUN_MAX {
            let everything = Spot::other("folder", "");
            let locator = everything.locator(Trouble::TOO_MANY_GAPS.reason, true);
            // Said once: the same gap again would only be the same gap.
            if !self.is_full {
                self.is_full = true;
                self.gap(emitter, Trouble::TOO_MANY_GAPS, locator, Trouble::TOO_MANY_GAPS.text)?;
            }
            return Ok(false);
        }
        let locator = spot.locator(trouble.reason, true);
        if in_file == IN_A_FILE_MAX + 1 {
            let message = format!("{}, here and further on{because}: {}", trouble.text, spot.shown());
            self.gap(emitter, trouble, locator, &message)?;
        }
        Ok(true)
    }

    /// Reports something that was found so many times; nothing for none.
    pub(crate) fn tell_times(
        &mut self,
        emitter: &mut Emitter<'_>,
        trouble: Trouble,
        spot: &Spot,
        count: u64,
    ) -> Result<bool, Stop> {
        let times = (count > 1).then(|| format!("{count} times"));
        if count == 0 { Ok(true) } else { self.tell_why(emitter, trouble, spot, times.as_deref()) }
    }

    /// Writes the gap, in every stream in which it was served: otherwise it would count twice.
    fn gap(&mut self, emitter: &mut Emitter<'_>, trouble: Trouble, locator: String, message: &str) -> Result<(), Stop> {
        let served = self.served.remove(&locator).unwrap_or_default();
        let mut streams = served.into_iter().map(|served| served.gap.stream).collect::<BTreeSet<_>>();
        if streams.is_empty() {
            streams.insert(self.stream.clone());
        }
        let raw = json!({"class": trouble.reason, "message": message}).to_string();
        let (raw, locator) = (RawJson::new(raw).unwrap_or_default(), RawJson::new(locator).ok());
        for stream in streams {
            self.told += 1;
            let last_error = LastError { class: trouble.reason.to_owned(), http_status: None, raw: raw.clone() };
            emitter.gap(DetailGap {
                stream,
                reason: Some(GapReason::Absence(AbsenceReason::TemporaryUnavailable)),
                detail_locator: locator.clone(),
                last_error: Some(last_error),
                ..DetailGap::default()
            })?;
        }
        Ok(())
    }

    /// A file was read from this byte to its end: closes the gaps of earlier runs in that part that are none any more.
    pub(crate) fn settle(&mut self, emitter: &mut Emitter<'_>, path: &FilePath, from: u64) -> Result<(), Stop> {
        if !self.concern(path) {
            return Ok(());
        }
        let name = path.text();
        let is_read = |served: &Served| {
            let byte = served.locator.get("byte").and_then(Value::as_u64);
            let is_unreadable = served.text("why") == Some(Trouble::UNREADABLE.reason);
            served.text(FILE) == Some(&name) && (from == 0 || is_unreadable || byte.is_some_and(|byte| byte >= from))
        };
        self.recover(emitter, is_read)
    }

    /// A row was read again: closes its gaps that are none any more.
    pub(crate) fn settle_row(&mut self, emitter: &mut Emitter<'_>, table: &str, row: i64) -> Result<(), Stop> {
        let is_row = |served: &Served| {
            served.text(TABLE) == Some(table) && served.locator.get("row").and_then(Value::as_i64) == Some(row)
        };
        self.recover(emitter, is_row)
    }

    /// The end of a run that looked at everything: closes the gaps of earlier runs that are no files, and those of files
    /// that are certainly gone.
    pub(crate) fn close(&mut self, emitter: &mut Emitter<'_>, is_gone: impl Fn(&FilePath) -> bool) -> Result<(), Stop> {
        self.recover(emitter, |served| match served.text(FILE) {
            Some(name) => FilePath::parse(name).is_none_or(|path| is_gone(&path)),
            None => true,
        })?;
        match self.summary() {
            Some(message) => emitter.say(message),
            None => Ok(()),
        }
    }

    fn recover(&mut self, emitter: &mut Emitter<'_>, is_over: impl Fn(&Served) -> bool) -> Result<(), Stop> {
        // Those of one locator are over together.
        let over = self.served.extract_if(.., |_, served| served.iter().any(&is_over)).collect::<Vec<_>>();
        for served in over.into_iter().flat_map(|(_, served)| served) {
            emitter.recovered(&served.gap)?;
        }
        Ok(())
    }

    /// What there was, in one sentence for people.
    pub(crate) fn summary(&self) -> Option<String> {
        let parts = self.counts.iter().map(|(reason, count)| format!("{count} × {reason}")).collect::<Vec<_>>();
        (!parts.is_empty()).then(|| format!("not everything could be read: {}", parts.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locator_is_the_same_text_whenever_it_is_written_and_tells_places_apart() {
        let path = FilePath::parse("a/b%0a.jsonl").unwrap();
        let spots = [
            Spot::file(&path),
            Spot::line(&path, 7),
            Spot::line(&path, 8),
            Spot::other("folder", "a"),
            Spot::row("t", 7),
        ];
        let texts = spots.iter().map(|spot| spot.locator("w", false)).collect::<BTreeSet<_>>();
        assert_eq!(texts.len(), spots.len());
        assert_eq!(Spot::line(&path, 7).locator("w", true), Spot::line(&path, 8).locator("w", true));
        assert_eq!(
            Spot::line(&path, 7).locator("w", false),
            r#"{"byte":7,"file":"a/b%0a.jsonl","kind":"file","why":"w"}"#
        );
    }
}
