//! The pages: what the owner looks at and clicks on, made on the server.
//!
//! One file per page: what it shows as plain values (the view), read from the store's read model, and the template that
//! writes it. A page is whole without a script: it can be read, and its forms can be sent. Nothing is changed by GET;
//! everything that changes something is a form of this origin, and goes through [`Actions`](gleaner_app::Actions). Text from
//! outside is [`Outside`](outside::Outside), and only templates write markup.

mod add;
mod assets;
mod change;
mod connection;
mod data;
mod doctor;
mod error_page;
mod frame;
mod gap_list;
mod gaps;
mod inbox;
mod json_text;
mod lab;
mod outside;
mod overview;
mod picture;
mod query;
mod rate;
mod rate_chart;
mod record;
mod run;
mod settings;
mod share;
mod trace;
mod ways;
mod words;

pub(crate) use assets::sign_in_style;
pub(crate) use outside::href;
pub(crate) use ways::Pages;

use crate::auth::guard::SIGN_IN_STYLE_PATH;
use ways::{get, post};

/// Every page and every form.
pub(crate) fn all() -> Pages {
    Pages::default()
        .route("/", get(overview::page))
        .route("/connections/{connection}", get(connection::page))
        .route("/connections/{connection}/rate.json", get(rate_chart::points))
        .route("/connections/{connection}/gaps", get(gap_list::page))
        .route("/connections/{connection}/gaps/{gap}/retry", post(change::retry_gap))
        .route("/connections/{connection}/gaps/{gap}/ignore", post(change::ignore_gap))
        .route("/connections/{connection}/gaps/{gap}/take-back", post(change::take_back_gap))
        .route("/connections/{connection}/run", post(change::run_now))
        .route("/connections/{connection}/pause", post(change::pause))
        .route("/connections/{connection}/resume", post(change::resume))
        .route("/connections/{connection}/schedule", post(change::schedule))
        .route("/runs/{run}", get(run::page))
        .route("/runs/{run}/cancel", post(change::cancel))
        .route("/gaps", get(gaps::page))
        .route("/inbox", get(inbox::page))
        .route("/inbox/{question}/answer", post(inbox::answer))
        .route("/inbox/{question}/picture", get(picture::of_question))
        .route("/data", get(data::page))
        .route("/data/sql", get(query::page))
        .route("/data/{connection}/{stream}", get(data::stream))
        .route("/data/{connection}/{stream}/record", get(record::page))
        .route("/add", get(add::page))
        .route("/add/{connector}", get(add::form))
        .route("/add/{connector}", post(add::send))
        .route("/settings", get(settings::page))
        .route("/settings/doctor", get(doctor::page))
        .route("/lab", get(lab::page))
        .route("/assets/{hash}/{name}", get(assets::file))
        .route(SIGN_IN_STYLE_PATH, get(sign_in_style))
}
