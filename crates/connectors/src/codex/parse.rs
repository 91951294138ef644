//! What one line of a rollout says. Pure: a text in, borrowed parts out.
//!
//! Today a line is an envelope of a time, a type and a payload. The first versions wrote what is now a payload as the line
//! itself, and the facts of the session as the first line. Both are read.

use crate::loose::Object;
use std::borrow::Cow;

/// What a line says.
#[derive(Debug)]
pub(super) enum Entry<'a> {
    /// What the session is.
    Meta(Object<'a>),
    /// A part of the conversation, and when, of the envelope; nothing in the first versions.
    Item(Object<'a>, Option<Cow<'a, str>>),
    /// Anything else: events for the screen, settings of a turn.
    Other,
}

impl<'a> Entry<'a> {
    /// Reads a line; `None` when it is no object.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let line = Object::parse(line)?;
        let payload = line.raw("payload");
        Some(match (line.text("type").as_deref(), payload) {
            (Some("session_meta"), Some(payload)) => Self::Meta(Object::parse(payload.get())?),
            (Some("response_item"), Some(payload)) => Self::Item(Object::parse(payload.get())?, line.text("timestamp")),
            (Some(_), Some(_)) => Self::Other,
            (Some(_), None) => Self::Item(line, None),
            // A note of the tool to itself, of the first versions.
            (None, _) if line.text("record_type").is_some() || line.text("id").is_none() => Self::Other,
            (None, _) => Self::Meta(line),
        })
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
            Entry::Meta(meta) => format!("meta {}", meta.text_or_empty("id")),
            Entry::Item(item, at) => {
                format!("{} {}", item.text_or_empty("type"), at.unwrap_or_default()).trim_end().to_owned()
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
