//! The text of an exported chat: where each message begins and ends, who sent it, and what it is.
//!
//! A text of any length is read line by line, in passes: the first tells which number of a date is the day, which only
//! the whole file does; the second counts messages and senders; the third sends. A message begins at a line with a stamp
//! of the file's own shape and goes on until the next one. What is held is one message, and sums of the last ones.

use super::stamps::{DateOrder, OrderTally, Shape, Stamp, is_mark};
use super::words::{Body, without_marks};
use crate::files::{LINE_BYTES_MAX, Line, Lines};
use jiff::civil::DateTime;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use xxhash_rust::xxh3::Xxh3;

/// Senders of one chat that are told. A group has 1024 members at most, and former ones.
const PARTICIPANTS_MAX: usize = 20_000;
/// The longest name of a sender. What is longer is a sentence with a colon in it.
const SENDER_BYTES_MAX: usize = 120;
/// Messages among which equal ones are counted: those of one minute, even where a clock went back. Twice as many are
/// held.
const NEAR_MESSAGES: usize = 200_000;

/// What holds for the whole of a chat.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    shape: Shape,
    pub(crate) order: DateOrder,
    /// Whether the file tells the order of its dates. Otherwise it is a habit.
    pub(crate) order_is_told: bool,
    /// Lines before the first message, which belong to none.
    pub(crate) lines_before: u64,
    /// Lines with bytes that are not UTF-8, which were replaced.
    pub(crate) lines_replaced: u64,
    pub(crate) messages: u64,
    pub(crate) participants: BTreeSet<String>,
    /// There are more of them.
    pub(crate) participants_are_cut: bool,
    pub(crate) first: Option<DateTime>,
    pub(crate) last: Option<DateTime>,
    /// The text begins with what was sent of it before.
    pub(crate) goes_on: bool,
}

/// A place before a message, and a sum over all lines before it: a longer text that begins with them goes on there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) byte: u64,
    sum: u64,
}

/// One message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Where it begins, in bytes.
    pub(crate) start: u64,
    /// `None` when the numbers are no date: a file in which somebody wrote.
    pub(crate) time: Option<DateTime>,
    pub(crate) stamp: String,
    pub(crate) sender: Option<String>,
    pub(crate) body: Body,
    pub(crate) is_edited: bool,
    pub(crate) occurrence: u32,
    /// It, or a line of it, is longer than is held: the rest of it is missing.
    pub(crate) is_cut: bool,
}

impl Sent {
    pub(crate) fn parse(note: &str) -> Option<Self> {
        let (byte, sum) = note.split_once('.')?;
        Some(Self { byte: u64::from_str_radix(byte, 16).ok()?, sum: u64::from_str_radix(sum, 16).ok()? })
    }

    pub(crate) fn note(self) -> String {
        format!("{:x}.{:016x}", self.byte, self.sum)
    }
}

impl Outline {
    /// Looks at a whole text; `None` where no line begins with a date that is known. `sent` is what was sent of it
    /// before, if it is that text.
    pub(crate) fn read(file: &File, sent: Option<Sent>, buffer: &mut Vec<u8>) -> io::Result<Option<Self>> {
        let mut shapes = BTreeMap::<Shape, (OrderTally, u64, u64)>::new();
        let (mut lines, mut written) = (Lines::new(file, 0, buffer), 0);
        let (mut sum, mut goes_on, mut lines_replaced) = (Xxh3::new(), false, 0);
        loop {
            let at = lines.offset();
            goes_on |= sent.is_some_and(|sent| sent.byte == at && sent.sum == sum.digest());
            let Some(text) = next_line(&mut lines)? else { break };
            if sent.is_some_and(|sent| at < sent.byte) {
                add_line(&mut sum, &text);
            }
            lines_replaced += u64::from(text.is_replaced);
            if let Some((stamp, _)) = Stamp::read(&text.text) {
                let before = (OrderTally::new(stamp.shape), at, written);
                shapes.entry(stamp.shape).or_insert(before).0.add(&stamp);
            }
            written += u64::from(!text.text.trim().is_empty());
        }
        // Of two that are equally frequent, that of the first message.
        let most = shapes.into_iter().max_by_key(|(_, (tally, at, _))| (tally.count, std::cmp::Reverse(*at)));
        let Some((shape, (tally, _, lines_before))) = most else { return Ok(None) };
        let (order, order_is_told) = tally.decide();
        let mut outline = Self {
            shape,
            order,
            order_is_told,
            lines_before,
            lines_replaced,
            messages: 0,
            participants: BTreeSet::new(),
            participants_are_cut: false,
            first: None,
            last: None,
            goes_on,
        };
        outline.count(file, buffer)?;
        Ok(Some(outline))
    }

    /// Counts messages and senders.
    fn count(&mut self, file: &File, buffer: &mut Vec<u8>) -> io::Result<()> {
        let mut messages = Messages::new(self);
        let mut lines = Lines::new(file, 0, buffer);
        while let Some(message) = messages.next(&mut lines)? {
            self.messages += 1;
            if let Some(sender) = message.sender.filter(|sender| !self.participants.contains(sender)) {
                let has_room = self.participants.len() < PARTICIPANTS_MAX;
                self.participants_are_cut |= !has_room;
                if has_room {
                    self.participants.insert(sender);
                }
            }
            self.first = self.first.or(message.time);
            self.last = message.time.or(self.last);
        }
        Ok(())
    }
}

/// Reads the messages of a text, one after another.
pub(crate) struct Messages {
    shape: Shape,
    order: DateOrder,
    /// The message that is being read.
    open: Option<Open>,
    /// Over all lines so far.
    sum: Xxh3,
    /// How far the text is sent when the last message was, and the next one was not.
    pub(crate) next_at: Sent,
    /// The same without the last message, which may go on in a longer text.
    pub(crate) last_at: Sent,
    near: [HashMap<u64, u32>; 2],
}

#[derive(Debug)]
struct Open {
    at: Sent,
    stamp: Stamp,
    /// What comes after the stamp.
    text: String,
    is_cut: bool,
}

impl Messages {
    pub(crate) fn new(outline: &Outline) -> Self {
        Self {
            shape: outline.shape,
            order: outline.order,
            open: None,
            sum: Xxh3::new(),
            next_at: Sent::default(),
            last_at: Sent::default(),
            near: [HashMap::new(), HashMap::new()],
        }
    }

    /// The next message. The lines begin where they ended the last time.
    pub(crate) fn next(&mut self, lines: &mut Lines<'_>) -> io::Result<Option<Message>> {
        loop {
            let at = lines.offset();
            let Some(line) = next_line(lines)? else {
                self.next_at = Sent { byte: at, sum: self.sum.digest() };
                return Ok(self.open.take().map(|open| self.close(&open)));
            };
            let stamp = Stamp::read(&line.text).filter(|(stamp, _)| stamp.shape == self.shape);
            let begins = stamp.map(|(stamp, rest)| {
                let (place, text) = (Sent { byte: at, sum: self.sum.digest() }, rest.to_owned());
                Open { at: place, stamp, text, is_cut: line.is_too_long }
            });
            add_line(&mut self.sum, &line);
            match (begins, &mut self.open) {
                (Some(begins), None) => self.open = Some(begins),
                (Some(begins), Some(_)) => {
                    self.next_at = begins.at;
                    let ended = self.open.replace(begins);
                    return Ok(ended.map(|open| self.close(&open)));
                }
                (None, Some(open)) => {
                    open.is_cut |= line.is_too_long || open.text.len() + line.text.len() > LINE_BYTES_MAX;
                    if !open.is_cut {
                        open.text.push('\n');
                        open.text.push_str(&line.text);
                    }
                }
                (None, None) => {}
            }
        }
    }

    fn close(&mut self, open: &Open) -> Message {
        self.last_at = open.at;
        let (sender, body, is_edited) = sender_and_body(open.text.trim_end_matches(['\n', '\r']));
        let stamp = open.stamp.as_written();
        let mut hasher = DefaultHasher::new();
        (&stamp, &sender, body.identity()).hash(&mut hasher);
        let occurrence = self.count(hasher.finish());
        let time = open.stamp.in_order(self.order);
        Message { start: open.at.byte, time, stamp, sender, body, is_edited, occurrence, is_cut: open.is_cut }
    }

    /// Messages of one minute may be equal: the first of them is the first in every export.
    fn count(&mut self, sum: u64) -> u32 {
        if self.near[0].len() == NEAR_MESSAGES {
            self.near.swap(0, 1);
            self.near[0].clear();
        }
        let count = self.near[0].get(&sum).or_else(|| self.near[1].get(&sum)).copied().unwrap_or(0);
        self.near[0].insert(sum, count + 1);
        count
    }
}

/// One line of the text.
struct TextLine {
    text: String,
    is_replaced: bool,
    is_too_long: bool,
}

/// The next line, with a line feed or without.
fn next_line(lines: &mut Lines<'_>) -> io::Result<Option<TextLine>> {
    let at = lines.offset();
    let (bytes, is_last) = match lines.next()? {
        None => return Ok(None),
        Some(Line::Whole(bytes)) => (bytes, false),
        Some(Line::Unfinished(bytes)) => (bytes, true),
        Some(Line::TooLong { .. }) => {
            // Its beginning tells whether it is a message of its own or the end of another one.
            let text = String::from_utf8_lossy(&lines.beginning(at)?).into_owned();
            return Ok(Some(TextLine { text, is_replaced: false, is_too_long: true }));
        }
    };
    let text = String::from_utf8_lossy(bytes);
    let is_replaced = matches!(text, Cow::Owned(_));
    let line = TextLine { text: text.into_owned(), is_replaced, is_too_long: false };
    if is_last {
        lines.take_unfinished();
    }
    Ok(Some(line))
}

fn add_line(sum: &mut Xxh3, line: &TextLine) {
    sum.update(line.text.as_bytes());
    sum.update(b"\n");
}

/// `Alice: hello`, or a notice, which has no sender.
fn sender_and_body(rest: &str) -> (Option<String>, Body, bool) {
    let first_line = rest.split('\n').next().unwrap_or_default();
    let split = first_line.find(": ").map(|at| (at, at + 2)).or_else(|| {
        let at = first_line.strip_suffix(':')?.len();
        Some((at, at + 1))
    });
    let Some((end, begin)) = split.filter(|&(end, _)| is_sender(&first_line[..end])) else {
        return (None, Body::Notice(without_marks(rest)), false);
    };
    let (body, is_edited) = Body::of(&rest[begin..]);
    let sender =
        first_line[..end].trim_matches(|letter: char| is_mark(letter) || letter.is_whitespace() || letter == '~');
    // What WhatsApp says in a group carries the group's name.
    let sender = (!matches!(body, Body::Notice(_)) && !sender.is_empty()).then(|| sender.to_owned());
    (sender, body, is_edited)
}

/// A notice may quote the new name of a group, with a colon in it.
fn is_sender(name: &str) -> bool {
    !name.is_empty() && name.len() <= SENDER_BYTES_MAX && !name.contains(['"', '“', '”', '„', '«'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, File) {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("f"), text).unwrap();
        let file = File::open(place.path().join("f")).unwrap();
        (place, file)
    }

    fn outline(text: &str, sent: Option<Sent>) -> Option<Outline> {
        Outline::read(&file(text).1, sent, &mut Vec::new()).unwrap()
    }

    fn all(text: &str) -> Vec<Message> {
        let (_place, file) = file(text);
        let outline = Outline::read(&file, None, &mut Vec::new()).unwrap().unwrap();
        let (mut reader, mut messages) = (Messages::new(&outline), Vec::new());
        let (mut offset, mut buffer) = (0, Vec::new());
        // As in slices: the lines begin anew for each message.
        loop {
            let mut lines = Lines::new(&file, offset, &mut buffer);
            let Some(message) = reader.next(&mut lines).unwrap() else { break };
            messages.push(message);
            offset = lines.offset();
        }
        assert_eq!(messages.len() as u64, outline.messages);
        messages
    }

    fn text_of(message: &Message) -> (Option<&str>, &str) {
        (message.sender.as_deref(), message.body.identity().1)
    }

    #[test]
    fn messages_have_several_lines_and_notices_have_no_sender() {
        let messages = all("1/2/24, 10:00 - Messages are end-to-end encrypted.\n\
                            1/2/24, 10:01 - Alice: one\ntwo\n\nfour\n\
                            1/2/24, 10:01 - Bob changed the subject to “a: b”\n\
                            1/2/24, 10:02 - Bob:\n1/2/24, 10:03 - Bob: a: b\n");
        let said = messages.iter().map(text_of).collect::<Vec<_>>();
        assert_eq!(
            said,
            [
                (None, "Messages are end-to-end encrypted."),
                (Some("Alice"), "one\ntwo\n\nfour"),
                (None, "Bob changed the subject to “a: b”"),
                (Some("Bob"), ""),
                (Some("Bob"), "a: b"),
            ]
        );
    }

    #[test]
    fn a_pasted_line_of_another_shape_is_text() {
        let messages =
            all("[1/2/24, 10:00:00] Alice: look\n3/4/24, 11:00 - Bob: pasted\n[1/2/24, 10:00:05] Alice: end\r\n");
        assert_eq!(
            messages.iter().map(text_of).collect::<Vec<_>>(),
            [(Some("Alice"), "look\n3/4/24, 11:00 - Bob: pasted"), (Some("Alice"), "end"),]
        );
    }

    #[test]
    fn equal_messages_of_one_minute_are_counted_from_the_first() {
        let earlier = "1/2/24, 10:00 - A: ok\n1/2/24, 10:00 - A: ok\n1/2/24, 10:00 - B: ok\n";
        let later = format!("{earlier}1/2/24, 10:00 - A: ok\n");
        let counts = |text: &str| all(text).iter().map(|message| message.occurrence).collect::<Vec<_>>();
        assert_eq!(counts(earlier), [0, 1, 0]);
        assert_eq!(counts(&later), [0, 1, 0, 2]);
    }

    #[test]
    fn marks_and_tildes_are_no_part_of_a_name() {
        let messages = all("[1/2/24, 10:00:00] \u{202a}~\u{202f}Alice\u{202c}: \u{200e}image omitted\n");
        assert_eq!(messages[0].sender.as_deref(), Some("Alice"));
        assert_eq!(messages[0].body, Body::Media { name: None, caption: String::new() });
    }

    #[test]
    fn what_is_no_chat_is_refused() {
        for text in ["", "\n\n", "hello\nworld\n", "\u{0}\u{0}", &"x".repeat(100_000)] {
            assert!(outline(text, None).is_none());
        }
    }

    #[test]
    fn a_longer_text_goes_on_and_another_one_begins_anew() {
        let text = "1/2/24, 10:00 - A: a\n1/2/24, 10:01 - A: b\n1/2/24, 10:02 - A: c\n";
        let (_place, file) = file(text);
        let outline_of = |text: &str, sent: Sent| outline(text, Some(sent)).is_some_and(|outline| outline.goes_on);
        let mut reader = Messages::new(&outline(text, None).unwrap());
        let mut buffer = Vec::new();
        let mut lines = Lines::new(&file, 0, &mut buffer);
        for (n, expected) in [(1_u64, 21), (2, 42), (3, 63)] {
            assert!(reader.next(&mut lines).unwrap().is_some());
            let sent = reader.next_at;
            assert_eq!((sent.byte, reader.last_at.byte), (expected, (n - 1) * 21));
            assert_eq!(Sent::parse(&sent.note()), Some(sent));
            assert!(outline_of(text, sent) && outline_of(&format!("{text}1/2/24, 10:03 - A: d\n"), sent));
            for other in [text.replacen("A: a", "A: x", 1), text[..20].to_owned()] {
                assert!(!outline_of(&other, sent), "{other}");
            }
        }
        assert_eq!(Sent::parse(""), None);
    }

    #[test]
    fn a_message_that_is_too_long_is_cut_and_takes_no_other_with_it() {
        let long = "x".repeat(1 << 20);
        let messages = all(&format!(
            "1/2/24, 10:00 - A: a\n1/2/24, 10:01 - A: {}1/2/24, 10:02 - A: c\n",
            format!("{long}\n").repeat(17)
        ));
        assert_eq!(messages.iter().map(|message| message.is_cut).collect::<Vec<_>>(), [false, true, false]);
    }
}
