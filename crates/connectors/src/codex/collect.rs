//! What becomes a record: sessions, messages, and calls of functions with their outputs.
//!
//! A session is a file that has its name in its own. Messages have no name, so they are counted: a rollout only grows, and
//! the twelfth message of a session stays the twelfth.

use super::parse::{Entry, Item, Output, Part, session_in};
use crate::files::FilePath;
use crate::files::jsonl::{LineRead, Transcripts};
use crate::loose::{Joined, is_object, is_string, list};
use gleaner_sdk::{Emitted, Emitter, Stop};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

const SESSIONS: &str = "sessions";
const MESSAGES: &str = "messages";
const FUNCTION_CALLS: &str = "function_calls";
const FUNCTION_CALL_OUTPUTS: &str = "function_call_outputs";
const STREAMS: [&str; 4] = [SESSIONS, MESSAGES, FUNCTION_CALLS, FUNCTION_CALL_OUTPUTS];

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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Facts {
    started_at: Option<String>,
    cwd: Option<String>,
    originator: Option<String>,
    cli_version: Option<String>,
    model_provider: Option<String>,
    git_branch: Option<String>,
    git_commit: Option<String>,
    git_repository: Option<String>,
}

impl Facts {
    /// The last line of the beginning may be cut; then it is none of these, which stand in the first.
    fn read(head: &[u8]) -> Self {
        let lines = head.split(|&byte| byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        let meta = lines.filter_map(Entry::parse).find_map(|entry| match entry {
            Entry::Meta(meta) => Some(meta),
            Entry::Item(_) | Entry::Other => None,
        });
        let Some(meta) = meta else { return Self::default() };
        let (git, own) = (meta.git(), |text: &crate::loose::Text<'_>| text.get().map(ToOwned::to_owned));
        Self {
            started_at: own(&meta.timestamp),
            cwd: own(&meta.cwd),
            originator: own(&meta.originator),
            cli_version: own(&meta.cli_version),
            model_provider: own(&meta.model_provider),
            git_branch: own(&git.branch),
            git_commit: own(&git.commit_hash),
            git_repository: own(&git.repository_url),
        }
    }
}

impl Transcripts for Rollouts {
    type File = Rollout;

    fn streams(&self) -> &'static [&'static str] {
        &STREAMS
    }

    fn is_wanted(&self, path: &FilePath) -> bool {
        path.has_extension("jsonl") && path.name().starts_with(b"rollout-")
    }

    fn open(&self, path: &FilePath, note: Option<&str>, head: &[u8]) -> Rollout {
        let mut kept = note.unwrap_or_default().splitn(3, ' ');
        let mut count = || kept.next().and_then(|count| count.parse().ok()).unwrap_or(0);
        let (message_count, call_count) = (count(), count());
        let last_event_at = kept.next().map(ToOwned::to_owned);
        let session_id = session_in(&path.stem()).to_owned();
        Rollout { session_id, facts: Facts::read(head), message_count, call_count, last_event_at }
    }

    fn line(&self, file: &mut Rollout, line: &str, emitter: &mut Emitter<'_>) -> Result<LineRead, Stop> {
        let Some(entry) = Entry::parse(line) else { return Ok(LineRead::NotAtAll) };
        let Entry::Item(item) = entry else { return Ok(LineRead::Whole) };
        if let Some(time) = item.timestamp.get()
            && file.last_event_at.as_deref().is_none_or(|last| last < time)
        {
            file.last_event_at = Some(time.to_owned());
        }
        match item.kind.or_empty() {
            "message" | "reasoning" => file.send_message(&item, emitter),
            "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call" => {
                file.send_call(&item, emitter)?;
                Ok(LineRead::Whole)
            }
            "function_call_output" | "custom_tool_call_output" => file.send_output(&item, emitter),
            _ => Ok(LineRead::Whole),
        }
    }

    fn end(&self, file: &mut Rollout, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        #[derive(Serialize)]
        struct Session<'a> {
            id: &'a str,
            #[serde(flatten)]
            facts: &'a Facts,
            last_event_at: Option<&'a str>,
            message_count: u64,
            function_call_count: u64,
        }
        let Rollout { session_id, facts, message_count, call_count, last_event_at } = file;
        // A file of which nothing could be read is no session.
        if *facts == Facts::default() && *message_count + *call_count == 0 {
            return Ok(());
        }
        let record = Session {
            id: session_id,
            facts,
            last_event_at: last_event_at.as_deref(),
            message_count: *message_count,
            function_call_count: *call_count,
        };
        let _: Emitted = emitter.record(SESSIONS, session_id.as_str(), &record)?;
        Ok(())
    }

    fn note(&self, file: &Rollout) -> String {
        let last = file.last_event_at.iter().map(|last| format!(" {last}")).collect::<String>();
        format!("{} {}{last}", file.message_count, file.call_count)
    }

    fn gone(&self, path: &FilePath, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        let _: Emitted = emitter.tombstone(SESSIONS, session_in(&path.stem()))?;
        Ok(())
    }
}

impl Rollout {
    /// A message, or what the model says of its own thinking.
    fn send_message(&mut self, item: &Item<'_>, emitter: &mut Emitter<'_>) -> Result<LineRead, Stop> {
        #[derive(Serialize)]
        struct Message<'a> {
            id: &'a str,
            session_id: &'a str,
            number: u64,
            r#type: &'a str,
            role: Option<&'a str>,
            content: Option<Cow<'a, RawValue>>,
            timestamp: Option<&'a str>,
        }
        self.message_count += 1;
        let id = format!("{}:{:06}", self.session_id, self.message_count);
        let (content, read) = texts([item.summary, item.content]);
        let record = Message {
            id: &id,
            session_id: &self.session_id,
            number: self.message_count,
            r#type: item.kind.or_empty(),
            role: item.role.get(),
            content: content.into_raw(),
            timestamp: item.timestamp.get(),
        };
        let _: Emitted = emitter.record(MESSAGES, id.as_str(), &record)?;
        Ok(read)
    }

    fn send_call(&mut self, item: &Item<'_>, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        #[derive(Serialize)]
        struct Call<'a> {
            id: &'a str,
            session_id: &'a str,
            call_id: Option<&'a str>,
            r#type: &'a str,
            name: Option<&'a str>,
            arguments: Option<&'a RawValue>,
            status: Option<&'a str>,
            timestamp: Option<&'a str>,
        }
        self.call_count += 1;
        let id = self.call_key(item);
        let record = Call {
            id: &id,
            session_id: &self.session_id,
            call_id: item.call_id.get(),
            r#type: item.kind.or_empty(),
            name: item.name.get(),
            arguments: item.arguments.or(item.input).or(item.action),
            status: item.status.get(),
            timestamp: item.timestamp.get(),
        };
        let _: Emitted = emitter.record(FUNCTION_CALLS, id.as_str(), &record)?;
        Ok(())
    }

    fn send_output(&self, item: &Item<'_>, emitter: &mut Emitter<'_>) -> Result<LineRead, Stop> {
        #[derive(Serialize)]
        struct CallOutput<'a> {
            id: &'a str,
            session_id: &'a str,
            call_id: Option<&'a str>,
            output: Option<Cow<'a, RawValue>>,
            success: Option<bool>,
            timestamp: Option<&'a str>,
        }
        let id = self.call_key(item);
        let nested = item.output.filter(|raw| is_object(raw));
        let nested = nested.and_then(|raw| serde_json::from_str::<Output<'_>>(raw.get()).ok()).unwrap_or_default();
        let (output, read) = texts([item.output, nested.content]);
        let record = CallOutput {
            id: &id,
            session_id: &self.session_id,
            call_id: item.call_id.get(),
            output: output.into_raw(),
            success: nested.success.0,
            timestamp: item.timestamp.get(),
        };
        let _: Emitted = emitter.record(FUNCTION_CALL_OUTPUTS, id.as_str(), &record)?;
        Ok(read)
    }

    /// A call and its output have one key. A call without a name of its own is counted.
    fn call_key(&self, item: &Item<'_>) -> String {
        match item.call_id.get() {
            Some(call) => format!("{}:{call}", self.session_id),
            None => format!("{}:#{}", self.session_id, self.call_count),
        }
    }
}

/// Texts, and lists of parts with texts, as one text; and whether all parts could be read.
fn texts<const N: usize>(values: [Option<&RawValue>; N]) -> (Joined<'_>, LineRead) {
    let (mut joined, mut read) = (Joined::default(), LineRead::Whole);
    for value in values.into_iter().flatten() {
        if is_string(value) {
            joined.add(value);
        }
        let (parts, is_whole) = list::<Part<'_>>(value);
        if !is_whole {
            read = LineRead::InPart;
        }
        for part in parts {
            match part.text {
                Some(text) => joined.add(text),
                None if part.kind.get().is_some() => joined.add_words(&format!("[{}]", part.kind.or_empty())),
                None => {}
            }
        }
    }
    (joined, read)
}
