//! The scheduler: takes URLs from discovery, asks the registry for permits, and starts a task for each request.
//!
//! One task makes all decisions, so there is no lock: a site that may not be asked now sleeps in the [`Frontier`],
//! and its slot goes to the next. The owner limits the number of tasks; URLs, lines and answers pass through bounded
//! channels.

mod maintenance;
mod rules;

use crate::FetchError;
use crate::discovery::Discovered;
use crate::exchange::{End, Ended, Heard, Shared, Turn, exchange, refused};
use crate::frontier::{Frontier, KeyId, Lane, SiteId};
use crate::job::Job;
use crate::journal::LINE_BYTES_MAX;
use crate::progress::{PipelineEvent, Progress};
use crate::result_line::ResultLine;
use crate::settings::Settings;
use crate::stop::Stop;
use crate::url_list::{LineFile, ListLine, Target, URL_BYTES_MAX};
use crate::wire::Wire;
use gleaner_http::governor::keyed::Domain;
use gleaner_http::governor::{Time, Verdict};
use gleaner_http::{DomainHandle, NotYet};
use maintenance::TICK;
use rules::Rules;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::task::JoinSet;

/// A piece of work of a site.
#[derive(Debug)]
enum Work {
    /// A URL by its position in the list, and the position of its last result.
    Fresh {
        at: u64,
        previous: Option<u64>,
    },
    Again(Box<Job>),
}

/// An origin, with one robots.txt.
#[derive(Debug)]
struct Site {
    origin: Box<str>,
    domain: Domain,
    key: KeyId,
    /// Kept while there is work.
    handle: Option<DomainHandle>,
    rules: Rules,
    /// Crawl-delay: nothing is sent before this time.
    not_before: Time,
}

/// Parts of the scheduler.
pub(crate) struct Parts<W> {
    pub(crate) shared: Arc<Shared<W>>,
    pub(crate) heard: Receiver<Heard>,
    pub(crate) found: Receiver<Discovered>,
    pub(crate) told: Sender<PipelineEvent>,
    pub(crate) list: LineFile,
    pub(crate) previous: Option<LineFile>,
    pub(crate) stop: Stop,
}

pub(crate) struct Pipeline<W> {
    settings: Settings,
    parts: Parts<W>,
    frontier: Frontier<Work>,
    sites: Vec<Site>,
    by_origin: HashMap<Box<str>, SiteId>,
    keys: HashMap<Box<str>, KeyId>,
    tasks: JoinSet<Ended>,
    all_found: bool,
    rules_bytes: usize,
    progress: Progress,
    /// Time of the next progress event.
    next_tick: Time,
}

impl<W: Wire> Pipeline<W> {
    pub(crate) fn new(settings: Settings, parts: Parts<W>, progress: Progress) -> Self {
        let now = parts.shared.domains.clock().now();
        Self {
            frontier: Frontier::new(settings.concurrency),
            settings,
            parts,
            sites: Vec::new(),
            by_origin: HashMap::new(),
            keys: HashMap::new(),
            tasks: JoinSet::new(),
            all_found: false,
            rules_bytes: 0,
            progress,
            next_tick: now + TICK,
        }
    }

    /// Runs until everything is fetched, or until stopped. No task is left running.
    pub(crate) async fn run(mut self) -> Result<(), FetchError> {
        let upkeep = tokio::spawn(self.parts.shared.domains.upkeep());
        let result = self.go_on().await;
        self.tasks.shutdown().await;
        upkeep.abort();
        let saved = self.save_hosts().await;
        result?;
        saved
    }

    async fn go_on(&mut self) -> Result<(), FetchError> {
        let clock = *self.parts.shared.domains.clock();
        loop {
            self.start().await?;
            if self.parts.stop.is_set() || self.is_done() {
                return Ok(());
            }
            let has_room = self.tasks.len() < self.settings.concurrency;
            let wake = self.frontier.next_wake().filter(|_| has_room).unwrap_or(self.next_tick).min(self.next_tick);
            tokio::select! {
                biased;
                () = self.parts.stop.wait() => return Ok(()),
                Some(heard) = self.parts.heard.recv() => self.hear(heard),
                Some(ended) = self.tasks.join_next() => {
                    let ended = ended.map_err(|error| FetchError::Bug(error.to_string()))?;
                    self.end(ended).await?;
                }
                found = self.parts.found.recv(), if !self.all_found => self.find(found).await?,
                () = clock.pause_until(wake) => {}
            }
            self.tell_progress();
        }
    }

    fn is_done(&self) -> bool {
        self.all_found && self.frontier.len() == 0 && self.tasks.is_empty()
    }

    fn now(&self) -> Time {
        self.parts.shared.domains.clock().now()
    }

    /// Starts all work that may start.
    async fn start(&mut self) -> Result<(), FetchError> {
        while self.tasks.len() < self.settings.concurrency && !self.parts.stop.is_set() {
            let now = self.now();
            let Some(site) = self.frontier.next(now) else { break };
            self.ask(site, now).await?;
        }
        Ok(())
    }

    /// Takes an item from discovery.
    async fn find(&mut self, found: Option<Discovered>) -> Result<(), FetchError> {
        let Some(found) = found else {
            self.all_found = true;
            return Ok(());
        };
        match found {
            Discovered::Broken(error) => return Err(FetchError::List(error)),
            Discovered::NoUrl(line) => {
                self.progress.found += 1;
                self.tell(*line).await;
            }
            Discovered::Url(url) => {
                self.progress.found += 1;
                let now = self.now();
                match self.site(&url.origin, &url.domain) {
                    Some(site) => {
                        let work = Work::Fresh { at: url.at, previous: url.previous };
                        self.frontier.push(site, work, Lane::Back, now);
                    }
                    None => {
                        let line = self.listed_at(url.at).map_err(FetchError::List)?;
                        self.tell(ResultLine::refused(&line, NO_ROOM.to_owned())).await;
                    }
                }
            }
        }
        Ok(())
    }

    /// The number of a site. `None` when the host limit is reached.
    fn site(&mut self, origin: &str, domain: &Domain) -> Option<SiteId> {
        if let Some(&site) = self.by_origin.get(origin) {
            return Some(site);
        }
        let handle = self.parts.shared.domains.handle_of(domain).ok()?;
        let next = self.keys.len() as KeyId;
        let key = *self.keys.entry(handle.domain().into()).or_insert(next);
        let site = self.frontier.add_site(key);
        self.sites.push(Site {
            origin: origin.into(),
            domain: domain.clone(),
            key,
            handle: Some(handle),
            rules: Rules::Unknown,
            not_before: Time::ZERO,
        });
        self.by_origin.insert(origin.into(), site);
        Some(site)
    }

    /// Asks the registry for a permit for `id`, and uses it.
    async fn ask(&mut self, id: SiteId, now: Time) -> Result<(), FetchError> {
        if self.settings.obeys_robots && !self.frontier.has_errand(id) && !self.has_rules(id, now).await? {
            return Ok(());
        }
        let site = &mut self.sites[id as usize];
        if site.not_before > now && !self.frontier.has_errand(id) {
            self.frontier.sleep(id, site.not_before);
            return Ok(());
        }
        let handle = match &site.handle {
            Some(handle) => handle,
            None => match self.parts.shared.domains.handle_of(&site.domain) {
                Ok(handle) => site.handle.insert(handle),
                Err(_full) => return self.give_up(id, NO_ROOM).await,
            },
        };
        match handle.try_acquire(self.frontier.next_since(id)) {
            Ok(permit) => {
                let turn = Turn { site: id, key: site.key, permit };
                self.send(turn, now).await?;
            }
            Err(NotYet::InFlight) => self.frontier.park(id),
            Err(NotYet::Before(at)) if at.since(now) > self.settings.wait_max => {
                let why = format!("the host is rate-limited for {} s", at.since(now).as_secs());
                self.give_up(id, &why).await?;
            }
            Err(NotYet::Before(at)) => self.frontier.sleep(id, at),
            Err(NotYet::Deferred(deferral)) => match deferral.not_before {
                Some(at) if at.since(now) <= self.settings.wait_max => self.frontier.sleep(id, at),
                _ => self.give_up(id, "the host kept failing").await?,
            },
        }
        Ok(())
    }

    /// Uses a permit for the next piece of work that may be sent, or gives it back.
    async fn send(&mut self, turn: Turn, now: Time) -> Result<(), FetchError> {
        let since = self.frontier.next_since(turn.site);
        while let Some(work) = self.frontier.take(turn.site, now) {
            let mut job = match self.prepare(turn.site, work)? {
                Ok(job) => job,
                Err(line) => {
                    self.tell(*line).await;
                    continue;
                }
            };
            job.waited += now.since(job.waits_since.take().unwrap_or(since));
            let site = &mut self.sites[turn.site as usize];
            if let Rules::Known { robots, .. } = &site.rules
                && job.rules_of.is_none()
            {
                site.not_before = now + robots.crawl_delay().unwrap_or_default();
            }
            self.frontier.begin(turn.site);
            self.frontier.pass(turn.site);
            self.tasks.spawn(exchange(Arc::clone(&self.parts.shared), job, turn));
            return Ok(());
        }
        drop(turn.permit);
        self.frontier.answered(turn.key);
        self.tidy(turn.site);
        Ok(())
    }

    /// The job of a piece of work, or its result line if it is not sent.
    fn prepare(&mut self, id: SiteId, work: Work) -> Result<Result<Box<Job>, Box<ResultLine>>, FetchError> {
        let job = match work {
            Work::Again(job) => job,
            Work::Fresh { at, previous } => {
                let listed = self.listed_at(at).map_err(FetchError::List)?;
                let target = match ListLine::parse(listed.as_bytes()) {
                    ListLine::Target(target) if *target.origin() == *self.sites[id as usize].origin => target,
                    _ => {
                        let why = "the list was changed while it was read".to_owned();
                        return Ok(Err(Box::new(ResultLine::refused(&listed, why))));
                    }
                };
                let mut job = Job::new(&listed, target, self.settings.allows_private_redirects);
                job.previous = self.previous(previous);
                Box::new(job)
            }
        };
        let path = &job.url[url::Position::BeforePath..];
        match &self.sites[id as usize].rules {
            Rules::Known { robots, .. } if job.rules_of.is_none() && !robots.permits(path) => {
                Ok(Err(Box::new(job.failed(None, "robots.txt does not allow it".to_owned()))))
            }
            _ => Ok(Ok(job)),
        }
    }

    fn listed_at(&mut self, at: u64) -> io::Result<String> {
        let line = self.parts.list.line_at(at, URL_BYTES_MAX)?;
        let text = String::from_utf8_lossy(line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line)).trim().to_owned();
        Ok(text)
    }

    /// The result of the previous pass, if its body still exists.
    fn previous(&mut self, at: Option<u64>) -> Option<Box<ResultLine>> {
        let line = self.parts.previous.as_mut()?.line_at(at?, LINE_BYTES_MAX).ok()?;
        let line: ResultLine = serde_json::from_slice(&line).ok()?;
        let is_there = self.parts.shared.bodies.has(line.sha256.as_deref()?, line.bytes?);
        is_there.then(|| Box::new(line))
    }

    /// An answer arrived, or was lost.
    fn hear(&mut self, heard: Heard) {
        let failed = matches!(heard.verdict, Verdict::Network | Verdict::ServerError);
        self.progress.refused += u64::from(matches!(heard.verdict, Verdict::Throttled | Verdict::Banned));
        self.progress.requests += 1;
        self.frontier.trust(heard.site, !failed);
        self.frontier.answered(heard.key);
    }

    /// A request ended, with its body.
    async fn end(&mut self, ended: Ended) -> Result<(), FetchError> {
        let Ended { site, mut job, end } = ended;
        let now = self.now();
        self.frontier.end(site);
        let lane = if job.rules_of.is_some() { Lane::Errand } else { Lane::Front };
        match end {
            End::Line(line) => self.tell(*line).await,
            End::Disk(error) => return Err(FetchError::Folder(error)),
            End::Again(at) if at.since(now) > self.settings.wait_max => {
                let why = format!("the earliest retry would be in {} s", at.since(now).as_secs());
                self.fail(&job, job.status, why).await?;
            }
            End::Again(at) => {
                job.waits_since = Some(now);
                self.frontier.push_later(at, site, Work::Again(job), lane);
            }
            End::AfterOthers => {
                job.waits_since = Some(now);
                let lane = if lane == Lane::Errand { lane } else { Lane::Back };
                self.frontier.push(site, Work::Again(job), lane, now);
            }
            End::Redirect(target) => self.redirect(job, &target, lane, now).await?,
            End::Rules(file) => self.learn_rules(&job, file, now),
            End::Failed(status, error) => self.fail(&job, status, error).await?,
        }
        self.tidy(site);
        Ok(())
    }

    async fn redirect(&mut self, mut job: Box<Job>, to: &Target, lane: Lane, now: Time) -> Result<(), FetchError> {
        if let Err(fault) = job.redirect(to) {
            return self.fail(&job, job.status, refused(fault)).await;
        }
        job.waits_since = Some(now);
        match self.site(&to.origin(), &to.domain) {
            Some(site) => self.frontier.push(site, Work::Again(job), lane, now),
            None => self.fail(&job, None, NO_ROOM.to_owned()).await?,
        }
        Ok(())
    }

    async fn tell(&mut self, line: ResultLine) {
        // The listener is gone only after it failed, and then we are stopped.
        let _nobody = self.parts.told.send(PipelineEvent::Line(Box::new(line))).await;
    }
}

const NO_ROOM: &str = "host limit reached";
