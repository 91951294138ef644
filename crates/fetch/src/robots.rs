//! What a host lets us fetch, by its robots.txt (RFC 9309), and how far apart it wants requests to be.
//!
//! Pure: bytes in, answers out; fetching and keeping the file is the caller's. The text is a stranger's, so everything
//! is bounded, and where a bound cuts something off, the answer errs on the side of not fetching.

use std::time::Duration;

/// How much of a file is read. The standard asks for 500 KiB at least; nobody needs more.
pub const ROBOTS_BYTES_MAX: usize = 512 * 1024;
/// The longest pattern that is matched as it is. Paths are hardly ever as long.
const PATTERN_BYTES_MAX: usize = 2048;
/// The longest delay that is taken seriously. Whoever asks for more does not want us at all; with this a list of a
/// thousand pages takes six weeks, which a person will notice.
const CRAWL_DELAY_MAX: Duration = Duration::from_secs(3600);
/// Where the file is. It may always be fetched.
pub const ROBOTS_PATH: &str = "/robots.txt";

/// The rules of one host for us.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Robots {
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
}

/// One line that allows or forbids.
#[derive(Clone, Debug, PartialEq)]
struct Rule {
    allows: bool,
    /// Normalised. `*` stands for anything.
    pattern: Vec<u8>,
    /// The pattern goes to the end of the path.
    is_whole: bool,
}

impl Robots {
    /// For a host that has no rules.
    #[must_use]
    pub fn allowing_all() -> Self {
        Self::default()
    }

    /// Reads the rules for whoever calls itself `product`, such as `gleaner`: its own groups, or else those for all.
    #[must_use]
    pub fn parse(file: &[u8], product: &str) -> Self {
        let (mut own, mut for_all) = (Group::default(), Group::default());
        let mut reading = Names::default();
        for (name, value) in lines(file) {
            if name.eq_ignore_ascii_case(b"user-agent") {
                reading.add(value, product);
                continue;
            }
            let Some(line) = Line::of(name, value) else { continue };
            reading.has_rules = true;
            if reading.own {
                own.add(&line);
            }
            if reading.all {
                for_all.add(&line);
            }
        }
        let group = if reading.own_was_named { own } else { for_all };
        Self { rules: group.rules, crawl_delay: group.crawl_delay }
    }

    /// Whether a path with its query may be fetched. The longest pattern that fits decides; of two as long, the one
    /// that allows.
    #[must_use]
    pub fn permits(&self, path_and_query: &str) -> bool {
        if path_and_query == ROBOTS_PATH {
            return true;
        }
        let path = normalised(path_and_query.as_bytes(), Side::Path);
        let fitting = self.rules.iter().filter(|rule| rule.fits(&path));
        let decides = fitting.max_by_key(|rule| (rule.pattern.len() + usize::from(rule.is_whole), rule.allows));
        decides.is_none_or(|rule| rule.allows)
    }

    /// About how much memory the rules take.
    #[must_use]
    pub fn size(&self) -> usize {
        self.rules.iter().map(|rule| rule.pattern.capacity() + size_of::<Rule>()).sum()
    }

    /// The shortest time between two requests that the host asks for.
    #[must_use]
    pub const fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }
}

/// What was said to one kind of visitor, in all groups together.
#[derive(Default)]
struct Group {
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
}

impl Group {
    fn add(&mut self, line: &Line<'_>) {
        match line {
            Line::Rule { allows, pattern } => self.rules.extend(Rule::of(*allows, pattern)),
            // Of two the longer one: it is a request.
            Line::CrawlDelay(delay) => self.crawl_delay = self.crawl_delay.max(Some(*delay)),
        }
    }
}

/// To whom the group that is being read speaks.
#[derive(Default)]
struct Names {
    own: bool,
    all: bool,
    /// The next name begins another group.
    has_rules: bool,
    /// A group for us that says nothing is still ours: it allows everything.
    own_was_named: bool,
}

impl Names {
    fn add(&mut self, value: &[u8], product: &str) {
        if self.has_rules {
            let own_was_named = self.own_was_named;
            *self = Self { own_was_named, ..Self::default() };
        }
        let end = value.iter().position(|&byte| !(byte.is_ascii_alphabetic() || byte == b'_' || byte == b'-'));
        let token = &value[..end.unwrap_or(value.len())];
        self.own |= !token.is_empty() && token.eq_ignore_ascii_case(product.as_bytes());
        self.all |= value.first() == Some(&b'*');
        self.own_was_named |= self.own;
    }
}

/// A line of a group. Others, such as a sitemap, end no group.
enum Line<'l> {
    Rule { allows: bool, pattern: &'l [u8] },
    CrawlDelay(Duration),
}

impl<'l> Line<'l> {
    fn of(name: &[u8], value: &'l [u8]) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"allow") {
            return Some(Self::Rule { allows: true, pattern: value });
        }
        if name.eq_ignore_ascii_case(b"disallow") {
            return Some(Self::Rule { allows: false, pattern: value });
        }
        if name.eq_ignore_ascii_case(b"crawl-delay") {
            let seconds = std::str::from_utf8(value).ok()?.parse::<f64>().ok()?;
            let delay = Duration::try_from_secs_f64(seconds).ok()?;
            return Some(Self::CrawlDelay(delay.min(CRAWL_DELAY_MAX)));
        }
        None
    }
}

/// Names and values, without comments and what is no such line.
fn lines(file: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let whole = match file.get(..ROBOTS_BYTES_MAX) {
        None => file,
        // Half a line would say something else.
        Some(cut) => cut.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(&[][..], |end| &cut[..end]),
    };
    whole.split(|byte| matches!(byte, b'\n' | b'\r')).filter_map(|line| {
        let line = line.split(|&byte| byte == b'#').next()?;
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
    })
}

impl Rule {
    /// `None` for a rule that says nothing.
    fn of(allows: bool, pattern: &[u8]) -> Option<Self> {
        let (pattern, is_whole) = match pattern.split_last() {
            None => return None,
            Some((b'$', rest)) => (rest, true),
            Some(_) => (pattern, false),
        };
        let mut pattern = normalised(pattern, Side::Pattern);
        if pattern.len() <= PATTERN_BYTES_MAX {
            return Some(Self { allows, pattern, is_whole });
        }
        // Cut short it would fit more paths: that may forbid more, but not allow more.
        pattern.truncate(PATTERN_BYTES_MAX);
        (!allows).then_some(Self { allows, pattern, is_whole: false })
    }

    /// Each part between two stars is looked for as early as it can be: if any way to lay them out fits, this one does.
    fn fits(&self, path: &[u8]) -> bool {
        let mut parts = self.pattern.split(|&byte| byte == b'*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = path.strip_prefix(first) else { return false };
        let mut parts = parts.collect::<Vec<_>>();
        let last = if self.is_whole { parts.pop() } else { None };
        for part in &parts {
            match find(rest, part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        match last {
            Some(last) => rest.ends_with(last),
            // Without a star it is the whole path.
            None => !self.is_whole || rest.is_empty(),
        }
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() { Some(0) } else { text.windows(part.len()).position(|window| window == part) }
}

/// Whose stars and dollars are signs, and whose are letters.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Pattern,
    Path,
}

/// One way to write what may be written in several: letters as they are, everything else with a percent sign, in
/// capitals.
fn normalised(text: &[u8], side: Side) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let encoded = if byte == b'%' { hex_pair(rest) } else { None };
        if let Some(value) = encoded {
            rest = &rest[2..];
            if value.is_ascii_alphanumeric() || matches!(value, b'-' | b'.' | b'_' | b'~') {
                out.push(value);
            } else {
                push_encoded(&mut out, value);
            }
        } else if !byte.is_ascii_graphic() || (side == Side::Path && matches!(byte, b'*' | b'$')) {
            push_encoded(&mut out, byte);
        } else {
            out.push(byte);
        }
    }
    out
}

fn hex_pair(text: &[u8]) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(text.first()?)? * 16 + digit(text.get(1)?)?)
}

fn push_encoded(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn permits(file: &str, path: &str) -> bool {
        Robots::parse(file.as_bytes(), "gleaner").permits(path)
    }

    #[test]
    fn the_longest_pattern_decides_and_of_two_as_long_the_one_that_allows() {
        let file = "user-agent: *\nallow: /example/page/\ndisallow: /example/page/disallowed.gif\n";
        assert!(permits(file, "/example/page/"));
        assert!(!permits(file, "/example/page/disallowed.gif"));
        assert!(permits(file, "/other"));
        assert!(permits("user-agent: *\ndisallow: /a\nallow: /a", "/a"));
        assert!(!permits("user-agent: *\nallow: /\ndisallow: /a", "/ab"));
    }

    #[test]
    fn our_own_group_counts_before_that_for_all_and_all_of_ours_together() {
        let file = "User-Agent: *\nDisallow: /\n\nUser-agent: Gleaner/2.0 (bot)\nDisallow: /a\n\
                    User-agent: other\nDisallow: /c\nUSER-AGENT: gleaner\nDisallow: /b\n";
        assert!(permits(file, "/") && permits(file, "/c"));
        assert!(!permits(file, "/a") && !permits(file, "/b"));
        assert!(!Robots::parse(file.as_bytes(), "somebody").permits("/x"));
        assert!(permits("user-agent: *\ndisallow: /\nuser-agent: gleaner\n", "/x"), "a group that says nothing");
        assert!(permits("user-agent: gleanerbot\ndisallow: /", "/x"), "another visitor");
    }

    #[test]
    fn names_in_a_row_share_a_group_and_other_lines_end_none() {
        let file =
            "user-agent: a\nuser-agent: gleaner\nsitemap: https://x.example/s.xml\ndisallow: /x\ncrawl-delay: 2.5";
        assert!(!permits(file, "/x"));
        let delay = |file: &str| Robots::parse(file.as_bytes(), "gleaner").crawl_delay();
        assert_eq!(delay(file), Some(Duration::from_millis(2500)));
        assert_eq!(delay("user-agent: *\ncrawl-delay: 1e300"), None);
        assert_eq!(delay("user-agent: *\ncrawl-delay: -1\ncrawl-delay: x\ncrawl-delay: NaN"), None);
        assert_eq!(delay("user-agent: *\ncrawl-delay: 99999"), Some(CRAWL_DELAY_MAX));
        assert_eq!(delay("user-agent: *\ncrawl-delay: 2\ncrawl-delay: 1"), Some(Duration::from_secs(2)));
    }

    #[test]
    fn stars_and_a_dollar_are_signs_in_patterns_and_letters_in_paths() {
        let forbids = |pattern: &str, path: &str| !permits(&format!("user-agent: *\ndisallow: {pattern}"), path);
        for (pattern, path) in [
            ("/*.gif$", "/a/b.gif"),
            ("/a*b*c", "/a-b-b-c-d"),
            ("*/secret", "/x/secret/y"),
            ("/this/is/exact$", "/this/is/exact"),
            ("/file-with-a-%2A.html", "/file-with-a-*.html"),
            ("/foo/bar?baz=http://foo.bar", "/foo/bar?baz=http://foo.bar"),
            ("/foo/bar/\u{e3}\u{83}\u{84}", "/foo/bar/%C3%A3%C2%83%C2%84"),
            ("/a%7eb", "/a~b"),
            ("/a%3cd", "/a%3Cd"),
            ("/a*$", "/abc"),
            ("/*a$", "/aba"),
        ] {
            assert!(forbids(pattern, path), "{pattern} fits {path}");
        }
        for (pattern, path) in [
            ("/*.gif$", "/a.gif?x"),
            ("/this/is/exact$", "/this/is/exact/not"),
            ("/a%2fb", "/a/b"),
            ("/A", "/a"),
            ("x", "/x"),
            ("", "/x"),
            ("/*ab$", "/b"),
        ] {
            assert!(!forbids(pattern, path), "{pattern} does not fit {path}");
        }
    }

    #[test]
    fn the_file_itself_may_always_be_fetched_and_nothing_else_when_it_cannot_be_had() {
        let none = Robots::parse(b"User-agent: *\nDisallow: /", "gleaner");
        assert!(none.permits("/robots.txt") && !none.permits("/") && !none.permits("/a?b"));
        assert!(Robots::allowing_all().permits("/a"));
    }

    #[test]
    fn what_is_cut_off_never_allows_more() {
        let long = "a".repeat(PATTERN_BYTES_MAX);
        assert!(!permits(&format!("user-agent: *\ndisallow: /{long}b$"), &format!("/{long}")));
        let file = format!("user-agent: *\ndisallow: /\nallow: /{long}b");
        assert!(!permits(&file, &format!("/{long}b")));
        let mut big = b"\xEF\xBB\xBFuser-agent: *\r\ndisallow: /x\r\n".to_vec();
        big.resize(ROBOTS_BYTES_MAX - 4, b'#');
        big.extend(b"\rallow: /xyz");
        let robots = Robots::parse(&big, "gleaner");
        assert!(!robots.permits("/xyz"), "half a line says nothing");
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(file in proptest::collection::vec(any::<u8>(), 0..400), path in ".*") {
            let robots = Robots::parse(&file, "gleaner");
            let _: bool = robots.permits(&path);
        }

        #[test]
        fn a_pattern_fits_as_a_plain_search_says(
            pattern in "/[ab*]{0,6}[$]?", path in "/[ab]{0,8}",
        ) {
            /// Tries every way, as slowly as it likes.
            fn fits(pattern: &[u8], path: &[u8]) -> bool {
                match pattern.split_first() {
                    None => true,
                    Some((b'$', [])) => path.is_empty(),
                    Some((b'*', rest)) => (0..=path.len()).any(|skipped| fits(rest, &path[skipped..])),
                    Some((letter, rest)) => path.first() == Some(letter) && fits(rest, &path[1..]),
                }
            }
            let forbids = !permits(&format!("user-agent: *\ndisallow: {pattern}"), &path);
            prop_assert_eq!(forbids, fits(pattern.as_bytes(), path.as_bytes()), "{} {}", pattern, path);
        }
    }
}
