//! What becomes a record: sessions, messages, calls of tools with their results, and an inventory of the rest.
//!
//! A session is a file named after it. Files of helpers (`agent-…`) belong to the session that started them and are none
//! themselves. What is in a line twice (a tool's result is, once for the model and once for the screen) is collected once.

use super::parse::{Beginning, turn};
use crate::files::FilePath;
use crate::files::jsonl::{LineRead, Transcripts, later};
use crate::loose::{Joined, Object, is_object, is_string, preview};
use crate::record::record;
use gleaner_sdk::{Emitter, Stop};
use serde::Serialize;
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_128;

const SESSIONS: &str = "sessions";
const MESSAGES: &str = "messages";
const TOOL_CALLS: &str = "tool_calls";
const TOOL_RESULTS: &str = "tool_results";
const ATTACHMENTS: &str = "attachments";

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

    const STREAMS: &'static [&'static str] = &[SESSIONS, MESSAGES, TOOL_CALLS, TOOL_RESULTS, ATTACHMENTS];

    fn is_wanted(&self, path: &FilePath) -> bool {
        path.has_extension("jsonl")
    }

    fn open(&self, path: &FilePath, note: Option<&str>, head: &[u8]) -> SessionFile {
        let beginning = Beginning::read(head);
        let (stem, mut kept) = (path.stem(), note.unwrap_or_default().splitn(2, ' '));
        let is_session = !stem.starts_with(AGENT);
        let own = beginning.get("sessionId").filter(|_| !is_session).map(ToOwned::to_owned);
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
        let Some(entry) = Object::parse(line) else { return Ok(LineRead::NotAtAll) };
        later(&mut file.last_event_at, entry.text("timestamp"));
        match turn(&entry) {
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
        let record = record! {
            id: &file.session_id,
            project_path: &file.project,
            cwd: beginning.get("cwd"),
            git_branch: beginning.get("gitBranch"),
            version: beginning.get("version"),
            started_at: beginning.get("timestamp"),
            last_event_at: &file.last_event_at,
            message_count: file.message_count,
            user_type: beginning.get("userType"),
            entrypoint: beginning.get("entrypoint"),
        };
        emitter.record(SESSIONS, file.session_id.as_str(), &record).map(drop)
    }

    fn note(&self, file: &SessionFile) -> String {
        match &file.last_event_at {
            Some(last) => format!("{} {last}", file.message_count),
            None => file.message_count.to_string(),
        }
    }

    fn gone(&self, path: &FilePath, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        let stem = path.stem();
        if stem.starts_with(AGENT) { Ok(()) } else { emitter.tombstone(SESSIONS, stem.as_str()).map(drop) }
    }
}

/// A turn of the conversation, and everything in it.
struct Turn<'t, 'a> {
    entry: &'t Object<'a>,
    message: &'t Object<'a>,
    session_id: &'t str,
}

impl Turn<'_, '_> {
    fn send(&self, emitter: &mut Emitter<'_>) -> Result<LineRead, Stop> {
        let Self { entry, message, session_id } = self;
        let id = &*entry.text_or_empty("uuid");
        let (mut content, mut thinking) = (Joined::default(), Joined::default());
        let (blocks, mut is_whole) = message.objects("content");
        message.raw("content").into_iter().for_each(|text| content.add(text));
        for (number, block) in blocks.iter().enumerate() {
            block.raw("text").into_iter().for_each(|text| content.add(text));
            block.raw("thinking").into_iter().for_each(|text| thinking.add(text));
            match &*block.text_or_empty("type") {
                "tool_use" | "server_tool_use" => {
                    content.add_words(&format!("[tool_use: {}]", block.text_or_empty("name")));
                    is_whole &= self.send_call(block, emitter)?;
                }
                "tool_result" => {
                    content.add_words("[tool_result]");
                    is_whole &= self.send_result(block, emitter)?;
                }
                kind @ ("image" | "document") => {
                    content.add_words(&format!("[{kind}]"));
                    self.send_media(block, &format!("{id}:{number}"), None, emitter)?;
                }
                _ => {}
            }
        }
        let record = record! {
            id,
            session_id,
            parent_uuid: entry.text("parentUuid"),
            role: message.text("role"),
            r#type: entry.text("type"),
            content: content.into_raw(),
            thinking: thinking.into_raw(),
            timestamp: entry.text("timestamp"),
            is_sidechain: entry.flag("isSidechain"),
            user_type: entry.text("userType"),
            agent_id: entry.text("agentId"),
            model: message.text("model"),
            stop_reason: message.text("stop_reason"),
            usage: message.raw("usage").filter(|usage| is_object(usage)),
        };
        emitter.record(MESSAGES, id, &record).map(|_| if is_whole { LineRead::Whole } else { LineRead::InPart })
    }

    /// Answers whether the call has an id by which it can be stored.
    fn send_call(&self, block: &Object<'_>, emitter: &mut Emitter<'_>) -> Result<bool, Stop> {
        let Some(id) = block.text("id") else { return Ok(false) };
        let record = record! {
            id: &id,
            session_id: self.session_id,
            message_id: self.entry.text_or_empty("uuid"),
            name: block.text("name"),
            input: block.raw("input"),
            timestamp: self.entry.text("timestamp"),
        };
        emitter.record(TOOL_CALLS, &*id, &record).map(|_| true)
    }

    /// Answers whether all of it could be read and stored.
    fn send_result(&self, block: &Object<'_>, emitter: &mut Emitter<'_>) -> Result<bool, Stop> {
        let Some(id) = block.text("tool_use_id") else { return Ok(false) };
        let mut content = Joined::default();
        let (parts, is_whole) = block.objects("content");
        block.raw("content").into_iter().for_each(|text| content.add(text));
        for (number, part) in parts.iter().enumerate() {
            part.raw("text").into_iter().for_each(|text| content.add(text));
            if part.raw("source").is_some() {
                content.add_words(&format!("[{}]", part.text_or_empty("type")));
                self.send_media(part, &format!("{id}:{number}"), Some(&id), emitter)?;
            }
        }
        let record = record! {
            id: &id,
            session_id: self.session_id,
            message_id: self.entry.text_or_empty("uuid"),
            is_error: block.flag("is_error"),
            content: content.into_raw(),
            timestamp: self.entry.text("timestamp"),
        };
        emitter.record(TOOL_RESULTS, &*id, &record).map(|_| is_whole)
    }

    /// A picture or a document: that it is there, of which kind and how large; not what is in it.
    fn send_media(
        &self,
        block: &Object<'_>,
        id: &str,
        tool_use_id: Option<&str>,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), Stop> {
        let source = block.object("source");
        let record = Attachment {
            id,
            session_id: self.session_id,
            parent_uuid: self.entry.text("uuid"),
            event_type: block.text("type"),
            hook_name: None,
            tool_use_id: tool_use_id.map(Cow::Borrowed),
            media_type: source.text("media_type"),
            content_preview: block.text("title"),
            content_bytes: source.raw("data").filter(|data| is_string(data)).map(|data| decoded_bytes(data.get())),
            timestamp: self.entry.text("timestamp"),
        };
        emitter.record(ATTACHMENTS, id, &record).map(drop)
    }
}

#[derive(Serialize)]
struct Attachment<'a> {
    id: &'a str,
    session_id: &'a str,
    parent_uuid: Option<Cow<'a, str>>,
    event_type: Option<Cow<'a, str>>,
    hook_name: Option<Cow<'a, str>>,
    tool_use_id: Option<Cow<'a, str>>,
    media_type: Option<Cow<'a, str>>,
    content_preview: Option<Cow<'a, str>>,
    content_bytes: Option<u64>,
    timestamp: Option<Cow<'a, str>>,
}

/// A line that is no turn: that it happened, and its beginning where it is a text.
fn send_event(entry: &Object<'_>, line: &str, session_id: &str, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
    // Lines without a name of their own are known by what they say.
    let id = entry.text("uuid").unwrap_or_else(|| format!("{session_id}:{:032x}", xxh3_128(line.as_bytes())).into());
    let attached = entry.object("attachment");
    let texts = [entry.raw("content"), entry.raw("summary"), attached.raw("content")];
    let text = texts.into_iter().flatten().find(|raw| is_string(raw));
    let mut kind = entry.text_or_empty("type");
    if let Some(subtype) = attached.text("type").or_else(|| entry.text("subtype")) {
        kind = format!("{kind}:{subtype}").into();
    }
    let record = Attachment {
        id: &id,
        session_id: &entry.text("sessionId").unwrap_or(Cow::Borrowed(session_id)),
        parent_uuid: entry.text("parentUuid"),
        event_type: Some(kind),
        hook_name: attached.text("hookName"),
        tool_use_id: attached.text("toolUseID").or_else(|| entry.text("toolUseID")),
        media_type: None,
        content_preview: text.and_then(|raw| preview(raw, PREVIEW_CHARACTERS)).map(Cow::Owned),
        content_bytes: Some(line.len() as u64),
        timestamp: entry.text("timestamp"),
    };
    emitter.record(ATTACHMENTS, &*id, &record).map(drop)
}

/// How many bytes a quoted base64 text stands for.
fn decoded_bytes(quoted: &str) -> u64 {
    let text = quoted.trim_matches('"').trim_end_matches('=');
    text.len() as u64 * 3 / 4
}
