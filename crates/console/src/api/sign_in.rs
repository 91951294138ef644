//! The way in for a browser: a one-time link, exchanged for a session by a form.
//!
//! Opening the link changes nothing, because programs that look at links before people do open them too. The form does,
//! and its answer has the cookie: out of reach of scripts, and never sent along from another site.

use crate::asking::{Form, Told};
use crate::guard::{Asked, Presented, SESSION_COOKIE, SIGN_IN_PATH};
use crate::inside::Inside;
use crate::keys::SESSION_LIFE;
use crate::problem::Problem;
use crate::{date, guesses};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER, SET_COOKIE};
use http::request::Parts;
use http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;

/// Where a browser goes once it is signed in.
const INSIDE: &str = "/";
/// The parameter of the link, and the field of the form.
const CODE: &str = "code=";

/// What a one-time link opens. It looks at nothing but the form of the code.
pub(crate) async fn page(uri: Uri) -> Response {
    let code = uri.query().and_then(|query| query.strip_prefix(CODE)).filter(|code| is_code(code));
    match code {
        Some(code) => html(StatusCode::OK, &form(code)),
        None => html(StatusCode::OK, NO_CODE),
    }
}

/// The exchange.
pub(crate) async fn exchange(State(inside): State<Arc<Inside>>, Form(form): Form) -> Result<Response, Problem> {
    let code = std::str::from_utf8(&form).ok().and_then(|form| form.strip_prefix(CODE)).filter(|code| is_code(code));
    let (keys, code) = (Arc::clone(&inside.keys), code.unwrap_or_default().to_owned());
    // It writes a file.
    let exchanged = tokio::task::spawn_blocking(move || keys.exchange(&code, date::now())).await;
    let exchanged = exchanged.map_err(|_| Problem::internal("the sign-in met a fault"))?;
    match exchanged.map_err(|error| Problem::internal(error.to_string()))? {
        Some(session) => {
            let life = SESSION_LIFE.as_secs();
            let cookie =
                format!("{SESSION_COOKIE}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={life}", session.reveal());
            Ok((StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, INSIDE.to_owned())]).into_response())
        }
        None if inside.guesses.wrong(Instant::now()) => {
            let mut response = html(StatusCode::TOO_MANY_REQUESTS, TOO_OFTEN);
            response.headers_mut().insert(RETRY_AFTER, guesses::SPAN.as_secs().into());
            Ok(response)
        }
        None => Ok(html(StatusCode::FORBIDDEN, OVER)),
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
pub(crate) async fn new_link(State(inside): State<Arc<Inside>>, _: Told<NothingMore>) -> Result<Response, Problem> {
    let link = inside.new_link().map_err(|error| Problem::internal(error.to_string()))?;
    let mut response = inside.giving.json(&LinkView { link })?;
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// Signs this browser out.
pub(crate) async fn sign_out(State(inside): State<Arc<Inside>>, parts: Parts) -> Result<Response, Problem> {
    if let Presented::Session(session) = Asked::of(&parts).presented {
        let (keys, session) = (Arc::clone(&inside.keys), session.to_owned());
        let ended = tokio::task::spawn_blocking(move || keys.sign_out(&session, date::now())).await;
        let ended = ended.map_err(|_| Problem::internal("the sign-out met a fault"))?;
        ended.map_err(|error| Problem::internal(error.to_string()))?;
    }
    let cookie = format!("{SESSION_COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}

/// Nothing but letters and digits is ever written into a page.
fn is_code(code: &str) -> bool {
    !code.is_empty() && code.len() <= 128 && code.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

const NO_CODE: &str = "<p>Open the link that <code>gleaner serve</code> printed.</p>";
const OVER: &str = "<p>This link has been used, or its time is over. \
                    <code>gleaner serve</code> prints a new one when it starts.</p>";
const TOO_OFTEN: &str = "<p>Too many links were wrong lately. Wait a minute.</p>";

fn form(code: &str) -> String {
    format!(
        "<form method=\"post\" action=\"{SIGN_IN_PATH}\"><input type=\"hidden\" name=\"code\" value=\"{code}\">\
         <p>This link signs this browser in, once.</p><button autofocus>Open Gleaner</button></form>"
    )
}

fn html(status: StatusCode, content: &str) -> Response {
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>Gleaner</title><main><h1>Gleaner</h1>{content}</main>"
    );
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}
