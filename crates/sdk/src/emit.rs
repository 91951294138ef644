//! Everything that a connector says goes through here, and nothing leaves that the contract forbids.
//!
//! A record is held against the scope, its stream's schema and the connection's own credential before it
//! is written. One that was not asked for is left out. One that does not fit is counted and reported, and
//! never counted as collected. A cursor can only be written for a stream of the manifest. Lines are built
//! whole before they go out; a coverage report, which may have a million keys, goes out in pieces.

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

/// A stream's cursor: what the author put into it.
pub type Cursor = Map<String, Value>;

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a record that was not sent is not hydrated"]
pub enum Emitted {
    /// It was sent.
    Sent,
    /// It was not asked for, and was left out.
    OutOfScope,
    /// It does not fit, was counted and reported, and was left out. It is not collected.
    Rejected,
}

/// What went through an emitter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records that were sent, deletions included.
    pub sent: u64,
    /// Records that do not fit.
    pub rejected: u64,
    /// Records that were not asked for.
    pub out_of_scope: u64,
    /// Gaps that were written, those among them that were served before.
    pub gaps: u64,
}

/// A piece of a long line: what a pipe takes at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Messages that may come in between before an answer does. A runtime sends none; this is a bound, not a number to meet.
const UNRELATED_MAX: usize = 1000;

/// Says what was collected.
pub struct Emitter<'r> {
    wire: &'r mut dyn Wire,
    manifest: &'r Manifest,
    schemas: &'r Schemas,
    clock: &'r dyn Clock,
    filter: ScopeFilter,
    redactor: Redactor,
    line: Vec<u8>,
    /// The text of a record, on its way into its line.
    body: Vec<u8>,
    /// The longest line that a runtime reads.
    line_bytes_max: usize,
    /// A line is half written: nothing but its rest may follow.
    is_inside_a_line: bool,
    counts: Counts,
    rejections: Rejections,
    /// Whose learned pace rides on the cursors.
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

    /// Masks these from now on, and lets none of them out in a record, a cursor or a locator.
    pub(crate) fn keep_secret(&mut self, secrets: impl IntoIterator<Item = String>) {
        self.redactor = Redactor::new(secrets);
    }

    /// Masks what the owner answered from now on. It may well stand in a record.
    pub(crate) fn keep_answers(&mut self, answers: impl IntoIterator<Item = String>) {
        self.redactor.learn(answers);
    }

    /// Lets the pace of this governor ride on every cursor from now on.
    pub(crate) fn remember_pace_of(&mut self, governor: SendGovernor) {
        self.pacing = Some(governor);
    }

    /// The cursor that a former run left, so that the pace can be kept on it when nothing new is said.
    pub(crate) fn know_cursor(&mut self, stream: &str, cursor: Cursor) {
        self.cursors.insert(stream.to_owned(), cursor);
    }

    /// The last cursor of a stream that is committed, or will be as soon as it is durable.
    pub(crate) fn last_cursor(&self, stream: &str) -> Option<&Cursor> {
        self.cursors.get(stream)
    }

    /// What went through.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The text without the connection's own secrets.
    pub(crate) fn masked(&self, text: &str) -> String {
        self.redactor.mask(text)
    }

    /// Whether the owner asked for anything of the stream.
    pub fn wants_stream(&self, stream: &str) -> bool {
        self.filter.contains(stream)
    }

    /// Whether the owner asked for the record, as far as its key tells: what need not be fetched.
    pub fn wants<'k>(&self, stream: &str, key: impl Into<RecordKey<'k>>) -> bool {
        self.filter.wants(stream, &key.into())
    }

    /// Sends a record, unless it was not asked for or does not fit.
    ///
    /// # Errors
    ///
    /// When the manifest has no such stream, or nobody reads any more.
    pub fn record<'k, T: Serialize + ?Sized>(
        &mut self,
        stream: &str,
        key: impl Into<RecordKey<'k>>,
        data: &T,
    ) -> Result<Emitted, Stop> {
        // One text for all records: a connector that reads files writes a gigabyte of them.
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

    /// Counts a record that cannot be written as JSON.
    pub(crate) fn reject_unwritable(&mut self, stream: &str, key: &RecordKey<'_>) -> Result<Emitted, Stop> {
        self.check_declared(stream)?;
        self.reject(stream, key, &Fault::NotJson)
    }

    /// The same for a body that is already JSON, kept as it is written.
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

    /// Says that a record was deleted at the provider.
    ///
    /// # Errors
    ///
    /// When the stream only grows: there is no deletion in it. Otherwise as [`record`](Self::record).
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

    /// Writes a gap: something is known and not here. Of a stream that was not asked for nothing is missing.
    ///
    /// # Errors
    ///
    /// When the manifest has no such stream, the gap holds the connection's credential, or nobody reads.
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

    /// Says that a served gap was tried.
    ///
    /// # Errors
    ///
    /// When nobody reads any more.
    pub fn attempted(&mut self, gap: &ServedGap) -> Result<(), Stop> {
        self.send(&ConnectorMessage::DetailGapAttempted(DetailGapAttempted {
            gap_id: gap.gap_id.clone(),
            lease_id: gap.lease_id.clone(),
            stream: gap.stream.clone(),
        }))
    }

    /// Says that a served gap is closed: what was missing was sent before. Never for a gap that this run
    /// wrote again.
    ///
    /// # Errors
    ///
    /// When nobody reads any more.
    pub fn recovered(&mut self, gap: &ServedGap) -> Result<(), Stop> {
        self.send(&ConnectorMessage::DetailGapRecovered(DetailGapRecovered {
            gap_id: gap.gap_id.clone(),
            stream: gap.stream.clone(),
            record_key: gap.record_key.clone(),
            lease_id: Some(gap.lease_id.clone()),
        }))
    }

    /// Says how far a stream is. Everything that the cursor covers was sent before, so it is committed
    /// as soon as that is durable. Of a stream that was not asked for no cursor is kept.
    ///
    /// # Errors
    ///
    /// When the manifest has no such stream, the cursor holds the connection's credential, or nobody reads.
    pub fn slice(&mut self, stream: &str, cursor: &Cursor) -> Result<(), Stop> {
        self.state(stream, cursor, true)
    }

    /// The same for a cursor that is committed when the run has succeeded.
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
        // A cursor may have many megabytes, and is copied only where a pace rides on it.
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
        // A cursor that waits for the end of the run must not be committed before it.
        match slice {
            true => drop(self.cursors.insert(stream.to_owned(), cursor.clone())),
            false => drop(self.cursors.remove(stream)),
        }
        Ok(())
    }

    /// Writes the pace once more onto a cursor that was said already, for the next run to begin with.
    pub(crate) fn keep_pace(&mut self) -> Result<(), Stop> {
        if self.pacing.as_ref().and_then(SendGovernor::learned).is_none() {
            return Ok(());
        }
        let Some((stream, cursor)) = self.cursors.iter().next() else { return Ok(()) };
        let (stream, cursor) = (stream.clone(), cursor.clone());
        self.slice(&stream, &cursor)
    }

    /// Writes the account of a detail lane: once per lane and run, after its last record and gap. It may
    /// have a million keys, so `write` writes the line itself, line feed included, and it goes out in pieces.
    ///
    /// # Errors
    ///
    /// When the manifest has no such stream, or nobody reads any more.
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
        // Whatever fails in the middle of a line leaves half of it behind, and nothing may follow.
        write(&mut pieces).and_then(|()| io::Write::flush(&mut pieces)).map_err(|_| Stop::Disconnected)?;
        self.is_inside_a_line = false;
        Ok(())
    }

    /// Says something for people.
    ///
    /// # Errors
    ///
    /// When nobody reads any more.
    pub fn say(&mut self, message: impl Into<String>) -> Result<(), Stop> {
        self.progress(Progress { message: message.into(), ..Progress::default() })
    }

    /// The same, with how far it is.
    ///
    /// # Errors
    ///
    /// When nobody reads any more.
    pub fn progress(&mut self, mut progress: Progress) -> Result<(), Stop> {
        progress.message = self.redactor.mask(&progress.message);
        self.send(&ConnectorMessage::Progress(progress))
    }

    /// Says that something was left out.
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

    /// Reports what was rejected and not reported yet.
    pub(crate) fn report_rejections(&mut self) -> Result<(), Stop> {
        for skip in self.rejections.take_rest() {
            self.skip(skip)?;
        }
        Ok(())
    }

    /// A name for a question, of which each has its own.
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
        let mut answer = Err(Stop::failed("the runtime does not answer what it is asked"));
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
                "a message of {} bytes is longer than a runtime reads ({} bytes)",
                self.line.len(),
                self.line_bytes_max
            )));
        }
        self.write_line()
    }

    /// Nothing goes out behind half a line: it would be read as part of it.
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
                "{what} of stream {stream:?} holds the credential of this connection, which is never kept"
            )));
        }
        Ok(())
    }
}

/// A long line on its way out.
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
