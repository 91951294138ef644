//! Text to search in: the values of a record, decoded and without regard to case.
//!
//! A body is kept as its connector wrote it, so one letter may be written in several ways (`ó`, `\u00f3`). What is searched
//! is what it says: the texts, numbers and constants of a record, each on its own. Names of fields and the syntax of JSON
//! are not searched: every record of a stream has the same ones. Written for speed: a search looks at 64 MiB at a time.

use gleaner_protocol::json::{decode, string_end};

/// Ends a value, so that no text is found across two of them. No keyboard has it.
const END: char = '\u{1f}';

/// A text to look for.
#[derive(Debug)]
pub(super) struct Needle {
    folded: String,
    /// What is looked through, kept so that no record needs memory of its own.
    haystack: String,
}

impl Needle {
    pub(super) fn new(text: &str) -> Self {
        let mut folded = String::new();
        fold_into(text, &mut folded);
        Self { folded, haystack: String::new() }
    }

    /// Whether the text is in the key, or in a value of the body.
    pub(super) fn is_in(&mut self, key: &str, body: Option<&str>) -> bool {
        self.haystack.clear();
        fold_into(key, &mut self.haystack);
        self.haystack.push(END);
        // A key of several parts is a list in JSON.
        if key.starts_with('[') {
            fold_values(key, &mut self.haystack);
        }
        if let Some(body) = body {
            fold_values(body, &mut self.haystack);
        }
        self.haystack.contains(&self.folded)
    }
}

/// Appends every value of a JSON text.
fn fold_values(json: &str, out: &mut String) {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                // A text that does not end goes to the end.
                let (end, _) = string_end(bytes, at).unwrap_or((bytes.len() + 1, false));
                let text = json.get(at + 1..end - 1).unwrap_or_default();
                at = end.min(bytes.len());
                let next = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace());
                // The name of a field.
                if next == Some(&b':') {
                    continue;
                }
                fold_into(&decode(text), out);
                out.push(END);
            }
            b'{' | b'}' | b'[' | b']' | b':' | b',' => at += 1,
            byte if byte.is_ascii_whitespace() => at += 1,
            _ => {
                let rest = &bytes[at..];
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                let length = rest.iter().position(is_end).unwrap_or(rest.len());
                fold_into(json.get(at..at + length).unwrap_or_default(), out);
                out.push(END);
                at += length;
            }
        }
    }
}

/// Appends a text in one case: capitals and small letters of any script are the same, and so are `ß` and `ss`.
fn fold_into(text: &str, out: &mut String) {
    if text.is_ascii() {
        let from = out.len();
        out.push_str(text);
        out[from..].make_ascii_lowercase();
        return;
    }
    for letter in text.chars() {
        if letter.is_ascii() {
            out.push(letter.to_ascii_lowercase());
        } else {
            // By way of the capital: `ς` and `σ` have the same one.
            letter.to_uppercase().flat_map(char::to_lowercase).for_each(|letter| out.push(letter));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str, body: &str) -> bool {
        Needle::new(text).is_in("k", Some(body))
    }

    #[test]
    fn a_letter_is_found_however_it_is_written_and_in_either_case() {
        for body in [r#"{"city":"Kraków"}"#, r#"{"city":"Krak\u00f3w"}"#, r#"{"city":"KRAK\u00D3W"}"#] {
            for text in ["Kraków", "kraków", "KRAKÓW", "ków"] {
                assert!(finds(text, body), "{text} in {body}");
            }
            assert!(!finds("Krakow", body), "another letter");
        }
        for (text, written) in [
            ("oslo", "Oslo"),
            ("STRASSE", "Straße"),
            ("straße", "STRASSE"),
            ("ΟΔΟΣ", "οδος"),
            ("москва", "МОСКВА"),
            ("😀", "\\ud83d\\ude00"),
            ("a\"b\\c", "A\\\"B\\\\C"),
            ("two\nlines", "two\\nlines"),
            ("a/b", "a\\/b"),
        ] {
            assert!(finds(text, &format!("{{\"x\":\"{written}\"}}")), "{text} in {written}");
        }
    }

    #[test]
    fn values_are_searched_and_names_and_syntax_are_not() {
        let body = r#"{"name": "x", "list": [1.5e3, true, null, {"inner" :"deep"}], "a:b": "c,d", "e": "f"}"#;
        for text in ["x", "1.5E3", "TRUE", "null", "deep", "c,d", "f"] {
            assert!(finds(text, body), "{text}");
        }
        for text in ["name", "list", "inner", "a:b", "{", "\":", "x\"", "], ", "xf", "c,df"] {
            assert!(!finds(text, body), "{text}");
        }
        assert!(Needle::new("ABC").is_in("x-abc", None) && Needle::new("é").is_in(r#"["a","\u00c9"]"#, None));
    }

    #[test]
    fn half_a_character_and_half_an_escape_are_no_fault() {
        for body in
            [r#"{"x":"\ud800"}"#, r#"{"x":"\ud800\u0041b"}"#, r#"{"x":"\"#, r#"{"x":"\u12"#, r#"{"x":"ab"#, "\"é"]
        {
            assert!(!finds("zz", body), "{body}");
        }
        assert!(finds("ab", r#"{"x":"\ud800\u0041b"}"#));
    }
}
