//! A request sent by the page: with its cookies, origin and address, like a request of the page's own code.

use super::Page;
use super::form::quoted;
use crate::engine::Deadline;
use crate::error::BrowserError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Maximum body size. Larger things are downloads.
const BODY_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// A request that is not answered this long after the page sent it has reached the provider, which is slow. A request
/// takes some milliseconds to the provider, some tens on a slow line; 190 ms were seen on a machine with six times
/// its load.
const UNDER_WAY_MAX: Duration = Duration::from_millis(250);

/// A request of the page. Its headers and body may hold secrets and are not in its `Debug`.
#[derive(Clone)]
pub struct PageRequest {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
}

gleaner_base::debug_only!(PageRequest, |it| method = it.method);

impl PageRequest {
    /// A GET request; a path refers to the page's own host.
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

    /// The script that sends it. It also aborts itself, so that nothing continues in the page after the deadline.
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

/// The provider's answer, of any status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageResponse {
    /// The status.
    pub status: u16,
    /// The final address.
    pub url: String,
    /// Headers visible to the page.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub body: String,
    /// The latest time at which the provider had the request. The page reports it, limited to the duration of the
    /// call.
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
    /// Milliseconds since the provider had it. Untrusted.
    age: Value,
}

impl PageResponse {
    /// A header by its case-insensitive name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Errors
    ///
    /// It is not the expected JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, BrowserError> {
        serde_json::from_str(&self.body).map_err(|error| {
            let why = format!("the body is not the expected JSON (line {}, column {})", error.line(), error.column());
            BrowserError::protocol("fetch", why)
        })
    }
}

impl Page {
    /// Sends a request from the page, with the page's session.
    ///
    /// # Errors
    ///
    /// The provider cannot be reached, the answer is too large, the page is gone, or a timeout. A status is no error.
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

/// The reported time, limited to the call; the end of the call if invalid.
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
