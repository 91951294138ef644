//! The lines of an iCalendar file: a name, parameters, a value, folded at 75 bytes.
//!
//! Pure. A line that is none is left out and counted; it never takes its neighbours with it.

/// One line, unfolded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// In capitals.
    pub(crate) name: String,
    /// Names in capitals, values without their quotes.
    pub(crate) parameters: Vec<(String, String)>,
    /// As it is written.
    pub(crate) value: String,
}

impl Line {
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value as text: without its escapes.
    pub(crate) fn text(&self) -> String {
        unescaped(&self.value)
    }

    /// Several texts, separated by commas.
    pub(crate) fn texts(&self) -> Vec<String> {
        let (mut parts, mut from, mut is_escaped) = (Vec::new(), 0, false);
        for (at, letter) in self.value.char_indices() {
            if letter == ',' && !is_escaped {
                parts.push(&self.value[from..at]);
                from = at + 1;
            }
            is_escaped = letter == '\\' && !is_escaped;
        }
        parts.push(&self.value[from..]);
        parts.iter().map(|part| unescaped(part.trim())).filter(|part| !part.is_empty()).collect()
    }
}

/// Every line that is one; `Err` for each that is not.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Result<Line, ()>> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').peekable();
    std::iter::from_fn(move || {
        loop {
            let first = rest.next()?;
            let mut whole = first.strip_suffix('\r').unwrap_or(first).to_owned();
            while let Some(next) = rest.next_if(|next| next.starts_with([' ', '\t'])) {
                let next = &next[1..];
                whole.push_str(next.strip_suffix('\r').unwrap_or(next));
            }
            if !whole.trim().is_empty() {
                return Some(line(&whole).ok_or(()));
            }
        }
    })
}

fn line(text: &str) -> Option<Line> {
    let name_end = text.find([';', ':'])?;
    let name = &text[..name_end];
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' || byte == b'.';
    (!name.is_empty() && name.bytes().all(plain)).then_some(())?;
    // A group in front of the name is an old habit of address books.
    let name = name.rsplit('.').next()?.to_ascii_uppercase();
    let mut parameters = Vec::new();
    let mut rest = &text[name_end..];
    while let Some(after) = rest.strip_prefix(';') {
        let equals = after.find(['=', ':', ';'])?;
        if after.as_bytes()[equals] != b'=' {
            // A parameter without a value says nothing.
            rest = &after[equals..];
            continue;
        }
        let (value, behind) = parameter_value(&after[equals + 1..])?;
        parameters.push((after[..equals].trim().to_ascii_uppercase(), value));
        rest = behind;
    }
    Some(Line { name, parameters, value: rest.strip_prefix(':')?.to_owned() })
}

/// A value up to the next `;` or `:` that stands outside of quotes.
fn parameter_value(text: &str) -> Option<(String, &str)> {
    let mut is_quoted = false;
    let end = text.find(|letter| {
        is_quoted ^= letter == '"';
        !is_quoted && matches!(letter, ';' | ':')
    })?;
    Some((text[..end].replace('"', ""), &text[end..]))
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n' | 'N') => plain.push('\n'),
                Some(escaped) => plain.push(escaped),
                None => plain.push('\\'),
            },
            (letter, false) => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Line {
        lines(text).next().unwrap().unwrap()
    }

    #[test]
    fn folded_lines_are_put_together_and_escapes_are_taken_out() {
        let text = "SUMMARY;LANGUAGE=en:Long \r\n title\\, with\\n\r\n\t more\\\\\r\nLOCATION:x\n";
        let read = lines(text).map(Result::unwrap).collect::<Vec<_>>();
        assert_eq!(read[0].text(), "Long title, with\n more\\");
        assert_eq!((read[0].parameter("LANGUAGE"), read[1].text().as_str()), (Some("en"), "x"));
    }

    #[test]
    fn quotes_hide_what_would_end_a_parameter() {
        let line = one("ATTENDEE;CN=\"Doe; John: Jr\";PARTSTAT=ACCEPTED:mailto:j@example.test");
        assert_eq!((line.parameter("CN"), line.parameter("PARTSTAT")), (Some("Doe; John: Jr"), Some("ACCEPTED")));
        assert_eq!(line.value, "mailto:j@example.test");
        assert_eq!(one("CATEGORIES:a\\,b, c,,d").texts(), ["a,b", "c", "d"]);
    }

    #[test]
    fn what_is_no_line_is_counted_and_takes_nothing_with_it() {
        let text = "\u{feff}BEGIN:VCALENDAR\nrubbish\n:value\nA;B\n\u{0}\u{1}:x\nA;B=\"open:x\nEND:VCALENDAR";
        let read = lines(text).collect::<Vec<_>>();
        assert_eq!(read.iter().filter(|line| line.is_err()).count(), 5);
        assert_eq!(read.iter().flatten().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["BEGIN", "END"]);
    }
}
