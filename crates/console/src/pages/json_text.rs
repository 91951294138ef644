//! JSON from outside, written for people: indented where it can be read, and as it stands where not.
//!
//! Numbers keep their text: nothing is read into a number and written again. What is very long is cut, and says so.

/// Characters of a body that a page shows.
const SHOWN_MAX: usize = 200_000;
/// How deep it is indented. What is deeper stays on one line.
const DEPTH_MAX: usize = 60;

/// A text that is meant to be JSON, for people.
pub(crate) fn pretty(text: &str) -> String {
    let mut shown = indent(text);
    if shown.len() > SHOWN_MAX {
        let cut = (0..=SHOWN_MAX).rev().find(|at| shown.is_char_boundary(*at)).unwrap_or(0);
        shown.truncate(cut);
        shown.push_str("\n… and more");
    }
    shown
}

/// New lines and spaces between tokens, and no other change. A text that is no JSON comes out readable, too.
fn indent(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if out.len() > SHOWN_MAX {
            break;
        }
        if in_string {
            out.push(c);
            (in_string, escaped) = match c {
                _ if escaped => (true, false),
                '\\' => (true, true),
                '"' => (false, false),
                _ => (true, false),
            };
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while rest.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                if let Some(end) = rest.next_if(|c| matches!(c, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

fn line(out: &mut String, depth: usize) {
    if depth <= DEPTH_MAX {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_every_token_stays_as_it_was() {
        let text = r#"{"a":1.50,"b":[],"c":[1,{"d":"x, {\"y\\"}],"e":{ }}"#;
        let expected = "{\n  \"a\": 1.50,\n  \"b\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"x, {\\\"y\\\\\"\n    }\n  ],\n  \"e\": {}\n}";
        assert_eq!(pretty(text).to_string(), expected);
    }

    #[test]
    fn what_is_no_json_and_what_is_far_too_deep_is_shown_all_the_same() {
        assert_eq!(pretty("]]{").to_string().replace([' ', '\n'], ""), "]]{");
        let deep = "[".repeat(100_000);
        assert!(pretty(&deep).to_string().len() < 400_000);
        let long = format!("\"{}\"", "ä".repeat(SHOWN_MAX));
        assert!(pretty(&long).to_string().ends_with("… and more"));
    }
}
