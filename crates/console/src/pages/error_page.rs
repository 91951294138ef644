//! What went wrong, as a page: what happened, and what to do next.

use super::frame::Frame;
use crate::problem::Problem;
use askama::Template;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::CONTENT_TYPE;

/// A problem that a person reads.
#[derive(Debug)]
pub(crate) struct PageProblem(Problem);

impl From<Problem> for PageProblem {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    frame: Frame,
    message: String,
    hint: String,
}

impl IntoResponse for PageProblem {
    fn into_response(self) -> Response {
        let Self(problem) = self;
        let frame = Frame::of_error("This did not work");
        let page = ErrorPage { frame, message: problem.message.clone(), hint: problem.hint.clone() };
        match page.render() {
            Ok(text) => {
                // Status and headers are the problem's own.
                let (mut parts, _) = problem.into_response().into_parts();
                parts.headers.insert(CONTENT_TYPE, HTML);
                Response::from_parts(parts, text.into())
            }
            Err(_) => problem.into_response(),
        }
    }
}

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// A page as an answer.
pub(crate) fn show(page: &impl Template) -> Result<Response, PageProblem> {
    match page.render() {
        Ok(text) => Ok(([(CONTENT_TYPE, HTML)], text).into_response()),
        Err(error) => Err(Problem::internal(format!("the page cannot be written: {error}")).into()),
    }
}
