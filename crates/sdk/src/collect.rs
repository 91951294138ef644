//! One run as an author's code sees it: what was asked for, and everything that may be done about it.
//!
//! The streams' own ways of collecting are in `pages.rs` and `lane.rs`; here is what both stand on: the
//! client that is governed for this run, cursors, and what is accounted for.

use crate::budget::Budget;
use crate::budget::caps::Caps;
use crate::clock::Clock;
use crate::connector::ACCOUNT_VARIABLE;
use crate::connector::credentials::Credentials;
use crate::emit::{Cursor, Emitter};
use crate::exchanges::{Played, Recording, Tape};
use crate::gaps::GapPages;
use crate::pace::rate;
use crate::pace::waits::Waits;
use crate::stop::Stop;
use gleaner_engine::Time;
use gleaner_http::blocking::Client;
use gleaner_http::client::ClientBuilder;
use gleaner_http::external_send::ExternalSender;
use gleaner_http::governor::{Learned, RunBudgetConfig};
use gleaner_http::{Governors, SendGovernor, Settings};
use gleaner_protocol::{CollectionMode, Manifest, RecoveryAction, StreamScope};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// One run.
#[derive(Debug)]
pub struct Collect<'r> {
    pub(crate) run_id: String,
    pub(crate) manifest: &'r Manifest,
    pub(crate) clock: &'r dyn Clock,
    pub(crate) emitter: Emitter<'r>,
    pub(crate) gaps: GapPages,
    pub(crate) budget: Budget,
    pub(crate) caps: Caps,
    pub(crate) credentials: Credentials,
    pub(crate) scope: Vec<StreamScope>,
    pub(crate) mode: CollectionMode,
    pub(crate) recovery_only: bool,
    pub(crate) someone_can_answer: bool,
    /// What the runtime lets this run use, each with its descriptor.
    pub(crate) bindings: BTreeMap<String, serde_json::Value>,
    pub(crate) variable: Variables<'r>,
    /// What the author put into each cursor; the pace that rides along is taken out.
    pub(crate) cursors: BTreeMap<String, Cursor>,
    pub(crate) started: Time,
    pub(crate) learned: Option<Learned>,
    /// Of this run alone: a test may run many in one process.
    pub(crate) governors: Governors,
    pub(crate) client: Option<Client>,
    /// Whose pace is shown and remembered: that of the first client, or of what sends in its place.
    pub(crate) governor: Option<SendGovernor>,
    pub(crate) accounted_for: BTreeSet<String>,
    pub(crate) last_readout: Option<Time>,
    pub(crate) tape: Tape,
    /// What is waited for, for whoever looks meanwhile.
    pub(crate) waits: Waits,
}

/// Environment variables by name. Prints none of them.
pub(crate) struct Variables<'r>(pub(crate) &'r dyn Fn(&str) -> Option<String>);

gleaner_base::debug_only!(Variables<'_>);

/// How requests are sent that something else than a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// The shortest time between two sends, unless the owner says otherwise (`…_PACING_MIN_INTERVAL_MS`).
    pub ceiling: Duration,
    /// Noise against marching in step; never a floor of the pace.
    pub launch_jitter: Duration,
    /// Requests in flight at most.
    pub max_concurrency: u16,
    /// Whether refusals are held against the owner's account: then the limit costs one, and after that at most one in
    /// a hundred.
    pub is_careful: bool,
}

/// How often the pace is shown by itself. A person who watches sees it change, and a run has millions of slices.
const READOUT_EVERY: Duration = Duration::from_millis(250);

impl<'r> Collect<'r> {
    /// Says what was collected, for streams that have a way of their own.
    pub const fn emitter(&mut self) -> &mut Emitter<'r> {
        &mut self.emitter
    }

    /// The name of this run, which no other has.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The connector's description of itself.
    pub const fn manifest(&self) -> &'r Manifest {
        self.manifest
    }

    /// The cursor that the last run left for a stream.
    pub fn cursor(&self, stream: &str) -> Option<&Cursor> {
        self.cursors.get(stream)
    }

    /// What was asked for of a stream; `None` when nothing was. The framework leaves out what was not
    /// asked for; an author who can ask the provider for less looks here.
    pub fn scope(&self, stream: &str) -> Option<&StreamScope> {
        self.scope.iter().find(|asked| asked.name == stream)
    }

    /// From the beginning, or from the cursors.
    pub const fn mode(&self) -> CollectionMode {
        self.mode
    }

    /// Whether only gaps are to be recovered, without a walk forward.
    pub const fn is_recovery_only(&self) -> bool {
        self.recovery_only
    }

    /// What the runtime says about something that this run may use, such as where its browser profile is; `None` when
    /// it may not.
    pub fn binding(&self, name: &str) -> Option<&serde_json::Value> {
        self.bindings.get(name)
    }

    /// A credential that the manifest requires, by its name or an alias of it.
    ///
    /// # Errors
    ///
    /// When the manifest does not require it, so that nobody could have provided it.
    pub fn credential(&self, name: &str) -> Result<&str, Stop> {
        self.credentials.get(name).ok_or_else(|| {
            Stop::of_author(format!("the manifest does not require {name}; name it under capabilities.auth.required"))
        })
    }

    /// The client of this run: governed, begun at the pace that the last run had found, bound to this
    /// account, and within the run's budget.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn client(&mut self) -> Result<Client, Stop> {
        match &self.client {
            Some(client) => Ok(client.clone()),
            None => self.client_with(|builder| builder),
        }
    }

    /// The same with headers, timeouts or a classifier of the author's own.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn client_with(&mut self, configure: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Result<Client, Stop> {
        let client = configure(self.client_builder(None)).build_blocking()?;
        let governor = client.governor();
        if self.client.is_none() {
            // Where a recording answers there is no pace to begin with, to show or to remember.
            if !self.tape.is_playing() {
                self.take_pace_of(governor)?;
            }
            self.client = Some(client.clone());
        }
        Ok(client)
    }

    /// A governed way to the provider for requests that something else sends, such as a page of a browser: with the
    /// same pace, budget and memory as the client of this run.
    ///
    /// # Errors
    ///
    /// When it cannot be made, and when answers come from a recording: nothing is recorded of what others send.
    pub fn external_sender(&mut self, habits: Habits) -> Result<ExternalSender, Stop> {
        if self.tape.is_playing() {
            let message = "this connector asks through a browser, and no recording can answer for that";
            return Err(Stop::for_good(message, RecoveryAction::NotRetriable));
        }
        let mut settings = self.settings();
        settings.config.ceiling_interval = self.caps.min_interval.unwrap_or(habits.ceiling);
        settings.config.max_concurrency = habits.max_concurrency;
        settings.config.is_careful = habits.is_careful;
        settings.launch_jitter = habits.launch_jitter;
        let key = self.governors.key(self.provider(), self.account().as_ref().map(String::as_bytes));
        let governor = self.governors.governor(&key, &settings).map_err(gleaner_http::Error::from)?;
        let sender = ExternalSender::new(self.provider(), governor)?;
        if self.governor.is_none() {
            self.take_pace_of(sender.governor())?;
        }
        Ok(sender)
    }

    /// Begins at the pace that the last run had found, and shows and remembers this one.
    fn take_pace_of(&mut self, governor: &SendGovernor) -> Result<(), Stop> {
        if let Some(learned) = &self.learned {
            governor.restore(learned);
        }
        if let Some(trouble) = governor.memory_trouble() {
            self.say(trouble)?;
        }
        self.emitter.remember_pace_of(governor.clone());
        self.waits.watch(governor.clone());
        self.governor = Some(governor.clone());
        Ok(())
    }

    /// Whose limit it is.
    fn provider(&self) -> &'r str {
        self.manifest.provider.as_deref().unwrap_or(&self.manifest.connector_key)
    }

    /// What tells its account from others: its credentials, or without any what the runtime calls it.
    fn account(&self) -> Option<String> {
        self.credentials.fingerprint().or_else(|| self.setting(ACCOUNT_VARIABLE))
    }

    /// Masks these from now on in everything that is said for people: what a sign-in brought, such as a token.
    pub fn mask(&mut self, secrets: impl IntoIterator<Item = String>) {
        self.emitter.keep_answers(secrets);
    }

    /// A setting of the connector's own, from its environment: one that the manifest declares. Never for secrets, which
    /// are credentials.
    pub fn setting(&self, name: &str) -> Option<String> {
        (self.variable.0)(name).filter(|value| !value.trim().is_empty())
    }

    /// A client whose answers are those of a recording, for as long as there is no provider to ask: a sample that is
    /// collected as if it were one. What is not in it is answered with 404, as a provider would. All else of the run is
    /// as always.
    ///
    /// # Errors
    ///
    /// When the recording cannot be read, or the client cannot be made.
    pub fn sample_client(
        &mut self,
        exchanges: &str,
        configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Client, Stop> {
        let sample = Recording::parse(exchanges).map_err(|fault| Stop::of_author(format!("the sample: {fault}")))?;
        let sample = Arc::new(Played::sample(sample));
        sample.keep_secret(&self.credentials.values.values().cloned().collect::<Vec<_>>());
        Ok(configure(self.client_builder(Some(&sample))).build_blocking()?)
    }

    fn client_builder(&self, sample: Option<&Arc<Played>>) -> ClientBuilder {
        let mut builder = Client::builder(self.provider()).settings(self.settings()).governors(self.governors.clone());
        if let Some(account) = self.account() {
            builder = builder.credential(account);
        }
        self.tape.put_into(builder, sample)
    }

    /// The client's own settings, and what this run may do. Its wall clock is that of START alone: the
    /// other one begins when the budget is first asked, which the governor cannot know.
    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        if let Some(interval) = self.caps.min_interval {
            settings.config.ceiling_interval = interval;
        }
        let passed = Duration::from_millis(self.clock.now().as_millis().saturating_sub(self.started.as_millis()));
        // Zero would mean that there is no limit.
        let left = |length: Duration| length.saturating_sub(passed).max(Duration::from_millis(1));
        let wall_clock = self.caps.max_duration.map(left);
        settings.config.run_budget = RunBudgetConfig { request_cap: self.caps.max_requests, wall_clock };
        settings
    }

    /// Says how far a stream is, after everything that the cursor covers, and shows the pace now and then.
    ///
    /// # Errors
    ///
    /// As [`Emitter::slice`].
    pub fn slice(&mut self, stream: &str, cursor: &Cursor) -> Result<(), Stop> {
        self.emitter.slice(stream, cursor)?;
        self.cursors.insert(stream.to_owned(), cursor.clone());
        self.report_rate_now_and_then()
    }

    /// Shows the pace unless it was shown just now. Between two slices, too: at a provider that is asked once
    /// a second, a slice of a hundred takes minutes.
    pub(crate) fn report_rate_now_and_then(&mut self) -> Result<(), Stop> {
        if self.governor.is_none() {
            return Ok(());
        }
        let now = self.clock.now();
        if self.last_readout.is_none_or(|last| now >= last + READOUT_EVERY) { self.report_rate() } else { Ok(()) }
    }

    /// Shows the present pace, and what the circuit did. Says nothing where there is no pace.
    ///
    /// # Errors
    ///
    /// When nobody reads any more.
    pub fn report_rate(&mut self) -> Result<(), Stop> {
        let Some(governor) = &self.governor else { return Ok(()) };
        self.last_readout = Some(self.clock.now());
        for progress in rate::readout(governor) {
            self.emitter.progress(progress)?;
        }
        Ok(())
    }

    /// Says something for people.
    ///
    /// # Errors
    ///
    /// When nobody reads any more.
    pub fn say(&mut self, message: impl Into<String>) -> Result<(), Stop> {
        self.emitter.say(message)
    }

    /// Waits for an open circuit, unless the run's time would be over before: then `false`, at once.
    pub(crate) fn pause(&self, wait: Duration) -> bool {
        let is_too_long = self.budget.time_left(self.clock.now()).is_some_and(|left| left <= wait);
        if !is_too_long {
            self.waits.while_circuit_is_open(wait, || self.clock.pause(wait));
        }
        !is_too_long
    }

    /// Everything of a stream is sent or accounted for as gaps. `pages` and lanes say this themselves; a
    /// stream that was collected in another way would otherwise count as unfinished when the budget ends.
    pub fn finished(&mut self, stream: &str) {
        self.accounted_for.insert(stream.to_owned());
    }

    pub(crate) fn is_accounted_for(&self, stream: &str) -> bool {
        self.accounted_for.contains(stream)
    }
}
