//! The format of a recording, version 1: JSON lines, a header and then one exchange per line.
//!
//! Why the limits: a recording is kept in memory while it is played, and people pass these files on. A larger file is
//! rejected, never half read. If its writer was killed, it ends within a line; the complete lines are used.

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use gleaner_http::client::{BodyEnd, NoReply};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The format that is written.
const VERSION: u32 = 1;
/// 64 MiB: a test can keep it in memory.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// Maximum of exchanges: an hour of a connector at three requests a second.
pub const EXCHANGES_MAX: usize = 10_000;
/// 4 MiB per body: an API page is a hundredth of it. Nothing is kept of a larger one, because half a body would be
/// played as if it were whole.
pub const BODY_BYTES_MAX: usize = 4 << 20;
/// An error message is one line.
const FAULT_CHARS_MAX: usize = 200;

/// A parsed recording.
///
/// ```
/// let text = r#"{"gleaner_exchanges": 1}
/// {"request": {"method": "GET", "url": "https://notes.invalid/notes"}, "response": {"status": 200, "body": {"notes": []}}}
/// "#;
/// let recording = gleaner_sdk::exchanges::Recording::parse(text)?;
/// assert_eq!(recording.exchanges.len(), 1);
/// # Ok::<(), gleaner_sdk::exchanges::RecordingFault>(())
/// ```
///
/// `headers` are an object of texts, or of lists of texts. A `body` is a text, or any other JSON, which is then the
/// literal body; `body_base64` is for other bytes. `body_end` marks an incomplete body: `too_large`, `broken` or
/// `withheld`. Instead of a `response` there may be a `no_answer`: `connect`, `timeout`, `lost`,
/// `untrusted_certificate` or `private_address`. `at` and `took_ms` are for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// In order of completion.
    pub exchanges: Vec<Exchange>,
    /// Whether the recording reached its limit.
    pub is_full: bool,
}

/// One request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// ExchangeLine in its file, from 1.
    pub line: usize,
    /// Start, in RFC 3339.
    pub at: Option<String>,
    /// Duration.
    pub took_ms: Option<u64>,
    /// The method.
    pub method: String,
    /// The URL, with masks.
    pub url: String,
    /// Headers and body of the request.
    pub request: Message,
    /// The answer.
    pub outcome: Outcome,
}

/// Headers and a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// By name, in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; empty if there is none or it was not kept.
    pub body: Vec<u8>,
    /// Hash of a request body that is too long to keep.
    pub body_hash: Option<String>,
}

/// The answer, or its absence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer.
    Answered {
        /// Its status.
        status: u16,
        /// Its headers and its body.
        message: Message,
        /// How its body ended; `None` when it was withheld from the recording.
        body_end: Option<BodyEnd>,
    },
    /// No answer.
    NoAnswer(NoReply),
}

impl Outcome {
    /// Why there was no answer, as in the file.
    pub const fn no_answer(&self) -> Option<&'static str> {
        match self {
            Self::NoAnswer(no_reply) => Some(no_answer_word(*no_reply)),
            Self::Answered { .. } => None,
        }
    }
}

const fn no_answer_word(no_reply: NoReply) -> &'static str {
    match no_reply {
        NoReply::Connect => "connect",
        NoReply::Timeout => "timeout",
        NoReply::Lost => "lost",
        NoReply::Untrusted => "untrusted_certificate",
        NoReply::PrivateTarget => "private_address",
    }
}

/// The same back.
fn no_reply_of(word: &str) -> Result<NoReply, String> {
    let all = [NoReply::Connect, NoReply::Timeout, NoReply::Lost, NoReply::Untrusted, NoReply::PrivateTarget];
    let known = all.into_iter().find(|no_reply| no_answer_word(*no_reply) == word);
    known.ok_or_else(|| format!("unknown variant `{word}`, expected one of `{}`", all.map(no_answer_word).join("`, `")))
}

/// Why a file is not a valid recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", line.map_or_else(String::new, |line| format!("line {line}: ")))]
pub struct RecordingFault {
    /// ExchangeLine, from 1; `None` for the whole file.
    pub line: Option<usize>,
    /// The problem.
    pub what: String,
}

impl RecordingFault {
    fn of_file(what: impl Into<String>) -> Self {
        Self { line: None, what: what.into() }
    }

    fn at(line: usize, what: impl Into<String>) -> Self {
        Self { line: Some(line), what: what.into().chars().take(FAULT_CHARS_MAX).collect() }
    }
}

impl Recording {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// It cannot be read, is too large, or is not a recording.
    pub fn read(path: &Path) -> Result<Self, RecordingFault> {
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(|error| RecordingFault::of_file(error.to_string()))?;
        // One byte more than allowed shows that there is more.
        let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|error| RecordingFault::of_file(error.to_string()))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(RecordingFault::of_file("it is larger than 64 MiB; remove exchanges that are not needed"));
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::parse(text),
            Err(fault) => {
                let line = bytes[..fault.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
                Err(RecordingFault::at(line, "this is not UTF-8"))
            }
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn parse(text: &str) -> Result<Self, RecordingFault> {
        let mut recording = Self::default();
        let mut lines = text.split_inclusive('\n').zip(1..);
        check_header(lines.next().map_or("", |(line, _)| line))?;
        for (line, number) in lines {
            let is_whole = line.ends_with('\n');
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            if serde_json::from_str::<End>(line).is_ok() {
                recording.is_full = true;
                continue;
            }
            if recording.exchanges.len() == EXCHANGES_MAX {
                return Err(RecordingFault::at(number, format!("more than {EXCHANGES_MAX} exchanges")));
            }
            match exchange_of(line, number) {
                Ok(exchange) => recording.exchanges.push(exchange),
                // Its writer was killed here.
                Err(_) if !is_whole => break,
                Err(fault) => return Err(fault),
            }
        }
        Ok(recording)
    }
}

fn check_header(line: &str) -> Result<(), RecordingFault> {
    let begin = format!("a recording begins with {{\"gleaner_exchanges\": {VERSION}}}");
    let header = serde_json::from_str::<Header>(line.trim()).map_err(|_| RecordingFault::at(1, begin))?;
    if header.gleaner_exchanges != VERSION {
        let known = format!("unknown format {}; this version reads {VERSION}", header.gleaner_exchanges);
        return Err(RecordingFault::at(1, known));
    }
    Ok(())
}

/// The first line of a recording.
pub(super) fn header_line(connector: &str, at: &str) -> String {
    let header =
        Header { gleaner_exchanges: VERSION, connector: Some(connector.to_owned()), recorded_at: Some(at.to_owned()) };
    to_line(&header)
}

/// The last line of a recording that reached its limit.
pub(super) fn full_line() -> String {
    to_line(&End { end: EndWord::Full })
}

/// An exchange as a line, with its line feed.
pub(super) fn exchange_line(exchange: &Exchange) -> String {
    let request = &exchange.request;
    let (body, body_base64) = written(&request.body);
    let mut line = ExchangeLine {
        at: exchange.at.clone(),
        took_ms: exchange.took_ms,
        request: RequestLine {
            method: exchange.method.clone(),
            url: exchange.url.clone(),
            headers: grouped(&request.headers),
            body,
            body_base64,
            body_hash: request.body_hash.clone(),
        },
        response: None,
        no_answer: None,
    };
    match &exchange.outcome {
        Outcome::NoAnswer(no_reply) => line.no_answer = Some(no_answer_word(*no_reply).to_owned()),
        Outcome::Answered { status, message, body_end } => {
            let (body, body_base64) = written(&message.body);
            let (headers, body_end) = (grouped(&message.headers), BodyEndWord::of(*body_end));
            line.response = Some(ResponseLine { status: *status, headers, body, body_base64, body_end });
        }
    }
    to_line(&line)
}

fn to_line(value: &impl Serialize) -> String {
    // Texts, numbers and lists of them always serialize.
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

/// A readable form of a body: JSON, otherwise text, otherwise base64.
fn written(body: &[u8]) -> (Option<Box<RawValue>>, Option<String>) {
    if body.is_empty() {
        return (None, None);
    }
    let Ok(text) = std::str::from_utf8(body) else { return (None, Some(STANDARD.encode(body))) };
    let is_one_line = text.starts_with(['{', '[']) && text.ends_with(['}', ']']) && !text.contains(['\n', '\r']);
    let as_json = is_one_line.then(|| RawValue::from_string(text.to_owned()).ok()).flatten();
    (as_json.or_else(|| serde_json::value::to_raw_value(text).ok()), None)
}

fn exchange_of(line: &str, number: usize) -> Result<Exchange, RecordingFault> {
    let fault = |what: String| RecordingFault::at(number, what);
    let ExchangeLine { at, took_ms, request, response, no_answer } = serde_json::from_str(line)
        .map_err(|error| fault(error.to_string().replace(" at line 1 column ", " at column ")))?;
    let outcome = match (response, no_answer) {
        (Some(response), None) => answered(response).map_err(fault)?,
        (None, Some(word)) => Outcome::NoAnswer(no_reply_of(&word).map_err(fault)?),
        (None, None) => return Err(fault("it has neither a response nor a no_answer".to_owned())),
        (Some(_), Some(_)) => return Err(fault("it has both a response and a no_answer".to_owned())),
    };
    let RequestLine { method, url, headers, body, body_base64, body_hash } = request;
    let body = read_body(body.as_deref(), body_base64.as_deref()).map_err(fault)?;
    let request = Message { headers: flat(headers), body, body_hash };
    Ok(Exchange { line: number, at, took_ms, method, url, request, outcome })
}

fn answered(response: ResponseLine) -> Result<Outcome, String> {
    let ResponseLine { status, headers, body, body_base64, body_end } = response;
    if !(100..=999).contains(&status) {
        return Err(format!("{status} is not an HTTP status"));
    }
    let body = read_body(body.as_deref(), body_base64.as_deref())?;
    let ends = [Some(BodyEnd::Complete), Some(BodyEnd::TooLarge), Some(BodyEnd::Broken), None];
    let body_end = ends.into_iter().find(|end| BodyEndWord::of(*end) == body_end).flatten();
    Ok(Outcome::Answered { status, message: Message { headers: flat(headers), body, body_hash: None }, body_end })
}

/// Decodes base64 with or without padding, also with nonzero trailing bits, as some programs write it.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&base64::alphabet::STANDARD, config).decode(text.trim_end_matches('=')).ok()
}

fn read_body(body: Option<&RawValue>, body_base64: Option<&str>) -> Result<Vec<u8>, String> {
    match (body.map(RawValue::get), body_base64) {
        (None, None) => Ok(Vec::new()),
        (Some(text), None) if text.starts_with('"') => {
            serde_json::from_str::<String>(text).map(String::into_bytes).map_err(|error| error.to_string())
        }
        (Some(json), None) => Ok(json.as_bytes().to_vec()),
        (None, Some(text)) => decode_base64(text).ok_or_else(|| "its body_base64 is not base64".to_owned()),
        (Some(_), Some(_)) => Err("it has both a body and a body_base64".to_owned()),
    }
}

fn grouped(headers: &[(String, String)]) -> BTreeMap<String, OneOrMore> {
    let mut grouped = BTreeMap::<String, OneOrMore>::new();
    for (name, value) in headers {
        match grouped.get_mut(name) {
            None => drop(grouped.insert(name.clone(), OneOrMore::One(value.clone()))),
            Some(OneOrMore::More(values)) => values.push(value.clone()),
            Some(one @ OneOrMore::One(_)) => {
                let first = std::mem::replace(one, OneOrMore::More(Vec::new()));
                *one = OneOrMore::More(first.into_iter().chain([value.clone()]).collect());
            }
        }
    }
    grouped
}

fn flat(headers: BTreeMap<String, OneOrMore>) -> Vec<(String, String)> {
    let each = |(name, values): (String, OneOrMore)| {
        let name = name.to_ascii_lowercase();
        values.into_iter().map(move |value| (name.clone(), value))
    };
    headers.into_iter().flat_map(each).collect()
}

#[derive(Serialize, Deserialize)]
struct Header {
    gleaner_exchanges: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connector: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recorded_at: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    end: EndWord,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndWord {
    Full,
}

/// An unknown field is a mistake of a manual edit, so it is rejected.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExchangeLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    took_ms: Option<u64>,
    request: RequestLine,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<ResponseLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    no_answer: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestLine {
    method: String,
    url: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, OneOrMore>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_hash: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResponseLine {
    status: u16,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, OneOrMore>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_end: Option<BodyEndWord>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    fn into_iter(self) -> std::vec::IntoIter<String> {
        match self {
            Self::One(value) => vec![value].into_iter(),
            Self::More(values) => values.into_iter(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BodyEndWord {
    TooLarge,
    Broken,
    /// Its content must not be recorded.
    Withheld,
}

impl BodyEndWord {
    /// The word for the end of a body; a complete one has none.
    const fn of(end: Option<BodyEnd>) -> Option<Self> {
        match end {
            Some(BodyEnd::Complete) => None,
            Some(BodyEnd::TooLarge) => Some(Self::TooLarge),
            Some(BodyEnd::Broken) => Some(Self::Broken),
            None => Some(Self::Withheld),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"gleaner_exchanges": 1}"#;

    fn exchange(body: &[u8], end: Option<BodyEnd>) -> Exchange {
        let headers = ["b", "a", "a"].map(|name| (name.to_owned(), format!("{name} value"))).to_vec();
        let message = |headers, body: &[u8]| Message { headers, body: body.to_vec(), body_hash: None };
        Exchange {
            line: 2,
            at: Some("2031-01-01T00:00:00.000Z".to_owned()),
            took_ms: Some(12),
            method: "POST".to_owned(),
            url: "https://a.example/?q=1".to_owned(),
            request: message(Vec::new(), b"asked"),
            outcome: Outcome::Answered { status: 200, message: message(headers, body), body_end: end },
        }
    }

    fn fault(lines: &[&str]) -> String {
        Recording::parse(&lines.join("\n")).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read_byte_for_byte() {
        let bodies: [&[u8]; 8] = [
            b"",
            b"plain text",
            b"\"a JSON text\"",
            br#"{"n":1.50,"big":123456789012345678901234567890,"a":1,"a":2}"#,
            b"[1, 2]",
            b"{\"on\": 1,\n\"two\": \"lines\"}\n",
            b"{not JSON}",
            &[0xff, 0xfe, 0x00],
        ];
        for body in bodies {
            for end in [Some(BodyEnd::Complete), Some(BodyEnd::TooLarge), Some(BodyEnd::Broken), None] {
                let text = header_line("notes", "2031-01-01T00:00:00Z") + &exchange_line(&exchange(body, end));
                assert_eq!(text.lines().count(), 2, "{text}");
                let read = Recording::parse(&text).unwrap().exchanges.remove(0);
                let mut expected = exchange(body, end);
                // By name, and those of one name in their order.
                if let Outcome::Answered { message, .. } = &mut expected.outcome {
                    message.headers.sort();
                }
                assert_eq!(read, expected);
            }
        }
        let mut lost = exchange(b"", None);
        for no_reply in [NoReply::Connect, NoReply::Timeout, NoReply::Lost, NoReply::Untrusted, NoReply::PrivateTarget]
        {
            lost.outcome = Outcome::NoAnswer(no_reply);
            let text = header_line("notes", "") + &exchange_line(&lost);
            assert!(text.contains(&format!(r#""no_answer":"{}""#, lost.outcome.no_answer().unwrap())), "{text}");
            assert_eq!(Recording::parse(&text).unwrap().exchanges, [lost.clone()]);
        }
    }

    #[test]
    fn json_bodies_are_json_in_the_file() {
        let line = exchange_line(&exchange(br#"{"a":1}"#, Some(BodyEnd::Complete)));
        assert!(line.contains(r#""body":{"a":1}"#), "{line}");
    }

    #[test]
    fn a_recording_that_was_killed_is_used_up_to_its_last_whole_line() {
        let line = exchange_line(&exchange(b"x", Some(BodyEnd::Complete)));
        let whole = format!("{HEADER}\n{line}{line}");
        for cut in (HEADER.len() + 1)..whole.len() {
            let read = Recording::parse(&whole[..cut]).unwrap();
            // A line is whole when all but its line feed is there.
            let expected = (cut - HEADER.len()) / line.len();
            assert_eq!(read.exchanges.len(), expected, "{cut}");
        }
        // In the middle it is no killed writer but a damaged file.
        assert!(fault(&[HEADER, &line[..40], &line]).starts_with("line 2: "));
    }

    #[test]
    fn a_bad_file_is_refused_with_the_line() {
        let request = r#""request": {"method": "GET", "url": "https://a.example/"}"#;
        for (lines, expected) in [
            (vec![""], "line 1: a recording begins with {\"gleaner_exchanges\": 1}"),
            (vec!["[]"], "line 1: a recording begins with"),
            (vec![r#"{"gleaner_exchanges": 2}"#], "line 1: unknown format 2; this version reads 1"),
            (vec![HEADER, "", "{}", ""], "line 3: missing field `request` at column 2"),
            (vec![HEADER, r#"{"request": 1}"#, ""], "line 2: invalid type"),
            (vec![HEADER, &format!("{{{request}}}"), ""], "line 2: it has neither a response nor a no_answer"),
            (vec![HEADER, &format!(r#"{{{request}, "respnse": {{}}}}"#), ""], "line 2: unknown field `respnse`"),
            (
                vec![HEADER, &format!(r#"{{{request}, "response": {{"status": 200}}, "no_answer": "lost"}}"#), ""],
                "line 2: it has both a response and a no_answer",
            ),
            (
                vec![HEADER, &format!(r#"{{{request}, "response": {{"status": 7}}}}"#), ""],
                "line 2: 7 is not an HTTP status",
            ),
            (
                vec![HEADER, &format!(r#"{{{request}, "response": {{"status": 200, "body_base64": "?"}}}}"#), ""],
                "line 2: its body_base64 is not base64",
            ),
            (vec![HEADER, &format!(r#"{{{request}, "no_answer": "gone"}}"#), ""], "line 2: unknown variant `gone`"),
        ] {
            let said = fault(&lines);
            assert!(said.starts_with(expected), "{said}");
            assert!(said.chars().count() < 220, "{said}");
        }
    }

    #[test]
    fn a_recording_has_bounds() {
        let line = format!(r#"{{"request": {{"method": "GET", "url": "u"}}, "no_answer": "lost"}}{}"#, '\n');
        let most = format!("{HEADER}\n{}", line.repeat(EXCHANGES_MAX));
        assert_eq!(Recording::parse(&most).unwrap().exchanges.len(), EXCHANGES_MAX);
        let more = format!("{most}{line}");
        assert_eq!(Recording::parse(&more).unwrap_err().to_string(), "line 10002: more than 10000 exchanges");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.jsonl");
        File::create(&path).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(Recording::read(&path).unwrap_err().to_string().starts_with("it is larger than 64 MiB"));
        std::fs::write(&path, [HEADER.as_bytes(), b"\n\xff\xff\n"].concat()).unwrap();
        assert_eq!(Recording::read(&path).unwrap_err().to_string(), "line 2: this is not UTF-8");
        assert!(Recording::read(folder.path()).is_err() && Recording::read(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_full_recording_says_so() {
        let text = format!("{HEADER}\n{}", full_line());
        assert_eq!(Recording::parse(&text), Ok(Recording { exchanges: Vec::new(), is_full: true }));
    }

    proptest::proptest! {
        #[test]
        fn a_line_that_was_damaged_anywhere_is_read_or_refused_by_its_number(
            cuts in proptest::collection::vec((0_usize..400, "[ -~é]{0,3}"), 1..4),
        ) {
            let line = exchange_line(&exchange(b"\xff\x00", Some(BodyEnd::Broken)));
            let mut damaged = line.trim_end().to_owned();
            for (at, with) in cuts {
                let at = (0..=at.min(damaged.len())).rev().find(|&at| damaged.is_char_boundary(at)).unwrap_or(0);
                let end = damaged[at..].chars().next().map_or(at, |next| at + next.len_utf8());
                damaged.replace_range(at..end, &with);
            }
            if let Err(fault) = Recording::parse(&format!("{HEADER}\n{damaged}\n{line}")) {
                proptest::prop_assert!(fault.to_string().starts_with("line 2: "), "{}", fault);
            }
        }
    }
}
