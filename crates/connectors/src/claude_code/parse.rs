//! What one line of a session says. Pure: a text in, borrowed parts out.
//!
//! A line is an object with a type. Two types are turns of the conversation and hold a message, whose content is a text or
//! a list of blocks: text, thinking, a call of a tool, the result of one, a picture. All other types are events.

use crate::loose::{Flag, Text, list};
use serde::Deserialize;
use serde_json::value::RawValue;

/// One line.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Entry<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) uuid: Text<'a>,
    #[serde(borrow)]
    pub(super) parent_uuid: Text<'a>,
    #[serde(borrow)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow)]
    pub(super) agent_id: Text<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Text<'a>,
    pub(super) is_sidechain: Flag,
    #[serde(borrow)]
    pub(super) user_type: Text<'a>,
    #[serde(borrow)]
    pub(super) entrypoint: Text<'a>,
    #[serde(borrow)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow)]
    pub(super) git_branch: Text<'a>,
    #[serde(borrow)]
    pub(super) version: Text<'a>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    // Of events.
    #[serde(borrow)]
    pub(super) subtype: Text<'a>,
    #[serde(borrow, rename = "toolUseID")]
    pub(super) tool_use_id: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) attachment: Option<&'a RawValue>,
}

/// What a turn holds.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) role: Text<'a>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
}

/// A part of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_use_id: Text<'a>,
    pub(super) is_error: Flag,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) source: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) title: Text<'a>,
}

/// Where the bytes of a picture or a document are.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Source<'a> {
    #[serde(borrow)]
    pub(super) media_type: Text<'a>,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
}

/// What a hook or another helper of the tool attached.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Attachment<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) hook_name: Text<'a>,
    #[serde(borrow, rename = "toolUseID")]
    pub(super) tool_use_id: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
}

impl<'a> Entry<'a> {
    /// Reads a line; `None` when it is no object.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        // A list would be read as the fields of an object, in their order.
        if line.starts_with('{') { serde_json::from_str(line).ok() } else { None }
    }

    /// The message of a turn of the conversation, which has a name of its own.
    pub(super) fn turn(&self) -> Option<Message<'a>> {
        let is_turn = matches!(self.kind.or_empty(), "user" | "assistant") && self.uuid.get().is_some();
        let message = self.message.filter(|_| is_turn)?;
        serde_json::from_str(message.get()).ok()
    }
}

impl<'a> Message<'a> {
    /// The parts of it, none when it is a plain text; and whether all of them could be read.
    pub(super) fn blocks(&self) -> (Vec<Block<'a>>, bool) {
        self.content.map_or_else(|| (Vec::new(), true), list)
    }
}

/// What the beginning of a file says about its session: the first of each that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Beginning {
    pub(super) session_id: Option<String>,
    pub(super) started_at: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) git_branch: Option<String>,
    pub(super) version: Option<String>,
    pub(super) user_type: Option<String>,
    pub(super) entrypoint: Option<String>,
}

/// In how many lines these are looked for. They stand in each turn; before the first there are a few events.
const LINES_MAX: usize = 20;

impl Beginning {
    /// Reads the first bytes of a file. The last line of them may be cut, and is left out.
    pub(super) fn read(head: &[u8]) -> Self {
        let mut beginning = Self::default();
        let whole = head.iter().rposition(|&byte| byte == b'\n').map_or(head, |last| &head[..last]);
        for line in whole.split(|&byte| byte == b'\n').take(LINES_MAX) {
            let Some(entry) = std::str::from_utf8(line).ok().and_then(Entry::parse) else { continue };
            let first = |field: &mut Option<String>, text: &Text<'_>| {
                if field.is_none() {
                    *field = text.get().map(ToOwned::to_owned);
                }
            };
            first(&mut beginning.session_id, &entry.session_id);
            first(&mut beginning.started_at, &entry.timestamp);
            first(&mut beginning.cwd, &entry.cwd);
            first(&mut beginning.git_branch, &entry.git_branch);
            first(&mut beginning.version, &entry.version);
            first(&mut beginning.user_type, &entry.user_type);
            first(&mut beginning.entrypoint, &entry.entrypoint);
        }
        beginning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = include_str!("fixtures/session.jsonl");

    fn line(number: usize) -> Entry<'static> {
        Entry::parse(SESSION.lines().nth(number).unwrap()).unwrap()
    }

    #[test]
    fn turns_are_told_from_events() {
        let turns = (0..7).map(|number| line(number).turn().is_some()).collect::<Vec<_>>();
        assert_eq!(turns, [false, true, true, true, false, false, false]);
        assert_eq!(line(5).subtype.get(), Some("compact_boundary"));
        let attached = line(4).attachment.unwrap();
        let attached = serde_json::from_str::<Attachment<'_>>(attached.get()).unwrap();
        assert_eq!(
            (attached.hook_name.get(), attached.tool_use_id.get()),
            (Some("PostToolUse:Bash"), Some("toolu_01"))
        );
    }

    #[test]
    fn the_blocks_of_a_message_are_found_with_what_is_in_them() {
        let message = line(2).turn().unwrap();
        let blocks = message.blocks().0;
        assert_eq!(
            blocks.iter().map(|block| block.kind.or_empty()).collect::<Vec<_>>(),
            ["thinking", "text", "tool_use"]
        );
        assert_eq!((blocks[2].id.get(), blocks[2].name.get()), (Some("toolu_01"), Some("Bash")));
        assert!(blocks[2].input.unwrap().get().contains("ls -l shed/"));
        assert_eq!(message.usage.unwrap().get(), r#"{"input_tokens":4,"output_tokens":31}"#);
        let result = line(3).turn().unwrap().blocks().0.remove(0);
        assert_eq!((result.tool_use_id.get(), result.is_error.0), (Some("toolu_01"), Some(false)));
        let (parts, _) = list::<Block<'_>>(result.content.unwrap());
        let source = serde_json::from_str::<Source<'_>>(parts[1].source.unwrap().get()).unwrap();
        assert_eq!((source.media_type.get(), source.data.unwrap().get()), (Some("image/png"), "\"QUJD\""));
    }

    #[test]
    fn the_beginning_says_who_the_session_is_however_it_is_cut() {
        let whole = Beginning::read(SESSION.as_bytes());
        assert_eq!(whole.session_id.as_deref(), Some("5e551011-0000-4000-8000-000000000001"));
        assert_eq!(whole.started_at.as_deref(), Some("2031-02-03T04:05:06.789Z"));
        assert_eq!((whole.cwd.as_deref(), whole.version.as_deref()), (Some("/home/owner/shed"), Some("2.0.14")));
        let second_line = SESSION.match_indices('\n').nth(1).unwrap().0;
        for cut in 0..SESSION.len() {
            let found = Beginning::read(&SESSION.as_bytes()[..cut]);
            let expected = if cut > second_line { whole.clone() } else { Beginning::default() };
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    #[test]
    fn half_a_line_is_no_line() {
        for text in SESSION.lines() {
            assert!((0..text.len()).all(|cut| Entry::parse(&text[..cut]).is_none()), "{text}");
        }
        assert!(Entry::parse("[\"user\"]").is_none() && Entry::parse("{}").is_some());
    }
}
