//! What could not be read: said with its place, never with its content, and a bounded number of times.
//!
//! A file that cannot be opened may be readable tomorrow, so it is a gap, which the run that reads it closes. A line that
//! cannot be read stays so, and is a skip: the place and the reason, for people to look at. The first of each kind are told
//! one by one and the rest as a number, because a broken disk makes a million of them.

use super::path::FilePath;
use gleaner_sdk::protocol::{
    AbsenceReason, DetailGap, GapKey, GapReason, LastError, Progress, RawJson, RecoveryAction, RecoveryHint, ServedGap,
    SkipResult,
};
use gleaner_sdk::{Emitter, Stop};
use std::collections::BTreeMap;
use std::io;

/// How many of one kind are told one by one.
const TOLD_MAX: u64 = 50;

/// What is wrong with a place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// A line longer than is held.
    LineTooLong,
    /// A line that is not what it should be.
    NotReadable,
    /// Bytes that are no text in the encoding of the file, and were replaced.
    WrongEncoding,
    /// A file larger than is read.
    FileTooLarge,
    /// There are more files than are looked at.
    TooManyFiles,
    /// There are more files than fit on a cursor.
    NotMarked,
}

impl Trouble {
    const fn reason(self) -> &'static str {
        match self {
            Self::LineTooLong => "line_too_long",
            Self::NotReadable => "line_not_readable",
            Self::WrongEncoding => "wrong_encoding",
            Self::FileTooLarge => "file_too_large",
            Self::TooManyFiles => "too_many_files",
            Self::NotMarked => "file_not_marked",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::LineTooLong => "a line is longer than 16 MiB and was left out",
            Self::NotReadable => "a line cannot be read and was left out",
            Self::WrongEncoding => "bytes that are no UTF-8 were replaced",
            Self::FileTooLarge => "the file is too large and was left out",
            Self::TooManyFiles => "there are more files, or deeper folders, than are looked at; the rest was left out",
            Self::NotMarked => "there are more files than fit on a cursor; this one is read again by every run",
        }
    }
}

/// Tells troubles, and keeps the account of files that could not be opened.
#[derive(Debug)]
pub struct Troubles {
    /// The stream whose gaps these are.
    stream: String,
    counts: BTreeMap<Trouble, u64>,
    /// Gaps of earlier runs, by the file's text.
    served: BTreeMap<String, ServedGap>,
    unreadable: u64,
}

impl Troubles {
    /// For a stream, with the gaps that earlier runs left in it.
    #[must_use]
    pub fn new(stream: &str, gaps: Vec<ServedGap>) -> Self {
        let by_key = |gap: ServedGap| Some((gap.record_key.as_ref()?.as_str().strip_prefix(FILE_KEY)?.to_owned(), gap));
        let served = gaps.into_iter().filter_map(by_key).collect();
        Self { stream: stream.to_owned(), counts: BTreeMap::new(), served, unreadable: 0 }
    }

    /// Something in a file, at this byte of it.
    ///
    /// # Errors
    ///
    /// When nobody reads any more.
    pub fn tell(
        &mut self,
        emitter: &mut Emitter<'_>,
        trouble: Trouble,
        path: &str,
        at: Option<u64>,
    ) -> Result<(), Stop> {
        let count = self.counts.entry(trouble).or_default();
        *count += 1;
        if *count > TOLD_MAX {
            return Ok(());
        }
        let place = at.map_or_else(|| path.to_owned(), |at| format!("{path}, byte {at}"));
        emitter.skip(SkipResult {
            stream: Some(self.stream.clone()),
            reason: Some(trouble.reason().to_owned()),
            message: Some(format!("{}: {place}", trouble.text())),
            recovery_hint: Some(RecoveryHint { action: RecoveryAction::NotRetriable, retryable: Some(false) }),
            resources: vec![path.to_owned()],
            ..SkipResult::default()
        })
    }

    /// A file or folder that could not be opened or read: a gap, until a run reads it.
    ///
    /// # Errors
    ///
    /// When nobody reads any more.
    pub fn unreadable(&mut self, emitter: &mut Emitter<'_>, path: &FilePath, why: io::ErrorKind) -> Result<(), Stop> {
        self.unreadable += 1;
        let was_served = self.served.remove(&path.text()).is_some();
        if self.unreadable > TOLD_MAX && !was_served {
            return Ok(());
        }
        let raw = serde_json::json!({"class": "file_unreadable", "why": why.to_string()}).to_string();
        let raw = RawJson::new(raw).unwrap_or_default();
        emitter.gap(DetailGap {
            stream: self.stream.clone(),
            record_key: Some(GapKey::Text(format!("{FILE_KEY}{path}"))),
            reason: Some(GapReason::Absence(AbsenceReason::TemporaryUnavailable)),
            last_error: Some(LastError { class: "file_unreadable".to_owned(), http_status: None, raw }),
            ..DetailGap::default()
        })
    }

    /// What an earlier run could not read and this one did, or found gone: closes its gaps. For the end of a run that
    /// looked at everything.
    ///
    /// # Errors
    ///
    /// When nobody reads any more.
    pub fn close(&mut self, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        for gap in std::mem::take(&mut self.served).into_values() {
            emitter.recovered(&gap)?;
        }
        let rest = self.counts.iter().filter(|&(_, &count)| count > TOLD_MAX);
        for (trouble, count) in rest {
            let more = count - TOLD_MAX;
            emitter.skip(SkipResult {
                stream: Some(self.stream.clone()),
                reason: Some(trouble.reason().to_owned()),
                message: Some(format!("{}; so it is at {more} more places", trouble.text())),
                resources: vec![format!("{more} more")],
                ..SkipResult::default()
            })?;
        }
        match self.summary() {
            Some(message) => emitter.progress(Progress { message, ..Progress::default() }),
            None => Ok(()),
        }
    }

    /// What there was, in one sentence for people.
    #[must_use]
    pub fn summary(&self) -> Option<String> {
        let mut parts =
            self.counts.iter().map(|(trouble, count)| format!("{count} × {}", trouble.reason())).collect::<Vec<_>>();
        if self.unreadable > 0 {
            parts.push(format!("{} files or folders cannot be opened", self.unreadable));
        }
        (!parts.is_empty()).then(|| format!("not everything could be read: {}", parts.join(", ")))
    }
}

/// Before the name of a file in the key of a gap. No record has such a key.
const FILE_KEY: &str = "file:";
