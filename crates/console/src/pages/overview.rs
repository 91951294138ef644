//! The overview: is my data fresh, what is missing, does anything need me, how fast is it going and why not faster.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::outside::{Outside, href};
use super::rate::{waiting_words, why_not_faster};
use super::share::{Shares, missing_sentence, missing_words};
use super::words::{Due, Until, When, counted, number, pace, person_date};
use crate::problem::Problem;
use crate::server::app_state::Shared;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use gleaner_app::{ConnectionView, Look, Outlook};
use gleaner_engine::{Finding, Grade, WallTime};
use gleaner_store::{ConnectionState, Missing, OpenQuestion, Reader};
use std::time::Duration;

/// Of a question, so much is shown here.
const QUESTION_CHARS: usize = 160;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    headline: String,
    needs: Vec<Need>,
    fresh: Fresh,
    shares: Shares,
    missing: Missing,
    next: Option<Next>,
    running: Vec<Outside>,
    lines: Vec<Line>,
    gone: Vec<Gone>,
}

/// Something that only the owner can do.
struct Need {
    who: Outside,
    what: Outside,
    until: Option<Until>,
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

struct Next {
    when: Due,
    who: Outside,
    href: String,
}

/// One connection.
struct Line {
    name: Outside,
    href: String,
    run_href: String,
    gaps_href: String,
    grade: &'static str,
    tone: &'static str,
    is_running: bool,
    is_paused: bool,
    /// The worst that is to be said.
    finding: Option<Outside>,
    success: Option<When>,
    freshness: &'static str,
    is_stale: bool,
    records: String,
    percent: Option<String>,
    missing: u64,
    missing_words: String,
    pace: Option<String>,
    why: Option<String>,
    /// What its run waits for now.
    waiting: Option<String>,
    next: Option<Due>,
    next_words: Outside,
}

/// One that is no longer collected.
struct Gone {
    name: Outside,
    href: String,
    what: String,
}

pub(crate) async fn page(State(state): Shared) -> Result<Response, PageProblem> {
    show(&state.reading.ask(|reader| gather(reader)).await?)
}

fn gather(reader: &Reader) -> Result<Overview, Problem> {
    let mut look = Look::new(reader)?;
    let (now, waiting) = (look.now, &look.waiting);
    let mut page = Overview {
        frame: Frame::new("Overview", Part::Overview, "/".to_owned(), waiting.len()),
        headline: String::new(),
        needs: waiting.iter().map(|question| Need::question(question, now)).collect(),
        fresh: Fresh::default(),
        shares: Shares::default(),
        missing: Missing::default(),
        next: None,
        running: Vec::new(),
        lines: Vec::new(),
        gone: Vec::new(),
    };
    let mut graded = Vec::new();
    let mut next = None::<(WallTime, String)>;
    for connection in reader.connections()? {
        match connection.state {
            ConnectionState::Active | ConnectionState::Paused => {}
            ConnectionState::Removed | ConnectionState::Purging => {
                page.gone.push(Gone::of(&connection.name, connection.state, connection.totals.records));
                continue;
            }
        }
        let name = connection.name;
        let view = ConnectionView::load(reader, &mut look, &name)?;
        for help in &view.help {
            let (who, what) = (Outside::new(&name), Outside::short(&help.message, QUESTION_CHARS));
            page.needs.push(Need { who, what, until: None, href: href(&["connections", &name]), action: "Look" });
        }
        page.needs.extend(Need::findings(&view));
        let outlook = view.outlook();
        if let Some(at) = outlook.at()
            && next.as_ref().is_none_or(|(earliest, _)| at < *earliest)
        {
            next = Some((at, name.clone()));
        }
        page.running.extend(view.holder.is_some().then(|| Outside::new(&name)));
        page.fresh.add(&view, now);
        let shares = shares(reader, &mut look, &name)?;
        page.shares.merge(&shares);
        page.missing = page.missing.and(view.evidence.missing);
        let grade = view.health.as_ref().map(|health| health.grade);
        graded.push((grade, Line::of(&view, &shares, &outlook, now)));
    }
    // Those that need somebody first; a manifest that cannot be read is the worst.
    graded.sort_by_key(|(grade, _)| std::cmp::Reverse(grade.map_or(u8::MAX, |grade| grade as u8)));
    page.lines = graded.into_iter().map(|(_, line)| line).collect();
    page.next = next.map(|(at, name)| Next {
        when: Due::new(at, now),
        href: href(&["connections", &name]),
        who: Outside::new(name),
    });
    page.headline = page.say();
    Ok(page)
}

fn shares(reader: &Reader, look: &mut Look, name: &str) -> Result<Shares, Problem> {
    let mut shares = Shares::default();
    look.coverage(reader, name)?.iter().for_each(|stream| shares.add(stream));
    Ok(shares)
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
    fn question(question: &OpenQuestion, now: WallTime) -> Self {
        Self {
            who: Outside::new(&question.connection),
            what: Outside::short(&question.message, QUESTION_CHARS),
            until: question.expires_at.map(|at| Until::new(at, now)),
            href: format!("/inbox#question-{}", question.id),
            action: "Answer",
        }
    }

    /// What only the owner can mend; an open question has a line of its own.
    fn findings(view: &ConnectionView) -> Vec<Self> {
        let name = &view.evidence.summary.name;
        let findings = view.health.iter().flat_map(|health| &health.findings);
        let owners =
            findings.filter(|finding| finding.grade() == Grade::NeedsOwner && **finding != Finding::QuestionOpen);
        let need = |finding: &Finding| Self {
            who: Outside::new(name),
            what: Outside::new(view.evidence.sentence(finding, person_date)),
            until: None,
            href: href(&["connections", name]),
            action: "Look",
        };
        owners.map(need).collect()
    }
}

impl Fresh {
    fn add(&mut self, view: &ConnectionView, now: WallTime) {
        let (_, is_stale) = freshness(view, now);
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
fn freshness(view: &ConnectionView, now: WallTime) -> (&'static str, bool) {
    let policy = view.manifest.as_ref().and_then(|manifest| manifest.refresh_policy.as_ref());
    let max = policy.and_then(|policy| policy.maximum_staleness_seconds).map(Duration::from_secs);
    match (view.evidence.last_success, max) {
        (None, _) => ("no run has succeeded yet", false),
        (Some(_), None) => ("its policy sets no limit", false),
        (Some(at), Some(max)) if now.since(at) > max => ("older than its policy allows", true),
        (Some(_), Some(_)) => ("within its policy", false),
    }
}

impl Line {
    fn of(view: &ConnectionView, shares: &Shares, next: &Outlook, now: WallTime) -> Self {
        let evidence = &view.evidence;
        let name = &evidence.summary.name;
        let (freshness, is_stale) = freshness(view, now);
        let grade = view.health.as_ref().map(|health| health.grade);
        let findings = view.health.iter().flat_map(|health| &health.findings);
        // Gaps and age have columns of their own.
        let mut worth_saying =
            findings.filter(|finding| !matches!(finding, Finding::GapsOpen(_) | Finding::Stale { .. }));
        let is_running = view.holder.is_some();
        let rate = evidence.rate.as_ref();
        let waiting = waiting_words(view);
        Self {
            href: href(&["connections", name]),
            run_href: href(&["connections", name, "run"]),
            gaps_href: href(&["connections", name, "gaps"]),
            grade: grade.map_or("manifest is not valid", Grade::words),
            tone: tone(grade),
            is_running,
            is_paused: evidence.summary.state == ConnectionState::Paused,
            finding: worth_saying.next().map(|finding| Outside::new(evidence.sentence(finding, person_date))),
            success: evidence.last_success.map(|at| When::new(at, now)),
            freshness,
            is_stale,
            records: number(evidence.summary.totals.records),
            percent: shares.percent(),
            missing: evidence.missing.total(),
            missing_words: missing_words(&evidence.missing),
            // While it waits it asks for nothing, whatever its pace is.
            pace: waiting.is_none().then(|| rate.map(pace)).flatten(),
            why: rate.filter(|_| is_running).map(|rate| why_not_faster(rate, evidence.circuit.as_ref())),
            waiting,
            next: next.at().map(|at| Due::new(at, now)),
            next_words: Outside::new(next.why()),
            name: Outside::new(name),
        }
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

impl Gone {
    fn of(name: &str, state: ConnectionState, records: u64) -> Self {
        let what = match state {
            ConnectionState::Purging => "is being forgotten".to_owned(),
            _ => format!("is removed; {} stay", counted(records, "record", "records")),
        };
        Self { name: Outside::new(name), href: href(&["connections", name]), what }
    }
}
