//! The pages: what the owner looks at and clicks on, made on the server.
//!
//! One file per page: what it shows as plain values (the view), read from the store's read model, and the template that
//! writes it. A page is whole without a script: it can be read, and its forms can be sent. Nothing is changed by GET;
//! everything that changes something is a form of this origin, and goes through [`App`](gleaner_app::App). Text from
//! outside goes through [`Visible`](escape::Visible), and only templates write markup.

mod add;
mod address;
mod assets;
mod change;
mod completeness;
mod connection;
mod data;
mod doctor;
mod error_page;
pub(crate) mod escape;
mod frame;
mod gap_list;
mod gaps;
mod inbox;
mod json_text;
mod lab;
mod overview;
mod query;
mod rate;
mod rate_chart;
mod record;
mod run;
mod screenshot;
mod settings;
mod trace;
mod words;

pub(crate) use address::href;
pub(crate) use error_page::{PageProblem, show};

use crate::auth::guard::SIGN_IN_STYLE_PATH;
use crate::server::routes::Routes;

/// Every page and every form.
pub(crate) fn all() -> Routes {
    Routes::default()
        .page("/", overview::page)
        .page("/connections/{connection}", connection::page)
        .read("/connections/{connection}/rate.json", rate_chart::points)
        .page("/connections/{connection}/gaps", gap_list::page)
        .form("/connections/{connection}/gaps/{gap}/retry", change::retry_gap)
        .form("/connections/{connection}/gaps/{gap}/ignore", change::ignore_gap)
        .form("/connections/{connection}/gaps/{gap}/take-back", change::take_back_gap)
        .form("/connections/{connection}/run", change::run_now)
        .form("/connections/{connection}/pause", change::pause)
        .form("/connections/{connection}/resume", change::resume)
        .form("/connections/{connection}/schedule", change::schedule)
        .page("/runs/{run}", run::page)
        .form("/runs/{run}/cancel", change::cancel)
        .page("/gaps", gaps::page)
        .page("/inbox", inbox::page)
        .form("/inbox/{question}/answer", inbox::answer)
        .get("/inbox/{question}/picture", screenshot::of_question)
        .page("/data", data::page)
        .get("/data/sql", query::page)
        .page("/data/{connection}/{stream}", data::stream)
        .page("/data/{connection}/{stream}/record", record::page)
        .get("/add", add::page)
        .get("/add/{connector}", add::form)
        .post("/add/{connector}", add::send)
        .get("/settings", settings::page)
        .get("/settings/doctor", doctor::page)
        .get("/lab", lab::page)
        .get("/assets/{hash}/{name}", assets::file)
        .get(SIGN_IN_STYLE_PATH, assets::sign_in_style)
}
