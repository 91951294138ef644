//! robots.txt rules of sites, and giving up a site.

use super::{Pipeline, Work};
use crate::FetchError;
use crate::frontier::{Lane, SiteId};
use crate::job::Job;
use crate::result_line::ResultLine;
use crate::robots::{ROBOTS_PATH, Robots};
use crate::url_list::Target;
use crate::wire::Wire;
use gleaner_http::governor::Time;
use std::time::Duration;

/// Lifetime of a host's rules (RFC 9309).
const RULES_KEPT: Duration = Duration::from_secs(24 * 3600);

/// State of the rules of a site.
#[derive(Debug)]
pub(super) enum Rules {
    Unknown,
    Asked,
    Known {
        robots: Robots,
        until: Time,
    },
    /// Nothing is fetched from the site.
    Unreachable(String),
}

impl<W: Wire> Pipeline<W> {
    /// Whether pages may be fetched from a site. Fetches its rules first if they are unknown.
    pub(super) async fn has_rules(&mut self, id: SiteId, now: Time) -> Result<bool, FetchError> {
        let site = &mut self.sites[id as usize];
        match &site.rules {
            Rules::Known { until, .. } if *until > now => return Ok(true),
            Rules::Unreachable(why) => {
                let why = why.clone();
                self.give_up(id, &why).await?;
                return Ok(false);
            }
            // Too old.
            Rules::Known { robots, .. } => self.rules_bytes = self.rules_bytes.saturating_sub(robots.size()),
            Rules::Unknown | Rules::Asked => {}
        }
        let target = url::Url::parse(&format!("{}{ROBOTS_PATH}", site.origin)).ok().map(Target::from_url);
        let Some(Ok(target)) = target else {
            self.give_up(id, "its host name is invalid").await?;
            return Ok(false);
        };
        site.rules = Rules::Asked;
        let mut job = Job::new(target.url.as_str(), target.clone(), self.settings.allows_private_redirects);
        job.rules_of = Some(id);
        self.frontier.hold(id);
        self.frontier.push(id, Work::Again(Box::new(job)), Lane::Errand, now);
        Ok(true)
    }

    pub(super) fn learn_rules(&mut self, job: &Job, file: Option<Vec<u8>>, now: Time) {
        let Some(of) = job.rules_of else { return };
        let product = self.settings.product();
        let robots = file.map_or_else(Robots::allowing_all, |file| Robots::parse(&file, product));
        self.rules_bytes += robots.size();
        let site = &mut self.sites[of as usize];
        site.not_before = now + robots.crawl_delay().unwrap_or_default();
        site.rules = Rules::Known { robots, until: now + RULES_KEPT };
        self.frontier.release(of, now);
    }

    /// A job failed for good. For a robots.txt this means that nothing is fetched from its site.
    pub(super) async fn fail(&mut self, job: &Job, status: Option<u16>, error: String) -> Result<(), FetchError> {
        let Some(of) = job.rules_of else {
            self.tell(job.failed(status, error)).await;
            return Ok(());
        };
        self.sites[of as usize].rules = Rules::Unreachable(format!("robots.txt cannot be fetched: {error}"));
        // Its waiting work fails when its turn comes, which is now.
        let now = self.now();
        self.frontier.release(of, now);
        Ok(())
    }

    /// Gives up a site for this pass.
    pub(super) async fn give_up(&mut self, id: SiteId, why: &str) -> Result<(), FetchError> {
        let now = self.now();
        self.frontier.release(id, now);
        while let Some(work) = self.frontier.take(id, now) {
            if self.parts.stop.is_set() {
                break;
            }
            match work {
                Work::Again(job) if job.rules_of == Some(id) => {
                    self.sites[id as usize].rules = Rules::Unreachable(format!("robots.txt cannot be fetched: {why}"));
                }
                // Boxed: recursion for the errand of another site.
                Work::Again(job) => Box::pin(self.fail(&job, None, why.to_owned())).await?,
                Work::Fresh { at, .. } => {
                    let listed = self.listed_at(at).map_err(FetchError::List)?;
                    self.tell(ResultLine::refused(&listed, why.to_owned())).await;
                }
            }
        }
        self.tidy(id);
        Ok(())
    }
}
