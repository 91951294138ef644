//! The overview: is my data fresh, what is missing, does anything need me, how fast is it going and why not faster.

use super::completeness::{Shares, missing_sentence};
use super::escape::short;
use super::frame::{Frame, Part};
use super::rate::waiting_words;
use super::words::{counted, number, person_date};
use super::{address, completeness, rate, words};
use crate::problem::Problem;
use askama::Template;
use gleaner_app::{ConnectionView, Look, Outlook, is_collected};
use gleaner_engine::{Finding, Grade, WallTime};
use gleaner_store::{ConnectionState, ConnectionSummary, Missing, OpenQuestion, Reader};
use std::time::Duration;

/// Of a question, so much is shown here.
const QUESTION_CHARS: usize = 160;

#[derive(Template)]
#[template(path = "overview.html")]
pub(super) struct Overview {
    frame: Frame,
    headline: String,
    needs: Vec<Need>,
    fresh: Fresh,
    shares: Shares,
    missing: Missing,
    /// When the next run begins by itself, and of which connection.
    next: Option<(WallTime, String)>,
    running: Vec<String>,
    lines: Vec<Line>,
    /// Those that are no longer collected.
    gone: Vec<ConnectionSummary>,
}

/// Something that only the owner can do.
struct Need {
    who: String,
    what: String,
    until: Option<WallTime>,
    href: String,
    action: &'static str,
}

/// How many connections are within their policy.
#[derive(Default)]
struct Fresh {
    of: u64,
    stale: u64,
    never: u64,
}

/// One connection.
struct Line {
    view: ConnectionView,
    outlook: Outlook,
    shares: Shares,
    /// What its run waits for now.
    waiting: Option<String>,
}

pub(super) fn page(reader: &Reader, (): ()) -> Result<Overview, Problem> {
    let mut look = Look::new(reader)?;
    let mut page = Overview {
        frame: Frame::new("Overview", Part::Overview, "/".to_owned(), &look),
        headline: String::new(),
        needs: look.waiting.iter().map(Need::question).collect(),
        fresh: Fresh::default(),
        shares: Shares::default(),
        missing: Missing::default(),
        next: None,
        running: Vec::new(),
        lines: Vec::new(),
        gone: Vec::new(),
    };
    page.gone.extend(reader.connections()?.into_iter().filter(|known| !is_collected(known.state)));
    for view in look.views(reader)? {
        let name = view.name().to_owned();
        page.needs.extend(Need::of(&view));
        let outlook = view.outlook();
        if let Some(at) = outlook.at()
            && page.next.as_ref().is_none_or(|(earliest, _)| at < *earliest)
        {
            page.next = Some((at, name.clone()));
        }
        page.fresh.add(&view);
        let mut shares = Shares::default();
        look.coverage(reader, &name)?.iter().for_each(|stream| shares.add(stream));
        page.shares.merge(&shares);
        page.missing = page.missing.and(view.evidence.missing);
        page.running.extend(view.holder.is_some().then_some(name));
        page.lines.push(Line { waiting: waiting_words(&view), view, outlook, shares });
    }
    // Those that need somebody first; a manifest that cannot be read is the worst.
    page.lines.sort_by_key(|line| std::cmp::Reverse(line.grade().map_or(u8::MAX, |grade| grade as u8)));
    page.headline = page.say();
    Ok(page)
}

impl Overview {
    /// The whole page in a sentence or two.
    fn say(&self) -> String {
        let needs = match self.needs.len() as u64 {
            0 => "Nothing needs you.".to_owned(),
            1 => "One thing needs you.".to_owned(),
            needs => format!("{} things need you.", number(needs)),
        };
        let fresh = match self.fresh {
            Fresh { stale: 0, never: 0, .. } => "Your data is fresh.".to_owned(),
            Fresh { stale: 0, never, .. } => {
                format!("{} succeeded yet.", counted(never, "connection has not", "connections have not"))
            }
            Fresh { stale, .. } => {
                format!("{} older than it should be.", counted(stale, "connection is", "connections are"))
            }
        };
        format!("{needs} {fresh} {}", missing_sentence(&self.missing))
    }
}

impl Need {
    fn question(question: &OpenQuestion) -> Self {
        Self {
            who: question.connection.clone(),
            what: short(&question.message, QUESTION_CHARS),
            until: question.expires_at,
            href: format!("/inbox#question-{}", question.id),
            action: "Answer",
        }
    }

    /// Help that a connector asks for, and what only the owner can mend; an open question has a line of its own.
    fn of(view: &ConnectionView) -> impl Iterator<Item = Self> {
        let findings = view.health.iter().flat_map(|health| &health.findings);
        let owners =
            findings.filter(|finding| finding.grade() == Grade::NeedsOwner && **finding != Finding::QuestionOpen);
        let help = view.help.iter().map(|help| short(&help.message, QUESTION_CHARS));
        let what = help.chain(owners.map(|finding| view.evidence.sentence(finding, person_date)));
        what.map(|what| {
            let (who, href) = (view.name().to_owned(), address::connection(view.name()));
            Self { who, what, until: None, href, action: "Look" }
        })
    }
}

impl Fresh {
    fn add(&mut self, view: &ConnectionView) {
        let (_, is_stale) = freshness(view);
        self.of += 1;
        self.stale += u64::from(is_stale);
        self.never += u64::from(view.evidence.last_success.is_none());
    }

    const fn fresh(&self) -> u64 {
        self.of - self.stale - self.never
    }

    fn note(&self) -> String {
        match (self.stale, self.never) {
            (0, 0) => "all within their policy".to_owned(),
            (0, never) => format!("{} succeeded yet", counted(never, "has not", "have not")),
            (stale, 0) => format!("{} too old", counted(stale, "is", "are")),
            (stale, never) => format!("{} too old, {never} never succeeded", counted(stale, "is", "are")),
        }
    }
}

/// How fresh a connection is, against its policy, and whether that is too old.
fn freshness(view: &ConnectionView) -> (&'static str, bool) {
    let policy = view.manifest.as_ref().and_then(|manifest| manifest.refresh_policy.as_ref());
    let max = policy.and_then(|policy| policy.maximum_staleness_seconds).map(Duration::from_secs);
    match (view.evidence.last_success, max) {
        (None, _) => ("no run has succeeded yet", false),
        (Some(_), None) => ("its policy sets no limit", false),
        (Some(at), Some(max)) if view.now.since(at) > max => ("older than its policy allows", true),
        (Some(_), Some(_)) => ("within its policy", false),
    }
}

impl Line {
    fn grade(&self) -> Option<Grade> {
        self.view.health.as_ref().map(|health| health.grade)
    }

    /// The worst that is to be said. Gaps and age have columns of their own.
    fn finding(&self) -> Option<String> {
        let mut findings = self.view.health.iter().flat_map(|health| &health.findings);
        let worst = findings.find(|finding| !matches!(finding, Finding::GapsOpen(_) | Finding::Stale { .. }))?;
        Some(self.view.evidence.sentence(worst, person_date))
    }
}

/// The colour of a grade. The word says the same.
pub(crate) const fn tone(grade: Option<Grade>) -> &'static str {
    match grade {
        Some(Grade::Healthy) => "good",
        Some(Grade::Unknown | Grade::CatchingUp) => "calm",
        Some(Grade::Resting | Grade::Degraded) => "wait",
        Some(Grade::Failing | Grade::NeedsOwner) | None => "bad",
    }
}

/// What became of a connection that is no longer collected.
fn gone_words(connection: &ConnectionSummary) -> String {
    match connection.state {
        ConnectionState::Purging => "is being forgotten".to_owned(),
        _ => format!("is removed; {} stay", counted(connection.totals.records, "record", "records")),
    }
}
