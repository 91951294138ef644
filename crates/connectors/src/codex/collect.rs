//! What becomes a record: sessions, messages, and calls of functions with their outputs.
//!
//! A session is a file that has its name in its own. Messages have no name, so they are counted: a rollout only grows, and
//! the twelfth message of a session stays the twelfth.

use super::parse::{Entry, session_in};
use crate::files::FilePath;
use crate::files::jsonl::{LineRead, Transcripts, later};
use crate::loose::{Joined, Object, objects};
use crate::record::record;
use gleaner_sdk::{Emitter, Stop};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

const SESSIONS: &str = "sessions";
const MESSAGES: &str = "messages";
const FUNCTION_CALLS: &str = "function_calls";
const FUNCTION_CALL_OUTPUTS: &str = "function_call_outputs";

/// The source: every `rollout-*.jsonl` beneath the folder of sessions.
pub(super) struct Rollouts;

/// One file while it is read.
pub(super) struct Rollout {
    session_id: String,
    facts: Facts,
    message_count: u64,
    call_count: u64,
    last_event_at: Option<String>,
}

/// What the beginning of a file says about its session.
type Facts = BTreeMap<&'static str, String>;

/// The names of facts, here and there.
const FACTS: [(&str, &str); 5] = [
    ("started_at", "timestamp"),
    ("cwd", "cwd"),
    ("originator", "originator"),
    ("cli_version", "cli_version"),
    ("model_provider", "model_provider"),
];
/// The same about the folder that the session stood in.
const GIT_FACTS: [(&str, &str); 3] =
    [("git_branch", "branch"), ("git_commit", "commit_hash"), ("git_repository", "repository_url")];

/// The last line of the beginning may be cut; then it is none of these, which stand in the first.
fn read_facts(head: &[u8]) -> Facts {
    let lines = head.split(|&byte| byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let meta = lines.filter_map(Entry::parse).find_map(|entry| match entry {
        Entry::Meta(meta) => Some(meta),
        Entry::Item(..) | Entry::Other => None,
    });
    let meta = meta.unwrap_or_default();
    let git = meta.object("git");
    let names = FACTS.iter().map(|names| (&meta, names)).chain(GIT_FACTS.iter().map(|names| (&git, names)));
    names.filter_map(|(object, (ours, theirs))| Some((*ours, object.text(theirs)?.into_owned()))).collect()
}

impl Transcripts for Rollouts {
    type File = Rollout;

    const STREAMS: &'static [&'static str] = &[SESSIONS, MESSAGES, FUNCTION_CALLS, FUNCTION_CALL_OUTPUTS];

    fn is_wanted(&self, path: &FilePath) -> bool {
        path.has_extension("jsonl") && path.name().starts_with(b"rollout-")
    }

    fn open(&self, path: &FilePath, note: Option<&str>, head: &[u8]) -> Rollout {
        let mut kept = note.unwrap_or_default().splitn(3, ' ');
        let mut count = || kept.next().and_then(|count| count.parse().ok()).unwrap_or(0);
        let (message_count, call_count) = (count(), count());
        let last_event_at = kept.next().map(ToOwned::to_owned);
        let session_id = session_in(&path.stem()).to_owned();
        Rollout { session_id, facts: read_facts(head), message_count, call_count, last_event_at }
    }

    fn line(&self, file: &mut Rollout, line: &str, emitter: &mut Emitter<'_>) -> Result<LineRead, Stop> {
        let Some(entry) = Entry::parse(line) else { return Ok(LineRead::NotAtAll) };
        let Entry::Item(item, at) = entry else { return Ok(LineRead::Whole) };
        later(&mut file.last_event_at, at.clone());
        match &*item.text_or_empty("type") {
            "message" | "reasoning" => file.send_message(&item, at, emitter),
            "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call" => {
                file.send_call(&item, at, emitter).map(|()| LineRead::Whole)
            }
            "function_call_output" | "custom_tool_call_output" => file.send_output(&item, at, emitter),
            _ => Ok(LineRead::Whole),
        }
    }

    fn end(&self, file: &mut Rollout, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        let Rollout { session_id, facts, message_count, call_count, last_event_at } = file;
        // A file of which nothing could be read is no session.
        if facts.is_empty() && *message_count + *call_count == 0 {
            return Ok(());
        }
        let record = record! {
            id: &session_id,
            started_at: facts.get("started_at"),
            cwd: facts.get("cwd"),
            originator: facts.get("originator"),
            cli_version: facts.get("cli_version"),
            model_provider: facts.get("model_provider"),
            git_branch: facts.get("git_branch"),
            git_commit: facts.get("git_commit"),
            git_repository: facts.get("git_repository"),
            last_event_at,
            message_count,
            function_call_count: call_count,
        };
        emitter.record(SESSIONS, session_id.as_str(), &record).map(drop)
    }

    fn note(&self, file: &Rollout) -> String {
        let last = file.last_event_at.iter().map(|last| format!(" {last}")).collect::<String>();
        format!("{} {}{last}", file.message_count, file.call_count)
    }

    fn gone(&self, path: &FilePath, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        emitter.tombstone(SESSIONS, session_in(&path.stem())).map(drop)
    }
}

/// When a line was written, if it says so.
type At<'a> = Option<Cow<'a, str>>;

impl Rollout {
    /// A message, or what the model says of its own thinking.
    fn send_message(&mut self, item: &Object<'_>, at: At<'_>, emitter: &mut Emitter<'_>) -> Result<LineRead, Stop> {
        self.message_count += 1;
        let id = format!("{}:{:06}", self.session_id, self.message_count);
        let (content, read) = texts([item.raw("summary"), item.raw("content")]);
        let record = record! {
            id: &id,
            session_id: &self.session_id,
            number: self.message_count,
            r#type: item.text_or_empty("type"),
            role: item.text("role"),
            content: content.into_raw(),
            timestamp: at,
        };
        emitter.record(MESSAGES, id.as_str(), &record).map(|_| read)
    }

    fn send_call(&mut self, item: &Object<'_>, at: At<'_>, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        self.call_count += 1;
        let id = self.call_key(item);
        let record = record! {
            id: &id,
            session_id: &self.session_id,
            call_id: item.text("call_id"),
            r#type: item.text_or_empty("type"),
            name: item.text("name"),
            arguments: ["arguments", "input", "action"].iter().find_map(|name| item.raw(name)),
            status: item.text("status"),
            timestamp: at,
        };
        emitter.record(FUNCTION_CALLS, id.as_str(), &record).map(drop)
    }

    fn send_output(&self, item: &Object<'_>, at: At<'_>, emitter: &mut Emitter<'_>) -> Result<LineRead, Stop> {
        let id = self.call_key(item);
        let nested = item.object("output");
        let (output, read) = texts([item.raw("output"), nested.raw("content")]);
        let record = record! {
            id: &id,
            session_id: &self.session_id,
            call_id: item.text("call_id"),
            output: output.into_raw(),
            success: nested.flag("success"),
            timestamp: at,
        };
        emitter.record(FUNCTION_CALL_OUTPUTS, id.as_str(), &record).map(|_| read)
    }

    /// A call and its output have one key. A call without a name of its own is counted.
    fn call_key(&self, item: &Object<'_>) -> String {
        match item.text("call_id") {
            Some(call) => format!("{}:{call}", self.session_id),
            None => format!("{}:#{}", self.session_id, self.call_count),
        }
    }
}

/// Texts, and lists of parts with texts, as one text; and whether all parts could be read.
fn texts<const N: usize>(values: [Option<&RawValue>; N]) -> (Joined<'_>, LineRead) {
    let (mut joined, mut read) = (Joined::default(), LineRead::Whole);
    for value in values.into_iter().flatten() {
        joined.add(value);
        let (parts, is_whole) = objects(value);
        if !is_whole {
            read = LineRead::InPart;
        }
        for part in parts {
            match (part.raw("text"), part.text("type")) {
                (Some(text), _) => joined.add(text),
                (None, Some(kind)) => joined.add_words(&format!("[{kind}]")),
                (None, None) => {}
            }
        }
    }
    (joined, read)
}
