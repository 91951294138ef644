//! The thread that reads the list, and leaves out what is finished or was there before.

use crate::journal::{Finished, Previous};
use crate::result_line::ResultLine;
use crate::url_list::{Lines, Said, Target, UrlKey};
use std::collections::HashSet;
use std::io::{self, BufRead};
use std::thread;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Found and not yet taken over: enough to keep the scheduler busy for a round.
const AHEAD: usize = 1024;

/// One thing that the list says.
#[derive(Debug)]
pub(crate) enum Found {
    Url(Box<FoundUrl>),
    NoUrl(Box<ResultLine>),
    /// The list cannot be read further.
    Broken(io::Error),
}

/// A URL, without itself: it is read again when its turn comes.
#[derive(Debug)]
pub(crate) struct FoundUrl {
    pub(crate) origin: String,
    pub(crate) domain: gleaner_http::governor::keyed::Domain,
    pub(crate) at: u64,
    /// Where the result of the last pass is.
    pub(crate) previous: Option<u64>,
}

/// Starts reading. The thread ends with the list, or when nobody takes what it finds.
pub(crate) fn start(
    reader: impl BufRead + Send + 'static,
    finished: Finished,
    previous: Previous,
) -> io::Result<Receiver<Found>> {
    let (found, receiver) = channel(AHEAD);
    let mut discovery = Discovery { found, seen: finished.keys, previous };
    let work = move || {
        if let Err(error) = discovery.read(Lines::new(reader)) {
            // Nobody takes it: then nobody needs to know.
            let _nobody = discovery.found.blocking_send(Found::Broken(error));
        }
    };
    thread::Builder::new().name("url list".to_owned()).spawn(work)?;
    Ok(receiver)
}

struct Discovery {
    found: Sender<Found>,
    /// Finished before, or found already.
    seen: HashSet<UrlKey>,
    previous: Previous,
}

impl Discovery {
    fn read(&mut self, mut lines: Lines<impl BufRead>) -> io::Result<()> {
        while let Some((at, line)) = lines.next()? {
            let said = Said::of(line);
            let Some(key) = said.key().filter(|&key| self.seen.insert(key)) else { continue };
            let found = match said {
                Said::Nothing => continue,
                Said::NoUrl(shown, why) => Found::NoUrl(Box::new(ResultLine::refused(&shown, why.to_owned()))),
                Said::Target(target) => self.url(&target, key, at),
            };
            if self.found.blocking_send(found).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn url(&self, target: &Target, key: UrlKey, at: u64) -> Found {
        Found::Url(Box::new(FoundUrl {
            origin: target.origin(),
            domain: target.domain.clone(),
            at,
            previous: self.previous.places.get(&key).copied(),
        }))
    }
}
