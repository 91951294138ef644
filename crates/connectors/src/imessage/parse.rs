//! What the columns of Messages' database mean, as records.
//!
//! Pure. Columns come in as they were read and may hold anything. A date that is none is absent; a code that is not
//! known is kept as a number, so that nothing is lost with a new version of the system.

use super::typedstream;

/// Seconds from 1970 to 2001, where Apple's time begins.
const APPLE_EPOCH: i64 = 978_307_200;
/// Beyond this a number counts nanoseconds: as seconds it would be after the year 33,000. macOS 10.13 changed the unit.
const NANOSECONDS_FROM: i64 = 1_000_000_000_000;
/// The last second of the year 9999, after which no date is written.
const LAST_SECOND: i64 = 253_402_300_799;

/// A date as the database has it, as RFC 3339; zero is none.
pub(crate) fn date(column: Option<i64>) -> Option<String> {
    let value = column.filter(|&value| value > 0)?;
    let (seconds, nanoseconds) =
        if value >= NANOSECONDS_FROM { (value / 1_000_000_000, value % 1_000_000_000) } else { (value, 0) };
    let seconds = APPLE_EPOCH.checked_add(seconds).filter(|&seconds| seconds <= LAST_SECOND)?;
    let time = jiff::Timestamp::new(seconds, i32::try_from(nanoseconds / 1_000_000 * 1_000_000).ok()?).ok()?;
    Some(format!("{time:.3}"))
}

/// Where a text stood, and whether there was one that could not be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: Option<String>,
    pub(crate) is_unreadable: bool,
}

/// The plain column, or what is archived in the other one. Attachments stand in it as one character each, which is
/// not text.
pub(crate) fn text(plain: Option<String>, archived: Option<&[u8]>) -> Text {
    let archived = archived.filter(|bytes| !bytes.is_empty());
    let (text, is_unreadable) = match (plain.filter(|text| !text.is_empty()), archived) {
        (Some(plain), _) => (Some(plain), false),
        (None, Some(archived)) => {
            let text = typedstream::text(archived);
            let is_unreadable = text.is_none();
            (text, is_unreadable)
        }
        (None, None) => (None, false),
    };
    let text = text.map(|text| text.replace('\u{fffc}', "")).filter(|text| !text.is_empty());
    Text { text, is_unreadable }
}

/// What a reaction is, by the number of its type, and whether it was taken back; `None` for what is no reaction.
pub(crate) fn reaction(associated_type: i64) -> Option<(String, bool)> {
    const KINDS: [&str; 8] = ["loved", "liked", "disliked", "laughed", "emphasized", "questioned", "emoji", "sticker"];
    match associated_type {
        2000..=2999 => Some((name_of(&KINDS, associated_type - 2000), false)),
        3000..=3999 => Some((name_of(&KINDS, associated_type - 3000), true)),
        _ => None,
    }
}

/// The name of a number, and the number itself where it has none.
fn name_of(names: &[&str], number: i64) -> String {
    let name = usize::try_from(number).ok().and_then(|at| names.get(at));
    name.map_or_else(|| format!("type {number}"), |name| (*name).to_owned())
}

/// `p:0/GUID` or `bp:GUID`: the message that is meant, and which part of it.
pub(crate) fn target(associated_guid: &str) -> (&str, Option<i64>) {
    if let Some((part, guid)) = associated_guid.strip_prefix("p:").and_then(|rest| rest.split_once('/')) {
        return (guid, part.parse().ok());
    }
    (associated_guid.strip_prefix("bp:").unwrap_or(associated_guid), None)
}

/// What kind of line it is in the chat.
pub(crate) fn kind(item_type: i64) -> String {
    let kinds = ["message", "participants_changed", "name_changed", "group_changed", "notice", "notice", "notice"];
    name_of(&kinds, item_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds_or_nanoseconds_since_2001() {
        assert_eq!(date(Some(700_000_000)).as_deref(), Some("2023-03-08T20:26:40.000Z"));
        assert_eq!(date(Some(700_000_000_123_456_789)).as_deref(), Some("2023-03-08T20:26:40.123Z"));
        assert_eq!(date(Some(1)).as_deref(), Some("2001-01-01T00:00:01.000Z"));
        assert_eq!(date(Some(NANOSECONDS_FROM - 1)), None, "after the year 9999");
        for none in [None, Some(0), Some(-1), Some(i64::MIN)] {
            assert_eq!(date(none), None);
        }
        assert!(date(Some(i64::MAX)).is_some_and(|date| date.starts_with("2293-")), "the last nanosecond");
    }

    #[test]
    fn a_text_is_taken_from_where_it_is() {
        let archived = crate::imessage::archive_tests::archive_of("hidden \u{fffc}here");
        let plain = |text: &str| Some(text.to_owned());
        assert_eq!(text(plain("shown"), Some(&archived)).text.as_deref(), Some("shown"));
        assert_eq!(text(plain(""), Some(&archived)).text.as_deref(), Some("hidden here"));
        assert_eq!(text(None, Some(&archived)).text.as_deref(), Some("hidden here"));
        assert_eq!(text(None, Some(b"rubbish")), Text { text: None, is_unreadable: true });
        assert_eq!(text(plain("\u{fffc}"), None), Text { text: None, is_unreadable: false });
        assert_eq!(text(None, Some(b"")), Text { text: None, is_unreadable: false });
    }

    #[test]
    fn reactions_are_told_by_their_numbers() {
        assert_eq!(reaction(0), None);
        assert_eq!(reaction(1000), None, "a sticker that was put on it is a message");
        assert_eq!(reaction(2000), Some(("loved".into(), false)));
        assert_eq!(reaction(3005), Some(("questioned".into(), true)));
        assert_eq!(reaction(2042), Some(("type 42".into(), false)));
        assert_eq!(target("p:2/ABC-1"), ("ABC-1", Some(2)));
        assert_eq!(target("bp:ABC-1"), ("ABC-1", None));
        assert_eq!(target("ABC-1"), ("ABC-1", None));
        assert_eq!(target("p:x/y"), ("y", None));
    }
}
