//! A body for people: JSON with a line per value, in the order and the spelling of whoever wrote it; cut to fit.

use gleaner_base::outside::{self, one_line};
use serde::de::IgnoredAny;

/// One step to the right.
const INDENT: &str = "  ";
/// Deeper than this is not indented further: there is no room.
const DEPTH_MAX: usize = 20;

/// The lines of a body: JSON is spread, other text is as it is.
pub(super) fn lines_of(text: &str) -> Vec<String> {
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return spread(text);
    }
    outside::lines(text).lines().map(ToOwned::to_owned).collect()
}

/// The first of them, and how many are left.
pub(super) fn cut(mut lines: Vec<String>, max: usize) -> Vec<String> {
    if lines.len() > max {
        let left = lines.len() - (max - 1);
        lines.truncate(max - 1);
        lines.push(format!("… {left} more lines"));
    }
    lines
}

/// A line of at most so many characters.
pub(super) fn fit(line: &str, width: usize) -> String {
    if line.chars().nth(width).is_none() {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// A text in lines of at most so many characters, wherever they end.
pub(super) fn broken(text: &str, width: usize) -> Vec<String> {
    let characters = text.chars().collect::<Vec<_>>();
    characters.chunks(width.max(1)).map(|line| line.iter().collect()).collect()
}

/// JSON, a line per value. What is given is JSON.
fn spread(text: &str) -> Vec<String> {
    let (mut lines, mut line, mut depth) = (Vec::new(), String::new(), 0_usize);
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let width = match first {
            '"' => literal_len(rest),
            first => first.len_utf8(),
        };
        let (token, after) = rest.split_at(width);
        rest = after.trim_start();
        match first {
            // An empty one stays on its line.
            '{' | '[' if rest.starts_with(['}', ']']) => line.push_str(token),
            '{' | '[' => {
                line.push_str(token);
                depth += 1;
                end_line(&mut lines, &mut line, depth);
            }
            '}' | ']' if line.ends_with(['{', '[']) => line.push_str(token),
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                end_line(&mut lines, &mut line, depth);
                line.push_str(token);
            }
            ',' => {
                line.push(',');
                end_line(&mut lines, &mut line, depth);
            }
            ':' => line.push_str(": "),
            _ => line.push_str(&one_line(token)),
        }
    }
    lines.push(line);
    lines
}

fn end_line(lines: &mut Vec<String>, line: &mut String, depth: usize) {
    lines.push(std::mem::replace(line, INDENT.repeat(depth.min(DEPTH_MAX))));
}

/// How long the JSON text is that begins here.
fn literal_len(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().enumerate().skip(1).find(|&(_, byte)| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |(index, _)| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_spread_as_it_was_written() {
        let text = r#"{"z":1.50, "a" : [ ], "t":"x, {\"y\"}: \u001b","n":{"m":[1,null]},"e":{}}"#;
        let expected = [
            "{",
            r#"  "z": 1.50,"#,
            r#"  "a": [],"#,
            r#"  "t": "x, {\"y\"}: \u001b","#,
            r#"  "n": {"#,
            r#"    "m": ["#,
            "      1,",
            "      null",
            "    ]",
            "  },",
            r#"  "e": {}"#,
            "}",
        ];
        assert_eq!(lines_of(text), expected);
        assert_eq!(lines_of("7"), ["7"]);
        assert_eq!(lines_of("<p>\n\u{1b}[31m"), ["<p>", "\\u{1b}[31m"]);
        assert_eq!(lines_of(""), Vec::<String>::new());
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(lines_of(&deep).len(), 199);
    }

    #[test]
    fn what_is_too_long_is_cut_and_says_so() {
        let lines = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        assert_eq!(cut(lines(3), 3), ["0", "1", "2"]);
        assert_eq!(cut(lines(5), 3), ["0", "1", "… 3 more lines"]);
        assert_eq!(broken("ünübün", 4), ["ünüb", "ün"]);
        assert_eq!((fit("ünü", 3), fit("ünüb", 3)), ("ünü".to_owned(), "ün…".to_owned()));
    }
}
