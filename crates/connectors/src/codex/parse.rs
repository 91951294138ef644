//! What one line of a rollout says. Pure: a text in, borrowed parts out.
//!
//! Today a line is an envelope of a time, a type and a payload. The first versions wrote what is now a payload as the line
//! itself, and the facts of the session as the first line. Both are read.

use crate::loose::{Flag, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

/// One line, in either form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Envelope<'a> {
    #[serde(borrow)]
    timestamp: Text<'a>,
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    /// Of the first versions: a note of the tool to itself.
    #[serde(borrow)]
    record_type: Text<'a>,
}

/// What a line says.
#[derive(Debug)]
pub(super) enum Entry<'a> {
    /// What the session is.
    Meta(Box<Meta<'a>>),
    /// A part of the conversation.
    Item(Box<Item<'a>>),
    /// Anything else: events for the screen, settings of a turn.
    Other,
}

/// What a session says of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Text<'a>,
    #[serde(borrow)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow)]
    pub(super) originator: Text<'a>,
    #[serde(borrow)]
    pub(super) cli_version: Text<'a>,
    #[serde(borrow)]
    pub(super) model_provider: Text<'a>,
    #[serde(borrow)]
    git: Option<&'a RawValue>,
}

/// Where the session's folder stood.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Git<'a> {
    #[serde(borrow)]
    pub(super) branch: Text<'a>,
    #[serde(borrow)]
    pub(super) commit_hash: Text<'a>,
    #[serde(borrow)]
    pub(super) repository_url: Text<'a>,
}

impl<'a> Meta<'a> {
    pub(super) fn git(&self) -> Git<'a> {
        self.git.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}

/// A part of the conversation.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) role: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    /// Of reasoning.
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
    /// Of calls and their outputs.
    #[serde(borrow)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) action: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) output: Option<&'a RawValue>,
    /// When, of the envelope; nothing in the first versions.
    #[serde(skip)]
    pub(super) timestamp: Text<'a>,
}

/// A part of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
}

/// What a call came back with, where it is more than a text.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Output<'a> {
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) success: Flag,
}

impl<'a> Entry<'a> {
    /// Reads a line; `None` when it is no object.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        if !line.starts_with('{') {
            return None;
        }
        let Envelope { timestamp, kind, payload, record_type } = serde_json::from_str(line).ok()?;
        let entry = match (kind.get(), payload) {
            (Some("session_meta"), Some(payload)) => Self::Meta(Box::new(serde_json::from_str(payload.get()).ok()?)),
            (Some("response_item"), Some(payload)) => {
                let item = serde_json::from_str::<Item<'_>>(payload.get()).ok()?;
                Self::Item(Box::new(Item { timestamp, ..item }))
            }
            (Some(_), Some(_)) => Self::Other,
            (Some(_), None) => Self::Item(Box::new(serde_json::from_str(line).ok()?)),
            (None, _) if record_type.get().is_some() => Self::Other,
            (None, _) => {
                let meta = serde_json::from_str::<Meta<'_>>(line).ok()?;
                if meta.id.get().is_some() { Self::Meta(Box::new(meta)) } else { Self::Other }
            }
        };
        Some(entry)
    }
}

/// The session's name in that of its file: `rollout-2031-05-07T17-24-21-<uuid>`.
pub(super) fn session_in(stem: &str) -> &str {
    const UUID_BYTES: usize = 36;
    let from = stem.len().saturating_sub(UUID_BYTES);
    let is_uuid = |text: &&str| {
        let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
        text.len() == UUID_BYTES
            && text
                .bytes()
                .enumerate()
                .all(|(at, byte)| if is_dash(at) { byte == b'-' } else { byte.is_ascii_hexdigit() })
    };
    stem.get(from..).filter(is_uuid).unwrap_or(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLLOUT: &str = include_str!("fixtures/rollout.jsonl");
    const FIRST_VERSIONS: &str = include_str!("fixtures/first_versions.jsonl");

    fn kinds(text: &str) -> Vec<String> {
        let kind = |line| match Entry::parse(line).unwrap() {
            Entry::Meta(meta) => format!("meta {}", meta.id.or_empty()),
            Entry::Item(item) => {
                format!("{} {}", item.kind.or_empty(), item.timestamp.or_empty()).trim_end().to_owned()
            }
            Entry::Other => "other".to_owned(),
        };
        text.lines().map(kind).collect()
    }

    #[test]
    fn both_forms_of_a_rollout_are_read() {
        let at = |second| format!("2031-02-03T04:05:{second}Z");
        let expected = [
            "meta 5e551011-0000-4000-8000-000000000002".to_owned(),
            format!("message {}", at("06.100")),
            "other".to_owned(),
            "other".to_owned(),
            format!("reasoning {}", at("07.000")),
            format!("function_call {}", at("08.000")),
            format!("function_call_output {}", at("09.000")),
        ];
        assert_eq!(kinds(ROLLOUT), expected);
        let first =
            ["meta 5e551011-0000-4000-8000-000000000003", "other", "message", "function_call", "function_call_output"];
        assert_eq!(kinds(FIRST_VERSIONS), first);
    }

    #[test]
    fn what_a_session_says_of_itself_is_found() {
        let Some(Entry::Meta(meta)) = Entry::parse(ROLLOUT.lines().next().unwrap()) else { panic!("a session") };
        let git = meta.git();
        assert_eq!((meta.cli_version.get(), meta.originator.get()), (Some("0.58.0"), Some("codex_cli_rs")));
        assert_eq!((git.branch.get(), git.commit_hash.get()), (Some("main"), Some("c0ffee")));
    }

    #[test]
    fn half_a_line_is_no_line() {
        for text in ROLLOUT.lines().chain(FIRST_VERSIONS.lines()) {
            assert!((0..text.len()).all(|cut| Entry::parse(&text[..cut]).is_none()), "{text}");
        }
    }

    #[test]
    fn the_session_is_in_the_name_of_the_file() {
        let id = "5e551011-0000-4000-8000-000000000002";
        assert_eq!(session_in(&format!("rollout-2031-02-03T04-05-06-{id}")), id);
        for other in [
            "rollout-x",
            "",
            "rollout-2031-02-03T04-05-06-5e551011-0000-4000-8000-00000000000g",
            "é".repeat(20).as_str(),
        ] {
            assert_eq!(session_in(other), other);
        }
    }
}
