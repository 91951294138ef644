//! Masking a connection's secrets in whatever is printed, logged or stored for people.
//!
//! By value, not by guessing: a runtime knows which secrets it handed out, and a connector which it got. Each is masked as it is
//! and as programs write it: hex- and base64-encoded, the latter at all three alignments,
//! because a secret inside of a longer text is encoded at any of them. JSON and URLs may escape any character, so a text
//! with a backslash or a percent sign is also searched with its escapes decoded. Records, cursors and locators
//! do not go through here: they are kept as they came, and a secret of ours in them ends the run.
//! What the owner answers during a run is masked too. Only a password among the answers ends a run: a name or a code of
//! four digits may well stand in a record.

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

/// What stands for a secret.
const MASK: &str = "[secret]";
/// Shorter values are words, not secrets: masking them would make a log unreadable.
const SECRET_BYTES_MIN: usize = 4;
/// Shorter answers are codes and words, and may well stand in a record.
const PASSWORD_BYTES_MIN: usize = 8;
/// How a text ends that was cut.
const CUT: char = '…';
/// The shortest part of an encoded secret that is worth masking.
const PART_BYTES_MIN: usize = 6;
/// How often escapes are decoded. A body that holds JSON as a text is escaped twice, and three times in a quoted line.
const DECODINGS: u32 = 3;
/// How many times longer a secret is if each of its characters is escaped twice, as in `\\u002B`.
const ESCAPED_TIMES: usize = 7;

/// Knows secrets and masks them. Prints how many, never which.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The longest first: one may hold another.
    forms: Vec<String>,
    /// Answers of the owner, which every copy knows.
    answers: Arc<RwLock<Answers>>,
}

/// The longest first.
#[derive(Default)]
struct Answers {
    forms: Vec<String>,
    /// Those that a connector must not send back.
    passwords: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} forms)", self.forms.len())
    }
}

impl Redactor {
    /// Masks these.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        Self { forms: all_forms(secrets), answers: Arc::default() }
    }

    /// Masks these answers of the owner too from now on, here and in every copy.
    pub fn learn(&self, answers: impl IntoIterator<Item = String>) {
        add(&mut self.answers.write().unwrap_or_else(PoisonError::into_inner).forms, all_forms(answers));
    }

    /// The same for answers to fields with these names. A password among them also counts as a secret of the
    /// connection from now on.
    pub fn learn_named(&self, answers: impl IntoIterator<Item = (String, String)>) {
        for (name, answer) in answers {
            if answer.len() >= PASSWORD_BYTES_MIN && names_password(&name) {
                let mut known = self.answers.write().unwrap_or_else(PoisonError::into_inner);
                add(&mut known.passwords, all_forms([answer.clone()]));
            }
            self.learn([answer]);
        }
    }

    /// The text without them. One that ends with an ellipsis was cut, perhaps in the middle of one of them: then the
    /// beginning of one at its end is masked, too.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        let answers = self.answers.read().unwrap_or_else(PoisonError::into_inner);
        let forms = self.forms.iter().chain(&answers.forms).map(String::as_str).collect::<Vec<_>>();
        let (whole, ellipsis) = text.strip_suffix(CUT).map_or((text, ""), |cut| (cut, &text[cut.len()..]));
        let mut masked = String::new();
        let mut rest = 0;
        for place in places(whole, &forms, !ellipsis.is_empty(), Some(DECODINGS)) {
            masked.push_str(&whole[rest..place.start]);
            masked.push_str(MASK);
            rest = place.end;
        }
        masked + &whole[rest..] + ellipsis
    }

    /// Whether one of the secrets is in the text. Of the owner's answers only passwords count.
    #[must_use]
    pub fn reveals(&self, text: &str) -> bool {
        let answers = self.answers.read().unwrap_or_else(PoisonError::into_inner);
        let is_in = |text: &str| self.forms.iter().chain(&answers.passwords).any(|form| text.contains(form.as_str()));
        if self.forms.is_empty() && answers.passwords.is_empty() {
            return false;
        }
        let mut decoded = std::borrow::Cow::Borrowed(text);
        for _ in 0..DECODINGS {
            if is_in(&decoded) || (decoded.contains('%') && is_in(&URL.decode(&decoded, None))) {
                return true;
            }
            if !decoded.contains('\\') {
                return false;
            }
            decoded = JSON.decode(&decoded, None).into();
        }
        is_in(&decoded) || is_in(&URL.decode(&decoded, None))
    }

    /// How long the longest form of one is: what a reader must keep to find one that a read cut in two.
    #[must_use]
    pub fn longest(&self) -> usize {
        let answers = self.answers.read().unwrap_or_else(PoisonError::into_inner);
        let first = |forms: &[String]| forms.first().map_or(0, String::len);
        first(&self.forms).max(first(&answers.forms)) * ESCAPED_TIMES
    }
}

/// Adds forms, the longest first.
fn add(known: &mut Vec<String>, forms: Vec<String>) {
    known.extend(forms);
    known.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    known.dedup();
}

/// Whether a field is for a password, by its name.
fn names_password(field: &str) -> bool {
    const WORDS: [&str; 7] = ["passw", "passphrase", "secret", "token", "api_key", "apikey", "cookie"];
    let field = field.to_ascii_lowercase();
    WORDS.iter().any(|word| field.contains(word))
}

/// Where these forms are in a text as it is and with its escapes decoded so often, in order and without overlap. A text
/// that was cut may end with the beginning of one. `None`: nothing is left to decode.
fn places(text: &str, forms: &[&str], is_cut: bool, decodings: Option<u32>) -> Vec<Range<usize>> {
    let whole = |form: &&str| text.match_indices(*form).map(|(at, found)| at..at + found.len()).collect::<Vec<_>>();
    let mut places = forms.iter().flat_map(whole).collect::<Vec<_>>();
    if is_cut {
        let begun = forms.iter().filter_map(|form| begun_at_end(text, form)).max();
        places.extend(begun.map(|bytes| text.len() - bytes..text.len()));
    }
    let deeper = [(URL, decodings.map(|_| None)), (JSON, decodings.and_then(|left| left.checked_sub(1)).map(Some))];
    for (escapes, left) in deeper {
        let Some(left) = left.filter(|_| text.contains(escapes.mark)) else { continue };
        let mut origins = Vec::with_capacity(text.len() + 1);
        let decoded = escapes.decode(text, Some(&mut origins));
        let inner = self::places(&decoded, forms, is_cut, left);
        places.extend(inner.into_iter().map(|place| origins[place.start]..origins[place.end]));
    }
    places.sort_by_key(|place| (place.start, std::cmp::Reverse(place.end)));
    places.dedup_by(|later, earlier| {
        let overlaps = later.start < earlier.end;
        if overlaps {
            earlier.end = earlier.end.max(later.end);
        }
        overlaps
    });
    places
}

/// A way of escaping characters.
#[derive(Clone, Copy)]
struct Escapes {
    /// What each begins with.
    mark: char,
    /// The character that an escape stands for, and how long the escape is.
    read: fn(&[u8]) -> (Option<char>, usize),
}

const JSON: Escapes = Escapes { mark: '\\', read: unescape };
const URL: Escapes = Escapes { mark: '%', read: unescape_percent };

impl Escapes {
    /// A text with its escapes decoded once. `origins` gets where each byte of it came from, and where the text ended.
    fn decode(self, text: &str, mut origins: Option<&mut Vec<usize>>) -> String {
        let mut decoded = String::with_capacity(text.len());
        let mut rest = 0;
        while let Some(at) = text[rest..].find(self.mark).map(|found| rest + found) {
            let (character, bytes) = (self.read)(&text.as_bytes()[at..]);
            decoded.push_str(&text[rest..at]);
            decoded.extend(character);
            if let Some(origins) = &mut origins {
                origins.extend(rest..at);
                origins.extend(std::iter::repeat_n(at, character.map_or(0, char::len_utf8)));
            }
            rest = at + bytes;
        }
        decoded.push_str(&text[rest..]);
        if let Some(origins) = origins {
            origins.extend(rest..=text.len());
        }
        decoded
    }
}

/// The same for `%XX` of ASCII. Other characters take several of them, and stay as they are: `forms_of` has them so.
fn unescape_percent(text: &[u8]) -> (Option<char>, usize) {
    let digit = |at: usize| text.get(at).and_then(|digit| char::from(*digit).to_digit(16));
    match (digit(1), digit(2)) {
        (Some(high @ 0..8), Some(low)) => (char::from_u32(high << 4 | low), 3),
        (Some(_), None) if text.len() == 2 => (None, 2),
        (None, _) if text.len() == 1 => (None, 1),
        _ => (Some('%'), 1),
    }
}

/// The character that an escape stands for, and how long the escape is. One that the end of the text cuts off is nothing;
/// a backslash that begins none is itself.
fn unescape(text: &[u8]) -> (Option<char>, usize) {
    let short = |character| (Some(character), 2);
    match text.get(1) {
        None => (None, 1),
        Some(&itself @ (b'"' | b'\\' | b'/')) => short(char::from(itself)),
        Some(b'b') => short('\u{8}'),
        Some(b'f') => short('\u{c}'),
        Some(b'n') => short('\n'),
        Some(b'r') => short('\r'),
        Some(b't') => short('\t'),
        Some(b'u') => match (utf16_unit(text), text.get(6..)) {
            (None, None) if text[2..].iter().all(u8::is_ascii_hexdigit) => (None, text.len()),
            (Some(high @ 0xd800..=0xdbff), Some(rest)) => match utf16_unit(rest) {
                Some(low @ 0xdc00..=0xdfff) => (char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)), 12),
                None if rest.len() < 6 && (rest.is_empty() || rest[0] == b'\\') => (None, text.len()),
                _ => (Some(char::REPLACEMENT_CHARACTER), 6),
            },
            (Some(unit), _) => (Some(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)), 6),
            (None, _) => (Some('\\'), 1),
        },
        Some(_) => (Some('\\'), 1),
    }
}

/// The number in `\uXXXX`.
fn utf16_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
}

/// How many bytes at the end of a text are the beginning of a secret, if that is worth masking.
fn begun_at_end(text: &str, secret: &str) -> Option<usize> {
    let mut parts = secret.char_indices().map(|(end, _)| end).rev().take_while(|&end| end >= SECRET_BYTES_MIN);
    parts.find(|&end| text.ends_with(&secret[..end]))
}

/// All ways of writing these, the longest first.
fn all_forms(secrets: impl IntoIterator<Item = String>) -> Vec<String> {
    let secrets = secrets.into_iter().filter(|secret| secret.len() >= SECRET_BYTES_MIN);
    let forms = secrets.flat_map(|secret| forms_of(&secret)).collect::<BTreeSet<_>>();
    let mut forms = forms.into_iter().collect::<Vec<_>>();
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms
}

/// A secret as programs write it, but for what `Escapes` decode. They differ in the case of their digits.
fn forms_of(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    let mut forms = vec![secret.to_owned(), hex(bytes, LOWER), hex(bytes, UPPER)];
    for digits in [LOWER, UPPER] {
        forms.extend([percent(secret, digits, ' '), percent(secret, digits, '+')]);
    }
    for encoding in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
        forms.extend(base64_at_all_alignments(bytes, encoding));
    }
    forms.retain(|form| form.len() >= SECRET_BYTES_MIN);
    forms
}

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

fn hex(bytes: &[u8], digits: &[u8; 16]) -> String {
    let pair = |byte: &u8| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]];
    bytes.iter().flat_map(pair).map(char::from).collect()
}

/// As in a URL whose ASCII escapes were decoded: other characters as `%XX`, and a blank as forms write it.
fn percent(secret: &str, digits: &[u8; 16], blank: char) -> String {
    let mut text = String::new();
    for character in secret.chars() {
        match character {
            ' ' => text.push(blank),
            '\0'..='\x7f' => text.push(character),
            _ => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    text.push('%');
                    text.push_str(&hex(&[byte], digits));
                }
            }
        }
    }
    text
}

/// The characters that the secret alone decides, for each of the three places at which it may begin.
fn base64_at_all_alignments(bytes: &[u8], encoding: &GeneralPurpose) -> Vec<String> {
    let mut forms = Vec::new();
    for lead in 0..3 {
        let mut padded = vec![0; lead];
        padded.extend_from_slice(bytes);
        let encoded = encoding.encode(&padded);
        // Characters that share bits with what stands before or after differ from text to text.
        let first = (lead * 8).div_ceil(6);
        let last = padded.len() * 8 / 6;
        if let Some(form) = encoded.get(first..last)
            && form.len() >= PART_BYTES_MIN
        {
            forms.push(form.to_owned());
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &str = "pa ss/w\"ord+ü!";

    #[test]
    fn a_secret_that_was_cut_in_two_is_masked_at_the_end() {
        let redactor = Redactor::new(["correct-horse".to_owned()]);
        redactor.learn(["battery staple".to_owned()]);
        assert_eq!(redactor.mask("key correct-h…"), "key [secret]…");
        assert_eq!(redactor.mask("key battery…"), "key [secret]…");
        assert_eq!(redactor.mask("key cor…"), "key cor…", "a word");
        assert_eq!(redactor.mask("key correct-h"), "key correct-h", "it was not cut");
        assert_eq!(redactor.mask("correct-horse correct-horse…"), "[secret] [secret]…");
        let unicode = Redactor::new(["üüüü-ü".to_owned()]);
        assert_eq!(unicode.mask("x üüüü…"), "x [secret]…");
    }

    #[test]
    fn a_secret_is_masked_in_every_way_of_writing_it() {
        let redactor = Redactor::new([SECRET.to_owned()]);
        let bytes = SECRET.as_bytes();
        // Written out, so that this does not repeat what it tests.
        let mut ways = [
            SECRET,
            r#"pa ss/w\"ord+ü!"#,
            r#"pa ss\/w\"ord+\u00fc!"#,
            r#"pa ss/w\"ord+\u00FC!"#,
            r#"pa ss/w\\\"ord+\\u00fc!"#,
            r#"pa ss/w\\\"ord+\u00fc!"#,
            r#"pa ss\\/w\\\"ord+\\u00fc!"#,
            "pa%20ss%2Fw%22ord%2B%C3%BC%21",
            "pa%20ss/w%22ord%2b%c3%bc%21",
            "pa+ss%2Fw%22ord%2B%C3%BC%21",
            "pa%20ss/w%22ord+%C3%BC!",
            "%70%61%20%73%73%2f%77%22%6f%72%64%2b%c3%bc%21",
            r#"pa%20ss\/w%22ord+%C3%BC!"#,
            "70612073732f77226f72642bc3bc21",
        ]
        .map(str::to_owned)
        .to_vec();
        assert_eq!(hex(bytes, LOWER), *ways.last().unwrap());
        // In the middle of something longer that is encoded as a whole, as in `Authorization: Basic`.
        for lead in ["", "u", "us", "use", "user:"] {
            let whole = format!("{lead}{SECRET} and more");
            ways.push(STANDARD_NO_PAD.encode(&whole));
            ways.push(URL_SAFE_NO_PAD.encode(&whole));
        }
        for way in ways {
            let masked = redactor.mask(&format!("before {way} after"));
            assert!(masked.contains(MASK), "{way}");
            assert!(redactor.reveals(&way));
        }
    }

    /// One character of a JSON string, in one of the ways that JSON allows.
    fn escaped(character: char, way: u8) -> String {
        let units = |digits| {
            let mut units = [0; 2];
            let units = character.encode_utf16(&mut units).iter();
            units.map(|unit| format!("\\u{}", hex(&unit.to_be_bytes(), digits))).collect()
        };
        match (way, character) {
            (0, _) => units(LOWER),
            (1, _) => units(UPPER),
            (_, '"' | '\\') | (2, '/') => format!("\\{character}"),
            (_, '\0'..='\u{1f}') => units(LOWER),
            (..) => character.to_string(),
        }
    }

    proptest! {
        #[test]
        fn escapes_hide_no_secret(
            characters in prop::collection::vec((any::<char>().prop_filter("a border", |c| *c != '|'), 0_u8..4), 4..24),
            way in 0_u8..4,
        ) {
            let secret = characters.iter().map(|(character, _)| *character).collect::<String>();
            let redactor = Redactor::new([secret.clone()]);
            let once = characters.iter().map(|(character, way)| escaped(*character, *way)).collect::<String>();
            let twice = once.chars().map(|character| escaped(character, way)).collect::<String>();
            for text in [&secret, &once, &twice] {
                prop_assert!(redactor.reveals(&format!(r#"{{"a\n":"{text}"}}"#)), "{text}");
                prop_assert_eq!(redactor.mask(&format!("|{text}|")), "|[secret]|");
            }
            let part = once.len() - escaped(characters[characters.len() - 1].0, characters[characters.len() - 1].1).len();
            if secret.chars().count() > 4 {
                prop_assert_eq!(redactor.mask(&format!("|{}…", &once[..part])), "|[secret]…");
            }
        }

        #[test]
        fn a_text_without_a_secret_stays_as_it_is(text in r#"[a-z\\"/u0-9é😀]{0,40}"#) {
            let redactor = Redactor::new(["correct-horse".to_owned()]);
            prop_assert!(!redactor.reveals(&text));
            prop_assert_eq!(redactor.mask(&text), text);
        }
    }

    #[test]
    fn an_escape_that_was_cut_in_two_is_masked_with_the_rest() {
        let redactor = Redactor::new(["correct+😀horse".to_owned()]);
        for end in ["", "\\", "\\u0", "\\u002B", "\\u002b\\ud83d", "+\\uD83D\\", "+\\uD83D\\ude0"] {
            assert_eq!(redactor.mask(&format!("key correct{end}…")), "key [secret]…", "{end}");
        }
        assert!(!redactor.reveals("\\ud83d\\ud83d \\u12 \\x"));
    }

    #[test]
    fn an_answer_is_masked_by_every_copy_and_ends_no_run() {
        let redactor = Redactor::new([SECRET.to_owned()]);
        let copy = redactor.clone();
        redactor.learn(["493817".to_owned(), "yes".to_owned()]);
        assert_eq!(copy.mask("code 493817, hex 343933383137, yes"), "code [secret], hex [secret], yes");
        assert!(!copy.reveals("493817"), "it may be the number of an order");
        assert!(copy.longest() >= SECRET.len());
    }

    #[test]
    fn a_password_among_the_answers_counts_as_a_secret_and_other_answers_do_not() {
        let (redactor, text) = (Redactor::default(), str::to_owned);
        redactor.learn_named(
            [("username", "someone@example.org"), ("Password", "correct-horse"), ("otp", "49381726")]
                .map(|(name, answer)| (text(name), text(answer))),
        );
        assert_eq!(redactor.mask("someone@example.org correct-horse 49381726"), "[secret] [secret] [secret]");
        assert!(redactor.reveals("a correct%2Dhorse") && redactor.clone().reveals("Y29ycmVjdC1ob3JzZQ"));
        assert!(!redactor.reveals("someone@example.org 49381726"));
    }

    #[test]
    fn words_are_left_alone_and_nothing_is_shown() {
        let redactor = Redactor::new(["abc".to_owned(), String::new(), SECRET.to_owned()]);
        assert_eq!(redactor.mask("abc def"), "abc def");
        assert!(!format!("{redactor:?}").contains("pa ss"));
    }
}
