//! Masking a connection's secrets in whatever is printed, logged or stored for people.
//!
//! By value, not by guessing: a runtime knows which secrets it handed out, and a connector which it got. Each is masked as it is
//! and as programs write it: URL-, JSON-, hex- and base64-encoded, the last at all three alignments,
//! because a secret inside of a longer text is encoded at any of them. Records, cursors and locators
//! do not go through here: they are kept as they came, and a secret of ours in them ends the run.
//! What the owner answers during a run is masked too, and only that: a name or a code of four digits
//! may well stand in a record.

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// What stands for a secret.
const MASK: &str = "[secret]";
/// Shorter values are words, not secrets: masking them would make a log unreadable.
const SECRET_BYTES_MIN: usize = 4;
/// How a text ends that was cut.
const CUT: char = '…';
/// The shortest part of an encoded secret that is worth masking.
const PART_BYTES_MIN: usize = 6;

/// Knows secrets and masks them. Prints how many, never which.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The longest first: one may hold another.
    forms: Vec<String>,
    /// Answers of the owner, which every copy knows.
    answers: Arc<RwLock<Vec<String>>>,
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
        let mut known = self.answers.write().unwrap_or_else(PoisonError::into_inner);
        known.extend(all_forms(answers));
        known.sort_by_key(|form| std::cmp::Reverse(form.len()));
        known.dedup();
    }

    /// The text without them. One that ends with an ellipsis was cut, perhaps in the middle of one of them: then the
    /// beginning of one at its end is masked, too.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        let answers = self.answers.read().unwrap_or_else(PoisonError::into_inner);
        let mut masked = text.to_owned();
        for form in self.forms.iter().chain(answers.iter()) {
            if masked.contains(form.as_str()) {
                masked = masked.replace(form.as_str(), MASK);
            }
        }
        let Some(cut) = masked.strip_suffix(CUT) else { return masked };
        let begun = self.forms.iter().chain(answers.iter()).filter_map(|form| begun_at_end(cut, form)).max();
        match begun {
            Some(bytes) => format!("{}{MASK}{CUT}", &cut[..cut.len() - bytes]),
            None => masked,
        }
    }

    /// Whether one of the secrets is in the text. Answers do not count.
    #[must_use]
    pub fn reveals(&self, text: &str) -> bool {
        self.forms.iter().any(|form| text.contains(form.as_str()))
    }

    /// How long the longest form of one is: what a reader must keep to find one that a read cut in two.
    #[must_use]
    pub fn longest(&self) -> usize {
        let answers = self.answers.read().unwrap_or_else(PoisonError::into_inner);
        let first = |forms: &[String]| forms.first().map_or(0, String::len);
        first(&self.forms).max(first(&answers))
    }
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

/// A secret as programs write it. They differ in what they leave alone and in the case of their digits.
fn forms_of(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    let mut forms = vec![secret.to_owned(), hex(bytes, LOWER), hex(bytes, UPPER)];
    for digits in [LOWER, UPPER] {
        for keeps_slash in [true, false] {
            forms.extend([percent(bytes, digits, keeps_slash, false), percent(bytes, digits, keeps_slash, true)]);
            forms.extend([json(secret, digits, keeps_slash, false), json(secret, digits, keeps_slash, true)]);
        }
    }
    // A body that holds JSON as a text is a JSON text itself, so it is escaped twice.
    let once = forms.clone();
    for keeps_slash in [true, false] {
        forms.extend(
            once.iter().flat_map(|form| [json(form, LOWER, keeps_slash, false), json(form, LOWER, keeps_slash, true)]),
        );
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

/// What is not a letter, a digit or one of `-._~` as `%XX`; in forms a blank is a plus.
fn percent(bytes: &[u8], digits: &[u8; 16], keeps_slash: bool, form: bool) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(*byte)),
            b'/' if keeps_slash => text.push('/'),
            b' ' if form => text.push('+'),
            _ => {
                text.push('%');
                text.push_str(&hex(&[*byte], digits));
            }
        }
    }
    text
}

/// Inside of a JSON string. Some escape everything that is not ASCII, some escape slashes.
fn json(secret: &str, digits: &[u8; 16], keeps_slash: bool, ascii: bool) -> String {
    let mut text = String::new();
    for character in secret.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '/' if !keeps_slash => text.push_str("\\/"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            other if other < ' ' || (ascii && !other.is_ascii()) => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    text.push_str("\\u");
                    text.push_str(&hex(&unit.to_be_bytes(), digits));
                }
            }
            other => text.push(other),
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
    fn words_are_left_alone_and_nothing_is_shown() {
        let redactor = Redactor::new(["abc".to_owned(), String::new(), SECRET.to_owned()]);
        assert_eq!(redactor.mask("abc def"), "abc def");
        assert!(!format!("{redactor:?}").contains("pa ss"));
    }
}
