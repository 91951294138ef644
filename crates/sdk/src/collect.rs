//! One run as an author's code sees it: the request, and all actions of the run.
//!
//! `pages.rs` and `lane.rs` have the ways of collecting a stream; here are their common parts: the governed client,
//! cursors, and coverage.

use crate::budget::Budget;
use crate::budget::caps::Caps;
use crate::clock::Clock;
use crate::connector::ACCOUNT_VARIABLE;
use crate::connector::credentials::Credentials;
use crate::emit::{Cursor, Emitter};
use crate::exchanges::{Played, RecordReplay, Recording};
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
    /// Bindings that the runtime grants to this run, each with its descriptor.
    pub(crate) bindings: BTreeMap<String, serde_json::Value>,
    pub(crate) variable: Variables<'r>,
    /// The author's part of each cursor, without the pacing fields.
    pub(crate) cursors: BTreeMap<String, Cursor>,
    pub(crate) started: Time,
    pub(crate) learned: Option<Learned>,
    /// Of this run only: a test may run many in one process.
    pub(crate) governors: Governors,
    pub(crate) client: Option<Client>,
    /// The governor whose pace is shown and saved: that of the first client or external sender.
    pub(crate) governor: Option<SendGovernor>,
    pub(crate) accounted_for: BTreeSet<String>,
    pub(crate) last_readout: Option<Time>,
    pub(crate) record_replay: RecordReplay,
    /// Current waits, for observers.
    pub(crate) waits: Waits,
}

/// Environment variables by name. Prints none of them.
pub(crate) struct Variables<'r>(pub(crate) &'r dyn Fn(&str) -> Option<String>);

gleaner_base::debug_only!(Variables<'_>);

/// Settings of an external sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderSettings {
    /// The shortest time between two sends, unless the owner sets another (`…_PACING_MIN_INTERVAL_MS`).
    pub ceiling: Duration,
    /// Random delay against synchronized clients; never slows the pace.
    pub launch_jitter: Duration,
    /// Maximum of requests in flight.
    pub max_concurrency: u16,
    /// Whether the account is penalized for refusals: finding the limit then costs one refusal, and after that at
    /// most one per hundred requests.
    pub conservative: bool,
}

/// Interval of rate reports. A person sees it change, and a run may have millions of slices.
const READOUT_EVERY: Duration = Duration::from_millis(250);

impl<'r> Collect<'r> {
    /// The emitter, for streams collected in another way.
    pub const fn emitter(&mut self) -> &mut Emitter<'r> {
        &mut self.emitter
    }

    /// The unique id of this run.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The connector's manifest.
    pub const fn manifest(&self) -> &'r Manifest {
        self.manifest
    }

    /// The cursor that the last run left for a stream.
    pub fn cursor(&self, stream: &str) -> Option<&Cursor> {
        self.cursors.get(stream)
    }

    /// The requested scope of a stream; `None` when nothing is requested. The framework drops unrequested records; an
    /// author who can request less from the provider looks here.
    pub fn scope(&self, stream: &str) -> Option<&StreamScope> {
        self.scope.iter().find(|asked| asked.name == stream)
    }

    /// Full or incremental.
    pub const fn mode(&self) -> CollectionMode {
        self.mode
    }

    /// Whether only gaps are recovered, without a forward walk.
    pub const fn is_recovery_only(&self) -> bool {
        self.recovery_only
    }

    /// The descriptor of a binding that this run may use, such as the path of its browser profile; `None` when it may
    /// not.
    pub fn binding(&self, name: &str) -> Option<&serde_json::Value> {
        self.bindings.get(name)
    }

    /// A credential required by the manifest, by its name or an alias.
    ///
    /// # Errors
    ///
    /// The manifest does not require it, so nobody could have provided it.
    pub fn credential(&self, name: &str) -> Result<&str, Stop> {
        self.credentials.get(name).ok_or_else(|| {
            Stop::of_author(format!("the manifest does not require {name}; name it under capabilities.auth.required"))
        })
    }

    /// The client of this run: governed, started at the rate of the last run, bound to this account, and within the
    /// run's budget.
    ///
    /// # Errors
    ///
    /// The client cannot be created.
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
    /// The client cannot be created.
    pub fn client_with(&mut self, configure: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Result<Client, Stop> {
        let client = configure(self.client_builder(None)).build_blocking()?;
        let governor = client.governor();
        if self.client.is_none() {
            // Replays have no pace to restore, show or save.
            if !self.record_replay.is_playing() {
                self.take_pace_of(governor)?;
            }
            self.client = Some(client.clone());
        }
        Ok(client)
    }

    /// Governs requests that another program sends, such as a page in a browser: with the same pace, budget and saved
    /// state as the client of this run.
    ///
    /// # Errors
    ///
    /// It cannot be created, or the run is a replay: external sends are not recorded.
    pub fn external_sender(&mut self, settings_of_sender: SenderSettings) -> Result<ExternalSender, Stop> {
        if self.record_replay.is_playing() {
            let message = "this connector sends through a browser, which cannot be replayed";
            return Err(Stop::for_good(message, RecoveryAction::NotRetriable));
        }
        let mut settings = self.settings();
        settings.config.ceiling_interval = self.caps.min_interval.unwrap_or(settings_of_sender.ceiling);
        settings.config.max_concurrency = settings_of_sender.max_concurrency;
        settings.config.conservative = settings_of_sender.conservative;
        settings.launch_jitter = settings_of_sender.launch_jitter;
        let key = self.governors.key(self.provider(), self.account().as_ref().map(String::as_bytes));
        let governor = self.governors.governor(&key, &settings).map_err(gleaner_http::Error::from)?;
        let sender = ExternalSender::new(self.provider(), governor)?;
        if self.governor.is_none() {
            self.take_pace_of(sender.governor())?;
        }
        Ok(sender)
    }

    /// Restores the rate of the last run, and shows and saves this one.
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

    /// Name of the key.
    fn provider(&self) -> &'r str {
        self.manifest.provider.as_deref().unwrap_or(&self.manifest.connector_key)
    }

    /// Identifies the account: by its credentials, or by the runtime's name for it.
    fn account(&self) -> Option<String> {
        self.credentials.fingerprint().or_else(|| self.setting(ACCOUNT_VARIABLE))
    }

    /// Masks these in all messages for people: secrets from a sign-in, such as a token.
    pub fn mask(&mut self, secrets: impl IntoIterator<Item = String>) {
        self.emitter.keep_answers(secrets);
    }

    /// A setting of the connector from its environment, declared by the manifest. Never for secrets; those are
    /// credentials.
    pub fn setting(&self, name: &str) -> Option<String> {
        (self.variable.0)(name).filter(|value| !value.trim().is_empty())
    }

    /// A client that answers from a recording, as long as there is no provider: a sample provider. Requests that are
    /// not in it get a 404. Everything else of the run is as usual.
    ///
    /// # Errors
    ///
    /// The recording is invalid, or the client cannot be created.
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
        self.record_replay.put_into(builder, sample)
    }

    /// The client's settings within this run's limits. Only the wall clock of START counts: the other one begins at
    /// the first check of the budget, which the governor cannot know.
    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        if let Some(interval) = self.caps.min_interval {
            settings.config.ceiling_interval = interval;
        }
        let passed = Duration::from_millis(self.clock.now().as_millis().saturating_sub(self.started.as_millis()));
        // Zero would mean no limit.
        let left = |length: Duration| length.saturating_sub(passed).max(Duration::from_millis(1));
        let wall_clock = self.caps.max_duration.map(left);
        settings.config.run_budget = RunBudgetConfig { request_cap: self.caps.max_requests, wall_clock };
        settings
    }

    /// Reports the cursor of a stream, after everything that it covers, and shows the rate now and then.
    ///
    /// # Errors
    ///
    /// See [`Emitter::slice`].
    pub fn slice(&mut self, stream: &str, cursor: &Cursor) -> Result<(), Stop> {
        self.emitter.slice(stream, cursor)?;
        self.cursors.insert(stream.to_owned(), cursor.clone());
        self.report_rate_now_and_then()
    }

    /// Shows the rate unless it was just shown. Also between two slices: at one request a second, a slice of a
    /// hundred takes minutes.
    pub(crate) fn report_rate_now_and_then(&mut self) -> Result<(), Stop> {
        if self.governor.is_none() {
            return Ok(());
        }
        let now = self.clock.now();
        if self.last_readout.is_none_or(|last| now >= last + READOUT_EVERY) { self.report_rate() } else { Ok(()) }
    }

    /// Shows the current rate and circuit transitions. Without pacing it shows nothing.
    ///
    /// # Errors
    ///
    /// The runtime no longer reads.
    pub fn report_rate(&mut self) -> Result<(), Stop> {
        let Some(governor) = &self.governor else { return Ok(()) };
        self.last_readout = Some(self.clock.now());
        for progress in rate::readout(governor) {
            self.emitter.progress(progress)?;
        }
        Ok(())
    }

    /// Sends a message for people.
    ///
    /// # Errors
    ///
    /// The runtime no longer reads.
    pub fn say(&mut self, message: impl Into<String>) -> Result<(), Stop> {
        self.emitter.say(message)
    }

    /// Waits for an open circuit; `false` at once if the run's time would end before.
    pub(crate) fn pause(&self, wait: Duration) -> bool {
        let is_too_long = self.budget.time_left(self.clock.now()).is_some_and(|left| left <= wait);
        if !is_too_long {
            self.waits.while_circuit_is_open(wait, || self.clock.pause(wait));
        }
        !is_too_long
    }

    /// Marks a stream as complete: everything was sent or has a gap. `pages` and lanes do this themselves; another
    /// stream would otherwise count as unfinished when the budget ends.
    pub fn finished(&mut self, stream: &str) {
        self.accounted_for.insert(stream.to_owned());
    }

    pub(crate) fn is_accounted_for(&self, stream: &str) -> bool {
        self.accounted_for.contains(stream)
    }
}
