//! Everything that is missing, of all connections, grouped by cause.

use super::frame::{Frame, Part};
use super::{address, words};
use crate::problem::Problem;
use askama::Template;
use gleaner_app::Look;
use gleaner_protocol::Wording;
use gleaner_store::{ConnectionState, GapCause, Missing, Reader};

#[derive(Template)]
#[template(path = "gaps.html")]
pub(super) struct GapsPage {
    frame: Frame,
    groups: Vec<Group>,
    left_open: Vec<LeftOpen>,
    /// Why nobody can say that nothing is missing, by connection.
    unfinished: Vec<LeftOpen>,
    total: u64,
    has_connections: bool,
}

/// A line about one connection: a checkpoint that its last run withheld, something that it skipped, or why its account is
/// not known.
type LeftOpen = (String, String);

/// Records that are missing for the same kind of reason.
struct Group {
    title: &'static str,
    says: &'static str,
    tone: &'static str,
    total: u64,
    causes: Vec<CauseView>,
}

/// One reason, with what a person is told, and where it occurs.
struct CauseView {
    code: String,
    wording: Wording,
    total: u64,
    places: Vec<Place>,
}

struct Place {
    connection: String,
    stream: String,
    count: u64,
}

/// The groups by code, with title and explanation. Only the first blames the provider.
const GROUPS: [(&str, &str, &str, &str); 7] = [
    (
        "source",
        "The provider rate-limited us",
        "It limits how fast it can be asked. Collection waits and continues automatically.",
        "wait",
    ),
    (
        "own_budget",
        "Deferred by the limits of a run",
        "Nothing failed: a run reached its limit, and the next one continues.",
        "calm",
    ),
    ("other", "Failed, will be retried", "Later runs retry them.", "calm"),
    ("given_up", "Given up", "Retrying did not help. You can ask for another try.", "bad"),
    ("quarantined", "In quarantine", "A run judges them again when the connector or its schema changes.", "bad"),
    ("unaccounted", "Listed, without an outcome", "The next run lists them again.", "bad"),
    (
        "ignored",
        "Ignored by you",
        "They are missing, and nobody retries them. The next run retries a gap that you un-ignore.",
        "calm",
    ),
];
const FAILED: usize = 2;

const QUARANTINED: Wording = Wording {
    what: "The record does not fit the schema of its stream.",
    why: "The connector sent it in another form than its manifest declares.",
    next: "Each record is listed with the place and the rule that it breaks.",
};
const UNACCOUNTED: Wording = Wording {
    what: "The connector listed the record and did not send it.",
    why: "It sent neither a record nor a gap for it, so the checkpoint of the list was withheld.",
    next: "The next run lists it again.",
};

const UNKNOWN: Wording = Wording {
    what: "The record could not be loaded.",
    why: "The connector gave a reason that this version does not know.",
    next: "Nothing to do: a later run tries it again.",
};

/// The three texts of a reason, also of one that this version does not know.
pub(super) fn words_of(wording: Option<Wording>) -> Wording {
    wording.unwrap_or(UNKNOWN)
}

pub(super) fn page(reader: &Reader, (): ()) -> Result<GapsPage, Problem> {
    let mut groups = GROUPS.map(|(_, title, says, tone)| Group { title, says, tone, total: 0, causes: Vec::new() });
    let (mut left_open, mut unfinished) = (Vec::new(), Vec::new());
    let connections = reader.connections()?;
    let has_connections = !connections.is_empty();
    let group_of = |code: &str| GROUPS.iter().position(|(known, ..)| *known == code).unwrap_or(FAILED);
    for connection in connections.iter().filter(|connection| connection.state != ConnectionState::Purging) {
        for stream in reader.coverage(&connection.name)? {
            let place = (connection.name.as_str(), stream.summary.name.as_str());
            let missing = Missing::of_stream(&stream);
            for count in &stream.gaps {
                let cause = GapCause::of_count(count);
                groups[group_of(cause.origin())].add(place, count.count, cause.code(), cause.wording());
            }
            let others =
                [("quarantined", missing.quarantined, QUARANTINED), ("unaccounted", missing.unaccounted, UNACCOUNTED)];
            for (code, count, wording) in others.into_iter().filter(|(_, count, _)| *count > 0) {
                groups[group_of(code)].add(place, count, code, Some(wording));
            }
        }
        let evidence = reader.evidence(&connection.name)?;
        let of_connection = |line: String| (connection.name.clone(), line);
        let open = reader.left_open(&connection.name)?;
        left_open.extend(open.iter().map(|open| of_connection(open.to_string())));
        let is_collected = connection.state != ConnectionState::Removed;
        unfinished.extend(evidence.unfinished().filter(|_| is_collected).map(of_connection));
    }
    let mut groups = groups.into_iter().filter(|group| group.total > 0).collect::<Vec<_>>();
    for group in &mut groups {
        group.causes.sort_by_key(|cause| std::cmp::Reverse(cause.total));
    }
    Ok(GapsPage {
        frame: Frame::new("Gaps", Part::Gaps, "/gaps".to_owned(), &Look::new(reader)?),
        total: groups.iter().map(|group| group.total).sum(),
        groups,
        left_open,
        unfinished,
        has_connections,
    })
}

impl Group {
    fn add(&mut self, (connection, stream): (&str, &str), count: u64, code: &str, wording: Option<Wording>) {
        self.total += count;
        let at = self.causes.iter().position(|known| known.code == code).unwrap_or_else(|| {
            let (code, wording) = (code.to_owned(), words_of(wording));
            self.causes.push(CauseView { code, wording, total: 0, places: Vec::new() });
            self.causes.len() - 1
        });
        let known = &mut self.causes[at];
        known.total += count;
        known.places.push(Place { connection: connection.to_owned(), stream: stream.to_owned(), count });
    }
}
