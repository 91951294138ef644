//! The state of the hosts of a fetch, in files for whoever watches from outside: JSON, and Prometheus text.

use crate::args::fetch::FetchArgs;
use gleaner_base::atomic;
use gleaner_http::{Domains, domains_prometheus_text};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the files are written: as often as a scraper reads them at most.
const WRITE_EVERY: Duration = Duration::from_secs(5);

pub(super) struct Pages<'a> {
    status: Option<&'a Path>,
    metrics: Option<&'a Path>,
    hosts: Option<(Domains, Instant)>,
}

impl<'a> Pages<'a> {
    pub(super) fn new(args: &'a FetchArgs) -> Self {
        Self { status: args.status.as_deref(), metrics: args.metrics.as_deref(), hosts: None }
    }

    /// Writes them for the first time, so that a path that cannot be written is noticed before anything is fetched.
    pub(super) fn begin(&mut self, domains: &Domains) -> io::Result<()> {
        self.hosts = Some((domains.clone(), Instant::now()));
        self.write()
    }

    pub(super) fn write_if_due(&mut self) -> io::Result<()> {
        match &mut self.hosts {
            Some((_, written)) if written.elapsed() >= WRITE_EVERY => *written = Instant::now(),
            _ => return Ok(()),
        }
        self.write()
    }

    /// Writes them now.
    pub(super) fn write(&self) -> io::Result<()> {
        let Some((domains, _)) = &self.hosts else { return Ok(()) };
        if let Some(path) = self.status {
            let mut text = serde_json::to_vec(&domains.status(usize::MAX))?;
            text.push(b'\n');
            replace("--status", path, &text)?;
        }
        if let Some(path) = self.metrics {
            let text = domains_prometheus_text(domains, usize::MAX).map_err(io::Error::other)?;
            replace("--metrics", path, text.as_bytes())?;
        }
        Ok(())
    }
}

fn replace(option: &str, path: &Path, text: &[u8]) -> io::Result<()> {
    let name = |error: io::Error| io::Error::new(error.kind(), format!("{option} {}: {error}", path.display()));
    atomic::replace(path, text).map_err(name)
}
