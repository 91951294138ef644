//! Emitter: sends all messages of a connector, and none that the contract forbids.
//!
//! A record is checked against the scope, its stream's schema and the connection's credential before it is written.
//! An unrequested record is dropped. An invalid one is counted and reported, and never counts as collected. A cursor
//! can only be written for a stream of the manifest. Lines are built completely before they are sent; a coverage
//! report, which may have a million keys, is sent in pieces.

pub(crate) mod new_record;
mod rejected;

use crate::clock::{Clock, rfc3339};
use crate::stop::Stop;
use crate::wire::Wire;
use gleaner_engine::{Redactor, Schemas, ScopeFilter, Selected, Validate};
use gleaner_http::{SendGovernor, persist_onto};
use gleaner_protocol::{
    ConnectorMessage, DetailGap, DetailGapAttempted, DetailGapRecovered, Done, Limits, Manifest, Op, Progress, RawJson,
    Record, RecordKey, RuntimeMessage, Semantics, ServedGap, SkipResult, State,
};
use rejected::{Fault, Rejections};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

/// A stream's cursor, as the author wrote it.
pub type Cursor = Map<String, Value>;

/// Result of sending a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a record that was not sent is not hydrated"]
pub enum Emitted {
    /// Sent.
    Sent,
    /// Dropped: it was not requested.
    OutOfScope,
    /// Dropped: it is invalid, and was counted and reported. It is not collected.
    Rejected,
}

/// Counts of an emitter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records sent, deletions included.
    pub sent: u64,
    /// Invalid records.
    pub rejected: u64,
    /// Unrequested records.
    pub out_of_scope: u64,
    /// Gaps written, including gaps that were served before.
    pub gaps: u64,
}

/// A piece of a long line: the capacity of a pipe.
const PIECE_BYTES: usize = 64 * 1024;
/// Unrelated messages before an answer. A runtime sends none; this is a safety limit.
const UNRELATED_MAX: usize = 1000;

/// Sends messages to the runtime.
pub struct Emitter<'r> {
    wire: &'r mut dyn Wire,
    manifest: &'r Manifest,
    schemas: &'r Schemas,
    clock: &'r dyn Clock,
    filter: ScopeFilter,
    redactor: Redactor,
    line: Vec<u8>,
    /// Buffer for the text of a record.
    body: Vec<u8>,
    /// Maximum line length of a runtime.
    line_bytes_max: usize,
    /// A line is half written: only its rest may follow.
    is_inside_a_line: bool,
    counts: Counts,
    rejections: Rejections,
    /// The governor whose learned pace is stored on the cursors.
    pacing: Option<SendGovernor>,
    /// The last committed cursor of each stream, as its author wrote it.
    cursors: BTreeMap<String, Cursor>,
    requests: u64,
}

gleaner_base::debug_only!(Emitter<'_>, |it| counts = it.counts);

impl<'r> Emitter<'r> {
    pub(crate) fn new(
        wire: &'r mut dyn Wire,
        manifest: &'r Manifest,
        schemas: &'r Schemas,
        clock: &'r dyn Clock,
        filter: ScopeFilter,
    ) -> Self {
        Self {
            wire,
            manifest,
            schemas,
            clock,
            filter,
            redactor: Redactor::default(),
            line: Vec::new(),
            body: Vec::new(),
            line_bytes_max: Limits::LINE_BYTES_MAX,
            is_inside_a_line: false,
            counts: Counts::default(),
            rejections: Rejections::default(),
            pacing: None,
            cursors: BTreeMap::new(),
            requests: 0,
        }
    }

    /// Masks these from now on, and blocks them in records, cursors and locators.
    pub(crate) fn keep_secret(&mut self, secrets: impl IntoIterator<Item = String>) {
        self.redactor = Redactor::new(secrets);
    }

    /// Masks the owner's answers from now on. They may occur in records.
    pub(crate) fn keep_answers(&mut self, answers: impl IntoIterator<Item = String>) {
        self.redactor.learn(answers);
    }

    /// Stores the pace of this governor on every cursor from now on.
    pub(crate) fn remember_pace_of(&mut self, governor: SendGovernor) {
        self.pacing = Some(governor);
    }

    /// The cursor of an earlier run, so that the pace can be stored on it when nothing new is sent.
    pub(crate) fn know_cursor(&mut self, stream: &str, cursor: Cursor) {
        self.cursors.insert(stream.to_owned(), cursor);
    }

    /// The last cursor of a stream that is committed, or will be once durable.
    pub(crate) fn last_cursor(&self, stream: &str) -> Option<&Cursor> {
        self.cursors.get(stream)
    }

    /// The counts.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The text with the connection's secrets masked.
    pub(crate) fn masked(&self, text: &str) -> String {
        self.redactor.mask(text)
    }

    /// Whether anything of the stream is requested.
    pub fn wants_stream(&self, stream: &str) -> bool {
        self.filter.contains(stream)
    }

    /// Whether the record is requested, judging by its key: others need not be fetched.
    pub fn wants<'k>(&self, stream: &str, key: impl Into<RecordKey<'k>>) -> bool {
        self.filter.wants(stream, &key.into())
    }

    /// Sends a record, unless it is unrequested or invalid.
    ///
    /// # Errors
    ///
    /// The manifest has no such stream, or the runtime no longer reads.
    pub fn record<'k, T: Serialize + ?Sized>(
        &mut self,
        stream: &str,
        key: impl Into<RecordKey<'k>>,
        data: &T,
    ) -> Result<Emitted, Stop> {
        // One buffer for all records: a connector may write a gigabyte of them.
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        let is_written = serde_json::to_writer(&mut body, data).is_ok();
        let text = std::str::from_utf8(&body).ok().filter(|_| is_written);
        let emitted = match text.and_then(|text| RawJson::new(text).ok()) {
            Some(body) => self.record_as_written(stream, key, body),
            None => self.reject_unwritable(stream, &key.into()),
        };
        self.body = body;
        emitted
    }

    /// Counts a record that cannot be serialized as JSON.
    pub(crate) fn reject_unwritable(&mut self, stream: &str, key: &RecordKey<'_>) -> Result<Emitted, Stop> {
        self.check_declared(stream)?;
        self.reject(stream, key, &Fault::NotJson)
    }

    /// The same for a body that is already JSON, kept byte for byte.
    ///
    /// # Errors
    ///
    /// As [`record`](Self::record).
    pub fn record_as_written<'k>(
        &mut self,
        stream: &str,
        key: impl Into<RecordKey<'k>>,
        body: RawJson<'_>,
    ) -> Result<Emitted, Stop> {
        let key = key.into();
        self.check_declared(stream)?;
        let body = match self.filter.select(stream, &key, body) {
            Selected::Take(body) => body,
            Selected::Leave => {
                self.counts.out_of_scope += 1;
                return Ok(Emitted::OutOfScope);
            }
        };
        if let Some(fault) = self.fault_of(stream, &key, &body) {
            return self.reject(stream, &key, &fault);
        }
        let emitted_at = Some(Cow::Owned(rfc3339(self.clock.wall())));
        let record = Record { stream: stream.into(), key, op: Op::Upsert, data: Some(body), emitted_at };
        self.send_record(record)
    }

    /// Reports that a record was deleted at the provider.
    ///
    /// # Errors
    ///
    /// The stream is append-only: it has no deletions. Otherwise as [`record`](Self::record).
    pub fn tombstone<'k>(&mut self, stream: &str, key: impl Into<RecordKey<'k>>) -> Result<Emitted, Stop> {
        let key = key.into();
        let declared = self.check_declared(stream)?;
        if declared.semantics != Semantics::MutableState {
            return Err(Stop::of_author(format!(
                "stream {stream:?} is append_only, so nothing can be deleted from it; declare it mutable_state, or send no tombstones"
            )));
        }
        if !self.filter.wants(stream, &key) {
            self.counts.out_of_scope += 1;
            return Ok(Emitted::OutOfScope);
        }
        if let Some(fault) = rejected::fault_of_key(&key) {
            return self.reject(stream, &key, &fault);
        }
        let emitted_at = Some(Cow::Owned(rfc3339(self.clock.wall())));
        self.send_record(Record { stream: stream.into(), key, op: Op::Delete, data: None, emitted_at })
    }

    fn fault_of(&self, stream: &str, key: &RecordKey<'_>, body: &RawJson<'_>) -> Option<Fault> {
        if let Some(fault) = rejected::fault_of_key(key) {
            return Some(fault);
        }
        if !body.is_object() {
            return Some(Fault::NotAnObject);
        }
        if self.redactor.reveals(body.as_str()) || self.redactor.reveals(&key.canonical()) {
            return Some(Fault::Credential);
        }
        self.schemas.check(stream, body).err().map(|misfit| Fault::Schema(misfit.pointer))
    }

    fn send_record(&mut self, record: Record<'_>) -> Result<Emitted, Stop> {
        self.line.clear();
        let (stream, key) = (record.stream.clone().into_owned(), record.key.clone().into_owned());
        ConnectorMessage::Record(record).encode(&mut self.line);
        // The line feed is not part of the line.
        if self.line.len() > self.line_bytes_max + 1 {
            return self.reject(&stream, &key, &Fault::TooLong);
        }
        self.write_line()?;
        self.counts.sent += 1;
        Ok(Emitted::Sent)
    }

    fn reject(&mut self, stream: &str, key: &RecordKey<'_>, fault: &Fault) -> Result<Emitted, Stop> {
        self.counts.rejected += 1;
        if let Some(skip) = self.rejections.add(self.manifest, stream, key, fault) {
            self.skip(skip)?;
        }
        Ok(Emitted::Rejected)
    }

    /// Writes a gap: a known record that was not collected. Unrequested streams have no gaps.
    ///
    /// # Errors
    ///
    /// The manifest has no such stream, the gap contains the connection's credential, or the runtime no longer reads.
    pub fn gap(&mut self, gap: DetailGap) -> Result<(), Stop> {
        self.check_declared(&gap.stream)?;
        if !self.filter.contains(&gap.stream) {
            return Ok(());
        }
        for raw in [&gap.detail_locator, &gap.list_cursor].into_iter().flatten() {
            self.check_credential(raw.as_str(), "a gap", &gap.stream)?;
        }
        self.counts.gaps += 1;
        self.send(&ConnectorMessage::DetailGap(Box::new(gap)))
    }

    /// Reports that a served gap was attempted.
    ///
    /// # Errors
    ///
    /// The runtime no longer reads.
    pub fn attempted(&mut self, gap: &ServedGap) -> Result<(), Stop> {
        self.send(&ConnectorMessage::DetailGapAttempted(DetailGapAttempted {
            gap_id: gap.gap_id.clone(),
            lease_id: gap.lease_id.clone(),
            stream: gap.stream.clone(),
        }))
    }

    /// Reports that a served gap is closed: the missing record was sent before. Never for a gap that this run wrote
    /// again.
    ///
    /// # Errors
    ///
    /// The runtime no longer reads.
    pub fn recovered(&mut self, gap: &ServedGap) -> Result<(), Stop> {
        self.send(&ConnectorMessage::DetailGapRecovered(DetailGapRecovered {
            gap_id: gap.gap_id.clone(),
            stream: gap.stream.clone(),
            record_key: gap.record_key.clone(),
            lease_id: Some(gap.lease_id.clone()),
        }))
    }

    /// Reports the cursor of a stream. Everything that the cursor covers was sent before, so it is committed once
    /// that is durable. Unrequested streams have no cursor.
    ///
    /// # Errors
    ///
    /// The manifest has no such stream, the cursor contains the connection's credential, or the runtime no longer
    /// reads.
    pub fn slice(&mut self, stream: &str, cursor: &Cursor) -> Result<(), Stop> {
        self.state(stream, cursor, true)
    }

    /// The same for a cursor that is committed when the run succeeds.
    ///
    /// # Errors
    ///
    /// As [`slice`](Self::slice).
    pub fn stage(&mut self, stream: &str, cursor: &Cursor) -> Result<(), Stop> {
        self.state(stream, cursor, false)
    }

    fn state(&mut self, stream: &str, cursor: &Cursor, slice: bool) -> Result<(), Stop> {
        self.check_declared(stream)?;
        if !self.filter.contains(stream) {
            return Ok(());
        }
        // A cursor may have many megabytes, and is copied only to add a pace.
        let text = match self.pacing.as_ref().and_then(SendGovernor::learned) {
            None => serde_json::to_string(cursor)?,
            Some(learned) => {
                let mut written = cursor.clone();
                persist_onto(&mut written, stream, &[stream], Some(&learned))
                    .map_err(|fault| Stop::failed(fault.to_string()))?;
                Value::Object(written).to_string()
            }
        };
        self.check_credential(&text, "a cursor", stream)?;
        let cursor_text = RawJson::new(text).map_err(|fault| Stop::failed(format!("a cursor is not JSON: {fault}")))?;
        self.send(&ConnectorMessage::State(State { stream: stream.into(), cursor: cursor_text, slice }))?;
        // A cursor that waits for the end of the run must not be committed earlier.
        match slice {
            true => drop(self.cursors.insert(stream.to_owned(), cursor.clone())),
            false => drop(self.cursors.remove(stream)),
        }
        Ok(())
    }

    /// Writes the current pace onto an already sent cursor, for the next run.
    pub(crate) fn keep_pace(&mut self) -> Result<(), Stop> {
        if self.pacing.as_ref().and_then(SendGovernor::learned).is_none() {
            return Ok(());
        }
        let Some((stream, cursor)) = self.cursors.iter().next() else { return Ok(()) };
        let (stream, cursor) = (stream.clone(), cursor.clone());
        self.slice(&stream, &cursor)
    }

    /// Writes the coverage report of a detail lane: once per lane and run, after its last record and gap. It may have
    /// a million keys, so `write` writes the line itself, line feed included, in pieces.
    ///
    /// # Errors
    ///
    /// The manifest has no such stream, or the runtime no longer reads.
    pub fn coverage(
        &mut self,
        stream: &str,
        state_stream: &str,
        write: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<(), Stop> {
        self.check_declared(stream)?;
        self.check_declared(state_stream)?;
        if !self.filter.contains(stream) {
            return Ok(());
        }
        if self.is_inside_a_line {
            return Err(Stop::Disconnected);
        }
        self.line.clear();
        self.is_inside_a_line = true;
        let mut pieces = Pieces { wire: &mut *self.wire, piece: &mut self.line };
        // A failure within a line leaves half of it behind, and nothing may follow.
        write(&mut pieces).and_then(|()| io::Write::flush(&mut pieces)).map_err(|_| Stop::Disconnected)?;
        self.is_inside_a_line = false;
        Ok(())
    }

    /// Sends a message for people.
    ///
    /// # Errors
    ///
    /// The runtime no longer reads.
    pub fn say(&mut self, message: impl Into<String>) -> Result<(), Stop> {
        self.progress(Progress { message: message.into(), ..Progress::default() })
    }

    /// The same, with progress.
    ///
    /// # Errors
    ///
    /// When nobody reads any more.
    pub fn progress(&mut self, mut progress: Progress) -> Result<(), Stop> {
        progress.message = self.redactor.mask(&progress.message);
        self.send(&ConnectorMessage::Progress(progress))
    }

    /// Reports that something was skipped.
    ///
    /// # Errors
    ///
    /// When nobody reads any more.
    pub fn skip(&mut self, mut skip: SkipResult) -> Result<(), Stop> {
        skip.message = skip.message.map(|message| self.redactor.mask(&message));
        skip.resources = skip.resources.iter().map(|key| self.redactor.mask(key)).collect();
        let diagnostics = skip.diagnostics.take();
        skip.diagnostics = diagnostics.and_then(|raw| RawJson::new(self.redactor.mask(raw.as_str())).ok());
        self.send(&ConnectorMessage::SkipResult(Box::new(skip)))
    }

    /// The last message.
    pub(crate) fn done(&mut self, done: Done) -> Result<(), Stop> {
        // Nothing may follow it.
        self.wire.hold_asides(true);
        self.send(&ConnectorMessage::Done(done))
    }

    /// Reports rejections that were not reported yet.
    pub(crate) fn report_rejections(&mut self) -> Result<(), Stop> {
        for skip in self.rejections.take_rest() {
            self.skip(skip)?;
        }
        Ok(())
    }

    /// A unique id for a question.
    pub(crate) fn next_request_id(&mut self, kind: &str) -> String {
        self.requests += 1;
        format!("{kind}-{}", self.requests)
    }

    /// Sends a question and waits for the answer that `pick` finds; `None` when the input ended before.
    pub(crate) fn ask<T>(
        &mut self,
        question: &ConnectorMessage<'_>,
        pick: impl Fn(RuntimeMessage) -> Option<T>,
    ) -> Result<Option<T>, Stop> {
        // While a question to the owner is open, any other line is a violation.
        let is_alone = matches!(question, ConnectorMessage::Interaction(_));
        self.wire.hold_asides(is_alone);
        self.send(question)?;
        let mut answer = Err(Stop::failed("the runtime did not answer a question"));
        for _ in 0..UNRELATED_MAX {
            let Some(message) = self.wire.read()? else { return Ok(None) };
            if let Some(picked) = pick(message) {
                answer = Ok(Some(picked));
                break;
            }
        }
        self.wire.hold_asides(false);
        answer
    }

    fn send(&mut self, message: &ConnectorMessage<'_>) -> Result<(), Stop> {
        self.line.clear();
        message.encode(&mut self.line);
        if self.line.len() > self.line_bytes_max + 1 {
            return Err(Stop::of_author(format!(
                "a message of {} bytes is longer than the limit of {} bytes",
                self.line.len(),
                self.line_bytes_max
            )));
        }
        self.write_line()
    }

    /// Nothing may follow half a line: it would be read as part of it.
    fn write_line(&mut self) -> Result<(), Stop> {
        if self.is_inside_a_line {
            return Err(Stop::Disconnected);
        }
        self.wire.write(&self.line)?;
        Ok(())
    }

    fn check_declared(&self, stream: &str) -> Result<&'r gleaner_protocol::StreamManifest, Stop> {
        self.manifest.stream(stream).ok_or_else(|| {
            Stop::of_author(format!("the manifest declares no stream {stream:?}; declare it, or correct its name"))
        })
    }

    fn check_credential(&self, text: &str, what: &str, stream: &str) -> Result<(), Stop> {
        if self.redactor.reveals(text) {
            return Err(Stop::of_author(format!(
                "{what} of stream {stream:?} contains the credential of this connection, which is never stored"
            )));
        }
        Ok(())
    }
}

/// A long line being sent.
struct Pieces<'p> {
    wire: &'p mut dyn Wire,
    piece: &'p mut Vec<u8>,
}

impl io::Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.wire.write(self.piece).map_err(io::Error::other)?;
        self.piece.clear();
        Ok(())
    }
}
