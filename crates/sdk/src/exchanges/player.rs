//! Finds the answer to a request in a recording.
//!
//! Method and URL must match; the order of query parameters does not count, and a mask matches anything. Of several
//! answers those to the same body come first. The n-th such request gets the n-th answer, and after the last one the
//! last again. A missing request is a fault of the recording or the connector, never the provider's, so it is
//! remembered and ends the run.

use super::recorder::kept_body;
use super::recording::{Exchange, Outcome, Recording};
use super::scrub::{MASK, Scrubber};
use gleaner_http::client::{Asked, BodyEnd, NoReply, Player, Reply};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, RwLock};

/// URL length in a message: enough to see a difference.
const URL_CHARS_MAX: usize = 200;

/// A recording that answers.
#[derive(Debug)]
pub(crate) struct Played {
    exchanges: Vec<Exchange>,
    is_full: bool,
    /// Whether it represents a provider, which answers 404 to unknown requests.
    is_sample: bool,
    /// Indexes of exchanges by method and URL, with a sorted query.
    by_request: BTreeMap<(String, String), Vec<usize>>,
    scrubber: RwLock<Scrubber>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Answers given so far, by first index and number of the group.
    given: BTreeMap<(usize, usize), usize>,
    missed: Option<String>,
}

impl Played {
    pub(crate) fn new(recording: Recording) -> Self {
        let Recording { exchanges, is_full } = recording;
        let mut by_request = BTreeMap::<_, Vec<usize>>::new();
        for (number, exchange) in exchanges.iter().enumerate() {
            let request = (exchange.method.to_ascii_uppercase(), in_order(&exchange.url));
            by_request.entry(request).or_default().push(number);
        }
        let (scrubber, state) = (RwLock::default(), Mutex::default());
        Self { exchanges, is_full, is_sample: false, by_request, scrubber, state }
    }

    /// A recording that represents a provider.
    pub(crate) fn sample(recording: Recording) -> Self {
        Self { is_sample: true, ..Self::new(recording) }
    }

    /// Secrets that were masked in the recording, or their replacements.
    pub(crate) fn keep_secret(&self, secrets: &[String]) {
        *self.scrubber.write().unwrap_or_else(PoisonError::into_inner) = Scrubber::new(secrets);
    }

    /// The first missing request.
    pub(crate) fn missed(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).missed.clone()
    }

    fn find(&self, asked: &Asked) -> Result<Option<&Exchange>, String> {
        let asked = self.scrubber.read().unwrap_or_else(PoisonError::into_inner).request(asked);
        let request = (asked.method.to_ascii_uppercase(), in_order(&asked.url));
        let like = |(pattern, _): &(&(String, String), &Vec<usize>)| {
            pattern.0 == request.0 && pattern.1.contains(MASK) && is_like(&pattern.1, &request.1)
        };
        let found = self.by_request.get(&request);
        let found = found.or_else(|| self.by_request.iter().find(like).map(|(_, numbers)| numbers));
        let Some(numbers) = found else {
            return if self.is_sample { Ok(None) } else { Err(self.not_there(&asked)) };
        };
        let (body, body_hash) = kept_body(asked.body);
        let is_same = |number: &&usize| {
            let known = &self.exchanges[**number].request;
            known.body == body && known.body_hash == body_hash
        };
        let same = numbers.iter().filter(is_same).copied().collect::<Vec<_>>();
        let numbers = if same.is_empty() { numbers.clone() } else { same };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let last = numbers.len() - 1;
        let given = state.given.entry((numbers[0], last)).or_default();
        let number = numbers[(*given).min(last)];
        *given += 1;
        Ok(Some(&self.exchanges[number]))
    }

    /// Describes the missing request and the nearest recorded one.
    fn not_there(&self, asked: &Asked) -> String {
        let text = format!("{} {}", asked.method, asked.url);
        let named = |exchange: &&Exchange| format!("{} {}", exchange.method, exchange.url);
        let nearest = self.exchanges.iter().max_by_key(|exchange| alike(&text, &named(exchange)));
        let nearest = match &nearest {
            Some(exchange) => format!("the nearest is {} (line {})", shown(&named(exchange)), exchange.line),
            None => "the recording is empty".to_owned(),
        };
        let full = if self.is_full { "; the recording was full before the run ended" } else { "" };
        format!("{} is not in the recording; {nearest}{full}; record again, or correct the request", shown(&text))
    }
}

impl Player for Played {
    fn play(&self, asked: &Asked) -> Result<Result<Reply, NoReply>, String> {
        let answer = self.find(asked).and_then(|found| found.map_or_else(|| Ok(Ok(NOT_FOUND)), reply_of));
        if let Err(what) = &answer {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.missed.get_or_insert_with(|| what.clone());
        }
        answer
    }
}

/// The answer to an unknown request.
const NOT_FOUND: Reply = Reply { status: 404, headers: Vec::new(), body: Vec::new(), body_end: BodyEnd::Complete };

fn reply_of(exchange: &Exchange) -> Result<Result<Reply, NoReply>, String> {
    let not_kept = |why: &str| {
        let request = shown(&format!("{} {}", exchange.method, exchange.url));
        Err(format!("the answer to {request} was not recorded (line {}): {why}", exchange.line))
    };
    match &exchange.outcome {
        Outcome::NoAnswer(no_reply) => Ok(Err(*no_reply)),
        Outcome::Answered { body_end: Some(BodyEnd::TooLarge), .. } => not_kept("it was too large, or too slow"),
        Outcome::Answered { body_end: None, .. } => not_kept("it held a credential that could not be masked"),
        Outcome::Answered { status, message, body_end: Some(body_end) } => {
            let (headers, body) = (message.headers.clone(), message.body.clone());
            Ok(Ok(Reply { status: *status, headers, body, body_end: *body_end }))
        }
    }
}

/// A URL with a sorted query.
fn in_order(url: &str) -> String {
    let Some((place, query)) = url.split_once('?') else { return url.to_owned() };
    let mut pairs = query.split('&').filter(|pair| !pair.is_empty()).collect::<Vec<_>>();
    pairs.sort_unstable();
    format!("{place}?{}", pairs.join("&"))
}

/// Whether a text matches a pattern in which each mask matches anything.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((first, others)) = pattern.split_once(MASK) else { return pattern == text };
    let (between, last) = others.rsplit_once(MASK).unwrap_or(("", others));
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for part in between.split(MASK) {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Length of the common prefix and suffix of two texts.
fn alike(a: &str, b: &str) -> usize {
    let from_start = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let most = a.len().min(b.len()) - from_start;
    from_start + a.bytes().rev().zip(b.bytes().rev()).take(most).take_while(|(a, b)| a == b).count()
}

fn shown(text: &str) -> String {
    let cut = if text.chars().nth(URL_CHARS_MAX).is_some() { "…" } else { "" };
    text.chars().take(URL_CHARS_MAX).chain(cut.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(lines: &[(&str, &str, &str)]) -> Played {
        let lines = lines.iter().map(|(request, body, answer)| {
            let (method, url) = request.split_once(' ').unwrap();
            let request = serde_json::json!({"method": method, "url": url, "body": body});
            format!("{}\n", serde_json::json!({"request": request, "response": {"status": 200, "body": answer}}))
        });
        let text = format!("{{\"gleaner_exchanges\": 1}}\n{}", lines.collect::<String>());
        Played::new(Recording::parse(&text).unwrap())
    }

    fn ask(played: &Played, request: &str, body: &str) -> Result<String, String> {
        let (method, url) = request.split_once(' ').unwrap();
        let asked = Asked {
            method: method.to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
        };
        played.play(&asked).map(|reply| String::from_utf8(reply.unwrap().body).unwrap())
    }

    fn get(played: &Played, url: &str) -> Result<String, String> {
        ask(played, &format!("GET {url}"), "")
    }

    #[test]
    fn the_nth_request_gets_the_nth_answer_and_then_the_last_one() {
        let played = played(&[("GET u", "", "1"), ("GET v", "", "other"), ("GET u", "", "2")]);
        let answers = [(); 4].map(|()| get(&played, "u").unwrap());
        assert_eq!(answers, ["1", "2", "2", "2"]);
        assert_eq!(get(&played, "v").unwrap(), "other");
        assert_eq!(played.missed(), None);
    }

    #[test]
    fn an_answer_that_was_not_kept_is_not_played() {
        for end in ["too_large", "withheld"] {
            let response = serde_json::json!({"status": 200, "body_end": end});
            let line = serde_json::json!({"request": {"method": "GET", "url": "u"}, "response": response});
            let text = format!("{{\"gleaner_exchanges\": 1}}\n{line}\n");
            let played = Played::new(Recording::parse(&text).unwrap());
            let said = get(&played, "u").unwrap_err();
            assert!(said.starts_with("the answer to GET u was not recorded (line 2): it "), "{said}");
            assert_eq!(played.missed(), Some(said));
        }
    }

    #[test]
    fn a_sample_does_not_have_what_is_not_in_it() {
        let played = Played { is_sample: true, ..played(&[("GET u", "", "1")]) };
        let asked = |url: &str| Asked { method: "GET".into(), url: url.into(), headers: Vec::new(), body: Vec::new() };
        let status = |url| played.play(&asked(url)).unwrap().unwrap().status;
        assert_eq!((status("u"), status("v"), played.missed()), (200, 404, None));
    }

    #[test]
    fn the_order_of_a_query_does_not_count_and_the_method_does() {
        let played = played(&[("GET https://a/x?b=2&a=1&a=0", "", "got"), ("POST https://a/x", "", "posted")]);
        assert_eq!(get(&played, "https://a/x?a=0&b=2&a=1").unwrap(), "got");
        assert!(get(&played, "https://a/x?a=0&b=2").is_err());
        assert!(get(&played, "https://a/x").is_err());
    }

    #[test]
    fn what_was_masked_stands_for_anything() {
        let played = played(&[
            ("GET https://a/bot[secret]/x?q=1&token=[secret]", "", "1"),
            ("GET https://a/plain?q=1", "", "2"),
        ]);
        played.keep_secret(&["placeholder-of-TOKEN".to_owned()]);
        assert_eq!(get(&played, "https://a/botplaceholder-of-TOKEN/x?token=other&q=1").unwrap(), "1");
        assert_eq!(get(&played, "https://a/bot99/x?token=other&q=1").unwrap(), "1");
        assert!(get(&played, "https://a/bot99/y?token=other&q=1").is_err());
        assert!(get(&played, "https://a/bot99/x?token=other&q=2").is_err());
        assert!(ask(&played, "POST https://a/bot99/x?token=other&q=1", "").is_err());
        assert!(is_like("[secret]a", "a") && !is_like("b[secret]", "a") && !is_like("ab[secret]b", "ab"));
    }

    #[test]
    fn answers_to_the_same_body_come_first() {
        let played = played(&[("POST u", "one", "1"), ("POST u", "two", "2"), ("POST u", "one", "3")]);
        assert_eq!(ask(&played, "POST u", "two").unwrap(), "2");
        assert_eq!(ask(&played, "POST u", "one").unwrap(), "1");
        assert_eq!(ask(&played, "POST u", "one").unwrap(), "3");
        // A body with a time in it is new each time: then the order decides.
        let others = ["a", "b", "c"].map(|body| ask(&played, "POST u", body).unwrap());
        assert_eq!(others, ["1", "2", "3"]);
    }

    #[test]
    fn a_request_that_is_not_there_is_named_with_the_nearest_and_without_secrets() {
        let played = played(&[("GET https://a/notes?page=1", "", "1"), ("GET https://a/people", "", "2")]);
        played.keep_secret(&["c4n4ry-token".to_owned()]);
        let said = get(&played, "https://a/notes?page=7&q=c4n4ry-token&token=abc").unwrap_err();
        assert_eq!(
            said,
            "GET https://a/notes?page=7&q=[secret]&token=[secret] is not in the recording; the nearest is GET \
             https://a/notes?page=1 (line 2); record again, or correct the request"
        );
        assert_eq!(played.missed(), Some(said));
        let long = format!("https://a/{}", "ü".repeat(5000));
        assert!(get(&played, &long).unwrap_err().chars().count() < 400);
    }
}
