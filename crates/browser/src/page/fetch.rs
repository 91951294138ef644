//! A request that the page makes: with its cookies, its origin and its address, so that a service sees what it would
//! see of the page's own code.

use super::Page;
use super::form::quoted;
use crate::engine::Deadline;
use crate::error::BrowserError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::{Duration, Instant};

/// The longest body that is taken. Larger things are downloads.
const BODY_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// A request that is not answered this long after the page has sent it is with the service by then, and its answer is
/// what takes so long. From the page's call to the service it takes some milliseconds, or some tens of them over a slow
/// line; on a machine that has six times more to do than it can, 190 were seen.
const UNDER_WAY_MAX: Duration = Duration::from_millis(250);

/// A request of the page's. Its headers and body may hold secrets: they are not in its `Debug`.
#[derive(Clone)]
pub struct PageRequest {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
}

gleaner_base::debug_only!(PageRequest, |it| method = it.method);

impl PageRequest {
    /// Asks for an address; a path is one of the page's own host.
    pub fn get(url: &str) -> Self {
        Self::new("GET", url)
    }

    /// A request with another method.
    pub fn new(method: &str, url: &str) -> Self {
        Self { method: method.to_owned(), url: url.to_owned(), headers: Vec::new(), body: None }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: &str) -> Self {
        self.body = Some(body.to_owned());
        self
    }

    /// The script that makes it. It stops itself, too, so that nothing goes on in the page after the deadline.
    fn script(&self, within: Duration) -> String {
        let headers =
            Value::from(self.headers.iter().map(|(n, v)| Value::from(vec![n.as_str(), v])).collect::<Vec<_>>());
        let body = self.body.as_deref().map_or_else(|| "undefined".to_owned(), quoted);
        format!(
            "(async () => {{ const asked = performance.now(); try {{ const answer = await fetch({url}, {{method: {method}, headers: {headers}, \
             body: {body}, credentials: 'include', signal: AbortSignal.timeout({millis})}}); \
             const arrived = Math.min(performance.now(), asked + {under_way}); \
             const bytes = new Uint8Array(await answer.arrayBuffer()); \
             if (bytes.length > {BODY_BYTES_MAX}) return {{tooLarge: true}}; \
             return {{status: answer.status, url: answer.url, headers: [...answer.headers], \
             body: new TextDecoder().decode(bytes), age: performance.now() - arrived}} }} \
             catch (error) {{ return {{failed: error.name, why: error.message}} }} }})()",
            url = quoted(&self.url),
            method = quoted(&self.method),
            millis = within.as_millis(),
            under_way = UNDER_WAY_MAX.as_millis(),
        )
    }
}

/// What the service answered, whatever the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageResponse {
    /// The status.
    pub status: u16,
    /// The address in the end.
    pub url: String,
    /// Headers that the page may see.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub body: String,
    /// By when the service had the request, at the latest. The page tells, and is believed within the time that all of
    /// it took.
    pub arrived: Instant,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Answer {
    failed: Option<String>,
    why: String,
    too_large: bool,
    status: u16,
    url: String,
    headers: Vec<(String, String)>,
    body: String,
    /// How many milliseconds ago the service had it. A page may say anything.
    age: Value,
}

impl PageResponse {
    /// A header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Errors
    ///
    /// When it is none, or another.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, BrowserError> {
        serde_json::from_str(&self.body).map_err(|error| {
            let why = format!("the body is no such JSON (line {}, column {})", error.line(), error.column());
            BrowserError::protocol("fetch", why)
        })
    }
}

impl Page {
    /// Makes a request out of the page, with the page's session.
    ///
    /// # Errors
    ///
    /// When the service cannot be reached, the answer is too large, the page is gone, or it takes too long. A status
    /// is no error.
    pub fn fetch(&self, request: &PageRequest, within: Duration) -> Result<PageResponse, BrowserError> {
        let began = Instant::now();
        let answer = self.page.evaluate(&request.script(within), Deadline::after(within))?;
        let ended = Instant::now();
        let Answer { failed, why, too_large, status, url, headers, body, age } = super::typed(answer, "fetch")?;
        match failed.as_deref() {
            None => {}
            Some("TimeoutError") => {
                return Err(BrowserError::TimedOut { what: "get an answer to a request of the page", within });
            }
            Some(_) => {
                let why = why.chars().take(200).collect();
                return Err(BrowserError::Navigation { place: super::address(&request.url), why });
            }
        }
        if too_large {
            return Err(BrowserError::TooLarge { what: "the answer to a request of the page", max: BODY_BYTES_MAX });
        }
        Ok(PageResponse { status, url, headers, body, arrived: arrived(&age, began, ended) })
    }
}

/// What the page says about it, within what can be; the end of it when that is nothing.
fn arrived(age: &Value, began: Instant, ended: Instant) -> Instant {
    let age = age.as_f64().and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok()).unwrap_or_default();
    ended.checked_sub(age).map_or(began, |at| at.max(began))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_page_says_about_a_time_is_believed_within_what_can_be() {
        let began = Instant::now();
        let ended = began + Duration::from_millis(80);
        let after = |age: Value| (arrived(&age, began, ended) - began).as_millis();
        assert_eq!((after(json!(0)), after(json!(30)), after(json!(80.5))), (80, 50, 0));
        assert_eq!((after(json!(1e15)), after(json!(90))), (0, 0), "not before it was asked for");
        for nothing in [Value::Null, json!("soon"), json!(-5), json!(1e300), json!({})] {
            assert_eq!(after(nothing), 80);
        }
    }
}
