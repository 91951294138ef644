//! Exchanges: requests of a connector and the provider's answers, in a file.
//!
//! Any run with `GLEANER_RECORD=FILE` makes a recording; with `GLEANER_REPLAY=FILE` a run is answered from it:
//! without a network, without credentials and without waiting. It is JSON lines, so that people can read, shorten and
//! write one by hand ([`Recording`] describes a line).
//!
//! | | |
//! |---|---|
//! | `recording.rs` | the format: parsing with limits, writing a line |
//! | `scrub.rs` | removal of secrets |
//! | `recorder.rs` | writing a recording during a run |
//! | `player.rs` | finding the answer to a request |

mod player;
mod recorder;
mod recording;
mod scrub;

pub use recording::{
    BODY_BYTES_MAX, EXCHANGES_MAX, Exchange, FILE_BYTES_MAX, Message, Outcome, Recording, RecordingFault,
};

pub(crate) use player::Played;
pub(crate) use recorder::ToFile;

use crate::stop::Stop;
use gleaner_http::client::ClientBuilder;
use std::path::Path;
use std::sync::Arc;

/// The file that a run records into.
pub const RECORD_VARIABLE: &str = "GLEANER_RECORD";
/// The file that a run is answered from.
pub const REPLAY_VARIABLE: &str = "GLEANER_REPLAY";

/// Recorder and player of a run.
#[derive(Debug, Default)]
pub(crate) struct RecordReplay {
    pub(crate) recorder: Option<Arc<ToFile>>,
    pub(crate) player: Option<Arc<Played>>,
}

impl RecordReplay {
    /// As set in the environment, unless a recording is given.
    pub(crate) fn open(
        variable: &dyn Fn(&str) -> Option<String>,
        answers: Option<Recording>,
        connector: &str,
        at: &str,
    ) -> Result<Self, Stop> {
        let named = |name: &str| variable(name).filter(|file| !file.trim().is_empty());
        let answers = match (answers, named(REPLAY_VARIABLE)) {
            (Some(answers), _) => Some(answers),
            (None, Some(file)) => {
                let recording = Recording::read(Path::new(&file));
                Some(recording.map_err(|fault| Stop::of_author(format!("{file} cannot be replayed: {fault}")))?)
            }
            (None, None) => None,
        };
        let recorder = named(RECORD_VARIABLE).map(|file| {
            let opened = ToFile::create(Path::new(&file), connector, at);
            opened.map_err(|error| Stop::of_author(format!("cannot record into {file}: {error}")))
        });
        let recorder = recorder.transpose()?.map(Arc::new);
        Ok(Self { recorder, player: answers.map(|answers| Arc::new(Played::new(answers))) })
    }

    /// Whether answers come from a recording.
    pub(crate) const fn is_playing(&self) -> bool {
        self.player.is_some()
    }

    /// Keeps these out of a recording; in a replay each matches any other.
    pub(crate) fn keep_secret(&self, secrets: &[String]) {
        if let Some(recorder) = &self.recorder {
            recorder.keep_secret(secrets);
        }
        if let Some(player) = &self.player {
            player.keep_secret(secrets);
        }
    }

    /// Adds recorder and player to a client; `sample` answers where no other recording does.
    pub(crate) fn put_into(&self, mut builder: ClientBuilder, sample: Option<&Arc<Played>>) -> ClientBuilder {
        if let Some(recorder) = &self.recorder {
            builder = builder.recorder(Arc::clone(recorder) as _);
        }
        match self.player.as_ref().or(sample) {
            Some(player) => builder.player(Arc::clone(player) as _),
            None => builder,
        }
    }

    /// The first request that is not in the recording: it invalidates the run.
    pub(crate) fn missed(&self) -> Option<Stop> {
        self.player.as_ref().and_then(|player| player.missed()).map(Stop::of_author)
    }

    /// Why the recording is incomplete, for people.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.recorder.as_ref().and_then(|recorder| recorder.trouble())
    }
}
