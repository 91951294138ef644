//! Parses `Link` headers (RFC 8288) for paging: finds `rel="next"`.
//!
//! Why not search for the text: a target may contain commas and semicolons, a title may contain `rel="next"`, and a
//! mistake here loads the wrong pages. An unreadable header is an error and not the last page, because that would
//! silently lose data.

use http::HeaderMap;
use http::header::LINK;

/// Maximum of links per answer. Highest number seen: six.
const LINKS_MAX: usize = 64;

/// An invalid `Link` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The target of the first link to the next page.
pub(crate) fn next_target(headers: &HeaderMap) -> Result<Option<String>, Malformed> {
    for value in headers.get_all(LINK) {
        let value = std::str::from_utf8(value.as_bytes()).map_err(|_not_text| Malformed)?;
        let links = parse(value)?;
        if let Some(next) = links.into_iter().find(Link::is_next) {
            return Ok(Some(next.target.to_owned()));
        }
    }
    Ok(None)
}

/// One link.
#[derive(Debug, Default, PartialEq, Eq)]
struct Link<'a> {
    target: &'a str,
    /// The first `rel`; the standard says to ignore others.
    rel: Option<String>,
    /// It is about another page than its own.
    has_anchor: bool,
}

impl Link<'_> {
    fn is_next(&self) -> bool {
        let rel = self.rel.as_deref().unwrap_or_default();
        !self.has_anchor && rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("next"))
    }
}

fn parse(value: &str) -> Result<Vec<Link<'_>>, Malformed> {
    let mut rest = Scanner(value);
    let mut links = Vec::new();
    loop {
        // Empty elements of a list are allowed.
        rest.skip(|c| is_space(c) || c == ',');
        if rest.0.is_empty() {
            return Ok(links);
        }
        if links.len() == LINKS_MAX {
            return Err(Malformed);
        }
        links.push(rest.link()?);
        rest.skip(is_space);
        if !(rest.0.is_empty() || rest.0.starts_with(',')) {
            return Err(Malformed);
        }
    }
}

/// The text left to parse.
struct Scanner<'a>(&'a str);

impl<'a> Scanner<'a> {
    fn link(&mut self) -> Result<Link<'a>, Malformed> {
        let rest = self.0.strip_prefix('<').ok_or(Malformed)?;
        let (target, rest) = rest.split_once('>').ok_or(Malformed)?;
        self.0 = rest;
        let mut link = Link { target: target.trim_matches(is_space), ..Link::default() };
        loop {
            self.skip(is_space);
            if !self.eat(';') {
                return Ok(link);
            }
            self.skip(is_space);
            let name = self.take(|c| !is_space(c) && !matches!(c, '=' | ';' | ','));
            self.skip(is_space);
            let value = if self.eat('=') { self.value()? } else { String::new() };
            if name.eq_ignore_ascii_case("rel") {
                link.rel.get_or_insert(value);
            } else if name.eq_ignore_ascii_case("anchor") {
                link.has_anchor = true;
            }
        }
    }

    fn value(&mut self) -> Result<String, Malformed> {
        self.skip(is_space);
        if !self.eat('"') {
            return Ok(self.take(|c| !is_space(c) && !matches!(c, ';' | ',')).to_owned());
        }
        let mut text = String::new();
        let mut chars = self.0.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Ok(text);
                }
                '\\' => text.push(chars.next().ok_or(Malformed)?.1),
                c => text.push(c),
            }
        }
        Err(Malformed)
    }

    fn skip(&mut self, what: impl Fn(char) -> bool) {
        self.0 = self.0.trim_start_matches(what);
    }

    fn eat(&mut self, c: char) -> bool {
        let rest = self.0.strip_prefix(c);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn take(&mut self, what: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|c| !what(c)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }
}

const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn next(values: &[&str]) -> Result<Option<String>, Malformed> {
        let values = values.iter().map(|value| (LINK, HeaderValue::from_bytes(value.as_bytes()).unwrap()));
        next_target(&HeaderMap::from_iter(values))
    }

    #[test]
    fn the_next_page_is_found_among_other_links() {
        for (values, expected) in [
            (&[][..], None),
            (&[""], None),
            (
                &["<https://a.example/?page=2>; rel=\"next\", <https://a.example/?page=9>; rel=\"last\""],
                Some("https://a.example/?page=2"),
            ),
            (
                &["<https://a.example/?page=9>; rel=\"last\", <https://a.example/?page=2>; rel=\"next\""],
                Some("https://a.example/?page=2"),
            ),
            (&["</first>; rel=first", "</2?a=1,2;b>; rel=next"], Some("/2?a=1,2;b")),
            (&["</2>; rel=\"prev NEXT\""], Some("/2")),
            (&["</2> ; REL = \"next\" ;title=\"x\""], Some("/2")),
            (&[" , ,</2>;rel=next,"], Some("/2")),
            (&["</1>; title=\"a, <b>; rel=\\\"next\\\"\"; rel=prev"], None),
            (&["</1>; rel=prev; rel=next"], None),
            (&["</1>; rel=nextish"], None),
            (&["</1>; rel=next; anchor=\"/other\""], None),
            (&["</1>; rel"], None),
            (&["<>; rel=next"], Some("")),
        ] {
            assert_eq!(next(values), Ok(expected.map(str::to_owned)), "{values:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_the_last_page() {
        let many = "</1>; rel=prev, ".repeat(LINKS_MAX + 1);
        for value in
            ["/2; rel=next", "</2; rel=next", "</2>; rel=\"next", "</2> rel=next", "</1>; rel=prev; x=\"\\", &many]
        {
            assert_eq!(next(&[value]), Err(Malformed), "{value}");
        }
    }

    fn quoted(text: &str) -> String {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(value in any::<String>()) {
            if let Ok(links) = parse(&value) {
                prop_assert!(links.len() <= LINKS_MAX);
            }
        }

        #[test]
        fn what_was_written_is_what_is_read(
            links in proptest::collection::vec(("[!-;=?-~]{0,20}", "[ -~]{0,12}", "[ -~]{0,12}"), 0..6),
        ) {
            let written: Vec<_> = links
                .iter()
                .map(|(target, rel, title)| format!("<{target}>; title={}; rel={}", quoted(title), quoted(rel)))
                .collect();
            let written = written.join(", ");
            let read = parse(&written).unwrap();
            let read: Vec<_> = read.iter().map(|link| (link.target, link.rel.as_deref().unwrap())).collect();
            let expected: Vec<_> = links.iter().map(|(target, rel, _)| (target.as_str(), rel.as_str())).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
