//! What a run does with a folder of exports: reads those that are new or changed, message after message.
//!
//! An export is a snapshot, and the next one of the same chat has everything again. So a message's key is made of what
//! it says and when, and what was sent already is known by it. Of a text that only grew, what lies before is not even
//! sent again. An export that is removed from the folder takes nothing away: it was never the chat itself.

use super::export::{self, Export, Loaded, TEXT_BYTES_MAX};
use super::parse::Message;
use super::stamps::{DateOrder, LocalTime};
use super::words::Body;
use crate::files::{
    FilePath, Found, Listing, Mark, Marks, Opened, Place, Root, Trouble, Troubles, scope_word, setting,
};
use gleaner_sdk::protocol::{Progress, RecoveryAction, SkipResult};
use gleaner_sdk::{Collect, Connector, Cursor, Emitted, Emitter, Left, SliceEnd, Stop};
use jiff::civil;
use jiff::tz::TimeZone;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use xxhash_rust::xxh3::Xxh3;

const STREAMS: [&str; 3] = ["attachments", "chats", "messages"];
const FOLDER: &str = "WHATSAPP_EXPORT_DIR";
const ZONE: &str = "WHATSAPP_TIME_ZONE";
/// How much text a slice has: some thousand messages.
const SLICE_BYTES: usize = 256 * 1024;
/// A slice has at least this many times what its cursor takes.
const CURSOR_SHARE: usize = 16;
/// What an export counts for besides its text: it has to be opened.
const EXPORT_COST: usize = 4096;
/// Senders of one chat that are told. A group has 1024 members at most.
const PARTICIPANTS_MAX: usize = 2000;

#[derive(Debug)]
pub(crate) struct WhatsApp;

impl Connector for WhatsApp {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        let Some(place) = Place::set(FOLDER)? else {
            let what = format!(
                "WhatsApp has no place of its own for exports; put them into a folder and set {FOLDER} (or `--set export_dir=`) to it"
            );
            return Err(Stop::for_good(what, RecoveryAction::ManualActionRequired));
        };
        let Some(carrier) = STREAMS.into_iter().find(|stream| run.scope(stream).is_some()) else { return Ok(()) };
        let zone = zone()?;
        let root = place.open()?;
        let listing = root.walk(|_| true).map_err(|error| place.fault(&error))?;
        // Another zone makes other times of the same exports.
        let scope = format!("{} {}", scope_word(run, &STREAMS), zone.iana_name().unwrap_or("local"));
        let marks = Marks::of_cursor(run.cursor(carrier), &scope);
        let troubles = Troubles::new(carrier, run.take_gaps(carrier)?);
        let mut work = Work::new(&root, zone, marks, listing, troubles);
        work.tell_listing(run.emitter(), &place.path.to_string_lossy())?;
        let left = run.slices(carrier, |emitter| {
            let is_last = work.slice(emitter)?;
            // The cursor of one stream covers all; the others say that theirs is up to it, so that what another export
            // says of the same message comes after a cursor.
            for other in STREAMS.into_iter().filter(|stream| *stream != carrier) {
                emitter.slice(other, &Cursor::from_iter([("as_far_as".to_owned(), carrier.into())]))?;
            }
            let cursor = work.marks.to_cursor(&scope);
            Ok(if is_last { SliceEnd::Last(cursor) } else { SliceEnd::Then(cursor) })
        })?;
        if left == Left::Finished {
            STREAMS.iter().for_each(|stream| run.finished(stream));
        }
        Ok(())
    }
}

/// Exports have no zone. They were written where the phone was; the best guess is where this machine is.
fn zone() -> Result<TimeZone, Stop> {
    let Some(name) = setting(ZONE) else { return Ok(TimeZone::try_system().unwrap_or(TimeZone::UTC)) };
    let name = name.to_string_lossy().into_owned();
    TimeZone::get(&name).map_err(|_| {
        let what = format!("{ZONE} is {name:?}, which is no time zone; give a name like Europe/Berlin");
        Stop::for_good(what, RecoveryAction::ManualActionRequired)
    })
}

struct Work<'w> {
    root: &'w Root,
    zone: TimeZone,
    marks: Marks,
    troubles: Troubles,
    /// Exports that are new or changed, the first last.
    exports: Vec<Found>,
    /// Sizes of the other files: what was sent may lie beside its text.
    files: BTreeMap<String, u64>,
    unreadable: Vec<(FilePath, io::ErrorKind)>,
    is_cut: bool,
    current: Option<Current>,
    /// Texts and archives that are no exports.
    others: u64,
}

/// An export that is being sent.
struct Current {
    path: FilePath,
    opened: Opened,
    loaded: Loaded,
    chat_id: String,
    /// Its chat was sent.
    is_told: bool,
    /// The next message.
    at: usize,
}

impl<'w> Work<'w> {
    fn new(root: &'w Root, zone: TimeZone, marks: Marks, listing: Listing, troubles: Troubles) -> Self {
        let Listing { files: found, unreadable, is_cut, .. } = listing;
        let is_export = |found: &Found| found.path.has_extension("txt") || found.path.has_extension("zip");
        let (mut exports, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_export);
        exports.retain(|found| !marks.is_same(found));
        exports.sort_unstable_by(|one, other| other.path.cmp(&one.path));
        let files = others.into_iter().map(|found| (found.path.text(), found.stamp.size)).collect();
        Self { root, zone, marks, troubles, exports, files, unreadable, is_cut, current: None, others: 0 }
    }

    fn tell_listing(&mut self, emitter: &mut Emitter<'_>, place: &str) -> Result<(), Stop> {
        for (folder, why) in std::mem::take(&mut self.unreadable) {
            self.troubles.unreadable(emitter, &folder, why)?;
        }
        if self.is_cut {
            self.troubles.tell(emitter, Trouble::TooManyFiles, place, None)?;
        }
        Ok(())
    }

    /// Sends one slice; whether it was the last.
    fn slice(&mut self, emitter: &mut Emitter<'_>) -> Result<bool, Stop> {
        let budget = SLICE_BYTES.max(self.marks.bytes() * CURSOR_SHARE);
        let (mut spent, mut chats) = (0, BTreeSet::new());
        while spent < budget {
            let Some(mut current) = self.next_export(emitter)? else {
                self.finish(emitter)?;
                return Ok(true);
            };
            // Another export of a chat may say something else about a message. Between two cursors a key has one content.
            if !chats.insert(current.chat_id.clone()) {
                self.current = Some(current);
                return Ok(false);
            }
            if !current.is_told {
                let _: Emitted = emitter.record("chats", &current.chat_id, &self.chat_record(&current))?;
                current.is_told = true;
            }
            spent += EXPORT_COST;
            let is_whole = self.send(&mut current, budget, &mut spent, emitter)?;
            self.leave(&current, is_whole, emitter)?;
            if !is_whole {
                self.current = Some(current);
            }
        }
        let message =
            format!("{} exports are still to be read", self.exports.len() + usize::from(self.current.is_some()));
        emitter.progress(Progress { message, ..Progress::default() })?;
        Ok(false)
    }

    /// The export to go on with.
    fn next_export(&mut self, emitter: &mut Emitter<'_>) -> Result<Option<Current>, Stop> {
        if let Some(current) = self.current.take() {
            return Ok(Some(current));
        }
        while let Some(found) = self.exports.pop() {
            let path = found.path;
            let opened = match self.root.open_file(&path) {
                Ok(opened) => opened,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.troubles.unreadable(emitter, &path, error.kind())?;
                    continue;
                }
            };
            match export::load(&path, &opened) {
                Ok(Export::Chat(loaded)) => return self.begin(path, opened, *loaded, emitter).map(Some),
                Ok(other) => self.leave_out(&path, &opened, &other, emitter)?,
                Err(error) => self.troubles.unreadable(emitter, &path, error.kind())?,
            }
        }
        Ok(None)
    }

    fn begin(
        &mut self,
        path: FilePath,
        opened: Opened,
        loaded: Loaded,
        emitter: &mut Emitter<'_>,
    ) -> Result<Current, Stop> {
        let name = path.text();
        if loaded.has_wrong_encoding {
            self.troubles.tell(emitter, Trouble::WrongEncoding, &name, None)?;
        }
        if loaded.chat.lines_before > 0 {
            let what = format!("{} lines before the first message belong to none: {name}", loaded.chat.lines_before);
            emitter.skip(skip("lines_before_first_message", what, &name))?;
        }
        let sent = self.marks.get(&path).and_then(|mark| sent_before(&mark.note, loaded.chat.text()));
        let at = sent.map_or(0, |byte| loaded.chat.at_byte(byte));
        let chat_id = key(&["chat", &loaded.name]);
        Ok(Current { path, opened, loaded, chat_id, is_told: false, at })
    }

    /// Sends messages; whether it was the last.
    fn send(
        &self,
        current: &mut Current,
        budget: usize,
        spent: &mut usize,
        emitter: &mut Emitter<'_>,
    ) -> Result<bool, Stop> {
        let length = current.loaded.chat.len();
        while current.at < length {
            let Some(message) = current.loaded.chat.message(current.at) else { break };
            let start = message.start;
            self.send_message(current, message, emitter)?;
            current.at += 1;
            let end = current.loaded.chat.message_start(current.at);
            *spent += end - start;
            if *spent >= budget {
                return Ok(current.at == length);
            }
        }
        Ok(true)
    }

    fn send_message(&self, current: &Current, message: Message, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        let id = message_key(&current.chat_id, &message);
        let sent_at = message.time.map(|time| self.instant(time));
        let (kind, text, name) = match message.body {
            Body::Text(text) => ("message", Some(text), None),
            Body::Media { name, caption } => ("media", Some(caption).filter(|text| !text.is_empty()), name),
            Body::Deleted => ("deleted", None, None),
            Body::Notice(text) => ("notice", Some(text), None),
        };
        if let Some(name) = &name {
            let attachment = AttachmentRecord {
                id: key(&["attachment", &id, name]),
                message_id: &id,
                chat_id: &current.chat_id,
                name,
                bytes: self.size_of(current, name),
                sent_at: sent_at.as_ref().map(|(instant, _)| instant.as_str()),
            };
            let _: Emitted = emitter.record("attachments", &attachment.id, &attachment)?;
        }
        let record = MessageRecord {
            id: &id,
            chat_id: &current.chat_id,
            chat_name: &current.loaded.name,
            sent_at: sent_at.as_ref().map(|(instant, _)| instant.as_str()),
            local_time: sent_at.as_ref().map(|(_, local)| local.as_str()),
            sender: message.sender.as_deref(),
            kind,
            text,
            attachment_name: name.as_deref(),
            is_edited: message.is_edited,
        };
        let _: Emitted = emitter.record("messages", &id, &record)?;
        Ok(())
    }

    /// The instant, and what the phone showed.
    fn instant(&self, time: LocalTime) -> (String, String) {
        let LocalTime { year, month, day, hour, minute, second } = time;
        // Each part was held against the calendar.
        let local = civil::DateTime::new(year, month, day, hour, minute, second, 0).unwrap_or_default();
        let instant = self.zone.to_ambiguous_timestamp(local).compatible().unwrap_or_default();
        (instant.display_with_offset(self.zone.to_offset(instant)).to_string(), local.to_string())
    }

    /// How large a file is that is in the archive, or beside the text.
    fn size_of(&self, current: &Current, name: &str) -> Option<u64> {
        match &current.loaded.archived {
            Some(archived) => archived.get(name).copied(),
            None => {
                let beside = current.path.folders().into_iter().chain([name.to_owned()]).collect::<Vec<_>>().join("/");
                self.files.get(&beside).copied()
            }
        }
    }

    fn chat_record<'c>(&self, current: &'c Current) -> ChatRecord<'c> {
        let chat = &current.loaded.chat;
        let mut participants = BTreeSet::new();
        let (mut first, mut last) = (None, None);
        for message in (0..chat.len()).filter_map(|at| chat.message(at)) {
            if let Some(sender) = message.sender.filter(|_| participants.len() < PARTICIPANTS_MAX) {
                participants.insert(sender);
            }
            first = first.or(message.time);
            last = message.time.or(last);
        }
        let instant = |time: Option<LocalTime>| time.map(|time| self.instant(time).0);
        ChatRecord {
            id: &current.chat_id,
            name: &current.loaded.name,
            participants,
            first_message_at: instant(first),
            last_message_at: instant(last),
            messages: chat.len(),
            date_order: match chat.order {
                DateOrder::Day => "day_first",
                DateOrder::Month => "month_first",
                DateOrder::Year => "year_first",
            },
            date_order_is_certain: chat.order_is_told,
        }
    }

    /// An export that is none, or too large. It is looked at again when it changes.
    fn leave_out(
        &mut self,
        path: &FilePath,
        opened: &Opened,
        export: &Export,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), Stop> {
        let name = path.text();
        match export {
            Export::Chat(_) => {}
            Export::NotAChat => self.others += 1,
            Export::TooLarge => {
                let what =
                    format!("the text of the chat has more than {} MiB and was left out: {name}", TEXT_BYTES_MAX >> 20);
                emitter.skip(skip("file_too_large", what, &name))?;
            }
            Export::TooManyMessages => {
                let what = format!("the chat has more messages than any export has and was left out: {name}");
                emitter.skip(skip("too_many_messages", what, &name))?;
            }
            Export::Broken(why) => emitter.skip(skip("archive_not_readable", format!("{why}: {name}"), &name))?,
        }
        self.mark(path, opened, true, String::new(), emitter)
    }

    fn leave(&mut self, current: &Current, is_finished: bool, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        let chat = &current.loaded.chat;
        // The last message may go on in a longer export, so it is sent again.
        let at = if is_finished { current.at.saturating_sub(1) } else { current.at };
        let note = note_of(&chat.text()[..chat.message_start(at)]);
        self.mark(&current.path, &current.opened, is_finished, note, emitter)
    }

    fn mark(
        &mut self,
        path: &FilePath,
        opened: &Opened,
        is_finished: bool,
        note: String,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), Stop> {
        match Mark::new(opened, 0, is_finished, note) {
            Ok(mark) => match self.marks.set(path, mark) {
                true => Ok(()),
                false => self.troubles.tell(emitter, Trouble::NotMarked, &path.text(), None),
            },
            Err(error) => self.troubles.unreadable(emitter, path, error.kind()),
        }
    }

    fn finish(&mut self, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        if self.others > 0 {
            let message = format!("{} texts or archives in the folder are no exported chats", self.others);
            emitter.progress(Progress { message, ..Progress::default() })?;
        }
        self.troubles.close(emitter)
    }
}

fn skip(reason: &str, message: String, resource: &str) -> SkipResult {
    SkipResult {
        stream: Some("messages".to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message),
        resources: vec![resource.to_owned()],
        ..SkipResult::default()
    }
}

/// How far a text was sent, and a sum over it: a longer export that begins with it goes on there.
fn note_of(sent: &str) -> String {
    format!("{:x}.{:016x}", sent.len(), xxhash_rust::xxh3::xxh3_64(sent.as_bytes()))
}

/// The byte up to which this text was sent; `None` when it is another text.
fn sent_before(note: &str, text: &str) -> Option<usize> {
    let bytes = usize::from_str_radix(note.split_once('.')?.0, 16).ok()?;
    (note == note_of(text.get(..bytes)?)).then_some(bytes)
}

fn message_key(chat_id: &str, message: &Message) -> String {
    let (kind, text) = message.body.identity();
    let sender = message.sender.as_deref().unwrap_or_default();
    key(&[chat_id, &message.stamp, sender, &kind.to_string(), text, &message.occurrence.to_string()])
}

/// A name made of parts, each told apart from the next.
fn key(parts: &[&str]) -> String {
    let mut hash = Xxh3::new();
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    format!("{:032x}", hash.digest128())
}

#[derive(Serialize)]
struct ChatRecord<'c> {
    id: &'c str,
    name: &'c str,
    participants: BTreeSet<String>,
    first_message_at: Option<String>,
    last_message_at: Option<String>,
    messages: usize,
    date_order: &'static str,
    date_order_is_certain: bool,
}

#[derive(Serialize)]
struct MessageRecord<'m> {
    id: &'m str,
    chat_id: &'m str,
    chat_name: &'m str,
    sent_at: Option<&'m str>,
    local_time: Option<&'m str>,
    sender: Option<&'m str>,
    kind: &'static str,
    text: Option<String>,
    attachment_name: Option<&'m str>,
    is_edited: bool,
}

#[derive(Serialize)]
struct AttachmentRecord<'m> {
    id: String,
    message_id: &'m str,
    chat_id: &'m str,
    name: &'m str,
    bytes: Option<u64>,
    sent_at: Option<&'m str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_text_goes_on_and_another_one_begins_anew() {
        let note = note_of("abc");
        assert_eq!(sent_before(&note, "abcdef"), Some(3));
        assert_eq!(sent_before(&note, "abc"), Some(3));
        for other in ["abd", "ab", "", "ä"] {
            assert_eq!(sent_before(&note, other), None, "{other}");
        }
        assert_eq!(sent_before("", "abc"), None);
    }

    #[test]
    fn the_parts_of_a_key_do_not_run_together() {
        assert_ne!(key(&["a", "bc"]), key(&["ab", "c"]));
    }
}
