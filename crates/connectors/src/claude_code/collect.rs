//! What becomes a record: sessions, messages, calls of tools with their results, and an inventory of the rest.
//!
//! A session is a file named after it. Files of helpers (`agent-…`) belong to the session that started them and are none
//! themselves. What is in a line twice (a tool's result is, once for the model and once for the screen) is collected once.

use super::parse::{Attachment, Beginning, Block, Entry, Message, Source};
use crate::files::FilePath;
use crate::files::jsonl::{LineRead, Transcripts};
use crate::loose::{Joined, is_object, is_string, list, preview};
use gleaner_sdk::{Emitted, Emitter, Stop};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_128;

const SESSIONS: &str = "sessions";
const MESSAGES: &str = "messages";
const TOOL_CALLS: &str = "tool_calls";
const TOOL_RESULTS: &str = "tool_results";
const ATTACHMENTS: &str = "attachments";
const STREAMS: [&str; 5] = [SESSIONS, MESSAGES, TOOL_CALLS, TOOL_RESULTS, ATTACHMENTS];

/// How much of an event is shown in the inventory: enough to know it again.
const PREVIEW_CHARACTERS: usize = 200;
/// What files of helpers begin with.
const AGENT: &str = "agent-";

/// The source: every `*.jsonl` beneath the folder of projects.
pub(super) struct Sessions;

/// One file while it is read.
pub(super) struct SessionFile {
    /// The session that it is, or belongs to.
    session_id: String,
    is_session: bool,
    project: Option<String>,
    beginning: Beginning,
    message_count: u64,
    last_event_at: Option<String>,
}

impl Transcripts for Sessions {
    type File = SessionFile;

    fn streams(&self) -> &'static [&'static str] {
        &STREAMS
    }

    fn is_wanted(&self, path: &FilePath) -> bool {
        path.has_extension("jsonl")
    }

    fn open(&self, path: &FilePath, note: Option<&str>, head: &[u8]) -> SessionFile {
        let beginning = Beginning::read(head);
        let (stem, mut kept) = (path.stem(), note.unwrap_or_default().splitn(2, ' '));
        let is_session = !stem.starts_with(AGENT);
        let own = beginning.session_id.clone().filter(|_| !is_session);
        SessionFile {
            session_id: own.unwrap_or(stem),
            is_session,
            project: path.folders().into_iter().next(),
            message_count: kept.next().and_then(|count| count.parse().ok()).unwrap_or(0),
            last_event_at: kept.next().map(ToOwned::to_owned),
            beginning,
        }
    }

    fn line(&self, file: &mut SessionFile, line: &str, emitter: &mut Emitter<'_>) -> Result<LineRead, Stop> {
        let Some(entry) = Entry::parse(line) else { return Ok(LineRead::NotAtAll) };
        if let Some(time) = entry.timestamp.get()
            && file.last_event_at.as_deref().is_none_or(|last| last < time)
        {
            file.last_event_at = Some(time.to_owned());
        }
        match entry.turn() {
            Some(message) => {
                file.message_count += 1;
                Turn { entry: &entry, message: &message, session_id: &file.session_id }.send(emitter)
            }
            None => send_event(&entry, line, &file.session_id, emitter).map(|()| LineRead::Whole),
        }
    }

    fn end(&self, file: &mut SessionFile, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        // A file with nothing but a title in it is no session.
        if !file.is_session || (file.message_count == 0 && file.last_event_at.is_none()) {
            return Ok(());
        }
        let beginning = &file.beginning;
        let record = Session {
            id: &file.session_id,
            project_path: file.project.as_deref(),
            cwd: beginning.cwd.as_deref(),
            git_branch: beginning.git_branch.as_deref(),
            version: beginning.version.as_deref(),
            started_at: beginning.started_at.as_deref(),
            last_event_at: file.last_event_at.as_deref(),
            message_count: file.message_count,
            user_type: beginning.user_type.as_deref(),
            entrypoint: beginning.entrypoint.as_deref(),
        };
        let _: Emitted = emitter.record(SESSIONS, file.session_id.as_str(), &record)?;
        Ok(())
    }

    fn note(&self, file: &SessionFile) -> String {
        match &file.last_event_at {
            Some(last) => format!("{} {last}", file.message_count),
            None => file.message_count.to_string(),
        }
    }

    fn gone(&self, path: &FilePath, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        let stem = path.stem();
        if !stem.starts_with(AGENT) {
            let _: Emitted = emitter.tombstone(SESSIONS, stem.as_str())?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Session<'a> {
    id: &'a str,
    project_path: Option<&'a str>,
    cwd: Option<&'a str>,
    git_branch: Option<&'a str>,
    version: Option<&'a str>,
    started_at: Option<&'a str>,
    last_event_at: Option<&'a str>,
    message_count: u64,
    user_type: Option<&'a str>,
    entrypoint: Option<&'a str>,
}

/// A turn of the conversation, and everything in it.
struct Turn<'t, 'a> {
    entry: &'t Entry<'a>,
    message: &'t Message<'a>,
    session_id: &'t str,
}

#[derive(Serialize)]
struct MessageRecord<'a> {
    id: &'a str,
    session_id: &'a str,
    parent_uuid: Option<&'a str>,
    role: Option<&'a str>,
    r#type: Option<&'a str>,
    content: Option<Cow<'a, RawValue>>,
    thinking: Option<Cow<'a, RawValue>>,
    timestamp: Option<&'a str>,
    is_sidechain: Option<bool>,
    user_type: Option<&'a str>,
    agent_id: Option<&'a str>,
    model: Option<&'a str>,
    stop_reason: Option<&'a str>,
    usage: Option<&'a RawValue>,
}

impl Turn<'_, '_> {
    fn send(&self, emitter: &mut Emitter<'_>) -> Result<LineRead, Stop> {
        let id = self.entry.uuid.or_empty();
        let (mut content, mut thinking) = (Joined::default(), Joined::default());
        let (blocks, mut is_whole) = self.message.blocks();
        if let Some(text) = self.message.content {
            content.add(text);
        }
        for (number, block) in blocks.iter().enumerate() {
            block.text.into_iter().for_each(|text| content.add(text));
            block.thinking.into_iter().for_each(|text| thinking.add(text));
            match block.kind.or_empty() {
                "tool_use" | "server_tool_use" => {
                    content.add_words(&format!("[tool_use: {}]", block.name.or_empty()));
                    is_whole &= self.send_call(block, emitter)?;
                }
                "tool_result" => {
                    content.add_words("[tool_result]");
                    is_whole &= self.send_result(block, emitter)?;
                }
                "image" | "document" => {
                    content.add_words(&format!("[{}]", block.kind.or_empty()));
                    self.send_media(block, &format!("{id}:{number}"), None, emitter)?;
                }
                _ => {}
            }
        }
        let entry = self.entry;
        let record = MessageRecord {
            id,
            session_id: self.session_id,
            parent_uuid: entry.parent_uuid.get(),
            role: self.message.role.get(),
            r#type: entry.kind.get(),
            content: content.into_raw(),
            thinking: thinking.into_raw(),
            timestamp: entry.timestamp.get(),
            is_sidechain: entry.is_sidechain.0,
            user_type: entry.user_type.get(),
            agent_id: entry.agent_id.get(),
            model: self.message.model.get(),
            stop_reason: self.message.stop_reason.get(),
            usage: self.message.usage.filter(|usage| is_object(usage)),
        };
        let _: Emitted = emitter.record(MESSAGES, id, &record)?;
        Ok(if is_whole { LineRead::Whole } else { LineRead::InPart })
    }

    /// Answers whether the call has an id by which it can be stored.
    fn send_call(&self, block: &Block<'_>, emitter: &mut Emitter<'_>) -> Result<bool, Stop> {
        #[derive(Serialize)]
        struct Call<'a> {
            id: &'a str,
            session_id: &'a str,
            message_id: &'a str,
            name: Option<&'a str>,
            input: Option<&'a RawValue>,
            timestamp: Option<&'a str>,
        }
        let Some(id) = block.id.get() else { return Ok(false) };
        let record = Call {
            id,
            session_id: self.session_id,
            message_id: self.entry.uuid.or_empty(),
            name: block.name.get(),
            input: block.input,
            timestamp: self.entry.timestamp.get(),
        };
        let _: Emitted = emitter.record(TOOL_CALLS, id, &record)?;
        Ok(true)
    }

    /// Answers whether all of it could be read and stored.
    fn send_result(&self, block: &Block<'_>, emitter: &mut Emitter<'_>) -> Result<bool, Stop> {
        #[derive(Serialize)]
        struct ToolResult<'a> {
            id: &'a str,
            session_id: &'a str,
            message_id: &'a str,
            is_error: Option<bool>,
            content: Option<Cow<'a, RawValue>>,
            timestamp: Option<&'a str>,
        }
        let Some(id) = block.tool_use_id.get() else { return Ok(false) };
        let mut content = Joined::default();
        let (parts, is_whole) = block.content.map_or_else(|| (Vec::new(), true), list::<Block<'_>>);
        block.content.into_iter().for_each(|text| content.add(text));
        for (number, part) in parts.iter().enumerate() {
            part.text.into_iter().for_each(|text| content.add(text));
            if part.source.is_some() {
                content.add_words(&format!("[{}]", part.kind.or_empty()));
                self.send_media(part, &format!("{id}:{number}"), Some(id), emitter)?;
            }
        }
        let record = ToolResult {
            id,
            session_id: self.session_id,
            message_id: self.entry.uuid.or_empty(),
            is_error: block.is_error.0,
            content: content.into_raw(),
            timestamp: self.entry.timestamp.get(),
        };
        let _: Emitted = emitter.record(TOOL_RESULTS, id, &record)?;
        Ok(is_whole)
    }

    /// A picture or a document: that it is there, of which kind and how large; not what is in it.
    fn send_media(
        &self,
        block: &Block<'_>,
        id: &str,
        tool_use_id: Option<&str>,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), Stop> {
        let source =
            block.source.and_then(|raw| serde_json::from_str::<Source<'_>>(raw.get()).ok()).unwrap_or_default();
        let record = AttachmentRecord {
            id,
            session_id: self.session_id,
            parent_uuid: self.entry.uuid.get(),
            event_type: block.kind.get(),
            hook_name: None,
            tool_use_id,
            media_type: source.media_type.get(),
            content_preview: block.title.get().map(ToOwned::to_owned),
            content_bytes: source.data.filter(|data| is_string(data)).map(|data| decoded_bytes(data.get())),
            timestamp: self.entry.timestamp.get(),
        };
        let _: Emitted = emitter.record(ATTACHMENTS, id, &record)?;
        Ok(())
    }
}

#[derive(Serialize)]
struct AttachmentRecord<'a> {
    id: &'a str,
    session_id: &'a str,
    parent_uuid: Option<&'a str>,
    event_type: Option<&'a str>,
    hook_name: Option<&'a str>,
    tool_use_id: Option<&'a str>,
    media_type: Option<&'a str>,
    content_preview: Option<String>,
    content_bytes: Option<u64>,
    timestamp: Option<&'a str>,
}

/// A line that is no turn: that it happened, and its beginning where it is a text.
fn send_event(entry: &Entry<'_>, line: &str, session_id: &str, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
    // Lines without a name of their own are known by what they say.
    let id = match entry.uuid.get() {
        Some(uuid) => Cow::Borrowed(uuid),
        None => Cow::Owned(format!("{session_id}:{:032x}", xxh3_128(line.as_bytes()))),
    };
    let attached = entry.attachment.and_then(|raw| serde_json::from_str::<Attachment<'_>>(raw.get()).ok());
    let attached = attached.unwrap_or_default();
    let text = [entry.content, entry.summary, attached.content].into_iter().flatten().find(|raw| is_string(raw));
    let kind = attached.kind.get().or_else(|| entry.subtype.get());
    let kind = kind.map_or_else(
        || Cow::Borrowed(entry.kind.or_empty()),
        |kind| format!("{}:{kind}", entry.kind.or_empty()).into(),
    );
    let record = AttachmentRecord {
        id: &id,
        session_id: entry.session_id.get().unwrap_or(session_id),
        parent_uuid: entry.parent_uuid.get(),
        event_type: Some(&kind),
        hook_name: attached.hook_name.get(),
        tool_use_id: attached.tool_use_id.get().or_else(|| entry.tool_use_id.get()),
        media_type: None,
        content_preview: text.and_then(|raw| preview(raw, PREVIEW_CHARACTERS)),
        content_bytes: Some(line.len() as u64),
        timestamp: entry.timestamp.get(),
    };
    let _: Emitted = emitter.record(ATTACHMENTS, &*id, &record)?;
    Ok(())
}

/// How many bytes a quoted base64 text stands for.
fn decoded_bytes(quoted: &str) -> u64 {
    let text = quoted.trim_matches('"').trim_end_matches('=');
    text.len() as u64 * 3 / 4
}
