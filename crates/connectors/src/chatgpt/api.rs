//! The service's list and details, asked out of the page that the owner is signed in to.
//!
//! Every request, and every retry of one, passes the run's one governor, which is the only thing that waits. A token
//! that has run out is renewed once for a request, by a request of the same kind. A session that has run out is the
//! owner's to begin again: that ends the run, and what it did not get to are gaps.

use super::pages::{LIMIT, Place, Turn};
use super::parse;
use super::service::Service;
use super::session::SESSION_PATH;
use gleaner_browser::{Browser, BrowserError, Page, PageRequest};
use gleaner_sdk::http::CallLimits;
use gleaner_sdk::http::external_send::{ExternalSender, NoReply, Reply};
use gleaner_sdk::lane::{Detail, ListAt, ListItem, ListPage, Source, Target, Timestamp};
use gleaner_sdk::protocol::RawJson;
use gleaner_sdk::{FetchError, FetchErrorKind};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How often a walk may step back for one page. Who deletes a hundred conversations for each page that is read is left
/// to the next run.
const STEPS_BACK_MAX: usize = 20;

/// How long one request may take. A long conversation takes seconds.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(45);
/// How long a page may take to say that it is there, when a request out of it did not come back. It comes out of the
/// time of that request.
const PROBE_WITHIN: Duration = Duration::from_secs(5);

/// What a gap says about how its conversation is found again.
const LOCATOR_KIND: &str = "chatgpt.conversation";

/// The service.
pub(super) struct Api<'b> {
    browser: &'b Browser,
    page: Page,
    way: ExternalSender,
    service: Service,
    token: Mutex<String>,
    /// Whether details are collected: then they tell all about a conversation that the list does.
    wants_details: bool,
    /// Why the page cannot be asked any more, once it cannot.
    page_gone: Arc<OnceLock<String>>,
    /// Items of the list that nobody could find again.
    pub(super) unreadable: AtomicUsize,
}

impl<'b> Api<'b> {
    pub(super) fn new(
        browser: &'b Browser,
        page: Page,
        way: ExternalSender,
        service: Service,
        token: String,
        wants_details: bool,
    ) -> Self {
        let (page_gone, unreadable) = (Arc::default(), AtomicUsize::new(0));
        let way = way.call_limits(CallLimits { attempt_timeout: ATTEMPT_WITHIN, ..CallLimits::default() });
        Self { browser, page, way, service, token: Mutex::new(token), wants_details, page_gone, unreadable }
    }

    /// The body of an answer.
    fn get(&self, path: &str) -> Result<Vec<u8>, FetchError> {
        match self.send(path, true) {
            Err(error) if error.kind == FetchErrorKind::RefusedCredentials && self.renew_token()? => {
                self.send(path, true)
            }
            result => result,
        }
    }

    /// Asks for another token; `false` when the session has ended.
    fn renew_token(&self) -> Result<bool, FetchError> {
        let Some(token) = parse::token(&self.send(SESSION_PATH, false)?) else { return Ok(false) };
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
        Ok(true)
    }

    fn send(&self, path: &str, with_token: bool) -> Result<Vec<u8>, FetchError> {
        let url = self.service.at(path);
        let mut request = PageRequest::get(url.as_str());
        if with_token {
            let token = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
            request = request.header("Authorization", &format!("Bearer {token}"));
        }
        let (page, page_gone) = (self.page.clone(), Arc::clone(&self.page_gone));
        let reply = self.way.send(&Method::GET, &url, move |within| send_once(&page, &request, within, &page_gone));
        reply.map(|reply| reply.body.to_vec()).map_err(|error| self.why(error))
    }

    /// Whether it was the provider or what we ask it through.
    fn why(&self, error: gleaner_sdk::http::Error) -> FetchError {
        let gone = |why: String| FetchError::new(FetchErrorKind::SenderGone, why);
        match (self.browser.gone(), self.page_gone.get()) {
            (Some(why), _) => gone(format!("the browser is gone: {why}")),
            (None, Some(why)) => gone(format!("the page of the service {why}")),
            (None, None) => error.into(),
        }
    }
}

/// Makes one request out of the page.
fn send_once(
    page: &Page,
    request: &PageRequest,
    within: Duration,
    page_gone: &OnceLock<String>,
) -> Result<Reply, NoReply> {
    // With time to find out why, and to say so before the attempt itself is given up.
    let within = within.saturating_sub(2 * PROBE_WITHIN);
    let answer = page.fetch(request, within).map_err(|error| match error {
        BrowserError::TimedOut { .. } if page.evaluate::<u8>("1", PROBE_WITHIN).is_ok() => NoReply::TimedOut,
        BrowserError::TimedOut { .. } => {
            page_gone.get_or_init(|| "does not answer any more".to_owned());
            NoReply::InVain
        }
        BrowserError::PageGone(why) => {
            page_gone.get_or_init(|| format!("is gone: {why}"));
            NoReply::InVain
        }
        BrowserError::Gone(_) | BrowserError::TooLarge { .. } => NoReply::InVain,
        // Also a request that the page could not send: it does not tell.
        _ => NoReply::Lost,
    })?;
    let status = StatusCode::from_u16(answer.status).map_err(|_| NoReply::Lost)?;
    let headers = answer.headers.iter().filter_map(|(name, value)| {
        Some((HeaderName::try_from(name.as_str()).ok()?, HeaderValue::try_from(value.as_str()).ok()?))
    });
    let (headers, arrived) = (headers.collect::<HeaderMap>(), Some(answer.arrived));
    Ok(Reply { status, headers, body: answer.body.into(), arrived })
}

impl Source for Api<'_> {
    fn list(&self, at: &ListAt) -> Result<ListPage, FetchError> {
        let place = Place::read(at.page.as_deref());
        let mut offset = place.ask();
        for _ in 0..STEPS_BACK_MAX {
            let body = self.get(&format!("/backend-api/conversations?offset={offset}&limit={LIMIT}&order=updated"))?;
            let answer = parse::list(&body)?;
            self.unreadable.fetch_add(answer.unreadable, Ordering::Relaxed);
            match place.turn(offset, answer) {
                Turn::Page(items, next) => {
                    let items = items.iter().map(|item| self.item(item)).collect();
                    return Ok(ListPage { items, next: next.map(|next| next.write()), left: None });
                }
                Turn::StepBack(to) => offset = to,
            }
        }
        Err(FetchError::unexpected("the list of conversations changes faster than it can be read"))
    }

    fn detail(&self, target: &Target) -> Result<Detail, FetchError> {
        // A key may come out of a gap, and so from a file.
        if !parse::is_id(&target.key) {
            return Err(FetchError::new(FetchErrorKind::NotFound, "that is no id of a conversation"));
        }
        let listed = target.locator.as_ref().map(|text| serde_json::from_str::<Value>(text.as_str()));
        let listed = listed.and_then(Result::ok).unwrap_or_default();
        let body = self.get(&format!("/backend-api/conversation/{}", target.key))?;
        let read = parse::conversation(&target.key, &body, &listed["list_item"])?;
        let detail = Detail::new().record_of("conversations", target.key.as_str(), &read.record);
        Ok(read.messages.iter().fold(detail, |detail, (id, message)| detail.record(id.as_str(), message)))
    }
}

impl Api<'_> {
    fn item(&self, listed: &parse::Listed) -> ListItem {
        let item = ListItem::new(listed.id.clone(), Timestamp::new(listed.updated.clone()));
        if !self.wants_details {
            return item.record(&listed.record);
        }
        let locator = json!({"kind": LOCATOR_KIND, "conversation_id": listed.id, "list_item": listed.record});
        match RawJson::new(locator.to_string()) {
            Ok(locator) => item.locator(locator),
            Err(_) => item,
        }
    }
}
