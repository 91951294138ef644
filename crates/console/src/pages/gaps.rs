//! Everything that is known of and not here, by whose doing it is: the service's, the owner's own budget, and the rest.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::outside::{Outside, href, href_with};
use super::words::number;
use crate::inside::Inside;
use crate::problem::Problem;
use crate::standing;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use gleaner_protocol::Wording;
use gleaner_store::{ConnectionState, GapCause, GapCount, Reader};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "gaps.html")]
struct GapsPage {
    frame: Frame,
    groups: Vec<Group>,
    total: u64,
    has_connections: bool,
}

/// Whose doing it is.
struct Group {
    title: &'static str,
    says: &'static str,
    tone: &'static str,
    total: u64,
    causes: Vec<CauseView>,
}

/// One reason, with what a person is told, and where it occurs.
struct CauseView {
    code: Outside,
    words: WordsView,
    total: u64,
    places: Vec<Place>,
}

/// The three texts of a reason.
pub(crate) struct WordsView {
    pub(crate) what: &'static str,
    pub(crate) why: &'static str,
    pub(crate) next: &'static str,
}

struct Place {
    connection: Outside,
    stream: Outside,
    href: String,
    count: String,
}

/// The groups, and their titles. Only the first blames the service.
const ORIGINS: [(&str, &str, &str, &str); 5] = [
    (
        "source",
        "The service pushed back",
        "It limits how fast it can be asked. Collection waits and goes on by itself.",
        "wait",
    ),
    (
        "own_budget",
        "Put off by your own budget",
        "Nothing failed: a run stopped where you told it to, and the next one goes on.",
        "calm",
    ),
    ("other", "Could not be had so far", "Later runs try again.", "calm"),
    ("given_up", "Given up", "Trying again did not help. You can ask for another try.", "bad"),
    (
        "ignored",
        "Ignored by you",
        "They are missing, nobody tries them, and nothing waits for you. What you take back is tried by the next run.",
        "calm",
    ),
];

impl WordsView {
    pub(crate) const fn of(wording: Option<Wording>) -> Self {
        match wording {
            Some(Wording { what, why, next, .. }) => Self { what, why, next },
            None => Self {
                what: "The record could not be loaded.",
                why: "The connector gave a reason that this version does not know.",
                next: "Nothing to do: a later run tries it again.",
            },
        }
    }
}

pub(crate) async fn page(State(inside): State<Arc<Inside>>) -> Result<Response, PageProblem> {
    show(&inside.reading.ask(|reader| gather(reader)).await?)
}

fn gather(reader: &Reader) -> Result<GapsPage, Problem> {
    let waiting = standing::waiting(reader)?;
    let mut groups = ORIGINS.map(|(_, title, says, tone)| Group { title, says, tone, total: 0, causes: Vec::new() });
    let connections = reader.connections()?;
    let has_connections = !connections.is_empty();
    for connection in connections.iter().filter(|connection| connection.state != ConnectionState::Purging) {
        for count in reader.gap_counts(&connection.name)? {
            let origin = GapCause::of_count(&count).origin();
            let at = ORIGINS.iter().position(|(code, ..)| *code == origin).unwrap_or(2);
            groups[at].add(&connection.name, &count);
        }
    }
    let mut groups = groups.into_iter().filter(|group| group.total > 0).collect::<Vec<_>>();
    for group in &mut groups {
        group.causes.sort_by_key(|cause| std::cmp::Reverse(cause.total));
    }
    Ok(GapsPage {
        frame: Frame::new("Gaps", Part::Gaps, href(&["gaps"]), waiting.len()),
        total: groups.iter().map(|group| group.total).sum(),
        groups,
        has_connections,
    })
}

impl Group {
    fn add(&mut self, connection: &str, count: &GapCount) {
        let cause = GapCause::of_count(count);
        let code = Outside::new(cause.code());
        self.total += count.count;
        let at = self.causes.iter().position(|known| known.code == code).unwrap_or_else(|| {
            let words = WordsView::of(cause.wording());
            self.causes.push(CauseView { code, words, total: 0, places: Vec::new() });
            self.causes.len() - 1
        });
        let known = &mut self.causes[at];
        known.total += count.count;
        known.places.push(Place {
            connection: Outside::new(connection),
            stream: Outside::new(&count.stream),
            href: href_with(&["connections", connection, "gaps"], &[("stream", &count.stream)]),
            count: number(count.count),
        });
    }
}
