//! The way in for a browser: a one-time link, exchanged for a session by a form.
//!
//! Opening the link changes nothing, because programs that look at links before people do open them too. The form does,
//! and its answer has the cookie: out of reach of scripts, and never sent along from another site.

use crate::auth::auth_attempts;
use crate::auth::guard::{Asked, Presented, Refusal, SESSION_COOKIE};
use crate::auth::keys::SESSION_LIFE;
use crate::problem::Problem;
use crate::server::app_state::{AppState, Shared};
use crate::server::base_path::BasePath;
use crate::server::extract::{Form, JsonBody};
use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use gleaner_app::dates;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER, SET_COOKIE};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, Uri};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;

/// Where a browser goes once it is signed in.
const INSIDE: &str = "/";
/// The parameter of the link, and the field of the form.
const CODE: &str = "code=";

/// The page at the door.
#[derive(Template)]
#[template(path = "sign_in.html")]
struct DoorPage<'a> {
    way_in: WayIn<'a>,
}

/// What a browser has in its hands.
enum WayIn<'a> {
    /// A code, of which only the form is known.
    Code(&'a str),
    /// Nothing that is good; what there is to say about it.
    None(&'static str),
}

/// What a one-time link opens. It looks at nothing but the form of the code.
pub(crate) async fn page(uri: Uri) -> Response {
    let code = uri.query().and_then(|query| query.strip_prefix(CODE)).filter(|code| is_code(code));
    html(StatusCode::OK, code.map_or(WayIn::None(NO_CODE), WayIn::Code))
}

/// Whether a person waits for the answer and not a program.
pub(crate) fn wants_page(request: &Parts) -> bool {
    let accepts = request.headers.get(ACCEPT).and_then(|accepts| accepts.to_str().ok()).unwrap_or_default();
    request.method == Method::GET && accepts.split(',').any(|kind| kind.trim().starts_with("text/html"))
}

/// What whoever is not let in is told: a person how to get in, a program the problem. The same for every path.
pub(crate) fn refused(problem: Problem, refusal: Refusal, wants_page: bool) -> Response {
    let says = match refusal {
        Refusal::NotSignedIn => NOT_SIGNED_IN,
        Refusal::TooManyGuesses => TOO_OFTEN,
        Refusal::NotOurName | Refusal::ForeignSite | Refusal::NoOrigin => return problem.into_response(),
    };
    let response = problem.into_response();
    if !wants_page {
        return response;
    }
    let (mut parts, _) = response.into_parts();
    let (page, body) = html(parts.status, WayIn::None(says)).into_parts();
    parts.headers.extend(page.headers);
    Response::from_parts(parts, body)
}

/// The exchange.
pub(crate) async fn exchange(State(state): Shared, Form(form): Form) -> Result<Response, Problem> {
    let code = std::str::from_utf8(&form).ok().and_then(|form| form.strip_prefix(CODE)).filter(|code| is_code(code));
    let (keys, code) = (Arc::clone(&state.keys), code.unwrap_or_default().to_owned());
    // It writes a file.
    let exchanged = tokio::task::spawn_blocking(move || keys.exchange(&code, dates::now())).await;
    let exchanged = exchanged.map_err(|_| Problem::internal("the sign-in met a fault"))?;
    match exchanged.map_err(|error| Problem::internal(error.to_string()))? {
        Some(session) => {
            let life = SESSION_LIFE.as_secs();
            let cookie = cookie(&state, state.base.of_cookie(), session.reveal(), life);
            let headers = [(SET_COOKIE, cookie), (LOCATION, INSIDE.to_owned())];
            let mut response = (StatusCode::SEE_OTHER, headers).into_response();
            // One from before there was a base path would come along with every request, and two are as good as none.
            let before = (state.base != BasePath::default()).then(|| self::cookie(&state, "/", "", 0));
            if let Some(before) = before.and_then(|before| HeaderValue::try_from(before).ok()) {
                response.headers_mut().append(SET_COOKIE, before);
            }
            Ok(response)
        }
        None if state.attempts.wrong(Instant::now()) => {
            let mut response = html(StatusCode::TOO_MANY_REQUESTS, WayIn::None(TOO_OFTEN));
            response.headers_mut().insert(RETRY_AFTER, auth_attempts::SPAN.as_secs().into());
            Ok(response)
        }
        None => Ok(html(StatusCode::FORBIDDEN, WayIn::None(OVER))),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NothingMore {}

#[derive(Serialize)]
struct LinkView {
    link: String,
}

/// One more link, for whoever has the token and no browser at hand.
pub(crate) async fn new_link(State(state): Shared, _: JsonBody<NothingMore>) -> Result<Response, Problem> {
    let link = state.new_link().map_err(|error| Problem::internal(error.to_string()))?;
    let mut response = state.responder.json(&LinkView { link })?;
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// Signs this browser out.
pub(crate) async fn sign_out(State(state): Shared, parts: Parts) -> Result<Response, Problem> {
    if let Presented::Session(session) = Asked::of(&parts).presented {
        let (keys, session) = (Arc::clone(&state.keys), session.to_owned());
        let ended = tokio::task::spawn_blocking(move || keys.sign_out(&session, dates::now())).await;
        let ended = ended.map_err(|_| Problem::internal("the sign-out met a fault"))?;
        ended.map_err(|error| Problem::internal(error.to_string()))?;
    }
    let cookie = cookie(&state, state.base.of_cookie(), "", 0);
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}

/// Out of reach of scripts, never sent along from another site, to nothing beside us, and only by TLS where there is TLS.
fn cookie(state: &AppState, path: &str, value: &str, life: u64) -> String {
    let secure = if state.is_secure { "; Secure" } else { "" };
    format!("{SESSION_COOKIE}={value}; HttpOnly; SameSite=Strict; Path={path}; Max-Age={life}{secure}")
}

/// Nothing but letters and digits is ever written into a page.
fn is_code(code: &str) -> bool {
    !code.is_empty() && code.len() <= 128 && code.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

const NO_CODE: &str = "This is where a one-time link leads, and this address has none in it.";
const OVER: &str = "This link has been used, or its time is over.";
const NOT_SIGNED_IN: &str = "This browser is not signed in.";
const TOO_OFTEN: &str = "Too many links or credentials were wrong lately. Wait a minute.";

fn html(status: StatusCode, way_in: WayIn<'_>) -> Response {
    // Nothing in it can fail to be written.
    let page = DoorPage { way_in }.render().unwrap_or_default();
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}
