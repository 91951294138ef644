//! Adding a connection: which connectors there are, what one needs, whether it works, and saving it.
//!
//! What a page may not say is which program runs: see `AddRequest`. What was typed as a credential goes on to the connector
//! and into the vault; it is in no page, not even in the one that says that it was refused.

use super::address;
use super::change::fields;
use super::error_page::{PageProblem, show};
use super::escape::short;
use super::frame::{Frame, Part};
use crate::problem::Problem;
use crate::server::app_state::{AppState, Shared};
use crate::server::base_path::HX_REDIRECT;
use crate::server::extract::{Form, UrlPath};
use crate::server::job_queue::Job;
use crate::server::routes::see_other;
use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use gleaner_app::{AddRequest, Added, ConnectorForm, Faulty, FormField, Look, Verdict, is_collected};
use http::{HeaderMap, StatusCode};
use std::collections::BTreeMap;

/// Fields of a form that are read. A connector has a dozen.
const FIELDS_MAX: usize = 256;
/// In front of a setting's name, and of a credential's.
const SET: &str = "set.";
const SECRET: &str = "secret.";
/// Longer texts of a manifest are cut.
const TEXT_CHARS_MAX: usize = 300;

#[derive(Template)]
#[template(path = "add.html")]
struct AddPage {
    frame: Frame,
    offers: Vec<ConnectorForm>,
    left_out: Vec<String>,
    /// The connectors of the connections that there are.
    used: Vec<String>,
}

#[derive(Template)]
#[template(path = "add_form.html")]
struct FormPage {
    frame: Frame,
    action: String,
    offer: ConnectorForm,
    name: String,
    /// Settings as they were typed before. Of a credential nothing.
    typed: BTreeMap<String, String>,
    said: Option<Said>,
}

/// What came of a check.
struct Said {
    tone: &'static str,
    text: String,
    advice: String,
    /// Whether it may be added all the same.
    anyway: bool,
}

pub(crate) async fn page(State(state): Shared) -> Result<Response, PageProblem> {
    let (offers, faulty) = state.act(|app| Ok((app.connector_forms(), app.catalog().faulty))).await?;
    let (look, connections) = state.reading.ask(|reader| Ok((Look::new(reader)?, reader.connections()?))).await?;
    let used = connections.into_iter().filter(|known| is_collected(known.state));
    let used = used.map(|known| known.connector_id).collect();
    let left_out = |one: &Faulty| short(&format!("{}: {}", one.file.display(), one.cause()), 500);
    let frame = Frame::new("Add a connection", Part::Overview, "/add".to_owned(), &look);
    show(&AddPage { frame, offers, left_out: faulty.iter().map(left_out).collect(), used })
}

impl AddPage {
    /// How many connections a connector has.
    fn connections(&self, offer: &ConnectorForm) -> usize {
        self.used.iter().filter(|id| **id == offer.connector_id).count()
    }
}

pub(crate) async fn form(State(state): Shared, UrlPath(connector): UrlPath<String>) -> Result<Response, PageProblem> {
    let wish = AddRequest { connector, ..AddRequest::default() };
    show(&form_page(&state, wish, None).await?)
}

/// The form with what was filled in, but for credentials.
async fn form_page(state: &AppState, wish: AddRequest, said: Option<Said>) -> Result<FormPage, Problem> {
    let offers = state.act(|app| Ok(app.connector_forms())).await?;
    let offer = offers.into_iter().find(|offer| offer.connector == wish.connector).ok_or_else(|| {
        Problem::not_found(format!("there is no connector {:?}", wish.connector), "the page before this one lists them")
    })?;
    let (look, connections) = state.reading.ask(|reader| Ok((Look::new(reader)?, reader.connections()?))).await?;
    let names = connections.into_iter().map(|known| known.name).collect::<Vec<_>>();
    let action = address::add(&offer.connector);
    let name = if wish.name.is_empty() { free_name(&offer.connector, &names) } else { wish.name };
    let frame = Frame::new(format!("Add {}", offer.display_name), Part::Overview, action.clone(), &look);
    Ok(FormPage { frame, action, offer, name, typed: wish.settings, said })
}

impl FormPage {
    /// The settings with words of their author's, or the others.
    fn settings(&self, are_described: bool) -> Vec<&FormField> {
        self.offer.settings.iter().filter(|field| field.label.is_some() == are_described).collect()
    }

    fn typed(&self, field: &FormField) -> &str {
        self.typed.get(&field.name).map_or("", String::as_str)
    }
}

fn label(field: &FormField) -> String {
    text(field.label.as_deref().unwrap_or(&field.name))
}

fn description(field: &FormField) -> String {
    text(field.description.as_deref().unwrap_or_default())
}

/// A text of a manifest.
fn text(text: &str) -> String {
    short(text, TEXT_CHARS_MAX)
}

/// The connector's name, or that with a number.
fn free_name(connector: &str, names: &[String]) -> String {
    let is_free = |name: &String| !names.contains(name);
    let numbered = (2..=names.len() + 2).map(|number| format!("{connector}-{number}"));
    std::iter::once(connector.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// What a form wants: to try, to try and add, or to add without a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Check,
    Add,
    AddAnyway,
}

enum Came {
    Tried(Verdict),
    NotAdded(Verdict),
    Added(String),
}

pub(crate) async fn send(
    State(state): Shared,
    UrlPath(connector): UrlPath<String>,
    head: HeaderMap,
    Form(form): Form,
) -> Result<Response, PageProblem> {
    let (wish, act) = read(connector, &form);
    let tried = wish.clone();
    let came = state
        .do_job(Job::Try, move |app| match act {
            Act::Check => app.try_request(&tried).map(Came::Tried),
            Act::Add | Act::AddAnyway => app.add_requested(&tried, act == Act::AddAnyway).map(|added| match added {
                Added::Yes(name) => Came::Added(name),
                Added::No(verdict) => Came::NotAdded(verdict),
            }),
        })
        .await;
    let said = match came {
        Ok(Came::Added(name)) => {
            return Ok(lead_to(address::href_with(&["connections", &name], &[("done", "added")]), &head));
        }
        Ok(Came::Tried(verdict)) => said(&verdict, ""),
        Ok(Came::NotAdded(verdict)) => said(&verdict, "It was not added. "),
        // Whatever it is, what was filled in is still there.
        Err(problem) => Said { tone: "bad", text: problem.message, advice: problem.hint, anyway: false },
    };
    show(&form_page(&state, wish, Some(said)).await?)
}

fn said(verdict: &Verdict, before: &str) -> Said {
    Said {
        tone: if *verdict == Verdict::Works { "good" } else { "bad" },
        text: short(&format!("{before}{}", verdict.sentence()), 2000),
        advice: verdict.advice().to_owned(),
        anyway: *verdict != Verdict::Works,
    }
}

/// A form that the script has sent is led on by the script.
fn lead_to(address: String, head: &HeaderMap) -> Response {
    if head.contains_key("hx-request") {
        return (StatusCode::NO_CONTENT, [(HX_REDIRECT, address)]).into_response();
    }
    see_other(address)
}

fn read(connector: String, form: &[u8]) -> (AddRequest, Act) {
    let mut wish = AddRequest { connector, ..AddRequest::default() };
    let mut act = Act::Add;
    for (name, value) in fields(form).into_iter().take(FIELDS_MAX) {
        if let Some(setting) = name.strip_prefix(SET) {
            wish.settings.insert(setting.to_owned(), value.trim().to_owned());
        } else if let Some(secret) = name.strip_prefix(SECRET) {
            // Copied secrets bring a line's end along; none of ours begins or ends with a blank.
            wish.credentials.insert(secret.to_owned(), value.trim().to_owned());
        } else if name == "name" {
            value.trim().clone_into(&mut wish.name);
        } else if name == "act" {
            act = match value.as_str() {
                "check" => Act::Check,
                "anyway" => Act::AddAnyway,
                _ => Act::Add,
            };
        }
    }
    (wish, act)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_what_to_set_what_is_secret_and_what_to_do() {
        let (wish, act) = read(
            "shop".to_owned(),
            b"name=+my+shop+&set.SHOP_URL=http%3A%2F%2Fx&secret.SHOP_TOKEN=s%0A&act=check&other=1",
        );
        assert_eq!((wish.connector.as_str(), wish.name.as_str(), act), ("shop", "my shop", Act::Check));
        assert_eq!(wish.settings.into_iter().collect::<Vec<_>>(), [("SHOP_URL".to_owned(), "http://x".to_owned())]);
        assert_eq!(wish.credentials.into_iter().collect::<Vec<_>>(), [("SHOP_TOKEN".to_owned(), "s".to_owned())]);
        assert_eq!(read("shop".to_owned(), b"act=anyway").1, Act::AddAnyway);
        assert_eq!(read("shop".to_owned(), b"").1, Act::Add, "Enter in a field tries before it adds");
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let names = ["shop", "shop-2", "other"].map(str::to_owned);
        assert_eq!(free_name("shop", &names), "shop-3");
        assert_eq!(free_name("mail", &names), "mail");
    }
}
