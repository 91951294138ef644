//! What this console is and how to look after it: address, versions, who holds what, and signing out.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use crate::problem::Problem;
use crate::server::app_state::Shared;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use gleaner_app::Look;
use gleaner_engine::WallTime;
use gleaner_store::{LeaseStanding, Reader};

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    frame: Frame,
    address: String,
    started_at: WallTime,
    version: &'static str,
    schema: usize,
    sqlite: &'static str,
    /// Whether this is an older copy of a store that was here before.
    restored: Option<String>,
    leases: Vec<LeaseStanding>,
}

pub(crate) async fn page(State(state): Shared) -> Result<Response, PageProblem> {
    let (address, started_at) = (state.address.clone(), state.started_at);
    show(&state.reading.ask(move |reader| gather(reader, address, started_at)).await?)
}

fn gather(reader: &Reader, address: String, started_at: WallTime) -> Result<SettingsPage, Problem> {
    let look = Look::new(reader)?;
    let (schema, sqlite) = Reader::versions();
    Ok(SettingsPage {
        frame: Frame::new("Settings", Part::Settings, "/settings".to_owned(), &look),
        address,
        started_at,
        version: env!("CARGO_PKG_VERSION"),
        schema,
        sqlite,
        restored: reader.check_not_restored().err().map(|error| error.to_string()),
        leases: look.leases(reader)?,
    })
}
