//! What the connector says, to the engine in lines and to the model in plain words.
//!
//! It keeps its promises, but for one: what it lists it sends, reports or names as missing before the cursor that
//! covers it, and nothing is said of a detail after its report; but now and then it calls a gap recovered for which it
//! sent nothing. It never waits for an answer.

use super::{Served, World, key_name, place, tail_list};
use crate::account::Account;
use crate::model::check;
use crate::model::expected::{Ending, Place, Report, Said};
use crate::model::lines::{self, CAUSES, Cause, RUN_CAP};
use crate::model::trace::CONNECTION;
use crate::model::world::{CHUNK, NEW, STREAMS, TAIL};
use crate::promise;
use gleaner_engine::testing::backlog::{Backlog, expand, fold};
use gleaner_engine::testing::promises::{Durable, Fact};
use gleaner_engine::{CommitSeq, RunId, Steady, Track};

impl World {
    /// What must be carried out first is looked at one by one: two at once would hide what each did.
    pub(super) fn say(&mut self, line: &str) {
        while self.live.as_ref().is_some_and(|live| !live.wants_input()) {
            self.met.insert("a connector that waits for the store");
            let step = self.live.as_mut().and_then(|live| live.step(self.now));
            self.observe(step.expect("full, and nothing to carry out"));
        }
        let steps = self.live.as_mut().map(|live| live.say(line, self.now)).unwrap_or_default();
        for step in steps {
            self.observe(step);
        }
    }

    pub(super) fn tell(&mut self, said: Said) {
        self.expected.going.as_mut().unwrap().say(said);
    }

    /// Details are left alone when they are not asked for, and after their report.
    pub(super) fn stream(&self, nth: usize) -> &'static str {
        let going = self.expected.going.as_ref().unwrap();
        let closed = STREAMS[nth] == "details" && (going.report.is_some() || !going.streams.contains(&"details"));
        if closed { "trips" } else { STREAMS[nth] }
    }

    /// The provider listed it, so the next cursor of the stream covers it.
    pub(super) fn list(&mut self, stream: &str, key: &str, position: i64) {
        if self.expected.going.as_ref().unwrap().track == Steady::NAME {
            self.listed.entry(stream.to_owned()).or_default().push((key.to_owned(), position));
        }
        if stream == "details" {
            self.trace.of_run.push(Fact::Detail { stream: stream.to_owned() });
        }
    }

    pub(super) fn accept(&mut self, stream: &str, key: &str) {
        let run = RunId::new(&self.expected.going.as_ref().unwrap().id);
        self.trace.facts.push(Fact::Accepted { run, stream: stream.to_owned(), key: key.to_owned() });
        self.list(stream, key, NEW);
    }

    pub(super) fn record(&mut self, stream: &str, key: &str, body: u8) {
        self.record_with(stream, key, format!(r#"{{"v":{body}}}"#));
    }

    fn record_with(&mut self, stream: &str, key: &str, body: String) {
        self.say(&lines::record(stream, key, &body));
        self.accept(stream, key);
        self.tell(Said::Record { place: place(stream, key), body: Some(body) });
    }

    pub(super) fn bad(&mut self, stream: &str, key: &str, body: &str) {
        self.say(&lines::record(stream, key, body));
        self.accept(stream, key);
        self.tell(Said::Bad { place: place(stream, key), body: body.to_owned() });
    }

    pub(super) fn delete(&mut self, stream: &str, key: &str) {
        self.say(&lines::delete(stream, key));
        self.accept(stream, key);
        self.trace.facts.push(Fact::Deleted { stream: stream.to_owned(), key: key.to_owned() });
        self.tell(Said::Record { place: place(stream, key), body: None });
    }

    pub(super) fn state(&mut self, stream: &str, slice: bool) {
        self.tokens += 1;
        let token = format!(r#"{{"page":{}}}"#, self.tokens);
        self.say(&lines::state(stream, &token, slice));
        let going = self.expected.going.as_mut().unwrap();
        let seq = going.seqs.get(stream).copied().unwrap_or_default() + 1;
        going.seqs.insert(stream.to_owned(), seq);
        going.say(Said::Cursor { stream: stream.to_owned(), seq, token, slice });
        for (key, position) in self.listed.remove(stream).unwrap_or_default() {
            let (stream, covered_by) = (stream.to_owned(), CommitSeq::new(seq));
            self.trace.facts.push(Fact::Listed { stream, key, covered_by, position });
        }
    }

    pub(super) fn gap(&mut self, stream: &str, key: &str, position: i64, cause: Cause) {
        let parent = (stream == "details").then_some("trips");
        self.say(&lines::gap(stream, parent, key, cause));
        self.list(stream, key, position);
        let name = (stream.to_owned(), parent.map(str::to_owned), format!("key:{key}"));
        self.tell(Said::Gap { name, cause, locator: None });
    }

    pub(super) fn cap_trip(&mut self, tail: i64, chunk: usize) {
        let folded = fold(tail_list(tail), Some(chunk));
        for record in tail_list(tail) {
            self.list("trips", &record.key, record.position);
        }
        for record in &folded.gaps {
            self.gap("trips", &record.key, record.position, RUN_CAP);
        }
        if let Some(Backlog { watermark, .. }) = folded.backlog {
            self.say(&lines::backlog("trips", watermark));
            let locator = lines::locator(watermark);
            let name = ("trips".to_owned(), None, format!("loc:{locator}"));
            self.tell(Said::Gap { name, cause: RUN_CAP, locator: Some(locator) });
        }
    }

    pub(super) fn page(&mut self) {
        self.say(lines::PAGE);
        self.expected.going.as_mut().unwrap().flush();
    }

    /// Does something with a gap that was served, if its stream can be spoken of now.
    pub(super) fn with_served(&mut self, nth: usize, act: impl FnOnce(&mut Self, &Served)) {
        let Some(served) = self.served.iter().rev().nth(nth).cloned() else { return };
        let going = self.expected.going.as_ref().unwrap();
        let closed = served.name.0 == "details" && going.report.is_some();
        // What an earlier run was told about a backlog is out of date; a connector has forgotten it.
        let forgotten = served.watermark.is_some() && served.lease != going.id;
        if going.streams.contains(&served.name.0.as_str()) && !closed && !forgotten {
            act(self, &served);
        }
    }

    pub(super) fn attempt(&mut self, served: &Served) {
        self.say(&lines::attempted(&served.name.0, &served.id, &served.lease));
        self.tell(Said::Attempt { name: served.name.clone(), lease: served.lease.clone() });
    }

    pub(super) fn say_recovered(&mut self, served: &Served) {
        self.say_recovered_as(served, &served.name.0);
    }

    fn say_recovered_as(&mut self, served: &Served, stream: &str) {
        self.say(&lines::recovered(stream, &served.id, &served.lease));
        let (name, lease) = (served.name.clone(), served.lease.clone());
        self.tell(Said::Recover { name, lease, stream: stream.to_owned() });
    }

    /// Says "recovered" about a gap and sends nothing, something else, or less than it stood for.
    pub(super) fn lie(&mut self, served: &Served, how: u8) {
        let Some(key) = served.name.2.strip_prefix("key:").map(str::to_owned) else { return };
        let (stream, other) = (served.name.0.clone(), if served.name.0 == "trips" { "photos" } else { "trips" });
        match how {
            // A record that names the key in a field is what such a gap may stand for.
            0 => self.record_with(&stream, &format!("of-{key}"), format!(r#"{{"v":0,"of":"{key}"}}"#)),
            1 => self.record(other, &key, 0),
            2 => self.bad(&stream, &key, r#"{"bad":1}"#),
            3 => {
                self.record(&stream, &key, 0);
                return self.say_recovered_as(served, other);
            }
            _ => {}
        }
        self.say_recovered(served);
    }

    /// The record comes first, then the news that its gap is closed.
    pub(super) fn recover(&mut self, served: &Served) {
        if let Some(watermark) = served.watermark {
            return self.expand(served, watermark);
        }
        let key = served.name.2.trim_start_matches("key:").to_owned();
        self.record(&served.name.0, &key, 0);
        self.say_recovered(served);
    }

    /// The next chunk of a backlog gets gaps of its own; what is left goes back with a new watermark.
    pub(super) fn expand(&mut self, served: &Served, watermark: i64) {
        let backlog = Backlog { watermark, remaining: 0 };
        let account = Account::of(&self.watcher, CONNECTION);
        let is_there = |key: &str| account.accounts_for("trips", key);
        let folded = expand(&backlog, tail_list(TAIL), is_there, Some(CHUNK));
        for record in &folded.gaps {
            self.gap("trips", &record.key, record.position, RUN_CAP);
        }
        match folded.backlog {
            None => self.say_recovered(served),
            Some(rest) => {
                self.met.insert("a backlog expanded in part");
                self.say(&lines::put_back("trips", &served.id, Some(rest.watermark), RUN_CAP));
                let locator = Some(lines::locator(rest.watermark));
                self.tell(Said::Gap { name: served.name.clone(), cause: RUN_CAP, locator });
            }
        }
    }

    pub(super) fn put_back(&mut self, served: &Served, cause: Cause) {
        self.say(&lines::put_back(&served.name.0, &served.id, None, cause));
        self.tell(Said::Gap { name: served.name.clone(), cause, locator: None });
    }

    /// A run in which every gap fails again.
    pub(super) fn sweep(&mut self, cause: Cause) {
        let before = self.served.len();
        self.page();
        self.settle();
        let page = self.served[before..].to_vec();
        for served in page {
            if served.name.0 != "details" || self.expected.going.as_ref().unwrap().report.is_none() {
                self.attempt(&served);
                self.put_back(&served, cause);
            }
        }
        self.done(0);
    }

    pub(super) fn coverage(&mut self, outcomes: [u8; 4]) {
        let going = self.expected.going.as_ref().unwrap();
        if going.report.is_some() || !going.streams.contains(&"details") {
            return;
        }
        let keys = |wanted: &[u8]| {
            let wanted = outcomes.iter().zip(0_u8..).filter(|(outcome, _)| wanted.contains(outcome));
            wanted.map(|(_, key)| key_name(key)).collect::<Vec<_>>()
        };
        let lists = [keys(&[0, 1, 2, 3, 4, 5]), keys(&[0, 5]), keys(&[1, 4]), keys(&[2])];
        for key in keys(&[0]) {
            self.record("details", &key, 0);
        }
        for key in keys(&[1]) {
            self.gap("details", &key, NEW, CAUSES[8]);
        }
        // A report is several events; between them nothing else should have to be carried out.
        self.settle();
        self.say(&lines::coverage(&lists));
        let going = self.expected.going.as_mut().unwrap();
        going.flush();
        going.report = Some(Report { lists, unaccounted: None });
    }

    pub(super) fn stream_failed(&mut self, stream: &str) {
        self.say(&lines::stream_failed(stream));
        let going = self.expected.going.as_mut().unwrap();
        if going.streams.contains(&stream) {
            going.fail_stream(stream);
        }
    }

    pub(super) fn done(&mut self, how: u8) {
        let going = self.expected.going.as_ref().unwrap();
        let scoped =
            if going.has_failed_streams() { Ending::StreamsFailed } else { Ending::Failed("connector_failed") };
        let (status, code, ending) = match how {
            0..=3 => ("succeeded", None, Ending::Succeeded),
            4 => ("failed", Some("boom"), Ending::Failed("connector_failed")),
            5 => ("cancelled", None, Ending::Cancelled),
            6 => ("failed", Some("stream_collection_failed"), scoped),
            7 => ("failed", Some("x_rate_limited"), Ending::Failed("source_cooldown")),
            _ => ("failed", Some("missing_credentials"), Ending::Failed("credentials_missing")),
        };
        let line = lines::done(status, going.seen, code);
        if let Some(live) = &mut self.live {
            live.set_exit(i32::from(status != "succeeded"));
        }
        self.say(&line);
        let going = self.expected.going.as_mut().unwrap();
        if ending == Ending::Failed("source_cooldown") {
            going.throttle();
        }
        going.conclude(ending);
    }

    pub(super) fn nonsense(&mut self, deletion: bool) {
        let line = if deletion { lines::delete("photos", "k0") } else { "nonsense".to_owned() };
        self.say(&line);
        self.expected.going.as_mut().unwrap().conclude(Ending::Broken);
    }

    /// A7: what was written is written once more, as after a receipt that was lost.
    pub(super) fn repeat(&mut self) {
        // After its report nothing more is said about a detail.
        if self.expected.going.as_ref().unwrap().report.is_some() {
            return;
        }
        self.pass();
        self.settle();
        let slice = self.expected.going.as_ref().unwrap().last_slice.clone();
        if !slice.is_empty() {
            self.met.insert("a slice written twice");
        }
        let once = check::digest(&self.watcher);
        for (nth, said) in slice.iter().enumerate() {
            self.repeat_one(said, &slice[nth + 1..]);
        }
        self.pass();
        self.settle();
        promise::a7_writing_twice_is_writing_once(once, check::digest(&self.watcher)).unwrap();
    }

    /// Of one key, the last word only.
    pub(super) fn repeat_one(&mut self, said: &Said, later: &[Said]) {
        let is_last = |place: &Place| {
            let about = |said: &Said| matches!(said, Said::Record { place: of, .. } | Said::Bad { place: of, .. } if of == place);
            !later.iter().any(about)
        };
        match said {
            Said::Record { place, body: Some(body) } if is_last(place) => {
                self.say(&lines::record(&place.0, &place.1, body));
                self.tell(said.clone());
            }
            Said::Record { place, body: None } if is_last(place) => self.delete(&place.0, &place.1),
            Said::Bad { place, body } if is_last(place) => self.bad(&place.0, &place.1, body),
            Said::Gap { name, cause, .. } => {
                let parent = name.1.as_deref();
                let Some(key) = name.2.strip_prefix("key:") else { return };
                self.say(&lines::gap(&name.0, parent, key, *cause));
                self.tell(said.clone());
            }
            _ => {}
        }
    }
}
