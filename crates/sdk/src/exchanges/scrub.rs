//! Removes secrets from recordings, by value and by name.
//!
//! By value: the credentials of the run, in every encoding ([`Redactor`]). By name: headers, query parameters, form
//! fields and JSON fields that carry credentials, because a run also receives unknown secrets, such as the token of a
//! sign-in. A value masked by name is masked by value from then on, also where it is echoed. Nothing is guessed from
//! the look of a text.

use gleaner_engine::Redactor;
use gleaner_http::client::{Asked, BodyEnd, Reply};
use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Replaces a secret. In a played URL it matches anything.
pub(super) const MASK: &str = "[secret]";
/// Shorter values are words: masking them everywhere would damage the recording.
const LEARN_BYTES_MIN: usize = 8;
/// Cookies also carry languages and regions; session values are longer.
const LEARN_COOKIE_BYTES_MIN: usize = 16;
/// Maximum of secrets learned by name. Each costs a search through every body; a run with more has one per answer,
/// and their names are still known.
const LEARNED_MAX: usize = 64;

/// Parts of names that carry credentials, letters and digits only.
const PARTS: [&str; 9] =
    ["token", "secret", "apikey", "accesskey", "password", "credential", "session", "signature", "jwt"];
/// The same for headers.
const HEADER_PARTS: [&str; 4] = ["authoriz", "cookie", "csrf", "xsrf"];
/// The same for query parameters and form fields.
const PARAMETER_PARTS: [&str; 2] = ["passwd", "assertion"];
/// Whole names of query parameters and form fields that carry credentials.
const PARAMETERS: [&str; 7] = ["key", "sig", "auth", "pwd", "pass", "otp", "hmac"];
/// Parts of tokens that point into a list, not to an account.
const PLACES: [&str; 7] = ["page", "next", "continu", "cursor", "sync", "delta", "start"];
/// Whole names of JSON fields that carry credentials. Whole, because a record may have any other name.
const FIELDS: &str = "accesstoken refreshtoken idtoken authtoken sessiontoken bearertoken csrftoken token tokensecret \
    clientsecret apisecret secretkey secret privatekey apikey accesskey password passwd sessionid jwt otp";

/// Scrubs exchanges.
#[derive(Debug, Default)]
pub(super) struct Scrubber {
    redactor: Redactor,
    learned: AtomicUsize,
}

impl Scrubber {
    pub(super) fn new(secrets: &[String]) -> Self {
        Self { redactor: Redactor::new(secrets.iter().cloned()), learned: AtomicUsize::new(0) }
    }

    /// The request without secrets; secrets found by name are learned first.
    pub(super) fn request(&self, asked: &Asked) -> Asked {
        let headers = self.headers(&asked.headers);
        let url = self.url(&asked.url);
        let body = self.body(&asked.headers, &asked.body);
        // Again: the body may have revealed a secret in the URL.
        Asked { method: asked.method.clone(), url: self.text(&url), headers, body }
    }

    pub(super) fn reply(&self, reply: &Reply) -> Reply {
        let headers = self.headers(&reply.headers);
        let (body, body_end) = match reply.body_end {
            // Half a secret may be at its end, and it cannot be played anyway.
            BodyEnd::TooLarge => (Vec::new(), BodyEnd::TooLarge),
            end => (self.body(&reply.headers, &reply.body), end),
        };
        let headers = headers.into_iter().map(|(name, value)| (name, self.text(&value))).collect();
        Reply { status: reply.status, headers, body, body_end }
    }

    /// A URL without user name, credentials in its query, or secrets.
    pub(super) fn url(&self, url: &str) -> String {
        let url = url.split_once('#').map_or(url, |(url, _)| url);
        let (path, query) = url.split_at(url.find('?').unwrap_or(url.len()));
        let part = |part: &str| if self.hides_in(part) { MASK.to_owned() } else { part.to_owned() };
        let path = path.split('/').map(part).collect::<Vec<_>>().join("/");
        self.text(&(path + query))
    }

    /// Whether a secret is in a part of a URL that was encoded before, such as JSON or another URL.
    fn hides_in(&self, part: &str) -> bool {
        part.contains('%') && {
            let once = decoded(part);
            self.finds_in(&once) || self.finds_in(&decoded(&once))
        }
    }

    /// A text without secrets, and without credentials in its URLs.
    pub(super) fn text(&self, text: &str) -> String {
        let without_parameters = self.parameters_of_urls(text);
        self.redactor.mask(&without_user_names(&without_parameters))
    }

    /// Whether a text still contains a secret.
    pub(super) fn finds_in(&self, text: &str) -> bool {
        self.redactor.mask(text) != text
    }

    fn headers(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let scrub = |(name, value): &(String, String)| {
            let name = name.to_ascii_lowercase();
            if !is_secret_header(&name) {
                let value = self.text(value);
                return (name, value);
            }
            self.learn_header(&name, value);
            (name, MASK.to_owned())
        };
        headers.iter().map(scrub).collect()
    }

    fn learn_header(&self, name: &str, value: &str) {
        match name {
            // The first word names the authentication scheme.
            "authorization" | "proxy-authorization" => {
                self.learn(value.split_once(' ').map_or(value, |(_, credential)| credential), LEARN_BYTES_MIN);
            }
            "cookie" | "set-cookie" => {
                let pairs = value.split(';').take(if name == "cookie" { usize::MAX } else { 1 });
                for (_, value) in pairs.filter_map(|pair| pair.split_once('=')) {
                    self.learn(value.trim(), LEARN_COOKIE_BYTES_MIN);
                }
            }
            _ => self.learn(value, LEARN_BYTES_MIN),
        }
    }

    /// Adds a secret.
    fn learn(&self, value: &str, bytes_min: usize) {
        let value = value.trim();
        if value.len() < bytes_min || value.contains(MASK) || self.redactor.mask(value) == MASK {
            return;
        }
        if self.learned.fetch_add(1, Ordering::Relaxed) < LEARNED_MAX {
            self.redactor.learn([value.to_owned(), decoded(value)]);
        }
    }

    fn body(&self, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(body) else {
            // Secrets are valid text even inside a binary body, so a lossy conversion keeps them.
            let lossy = String::from_utf8_lossy(body);
            return if self.finds_in(&lossy) { self.text(&lossy).into_bytes() } else { body.to_vec() };
        };
        let is_form = headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("content-type") && value.starts_with("application/x-www-form-urlencoded")
        });
        let scrubbed = if is_form { self.form(text) } else { self.json_texts(text) };
        self.text(&scrubbed).into_bytes()
    }

    /// A form: pairs like those of a query.
    fn form(&self, text: &str) -> String {
        let pairs = text.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if is_secret_parameter(&decoded(name)) => {
                self.learn(&decoded(value), LEARN_BYTES_MIN);
                format!("{name}={MASK}")
            }
            Some((name, value)) if self.hides_in(value) => format!("{name}={MASK}"),
            _ => pair.to_owned(),
        });
        pairs.collect::<Vec<_>>().join("&")
    }

    /// Masks texts in a JSON body: those whose field carries a credential, and those that contain a secret with its
    /// own escapes. Everything else stays byte for byte.
    fn json_texts(&self, text: &str) -> String {
        let mut scrubbed = String::with_capacity(text.len());
        let (mut rest, mut field) = (text, None::<String>);
        while let Some(begin) = rest.find('"') {
            let (before, literal) = rest.split_at(begin);
            // A field and its value are separated by a colon only.
            let is_value = before.trim() == ":";
            scrubbed.push_str(before);
            let Some(end) = end_of_literal(literal) else {
                scrubbed.push_str(literal);
                return scrubbed;
            };
            let (literal, after) = literal.split_at(end);
            let secret_field = field.take().filter(|_| is_value).is_some_and(|name| is_secret_field(&name));
            match serde_json::from_str::<String>(literal) {
                Ok(value) if secret_field && !value.is_empty() => {
                    self.learn(&value, LEARN_BYTES_MIN);
                    scrubbed.push_str(&json_text(MASK));
                }
                Ok(value) => {
                    let masked = if literal.contains('\\') { self.redactor.mask(&value) } else { value.clone() };
                    scrubbed.push_str(&if masked == value {
                        Cow::Borrowed(literal)
                    } else {
                        json_text(&masked).into()
                    });
                    field = Some(value);
                }
                Err(_) => scrubbed.push_str(literal),
            }
            rest = after;
        }
        scrubbed.push_str(rest);
        scrubbed
    }

    /// `?name=value` and `&name=value` anywhere, also with the ampersand of JSON and HTML.
    fn parameters_of_urls(&self, text: &str) -> String {
        let mut scrubbed = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(mark) = rest.find(['?', '&', ';']).or_else(|| rest.find("\\u0026")) {
            let width = if rest[mark..].starts_with('\\') { 6 } else { 1 };
            // The escape may come before the plain mark.
            let (mark, width) = match rest[..mark].find("\\u0026") {
                Some(escape) => (escape, 6),
                None => (mark, width),
            };
            let (before, after) = rest.split_at(mark + width);
            scrubbed.push_str(before);
            rest = after;
            let Some((name, value)) = parameter(after) else { continue };
            let is_secret = is_secret_parameter(&decoded(name));
            if is_secret {
                self.learn(&decoded(value), LEARN_BYTES_MIN);
            }
            if is_secret || self.hides_in(value) {
                scrubbed.push_str(name);
                scrubbed.push('=');
                scrubbed.push_str(MASK);
                rest = &after[name.len() + 1 + value.len()..];
            }
        }
        scrubbed.push_str(rest);
        scrubbed
    }
}

/// Longest parameter name that is checked.
const NAME_BYTES_MAX: usize = 64;

/// `name=value` at the start of a text, the value up to the end of the URL.
fn parameter(text: &str) -> Option<(&str, &str)> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'%' | b'[' | b']');
    let name = text.bytes().take(NAME_BYTES_MAX + 1).take_while(|&byte| is_name(byte)).count();
    if name == 0 || name > NAME_BYTES_MAX {
        return None;
    }
    let value = text[name..].strip_prefix('=')?;
    let ends = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '&' | '#' | '"' | '\'' | '<' | '>' | '\\');
    let end = value.find(ends).unwrap_or(value.len());
    (end > 0).then(|| (&text[..name], &value[..end]))
}

/// `https://user:password@host` without the user.
fn without_user_names(text: &str) -> Cow<'_, str> {
    if !text.contains("://") || !text.contains('@') {
        return Cow::Borrowed(text);
    }
    let mut scrubbed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find("://") {
        let (before, after) = rest.split_at(begin + 3);
        scrubbed.push_str(before);
        let authority =
            after.find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '\\'));
        let authority = &after[..authority.unwrap_or(after.len())];
        rest = match authority.rfind('@') {
            Some(at) => {
                scrubbed.push_str(MASK);
                &after[at..]
            }
            None => after,
        };
    }
    scrubbed.push_str(rest);
    Cow::Owned(scrubbed)
}

/// End of the JSON string that a text begins with.
fn end_of_literal(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(index + 1),
            _ => {}
        }
    }
    None
}

fn json_text(text: &str) -> String {
    // A text always serializes.
    serde_json::to_string(text).unwrap_or_default()
}

/// Letters and digits, in lower case.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_secret_header(name: &str) -> bool {
    let name = plain(name);
    let is_count = name.contains("ratelimit");
    !is_count
        && !is_place(&name)
        && (name.starts_with("proxy")
            || name.ends_with("auth")
            || PARTS.iter().chain(&HEADER_PARTS).any(|part| name.contains(part)))
}

/// Whether it names a page, not an account.
fn is_place(name: &str) -> bool {
    name.ends_with("token") && PLACES.iter().any(|place| name.contains(place))
}

fn is_secret_parameter(name: &str) -> bool {
    let name = plain(name);
    !is_place(&name)
        && (PARAMETERS.contains(&name.as_str()) || PARTS.iter().chain(&PARAMETER_PARTS).any(|part| name.contains(part)))
}

fn is_secret_field(name: &str) -> bool {
    let name = plain(name);
    FIELDS.split(' ').any(|field| field == name)
}

/// Without `%XX` and `+`.
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "c4n4ry/+ token\"é";

    fn scrubber() -> Scrubber {
        Scrubber::new(&[SECRET.to_owned()])
    }

    fn reply(headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Reply { status: 200, headers, body: body.to_vec(), body_end: BodyEnd::Complete }
    }

    fn body(text: &str) -> String {
        String::from_utf8(scrubber().reply(&reply(&[], text.as_bytes())).body).unwrap()
    }

    #[test]
    fn credentials_in_urls_are_masked_by_their_names() {
        for (url, expected) in [
            ("https://u:p@a.example/x?q=1", "https://[secret]@a.example/x?q=1"),
            ("https://a.example/?access_token=abc&q=1", "https://a.example/?access_token=[secret]&q=1"),
            ("https://a.example/?q=1&API-Key=abc#token=x", "https://a.example/?q=1&API-Key=[secret]"),
            (
                "https://a.example/?X-Amz-Signature=ab%2Fc&sig=x&key=k",
                "https://a.example/?X-Amz-Signature=[secret]&sig=[secret]&key=[secret]",
            ),
            (
                "https://a.example/?page_token=abc&nextPageToken=d&sync_token=e",
                "https://a.example/?page_token=abc&nextPageToken=d&sync_token=e",
            ),
            ("https://a.example/?keyword=abc&author=d&tokens", "https://a.example/?keyword=abc&author=d&tokens"),
            ("https://a.example/c4n4ry%2F%2B%20token%22%C3%A9/x", "https://a.example/[secret]/x"),
        ] {
            assert_eq!(scrubber().url(url), expected);
        }
    }

    #[test]
    fn headers_that_carry_credentials_are_masked_whatever_they_say() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "Proxy-Anything",
            "Cookie",
            "Set-Cookie",
            "X-Api-Key",
            "Api-Key",
            "X-Auth",
            "X-Auth-Token",
            "X-CSRF-Token",
            "X-Amz-Security-Token",
            "X-Session-Id",
            "X-Signature",
            "Client-Secret",
        ] {
            let scrubbed = scrubber().reply(&reply(&[(name, "word")], b""));
            assert_eq!(scrubbed.headers, [(name.to_ascii_lowercase(), MASK.to_owned())]);
        }
        for name in
            ["content-type", "etag", "link", "x-ratelimit-limit-tokens", "retry-after", "x-author", "x-next-page-token"]
        {
            assert_eq!(
                scrubber().reply(&reply(&[(name, "word")], b"")).headers,
                [(name.to_owned(), "word".to_owned())]
            );
        }
        let link = reply(&[("link", "<https://a.example/?page=2&access_token=abc>; rel=\"next\"")], b"");
        assert_eq!(
            scrubber().reply(&link).headers[0].1,
            "<https://a.example/?page=2&access_token=[secret]>; rel=\"next\""
        );
    }

    #[test]
    fn json_fields_that_carry_credentials_are_masked_and_nothing_else_is_touched() {
        for (text, expected) in [
            (r#"{"access_token": "abc", "expires_in": 3600}"#, r#"{"access_token": "[secret]", "expires_in": 3600}"#),
            (r#"{"n":1.50,"refreshToken" : "x\"y","a":"b"}"#, r#"{"n":1.50,"refreshToken" : "[secret]","a":"b"}"#),
            (r#"["token","abc"]"#, r#"["token","abc"]"#),
            (r#"{"token":["abc"],"tokens":"abc","key":"n1"}"#, r#"{"token":["abc"],"tokens":"abc","key":"n1"}"#),
            (r#"{"password":"","half"#, r#"{"password":"","half"#),
            (
                r#"{"url":"https://a.example/?q=1\u0026token=abc\u0026z=1"}"#,
                r#"{"url":"https://a.example/?q=1\u0026token=[secret]\u0026z=1"}"#,
            ),
            (r#"{"note":"\u0063\u0034n4ry/+ token\"é!"}"#, r#"{"note":"[secret]!"}"#),
            ("{\"broken\\q\": \"x\", \"a\": 1", "{\"broken\\q\": \"x\", \"a\": 1"),
        ] {
            assert_eq!(body(text), expected);
        }
    }

    #[test]
    fn a_form_is_masked_by_the_names_of_its_fields() {
        let asked = Asked {
            method: "POST".to_owned(),
            url: "https://a.example/token".to_owned(),
            headers: vec![("content-type".to_owned(), "application/x-www-form-urlencoded; charset=utf-8".to_owned())],
            body: b"password=hunter2&grant_type=password&username=me&client_secret=x".to_vec(),
        };
        let scrubbed = scrubber().request(&asked);
        assert_eq!(scrubbed.body, b"password=[secret]&grant_type=password&username=me&client_secret=[secret]");
    }

    #[test]
    fn what_was_masked_by_name_is_masked_by_value_from_then_on() {
        let scrubber = scrubber();
        let signed_in =
            reply(&[("set-cookie", "sid=0123456789abcdefgh; Path=/; Secure")], br#"{"access_token":"fresh-token-1"}"#);
        drop(scrubber.reply(&signed_in));
        let echo = reply(
            &[("x-echo", "fresh-token-1")],
            b"0123456789abcdefgh and ZnJlc2gtdG9rZW4tMQ== and 66726573682d746f6b656e2d31",
        );
        let scrubbed = scrubber.reply(&echo);
        assert_eq!(scrubbed.headers[0].1, MASK);
        assert_eq!(String::from_utf8(scrubbed.body).unwrap(), "[secret] and [secret]Q== and [secret]");
        // Words are left alone: a language in a cookie is no secret.
        drop(scrubber.reply(&reply(&[("set-cookie", "lang=en-US")], b"")));
        assert_eq!(scrubber.text("en-US"), "en-US");
    }

    #[test]
    fn a_secret_among_other_bytes_is_masked_too() {
        let bytes = [b"\xff\xfe ", SECRET.as_bytes(), b" \xff"].concat();
        let scrubbed = scrubber().reply(&reply(&[], &bytes)).body;
        assert!(String::from_utf8(scrubbed).unwrap().contains(MASK));
        let harmless = [0xff, 0xfe, 0x00];
        assert_eq!(scrubber().reply(&reply(&[], &harmless)).body, harmless, "otherwise they stay as they are");
    }

    /// Pieces out of which texts are made that look like URLs, JSON and neither.
    const FRAGMENTS: [&str; 22] = [
        "?", "&", ";", "\\u0026", "token", "q", "=", "\"", "\\", "é", "://", "@", "#", "%", "%25", "%2", "/", ":", " ",
        "{", SECRET, "\u{fffd}",
    ];

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic_or_gets_a_secret_through(numbers in proptest::collection::vec(0..FRAGMENTS.len(), 0..40)) {
            let text = numbers.iter().map(|&number| FRAGMENTS[number]).collect::<String>();
            let scrubber = scrubber();
            let asked = |headers: &[(&str, &str)]| Asked {
                method: "POST".to_owned(),
                url: text.clone(),
                headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
                body: text.clone().into_bytes(),
            };
            for headers in [&[("x", text.as_str()), ("cookie", &text)][..], &[("content-type", "application/x-www-form-urlencoded")]] {
                let scrubbed = scrubber.request(&asked(headers));
                let all = format!("{}{:?}{}", scrubbed.url, scrubbed.headers, String::from_utf8(scrubbed.body).unwrap());
                proptest::prop_assert!(!all.contains(SECRET), "{all}");
            }
        }
    }

    #[test]
    fn of_a_body_that_was_cut_nothing_is_kept() {
        let cut = Reply { body_end: BodyEnd::TooLarge, ..reply(&[], b"c4n4ry/+ tok") };
        assert_eq!(scrubber().reply(&cut).body, b"");
    }
}
