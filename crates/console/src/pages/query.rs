//! Questions in SQL. They only read: the store refuses everything else, in three ways.

use super::error_page::{PageProblem, show};
use super::escape::short;
use super::frame::{Frame, Part};
use crate::problem::Problem;
use crate::server::app_state::Shared;
use crate::server::extract::UrlQuery;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use gleaner_app::Look;
use gleaner_store::{Cell, ConnectionState, QueryError, QuerySink, Reader};
use serde::Deserialize;

/// Rows that are shown.
const ROWS_MAX: usize = 200;
/// Columns that are shown.
const COLUMNS_MAX: usize = 60;
/// Of a value, so much is shown.
const CELL_CHARS: usize = 400;
/// The longest question.
const QUESTION_CHARS_MAX: usize = 10_000;

#[derive(Template)]
#[template(path = "query.html")]
struct QueryPage {
    frame: Frame,
    question: String,
    views: Vec<String>,
    answer: Option<Answer>,
    refused: Option<String>,
}

#[derive(Default)]
struct Answer {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    is_cut: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryWanted {
    q: Option<String>,
}

pub(crate) async fn page(
    State(state): Shared,
    UrlQuery(wanted): UrlQuery<QueryWanted>,
) -> Result<Response, PageProblem> {
    show(&state.reading.ask(move |reader| gather(reader, wanted.q.as_deref().unwrap_or_default())).await?)
}

fn gather(reader: &mut Reader, question: &str) -> Result<QueryPage, Problem> {
    let frame = Frame::new("SQL", Part::Data, "/data/sql".to_owned(), &Look::new(reader)?);
    let mut views = Vec::new();
    for connection in reader.connections()?.iter().filter(|known| known.state != ConnectionState::Purging) {
        views.extend(reader.streams(&connection.name)?.into_iter().filter_map(|stream| stream.view_name));
    }
    let asked = question.trim();
    let (answer, refused) = if asked.is_empty() {
        (None, None)
    } else if asked.chars().count() > QUESTION_CHARS_MAX {
        (None, Some("The question is too long.".to_owned()))
    } else {
        match ask(reader, asked) {
            Ok(answer) => (Some(answer), None),
            Err(refused) => (None, Some(refused)),
        }
    };
    Ok(QueryPage { frame, question: question.to_owned(), views, answer, refused })
}

fn ask(reader: &mut Reader, question: &str) -> Result<Answer, String> {
    let mut answer = Answer::default();
    match reader.query(question, &mut answer) {
        Ok(()) | Err(Stop::Enough) => Ok(answer),
        Err(Stop::Failed(QueryError::Interrupted)) => Err("It took too long and was stopped. Ask for less.".to_owned()),
        Err(Stop::Failed(error)) => Err(error.to_string()),
    }
}

/// Why a question ends before its last row.
enum Stop {
    Enough,
    Failed(QueryError),
}

impl From<QueryError> for Stop {
    fn from(error: QueryError) -> Self {
        Self::Failed(error)
    }
}

impl QuerySink for Answer {
    type Error = Stop;

    fn columns(&mut self, names: &[&str]) -> Result<(), Stop> {
        self.columns = names.iter().take(COLUMNS_MAX).map(|name| short(name, 80)).collect();
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Stop> {
        if self.rows.len() == ROWS_MAX {
            self.is_cut = true;
            return Err(Stop::Enough);
        }
        self.rows.push(cells.iter().take(COLUMNS_MAX).map(shown).collect());
        Ok(())
    }
}

fn shown(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => short(text, CELL_CHARS),
        Cell::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}
