//! The thread that reads the list and skips finished and duplicate URLs.

use crate::journal::{Finished, Previous};
use crate::result_line::ResultLine;
use crate::url_list::{Lines, ListLine, Target, UrlKey};
use std::collections::HashSet;
use std::io::{self, BufRead};
use std::thread;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Capacity of the channel to the scheduler: enough for a round.
const AHEAD: usize = 1024;

/// One item of the list.
#[derive(Debug)]
pub(crate) enum Discovered {
    Url(Box<FoundUrl>),
    NoUrl(Box<ResultLine>),
    /// The list cannot be read further.
    Broken(io::Error),
}

/// A URL without its text, which is read again when its turn comes.
#[derive(Debug)]
pub(crate) struct FoundUrl {
    pub(crate) origin: String,
    pub(crate) domain: gleaner_http::governor::keyed::Domain,
    pub(crate) at: u64,
    /// Position of the previous pass's result.
    pub(crate) previous: Option<u64>,
}

/// Starts reading. The thread ends with the list, or when the receiver is gone.
pub(crate) fn start(
    reader: impl BufRead + Send + 'static,
    finished: Finished,
    previous: Previous,
) -> io::Result<Receiver<Discovered>> {
    let (found, receiver) = channel(AHEAD);
    let mut discovery = Discovery { found, seen: finished.keys, previous };
    let work = move || {
        if let Err(error) = discovery.read(Lines::new(reader)) {
            // The receiver is gone, so the error does not matter.
            let _nobody = discovery.found.blocking_send(Discovered::Broken(error));
        }
    };
    thread::Builder::new().name("url list".to_owned()).spawn(work)?;
    Ok(receiver)
}

struct Discovery {
    found: Sender<Discovered>,
    /// Finished before, or already found.
    seen: HashSet<UrlKey>,
    previous: Previous,
}

impl Discovery {
    fn read(&mut self, mut lines: Lines<impl BufRead>) -> io::Result<()> {
        while let Some((at, line)) = lines.next()? {
            let said = ListLine::parse(line);
            let Some(key) = said.key().filter(|&key| self.seen.insert(key)) else { continue };
            let found = match said {
                ListLine::Nothing => continue,
                ListLine::NoUrl(shown, why) => Discovered::NoUrl(Box::new(ResultLine::refused(&shown, why.to_owned()))),
                ListLine::Target(target) => self.url(&target, key, at),
            };
            if self.found.blocking_send(found).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn url(&self, target: &Target, key: UrlKey, at: u64) -> Discovered {
        Discovered::Url(Box::new(FoundUrl {
            origin: target.origin(),
            domain: target.domain.clone(),
            at,
            previous: self.previous.places.get(&key).copied(),
        }))
    }
}
