//! What one line of a session says. Pure: a text in, borrowed parts out.
//!
//! A line is an object with a type. Two types are turns of the conversation and hold a message, whose content is a text or
//! a list of blocks: text, thinking, a call of a tool, the result of one, a picture. All other types are events.

use crate::loose::Object;
use std::collections::BTreeMap;

/// The message of a line that is a turn of the conversation, which has a name of its own.
pub(super) fn turn<'a>(entry: &Object<'a>) -> Option<Object<'a>> {
    let is_turn = matches!(&*entry.text_or_empty("type"), "user" | "assistant") && entry.text("uuid").is_some();
    entry.raw("message").filter(|_| is_turn).and_then(|message| Object::parse(message.get()))
}

/// What the beginning of a file says about its session, by the names of its fields: the first of each that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Beginning(BTreeMap<&'static str, String>);

const FIELDS: [&str; 7] = ["sessionId", "timestamp", "cwd", "gitBranch", "version", "userType", "entrypoint"];
/// In how many lines these are looked for. They stand in each turn; before the first there are a few events.
const LINES_MAX: usize = 20;

impl Beginning {
    /// Reads the first bytes of a file. The last line of them may be cut, and is left out.
    pub(super) fn read(head: &[u8]) -> Self {
        let mut first = BTreeMap::new();
        let whole = head.iter().rposition(|&byte| byte == b'\n').map_or(head, |last| &head[..last]);
        for line in whole.split(|&byte| byte == b'\n').take(LINES_MAX) {
            let Some(entry) = std::str::from_utf8(line).ok().and_then(Object::parse) else { continue };
            for (field, text) in FIELDS.iter().filter_map(|field| Some((*field, entry.text(field)?))) {
                first.entry(field).or_insert_with(|| text.into_owned());
            }
        }
        Self(first)
    }

    pub(super) fn get(&self, field: &str) -> Option<&str> {
        self.0.get(field).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = include_str!("fixtures/session.jsonl");

    fn line(number: usize) -> Object<'static> {
        Object::parse(SESSION.lines().nth(number).unwrap()).unwrap()
    }

    #[test]
    fn turns_are_told_from_events() {
        let turns = (0..7).map(|number| turn(&line(number)).is_some()).collect::<Vec<_>>();
        assert_eq!(turns, [false, true, true, true, false, false, false]);
    }

    #[test]
    fn the_beginning_says_who_the_session_is_however_it_is_cut() {
        let whole = Beginning::read(SESSION.as_bytes());
        assert_eq!(whole.get("sessionId"), Some("5e551011-0000-4000-8000-000000000001"));
        assert_eq!(whole.get("timestamp"), Some("2031-02-03T04:05:06.789Z"));
        assert_eq!((whole.get("cwd"), whole.get("version")), (Some("/home/owner/shed"), Some("2.0.14")));
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
            assert!((0..text.len()).all(|cut| Object::parse(&text[..cut]).is_none()), "{text}");
        }
        assert!(Object::parse("[\"user\"]").is_none() && Object::parse("{}").is_some());
    }
}
