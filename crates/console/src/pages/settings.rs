//! What this console is and how to look after it: address, versions, who holds what, and signing out.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::outside::{Outside, href};
use super::words::When;
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
    address: Outside,
    started: When,
    version: &'static str,
    schema: usize,
    sqlite: &'static str,
    /// Whether this is an older copy of a store that was here before.
    restored: Option<Outside>,
    leases: Vec<LeaseView>,
}

struct LeaseView {
    what: Outside,
    is_held: bool,
}

pub(crate) async fn page(State(state): Shared) -> Result<Response, PageProblem> {
    let (address, started_at) = (state.address.clone(), state.started_at);
    show(&state.reading.ask(move |reader| gather(reader, address, started_at)).await?)
}

fn gather(reader: &Reader, address: String, started_at: WallTime) -> Result<SettingsPage, Problem> {
    let look = Look::new(reader)?;
    let now = look.now;
    let (schema, sqlite) = Reader::versions();
    let leases = look.leases(reader)?.into_iter().map(|lease| match lease {
        LeaseStanding::Held(by) => {
            LeaseView { what: Outside::new(format!("{}: process {}", by.lease, by.pid)), is_held: true }
        }
        LeaseStanding::Abandoned(name) => LeaseView { what: Outside::new(name), is_held: false },
    });
    Ok(SettingsPage {
        frame: Frame::new("Settings", Part::Settings, href(&["settings"]), look.waiting.len()),
        address: Outside::new(address),
        started: When::new(started_at, now),
        version: env!("CARGO_PKG_VERSION"),
        schema,
        sqlite,
        restored: reader.check_not_restored().err().map(|error| Outside::new(error.to_string())),
        leases: leases.collect(),
    })
}
