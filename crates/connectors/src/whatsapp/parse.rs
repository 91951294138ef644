//! The text of an exported chat: where each message begins and ends, who sent it, and what it is.
//!
//! Pure. A message begins at a line with a stamp of the file's own shape and goes on until the next one. A file is
//! looked at once as a whole, because only then is it known which number of a date is the day; a message is taken
//! apart when it is asked for, so that a long chat is in memory once.

use super::stamps::{DateOrder, LocalTime, Shape, Stamp, is_mark};
use super::words::{Body, without_marks};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Messages of one export. WhatsApp puts 40,000 into one at most; this many places are 40 MB.
pub(crate) const MESSAGES_MAX: usize = 500_000;
/// The longest name of a sender. What is longer is a sentence with a colon in it.
const SENDER_BYTES_MAX: usize = 120;

/// A chat whose messages can be asked for.
#[derive(Debug)]
pub(crate) struct Chat {
    text: String,
    places: Vec<Place>,
    pub(crate) order: DateOrder,
    /// Whether the file tells the order of its dates. Otherwise it is a habit.
    pub(crate) order_is_told: bool,
    /// Lines before the first message, which belong to none.
    pub(crate) lines_before: usize,
}

#[derive(Debug)]
struct Place {
    start: usize,
    /// Where the stamp ends.
    rest: usize,
    stamp: Stamp,
    /// Which of several messages with one stamp, sender and text.
    occurrence: u32,
}

/// One message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Where it begins, in bytes.
    pub(crate) start: usize,
    /// `None` when the numbers are no date: a file in which somebody wrote.
    pub(crate) time: Option<LocalTime>,
    pub(crate) stamp: String,
    pub(crate) sender: Option<String>,
    pub(crate) body: Body,
    pub(crate) is_edited: bool,
    pub(crate) occurrence: u32,
}

/// Why a text is no chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAChat {
    /// No line begins with a date that is known.
    NoMessages,
    TooManyMessages,
}

impl Chat {
    pub(crate) fn read(text: String) -> Result<Self, NotAChat> {
        let stamped = || lines(&text).filter_map(|(start, line)| Some((start, line, Stamp::read(line)?)));
        let mut shapes = BTreeMap::<Shape, usize>::new();
        for (_, _, (stamp, _)) in stamped() {
            *shapes.entry(stamp.shape).or_default() += 1;
        }
        let most = shapes.values().max().copied().ok_or(NotAChat::NoMessages)?;
        if most > MESSAGES_MAX {
            return Err(NotAChat::TooManyMessages);
        }
        // Of two that are equally frequent, that of the first message.
        let is_most = |shape: &Shape| shapes.get(shape) == Some(&most);
        let shape = stamped().map(|(_, _, (stamp, _))| stamp.shape).find(is_most).ok_or(NotAChat::NoMessages)?;
        let places = stamped()
            .filter(|(_, _, (stamp, _))| stamp.shape == shape)
            .map(|(start, line, (stamp, rest))| Place {
                start,
                rest: start + line.len() - rest.len(),
                stamp,
                occurrence: 0,
            })
            .collect::<Vec<_>>();
        let first = places.first().map_or(0, |place| place.start);
        let lines_before = text[..first].lines().filter(|line| !line.trim().is_empty()).count();
        let stamps = places.iter().map(|place| place.stamp.clone()).collect::<Vec<_>>();
        let has_halves = stamps.iter().any(|stamp| stamp.has_half);
        let (order, order_is_told) = DateOrder::of(&stamps, has_halves);
        let mut chat = Self { text, places, order, order_is_told, lines_before };
        chat.count_occurrences();
        Ok(chat)
    }

    /// The whole of it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// How many messages there are.
    pub(crate) const fn len(&self) -> usize {
        self.places.len()
    }

    /// The message at this place of the list.
    pub(crate) fn message(&self, at: usize) -> Option<Message> {
        let place = self.places.get(at)?;
        let end = self.places.get(at + 1).map_or(self.text.len(), |next| next.start);
        let rest = self.text[place.rest..end].trim_end_matches(['\n', '\r']).replace("\r\n", "\n");
        let (sender, body, is_edited) = sender_and_body(&rest);
        Some(Message {
            start: place.start,
            time: place.stamp.in_order(self.order),
            stamp: place.stamp.as_written(),
            sender,
            body,
            is_edited,
            occurrence: place.occurrence,
        })
    }

    /// Where the message at this place of the list begins; behind the last one, where the text ends.
    pub(crate) fn message_start(&self, at: usize) -> usize {
        self.places.get(at).map_or(self.text.len(), |place| place.start)
    }

    /// The list's place of the first message that begins at or after this byte.
    pub(crate) fn at_byte(&self, start: usize) -> usize {
        self.places.partition_point(|place| place.start < start)
    }

    /// Messages of one minute may be equal: the first of them is the first in every export.
    fn count_occurrences(&mut self) {
        let mut seen = HashMap::<u64, u32>::with_capacity(self.places.len());
        for at in 0..self.places.len() {
            let Some(message) = self.message(at) else { continue };
            let mut hasher = DefaultHasher::new();
            (&message.stamp, &message.sender, message.body.identity()).hash(&mut hasher);
            let count = seen.entry(hasher.finish()).or_default();
            self.places[at].occurrence = *count;
            *count += 1;
        }
    }
}

/// The lines with the places where they begin.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        (at, line)
    })
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

    fn all(text: &str) -> Vec<Message> {
        let chat = Chat::read(text.to_owned()).unwrap();
        (0..chat.len()).map(|at| chat.message(at).unwrap()).collect()
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
            assert_eq!(Chat::read(text.to_owned()).err(), Some(NotAChat::NoMessages));
        }
    }

    #[test]
    fn a_chat_can_be_entered_at_any_byte() {
        let text = "1/2/24, 10:00 - A: a\n1/2/24, 10:01 - A: b\n";
        let chat = Chat::read(text.to_owned()).unwrap();
        assert_eq!((0..=text.len()).map(|byte| chat.at_byte(byte)).max(), Some(2));
        assert_eq!((chat.at_byte(0), chat.at_byte(1), chat.at_byte(21)), (0, 1, 1));
    }
}
