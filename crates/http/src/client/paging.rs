//! Pages of a list, one slice at a time, each with the cursor to resume after it.
//!
//! Slices and not items: a collector stores a slice together with its cursor, so a crash costs one slice at most.
//! Every page is an ordinary governed request. Paging never follows a link to another origin, because the credentials
//! would go along; never loads a page twice, because a provider that repeats itself would never end; and never treats
//! a missing page as the last one.

use super::GovernedClient;
use super::error::Error;
use super::link::next_target;
use super::request::RequestBuilder;
use super::shown_url::ShownUrl;
use bytes::Bytes;
use http::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashSet;
use url::Url;

/// Why paging stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PagingFault {
    /// The page was loaded before.
    #[error("the next page was loaded before; the provider's pages form a loop")]
    Loop,
    /// Page limit reached. Holds the limit.
    #[error("page limit of {0} reached; `max_pages` raises it")]
    TooMany(u32),
    /// The next page is at another origin.
    #[error("the next page is at another origin, which would receive the credentials")]
    OtherOrigin,
    /// The `Link` header is invalid.
    #[error("the Link header is invalid, so it is unknown whether there is a next page")]
    MalformedLink,
    /// The cursor is neither text nor a number.
    #[error("the cursor is neither text nor a number, so it is unknown whether there is a next page")]
    NotACursor,
}

/// A request for pages, before the kind of paging is chosen.
#[derive(Debug)]
#[must_use = "pages are loaded by `next`"]
pub struct Paging {
    request: RequestBuilder,
    max_pages: u32,
    resume_after: Option<String>,
}

/// A million records at a hundred per page. Without a limit, a provider that invents cursors would never end.
const PAGES_MAX: u32 = 10_000;

impl Paging {
    pub(crate) fn new(client: &GovernedClient, request: RequestBuilder) -> Self {
        Self { request: request.with_client(client), max_pages: PAGES_MAX, resume_after: None }
    }

    /// Maximum number of pages; one more is an error, not the end.
    pub const fn max_pages(mut self, max: u32) -> Self {
        self.max_pages = max;
        self
    }

    /// Resumes after the slice with this cursor.
    pub fn resume_after(mut self, cursor: impl Into<String>) -> Self {
        self.resume_after = Some(cursor.into());
        self
    }

    /// Each page links to the next with `Link: <…>; rel="next"`, as at GitHub and GitLab.
    pub fn by_link(self) -> Pages {
        Pages::new(self, Way::Link)
    }

    /// `next` finds the cursor of the next page in the JSON of a page; it is sent as `query_param`. An empty cursor
    /// is the end.
    ///
    /// ```no_run
    /// # async fn example(client: gleaner_http::GovernedClient) -> Result<(), gleaner_http::Error> {
    /// let request = client.get("https://slack.example/api/conversations.list");
    /// let next = |page: &serde_json::Value| page["response_metadata"]["next_cursor"].as_str().map(str::to_owned);
    /// let mut pages = client.pages(request).by_cursor(next, "cursor");
    /// while let Some(slice) = pages.next().await? {
    ///     println!("{} bytes, resume after {:?}", slice.body.len(), slice.cursor);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn by_cursor(
        self,
        mut next: impl FnMut(&Value) -> Option<String> + Send + 'static,
        query_param: impl Into<String>,
    ) -> Pages {
        let find = Box::new(move |page: &Value| Ok(next(page)));
        Pages::new(self, Way::Cursor { find, query_param: query_param.into() })
    }

    /// The token of the next page is at `pointer` (RFC 6901, such as `/nextPageToken`) in the JSON of a page; it is
    /// sent as `query_param`.
    pub fn by_page_token(self, pointer: impl Into<String>, query_param: impl Into<String>) -> Pages {
        let pointer = pointer.into();
        let find = Box::new(move |page: &Value| token_at(page, &pointer));
        Pages::new(self, Way::Cursor { find, query_param: query_param.into() })
    }
}

fn token_at(page: &Value, pointer: &str) -> Result<Option<String>, PagingFault> {
    match page.pointer(pointer) {
        None | Some(Value::Null | Value::Bool(false)) => Ok(None),
        Some(Value::String(token)) => Ok(Some(token.clone())),
        Some(Value::Number(token)) => Ok(Some(token.to_string())),
        Some(Value::Bool(true) | Value::Array(_) | Value::Object(_)) => Err(PagingFault::NotACursor),
    }
}

/// Loads pages one by one.
pub struct Pages {
    request: RequestBuilder,
    way: Way,
    max_pages: u32,
    loaded: u32,
    next: Next,
    /// Hashes of the followed cursors; at most one per page.
    seen: HashSet<[u8; 32]>,
}

/// Kind of paging.
enum Way {
    Link,
    Cursor { find: FindCursor, query_param: String },
}

type FindCursor = Box<dyn FnMut(&Value) -> Result<Option<String>, PagingFault> + Send>;

/// Action of the next call of `next`.
enum Next {
    First,
    After(String),
    Fail(PagingFault),
    End,
}

impl Pages {
    fn new(paging: Paging, way: Way) -> Self {
        let Paging { request, max_pages, resume_after } = paging;
        let next = resume_after.map_or(Next::First, Next::After);
        let mut pages = Self { request, way, max_pages, loaded: 0, next, seen: HashSet::new() };
        // A link or cursor may lead back to the first page.
        if let Some(first) = pages.first_cursor() {
            pages.seen.insert(hash(&first));
        }
        pages
    }

    fn first_cursor(&self) -> Option<String> {
        match (&self.next, &self.way) {
            (Next::After(cursor), _) => Some(cursor.clone()),
            (_, Way::Link) => self.request.url().ok().map(Url::to_string),
            (_, Way::Cursor { query_param, .. }) => {
                let url = self.request.url().ok()?;
                url.query_pairs().find(|(name, _)| name == query_param).map(|(_, value)| value.into_owned())
            }
        }
    }

    /// The next slice; `None` after the last. After an error a further call loads the same page again.
    ///
    /// # Errors
    /// The page cannot be loaded, has an error status, or paging cannot continue ([`Error::Paging`]).
    pub async fn next(&mut self) -> Result<Option<Slice>, Error> {
        let Some(request) = self.next_request()? else { return Ok(None) };
        let response = request.send().await?.error_for_status()?;
        let place = response.place();
        let (url, headers) = (response.url().clone(), response.headers().clone());
        let body = response.bytes().await?;
        let next = self.way.next(&url, &headers, &body, &place)?;
        self.next = self.checked(next);
        let cursor = match &self.next {
            Next::After(cursor) => Some(cursor.clone()),
            Next::First | Next::Fail(_) | Next::End => None,
        };
        let slice = Slice { index: self.loaded, body, cursor, place };
        self.loaded += 1;
        Ok(Some(slice))
    }

    fn next_request(&self) -> Result<Option<RequestBuilder>, Error> {
        let url = self.request.url()?;
        let fail = |fault| Error::Paging { place: ShownUrl::new(url), page: self.loaded, fault };
        let url = match &self.next {
            Next::End => return Ok(None),
            Next::Fail(fault) => return Err(fail(*fault)),
            Next::First => url.clone(),
            Next::After(cursor) => self.way.url(url, cursor).map_err(fail)?,
        };
        if self.loaded == self.max_pages {
            return Err(fail(PagingFault::TooMany(self.max_pages)));
        }
        Ok(Some(self.request.clone().with_url(url)))
    }

    /// The next action, unless the page was loaded before. A fault waits for the next call, because the current page
    /// is good.
    fn checked(&mut self, next: Result<Option<String>, PagingFault>) -> Next {
        match next {
            Ok(None) => Next::End,
            Ok(Some(cursor)) if !self.seen.insert(hash(&cursor)) => Next::Fail(PagingFault::Loop),
            Ok(Some(cursor)) => Next::After(cursor),
            Err(fault) => Next::Fail(fault),
        }
    }
}

fn hash(cursor: &str) -> [u8; 32] {
    *blake3::hash(cursor.as_bytes()).as_bytes()
}

impl Way {
    /// Finds the way to the next page. The outer error is about this page, the inner one about the next.
    fn next(
        &mut self,
        url: &Url,
        headers: &HeaderMap,
        body: &[u8],
        place: &ShownUrl,
    ) -> Result<Result<Option<String>, PagingFault>, Error> {
        match self {
            Self::Link => Ok(link_from(url, headers)),
            Self::Cursor { find, .. } => {
                let page = serde_json::from_slice(body).map_err(|error| Error::json(place, &error))?;
                Ok(find(&page).map(|cursor| cursor.filter(|cursor| !cursor.is_empty())))
            }
        }
    }

    /// The URL of the page after `cursor`.
    fn url(&self, first: &Url, cursor: &str) -> Result<Url, PagingFault> {
        match self {
            Self::Link => {
                let url = first.join(cursor).map_err(|_not_a_url| PagingFault::MalformedLink)?;
                if url.origin() == first.origin() { Ok(url) } else { Err(PagingFault::OtherOrigin) }
            }
            Self::Cursor { query_param, .. } => Ok(with_query(first, query_param, cursor)),
        }
    }
}

fn link_from(url: &Url, headers: &HeaderMap) -> Result<Option<String>, PagingFault> {
    let target = next_target(headers).map_err(|_malformed| PagingFault::MalformedLink)?;
    let Some(target) = target else { return Ok(None) };
    // Relative to the page, which a redirect may have moved.
    let url = url.join(&target).map_err(|_not_a_url| PagingFault::MalformedLink)?;
    Ok(Some(url.into()))
}

/// `url` with exactly one `name` in its query.
fn with_query(url: &Url, name: &str, value: &str) -> Url {
    let others: Vec<_> =
        url.query_pairs().filter(|(other, _)| other != name).map(|(a, b)| (a.into_owned(), b.into_owned())).collect();
    let mut url = url.clone();
    url.query_pairs_mut().clear().extend_pairs(others).append_pair(name, value);
    url
}

// Omits the cursor: it may be a URL with private data.
gleaner_base::debug_only!(Pages, |it| request = it.request, loaded = it.loaded);

/// One page.
#[derive(Clone)]
#[non_exhaustive]
pub struct Slice {
    /// Its number, counted from 0, or from the slice that was resumed after.
    pub index: u32,
    /// The page as received.
    pub body: Bytes,
    /// The cursor for [`Paging::resume_after`]; `None` when no further page can be loaded. Opaque: store it
    /// unchanged.
    pub cursor: Option<String>,
    place: ShownUrl,
}

impl Slice {
    /// The page as JSON.
    ///
    /// # Errors
    /// It is not the expected JSON. The error gives the position, never the content.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::json(&self.place, &error))
    }
}

// Omits body and cursor.
gleaner_base::debug_only!(Slice, |it| index = it.index, bytes = it.body.len());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_replaces_the_one_before() {
        for (url, expected) in [
            ("https://a.example/x", "https://a.example/x?cursor=b%26c"),
            ("https://a.example/x?cursor=a&limit=5", "https://a.example/x?limit=5&cursor=b%26c"),
        ] {
            assert_eq!(with_query(&Url::parse(url).unwrap(), "cursor", "b&c").as_str(), expected);
        }
    }

    #[test]
    fn a_token_is_text_or_a_number_and_nothing_else_is_the_end() {
        for (page, expected) in [
            (r#"{"next":"abc"}"#, Ok(Some("abc"))),
            (r#"{"next":7}"#, Ok(Some("7"))),
            (r#"{"next":null}"#, Ok(None)),
            (r#"{"next":false}"#, Ok(None)),
            ("{}", Ok(None)),
            (r#"{"next":true}"#, Err(PagingFault::NotACursor)),
            (r#"{"next":{"id":1}}"#, Err(PagingFault::NotACursor)),
        ] {
            let token = token_at(&serde_json::from_str(page).unwrap(), "/next");
            assert_eq!(token, expected.map(|token| token.map(str::to_owned)), "{page}");
        }
    }
}
