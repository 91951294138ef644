//! Rules of a robots.txt (RFC 9309), with Crawl-delay.
//!
//! Pure: bytes in, answers out; the caller fetches and caches the file. The text is untrusted, so everything is
//! bounded, and where a limit cuts something off, the answer is not to fetch.

use std::time::Duration;

/// Bytes of a file that are read. The standard requires at least 500 KiB.
pub const ROBOTS_BYTES_MAX: usize = 512 * 1024;
/// Longest pattern that is matched exactly. Paths are hardly ever as long.
const PATTERN_BYTES_MAX: usize = 2048;
/// Longest Crawl-delay. A larger one means that we are not welcome; with this a list of a thousand pages takes six
/// weeks, which a person will notice.
const CRAWL_DELAY_MAX: Duration = Duration::from_secs(3600);
/// Path of the file. It may always be fetched.
pub const ROBOTS_PATH: &str = "/robots.txt";

/// Rules of one host for our user agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Robots {
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
}

/// One Allow or Disallow line.
#[derive(Clone, Debug, PartialEq)]
struct Rule {
    allows: bool,
    /// Normalized. `*` matches anything.
    pattern: Vec<u8>,
    /// The pattern must match to the end of the path.
    is_whole: bool,
}

impl Robots {
    /// For a host that has no rules.
    #[must_use]
    pub fn allowing_all() -> Self {
        Self::default()
    }

    /// Parses the rules for the user agent `product`, such as `gleaner`: its own groups, or else those for all.
    #[must_use]
    pub fn parse(file: &[u8], product: &str) -> Self {
        let (mut own, mut for_all) = (Group::default(), Group::default());
        let mut reading = Names::default();
        for (name, value) in lines(file) {
            if name.eq_ignore_ascii_case(b"user-agent") {
                reading.add(value, product);
                continue;
            }
            let Some(line) = RobotsLine::parse(name, value) else { continue };
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

    /// Whether a path with its query may be fetched. The longest matching pattern decides; of two equally long, the
    /// allowing one.
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

    /// Approximate memory of the rules.
    #[must_use]
    pub fn size(&self) -> usize {
        self.rules.iter().map(|rule| rule.pattern.capacity() + size_of::<Rule>()).sum()
    }

    /// The Crawl-delay of the host.
    #[must_use]
    pub const fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }
}

/// All lines for one user agent, from all its groups.
#[derive(Default)]
struct Group {
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
}

impl Group {
    fn add(&mut self, line: &RobotsLine<'_>) {
        match line {
            RobotsLine::Rule { allows, pattern } => self.rules.extend(Rule::parse(*allows, pattern)),
            // The longer of two.
            RobotsLine::CrawlDelay(delay) => self.crawl_delay = self.crawl_delay.max(Some(*delay)),
        }
    }
}

/// User agents of the current group.
#[derive(Default)]
struct Names {
    own: bool,
    all: bool,
    /// The next name begins another group.
    has_rules: bool,
    /// An empty group for us is still ours: it allows everything.
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
enum RobotsLine<'l> {
    Rule { allows: bool, pattern: &'l [u8] },
    CrawlDelay(Duration),
}

impl<'l> RobotsLine<'l> {
    fn parse(name: &[u8], value: &'l [u8]) -> Option<Self> {
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

/// Names and values, without comments and invalid lines.
fn lines(file: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let whole = match file.get(..ROBOTS_BYTES_MAX) {
        None => file,
        // Half a line could mean something else.
        Some(cut) => cut.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(&[][..], |end| &cut[..end]),
    };
    whole.split(|byte| matches!(byte, b'\n' | b'\r')).filter_map(|line| {
        let line = line.split(|&byte| byte == b'#').next()?;
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
    })
}

impl Rule {
    /// `None` for an empty rule.
    fn parse(allows: bool, pattern: &[u8]) -> Option<Self> {
        let (pattern, is_whole) = match pattern.split_last() {
            None => return None,
            Some((b'$', rest)) => (rest, true),
            Some(_) => (pattern, false),
        };
        let mut pattern = normalised(pattern, Side::Pattern);
        if pattern.len() <= PATTERN_BYTES_MAX {
            return Some(Self { allows, pattern, is_whole });
        }
        // A cut pattern matches more paths: that may disallow more, but must not allow more.
        pattern.truncate(PATTERN_BYTES_MAX);
        (!allows).then_some(Self { allows, pattern, is_whole: false })
    }

    /// Matches each part between two stars as early as possible: if any match exists, this finds one.
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

/// Whether stars and dollars are wildcards or literal.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Pattern,
    Path,
}

/// A canonical form: letters unescaped, everything else percent-encoded in upper case.
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
