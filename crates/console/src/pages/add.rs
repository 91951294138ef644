//! Adding a connection: which connectors there are, what one needs, whether it works, and saving it.
//!
//! What a page may not say is which program runs: see `Wish`. What was typed as a credential goes on to the connector
//! and into the vault; it is in no page, not even in the one that says that it was refused.

use super::change::{fields, see};
use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::outside::{Outside, href, href_with};
use crate::problem::Problem;
use crate::server::app_state::{AppState, Shared};
use crate::server::base_path::HX_REDIRECT;
use crate::server::extract::{Form, UrlPath};
use crate::server::job_queue::Job;
use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use gleaner_app::Look;
use gleaner_app::{Added, Faulty, Offer, OfferedField, Verdict, Wish};
use gleaner_store::ConnectionState;
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
    offers: Vec<OfferView>,
    left_out: Vec<Outside>,
}

struct OfferView {
    name: Outside,
    version: Outside,
    streams: Outside,
    needs: Outside,
    href: String,
    is_ours: bool,
    connections: usize,
}

#[derive(Template)]
#[template(path = "add_form.html")]
struct FormPage {
    frame: Frame,
    action: String,
    title: Outside,
    needs: Outside,
    streams: Outside,
    name: Outside,
    /// Those with words of their author's, and the others.
    settings: Vec<FieldView>,
    more: Vec<FieldView>,
    credentials: Vec<FieldView>,
    said: Option<Said>,
}

struct FieldView {
    name: Outside,
    label: Outside,
    description: Outside,
    /// What was typed before. Of a credential nothing.
    value: Outside,
}

/// What came of a check.
struct Said {
    tone: &'static str,
    text: Outside,
    advice: Outside,
    /// Whether it may be added all the same.
    anyway: bool,
}

pub(crate) async fn page(State(state): Shared) -> Result<Response, PageProblem> {
    let (offers, faulty) = state.act(|app| Ok((app.offers(), app.catalog().faulty))).await?;
    let (waiting, used) = state
        .reading
        .ask(|reader| {
            let is_used = |state| matches!(state, ConnectionState::Active | ConnectionState::Paused);
            let used = reader.connections()?.into_iter().filter(|known| is_used(known.state));
            let used = used.map(|known| known.connector_id).collect::<Vec<_>>();
            Ok((Look::new(reader)?.waiting.len(), used))
        })
        .await?;
    let frame = Frame::new("Add a connection", Part::Overview, href(&["add"]), waiting);
    let left_out = |one: &Faulty| Outside::short(&format!("{}: {}", one.file.display(), one.cause()), 500);
    let left_out = faulty.iter().map(left_out);
    let view = |offer: Offer| OfferView {
        href: href(&["add", &offer.connector]),
        name: Outside::new(&offer.display_name),
        version: Outside::new(&offer.version),
        streams: Outside::short(&offer.streams.join(", "), TEXT_CHARS_MAX),
        needs: Outside::short(&offer.needs, TEXT_CHARS_MAX),
        is_ours: offer.is_ours,
        connections: used.iter().filter(|id| **id == offer.connector_id).count(),
    };
    show(&AddPage { frame, offers: offers.into_iter().map(view).collect(), left_out: left_out.collect() })
}

pub(crate) async fn form(State(state): Shared, UrlPath(connector): UrlPath<String>) -> Result<Response, PageProblem> {
    let wish = Wish { connector, ..Wish::default() };
    show(&form_page(&state, wish, None).await?)
}

/// The form with what was filled in, but for credentials.
async fn form_page(state: &AppState, wish: Wish, said: Option<Said>) -> Result<FormPage, Problem> {
    let offers = state.act(|app| Ok(app.offers())).await?;
    let offer = offers.into_iter().find(|offer| offer.connector == wish.connector).ok_or_else(|| {
        Problem::not_found(format!("there is no connector {:?}", wish.connector), "the page before this one lists them")
    })?;
    let (waiting, names) = state
        .reading
        .ask(|reader| {
            let names = reader.connections()?.into_iter().map(|known| known.name).collect::<Vec<_>>();
            Ok((Look::new(reader)?.waiting.len(), names))
        })
        .await?;
    let action = href(&["add", &offer.connector]);
    let (settings, more) = offer.settings.into_iter().partition::<Vec<_>, _>(|field| field.label.is_some());
    let name = if wish.name.is_empty() { free_name(&offer.connector, &names) } else { wish.name };
    let filled = |field: OfferedField| field_view(field, &wish.settings);
    let empty = |field: OfferedField| field_view(field, &BTreeMap::new());
    Ok(FormPage {
        frame: Frame::new(format!("Add {}", offer.display_name), Part::Overview, action.clone(), waiting),
        action,
        title: Outside::new(&offer.display_name),
        needs: Outside::short(&offer.needs, TEXT_CHARS_MAX),
        streams: Outside::short(&offer.streams.join(", "), TEXT_CHARS_MAX),
        name: Outside::new(name),
        settings: settings.into_iter().map(filled).collect(),
        more: more.into_iter().map(filled).collect(),
        credentials: offer.credentials.into_iter().map(empty).collect(),
        said,
    })
}

fn field_view(field: OfferedField, values: &BTreeMap<String, String>) -> FieldView {
    let value = values.get(&field.name).cloned().unwrap_or_default();
    FieldView {
        label: Outside::short(field.label.as_deref().unwrap_or(&field.name), TEXT_CHARS_MAX),
        description: Outside::short(field.description.as_deref().unwrap_or_default(), TEXT_CHARS_MAX),
        name: Outside::new(field.name),
        value: Outside::new(value),
    }
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
            Act::Check => app.try_wish(&tried).map(Came::Tried),
            Act::Add | Act::AddAnyway => app.add_wish(&tried, act == Act::AddAnyway).map(|added| match added {
                Added::Yes(name) => Came::Added(name),
                Added::No(verdict) => Came::NotAdded(verdict),
            }),
        })
        .await;
    let said = match came {
        Ok(Came::Added(name)) => {
            return Ok(lead_to(href_with(&["connections", &name], &[("done", "added")]), &head));
        }
        Ok(Came::Tried(verdict)) => said(&verdict, ""),
        Ok(Came::NotAdded(verdict)) => said(&verdict, "It was not added. "),
        // Whatever it is, what was filled in is still there.
        Err(problem) => {
            Said { tone: "bad", text: Outside::new(problem.message), advice: Outside::new(problem.hint), anyway: false }
        }
    };
    show(&form_page(&state, wish, Some(said)).await?)
}

fn said(verdict: &Verdict, before: &str) -> Said {
    Said {
        tone: if *verdict == Verdict::Works { "good" } else { "bad" },
        text: Outside::short(&format!("{before}{}", verdict.sentence()), 2000),
        advice: Outside::new(verdict.advice()),
        anyway: *verdict != Verdict::Works,
    }
}

/// A form that the script has sent is led on by the script.
fn lead_to(address: String, head: &HeaderMap) -> Response {
    if head.contains_key("hx-request") {
        return (StatusCode::NO_CONTENT, [(HX_REDIRECT, address)]).into_response();
    }
    see(address)
}

fn read(connector: String, form: &[u8]) -> (Wish, Act) {
    let mut wish = Wish { connector, ..Wish::default() };
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
