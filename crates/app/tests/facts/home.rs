//! A store with one connection, and runs that end as a test wants, without a connector.

use gleaner_app::{App, ConnectionView, Look, Program};
use gleaner_engine::{
    AttemptLimits, CooldownPolicy, Counts, LeaseId, RunId, RunOutcome, RunPurpose, Steady, Track, WallTime,
};
use gleaner_protocol::{
    DoneError, Manifest, ManifestOrigin, PressureReason, RecoveryAction, RecoveryHint, TerminalReason,
};
use gleaner_schedule::{Facts, Next};
use gleaner_store::{Acquired, Holder, LeaseOn, Reader, RunAbout, RunStart, Session, Store};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) const NAME: &str = "shop";
pub(crate) const MINUTE: u64 = 60_000;
/// Some day.
pub(crate) const T: u64 = 1_900_000_000_000;

pub(crate) fn at(millis: u64) -> WallTime {
    WallTime::from_unix_millis(millis)
}

pub(crate) struct Home {
    folder: TempDir,
    pub(crate) store: Store,
    runs: u64,
}

/// One run: what for, with what, and how it ends.
pub(crate) struct Ran {
    pub(crate) purpose: RunPurpose,
    pub(crate) version: &'static str,
    pub(crate) credential: Option<&'static str>,
    pub(crate) reason: TerminalReason,
    pub(crate) pressure: Option<PressureReason>,
    pub(crate) error: Option<DoneError>,
    pub(crate) collected: u64,
}

impl Default for Ran {
    fn default() -> Self {
        Self {
            purpose: RunPurpose::Full,
            version: "1",
            credential: Some("hash-1"),
            reason: TerminalReason::Succeeded,
            pressure: None,
            error: None,
            collected: 0,
        }
    }
}

/// What a connector says when it gives up.
pub(crate) fn gave_up(retryable: bool, action: Option<RecoveryAction>) -> Ran {
    let recovery_hint = action.map(|action| RecoveryHint { action, retryable: None });
    let error = DoneError { message: "it failed".to_owned(), retryable, code: None, recovery_hint };
    Ran { reason: TerminalReason::ConnectorFailed, error: Some(error), ..Ran::default() }
}

impl Home {
    pub(crate) fn new() -> Self {
        let private = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.db")).unwrap();
        let mut home = Self { folder, store, runs: 0 };
        home.register("1");
        home
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(&self.path()).unwrap()
    }

    pub(crate) fn app(&self) -> App {
        App::new(self.folder.path().to_owned(), Program { executable: None, check_config: |_| Ok(()) })
    }

    /// Takes a version of the connector, which runs every hour.
    pub(crate) fn register(&mut self, version: &str) {
        let text = format!(
            r#"{{"connector_id":"shop","connector_key":"shop","version":"{version}",
            "streams":[{{"name":"orders","semantics":"mutable_state","primary_key":"id"}}],
            "capabilities":{{"refresh_policy":{{"recommended_mode":"automatic","rationale":"r",
            "recommended_interval_seconds":3600}}}}}}"#
        );
        let manifest = Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).unwrap();
        self.store.register(NAME, &text, &manifest, at(T)).unwrap();
    }

    pub(crate) fn begin<K: Track>(&mut self, ran: &Ran, began: u64) -> Session<K> {
        self.runs += 1;
        let name = format!("run-{}", self.runs);
        let holder = Holder::current().unwrap();
        let Acquired::Yes { leases, .. } =
            self.store.acquire(&[LeaseOn::Connection(NAME)], &holder, at(began)).unwrap()
        else {
            panic!("somebody else has it")
        };
        let start = RunStart {
            connection: NAME.to_owned(),
            run_id: RunId::new(&name),
            lease: LeaseId::new(&name),
            grant: "owner".to_owned(),
            limits: AttemptLimits::of(None),
            cooldown: CooldownPolicy::of(None, None),
            about: RunAbout {
                purpose: ran.purpose,
                connector_version: Some(ran.version.to_owned()),
                credential: ran.credential.map(str::to_owned),
                ..RunAbout::default()
            },
        };
        self.store.begin_run(start, leases, at(began)).unwrap()
    }

    pub(crate) fn end<K: Track>(&mut self, session: Session<K>, ran: &Ran, ended: u64) {
        let outcome = RunOutcome {
            pressure: ran.pressure,
            error: ran.error.clone(),
            counts: Counts { seen: ran.collected, new: ran.collected, ..Counts::default() },
            ..RunOutcome::refused(ran.reason)
        };
        self.store.finish_run(session, &outcome, at(ended)).unwrap();
    }

    /// A run of a minute.
    pub(crate) fn ran(&mut self, ran: &Ran, began: u64) {
        let session = self.begin::<Steady>(ran, began);
        self.end(session, ran, began + MINUTE);
    }

    pub(crate) fn facts(&self, now: u64, credential: Option<&str>) -> Facts {
        let reader = self.reader();
        let mut look = Look::at(&reader, at(now)).unwrap();
        look.credentials.extend(credential.map(|hash| (NAME.to_owned(), hash.to_owned())));
        ConnectionView::load(&reader, &mut look, NAME).unwrap().facts
    }

    pub(crate) fn next(&self, now: u64) -> Next {
        Next::steady(&self.facts(now, None), at(now))
    }
}
