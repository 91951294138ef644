//! A connector, an engine and a store in one place, for the tests that feed them badly or take the
//! ground away: a home for a store, a run that is driven line by line, and the driver as a process.
//!
//! It decides nothing: effects are carried out in their order and answers go back, as a runtime
//! would. It never hides an error of the store, and never looks into the store by itself.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::disallowed_methods, reason = "tests know what time it is, and wait")]

use gleaner_engine::{
    AttemptLimits, CooldownPolicy, EFFECTS_MAX, Effect, Exit, LeaseId, NoSchema, Now, OwnerEffect, Run, RunConfig,
    RunId, RunOutcome, Steady, StoreEffect, Time, Validate, WallTime,
};
use gleaner_protocol::{Decoder, Event, Limits, Manifest, ManifestOrigin, Scope, StreamScope};
use gleaner_store::{Acquired, Holder, Lease, LeaseOn, Reader, RunStart, Session, Store, StoreError};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// `items` change, `log` only grows, `details` are accounted for under `items`.
pub(crate) const MANIFEST: &str = r#"{"connector_id":"faulty","connector_key":"faulty","version":"1","streams":[
    {"name":"items","semantics":"mutable_state","primary_key":"id",
     "schema":{"type":"object","properties":{"id":{},"name":{}}}},
    {"name":"log","semantics":"append_only","primary_key":"id"},
    {"name":"details","semantics":"mutable_state","primary_key":"id","parent_streams":["items"],
     "coverage_strategy":"parent_detail_accounting"}]}"#;

/// Whether the long versions of tests were asked for.
pub(crate) fn full_size() -> bool {
    std::env::var_os("GLEANER_TEST_ALL").is_some()
}

pub(crate) fn now() -> Now {
    let millis = gleaner_base::clock::unix_millis();
    Now { time: Time::from_millis(millis), wall: WallTime::from_unix_millis(millis) }
}

pub(crate) fn parse(manifest: &str) -> Manifest {
    Manifest::parse(manifest.as_bytes(), ManifestOrigin::Foreign).expect("a manifest")
}

pub(crate) fn record(stream: &str, key: &str, data: &str) -> String {
    let key = serde_json::to_string(key).expect("a text");
    record_raw(stream, &key, data)
}

/// With the key as it stands in the line.
pub(crate) fn record_raw(stream: &str, key: &str, data: &str) -> String {
    format!(
        "{{\"type\":\"RECORD\",\"stream\":\"{stream}\",\"key\":{key},\"data\":{data},\
         \"emitted_at\":\"2031-01-01T00:00:00Z\"}}\n"
    )
}

pub(crate) fn delete(stream: &str, key: &str) -> String {
    format!("{{\"type\":\"RECORD\",\"stream\":\"{stream}\",\"key\":\"{key}\",\"op\":\"delete\"}}\n")
}

/// A cursor that counts as soon as what came before it is durable.
pub(crate) fn slice_state(stream: &str, cursor: &str) -> String {
    format!("{{\"type\":\"STATE\",\"stream\":\"{stream}\",\"cursor\":{cursor},\"slice\":true}}\n")
}

/// A cursor that counts at the end of the run.
pub(crate) fn state(stream: &str, cursor: &str) -> String {
    format!("{{\"type\":\"STATE\",\"stream\":\"{stream}\",\"cursor\":{cursor}}}\n")
}

pub(crate) fn gap(stream: &str, key: &str) -> String {
    format!(
        "{{\"type\":\"DETAIL_GAP\",\"stream\":\"{stream}\",\"parent_stream\":\"items\",\"record_key\":\"{key}\",\
         \"reason\":\"temporary_unavailable\",\"detail_locator\":{{\"at\":\"{key}\"}},\"reference_only\":true}}\n"
    )
}

pub(crate) fn progress(message: &str) -> String {
    format!("{{\"type\":\"PROGRESS\",\"message\":\"{message}\"}}\n")
}

pub(crate) fn coverage(required: &[&str], hydrated: &[&str], gaps: &[&str]) -> String {
    let list = |keys: &[&str]| serde_json::to_string(keys).expect("texts");
    format!(
        "{{\"type\":\"DETAIL_COVERAGE\",\"stream\":\"details\",\"state_stream\":\"items\",\"required_keys\":{},\
         \"hydrated_keys\":{},\"gap_keys\":{},\"reference_only\":true}}\n",
        list(required),
        list(hydrated),
        list(gaps)
    )
}

pub(crate) fn done(records: u64) -> String {
    format!("{{\"type\":\"DONE\",\"status\":\"succeeded\",\"records_emitted\":{records}}}\n")
}

/// A folder with a store in it, gone at the end.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.at("store.db")
    }

    pub(crate) fn open(&self) -> Store {
        Store::open(&self.path()).expect("a store")
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(&self.path()).expect("a store to read")
    }

    /// One run of connection `c` with the common manifest.
    pub(crate) fn run(&self, lines: &str) -> RunOutcome {
        self.run_bytes(lines.as_bytes())
    }

    pub(crate) fn run_bytes(&self, lines: &[u8]) -> RunOutcome {
        self.run_of("c", MANIFEST, lines)
    }

    pub(crate) fn run_of(&self, connection: &str, manifest: &str, lines: &[u8]) -> RunOutcome {
        let mut sitting = Sitting::begin(self.open(), connection, manifest);
        sitting.feed(lines).expect("the store works");
        sitting.end().expect("the store works")
    }

    pub(crate) fn assert_whole(&self) {
        let damage = self.reader().verify(|_, _| {}).expect("it can be read");
        assert_eq!(damage, [], "verify");
    }

    pub(crate) fn body(&self, stream: &str, key: &str) -> Option<String> {
        self.reader().record("c", stream, key).expect("readable").and_then(|record| record.body)
    }

    /// The committed cursor of a stream of `c`.
    pub(crate) fn cursor(&self, stream: &str) -> Option<String> {
        let bookmarks = self.reader().bookmarks::<Steady>("c").expect("readable");
        bookmarks.iter().find(|cursor| cursor.stream() == stream).map(|cursor| cursor.token().as_str().to_owned())
    }

    pub(crate) fn sql<R: rusqlite::types::FromSql>(&self, sql: &str) -> R {
        let connection = rusqlite::Connection::open(self.path()).expect("a database");
        connection.query_row(sql, [], |row| row.get(0)).expect(sql)
    }

    pub(crate) fn execute(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.path()).expect("a database");
        connection.execute_batch(sql).expect(sql);
    }

    /// Every row of every table, as text.
    pub(crate) fn dump(&self) -> String {
        dump(&self.path())
    }
}

pub(crate) fn dump(path: &Path) -> String {
    let connection = rusqlite::Connection::open(path).expect("a database");
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let mut statement = connection.prepare(sql).expect(sql);
    let tables = statement.query_map([], |row| row.get::<_, String>(0)).expect("tables");
    let mut text = String::new();
    for table in tables.map(|table| table.expect("a name")) {
        let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\"")).expect("a table");
        let columns = statement.column_count();
        let mut rows = statement.query([]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            text.push_str(&table);
            for column in 0..columns {
                text.push_str(&format!("|{:?}", row.get_ref(column).expect("a value")));
            }
            text.push('\n');
        }
    }
    text
}

/// What a run is begun with.
pub(crate) struct Terms {
    pub(crate) scope: Option<Scope>,
    pub(crate) validator: Box<dyn Validate>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { scope: None, validator: Box::new(NoSchema) }
    }
}

/// A run and its store.
pub(crate) struct Sitting {
    pub(crate) store: Store,
    pub(crate) session: Option<Session<Steady>>,
    pub(crate) run: Run<Steady>,
    pub(crate) run_id: String,
    decoder: Decoder,
    pub(crate) outcome: Option<RunOutcome>,
    /// Slices that the store has confirmed.
    pub(crate) receipts: usize,
    /// The numbers of the questions that were asked.
    pub(crate) questions: Vec<i64>,
}

pub(crate) fn lease(store: &mut Store, connection: &str) -> Vec<Lease> {
    let holder = Holder::current().expect("a process");
    match store.acquire(&[LeaseOn::Connection(connection)], &holder, now().wall).expect("the store works") {
        Acquired::Yes { leases, .. } => leases,
        Acquired::Held(by) => panic!("held by {by:?}"),
    }
}

pub(crate) fn start(connection: &str, name: &str, manifest: &Manifest) -> RunStart {
    RunStart {
        connection: connection.to_owned(),
        run_id: RunId::new(name),
        lease: LeaseId::new(name),
        grant: "all".to_owned(),
        limits: AttemptLimits::of(manifest.refresh_policy.as_ref()),
        cooldown: CooldownPolicy::of(None, manifest.refresh_policy.as_ref()),
        about: gleaner_store::RunAbout::default(),
    }
}

impl Sitting {
    pub(crate) fn begin(store: Store, connection: &str, manifest: &str) -> Self {
        Self::begin_with(store, connection, manifest, Terms::default())
    }

    pub(crate) fn begin_with(mut store: Store, connection: &str, manifest: &str, terms: Terms) -> Self {
        let parsed = parse(manifest);
        let leases = lease(&mut store, connection);
        store.register(connection, manifest, &parsed, now().wall).expect("registered");
        let run_id = format!("{connection}-{}", leases[0].epoch().get());
        let start = start(connection, &run_id, &parsed);
        let session = store.begin_run::<Steady>(start.clone(), leases, now().wall).expect("begun");
        let all = || parsed.streams.iter().map(|stream| StreamScope::all_of(&stream.name)).collect();
        let config = RunConfig {
            run_id: start.run_id,
            lease: start.lease,
            scope: terms.scope.unwrap_or_else(|| Scope::new(all()).expect("a scope")),
            manifest: Arc::new(parsed),
            bookmarks: session.bookmarks(),
            bindings: vec!["interactive".to_owned()],
            grant_expires_at: None,
            validator: terms.validator,
            silence_max: None,
            effects_max: EFFECTS_MAX,
        };
        let run = Run::new(config, now()).expect("a run");
        let (decoder, session) = (Decoder::new(Limits::default()), Some(session));
        Self { store, session, run, run_id, decoder, outcome: None, receipts: 0, questions: Vec::new() }
    }

    /// Takes a piece of a connector's output.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(Limits::default()));
        let mut feed = decoder.feed(bytes);
        while let Some(event) = feed.next() {
            self.offer(&event)?;
        }
        self.decoder = decoder;
        Ok(())
    }

    fn offer(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        while self.run.handle_event(event, now()).is_err() {
            self.step()?;
        }
        while self.step()? {}
        Ok(())
    }

    /// The connector has ended, with the code that fits what it said.
    pub(crate) fn end(&mut self) -> Result<RunOutcome, StoreError> {
        if let Err(violation) = self.decoder.finish() {
            self.run.handle_violation(violation, now());
        }
        self.run.handle_exit(Exit::Code(0), now());
        while self.step()? {}
        Ok(self.outcome.clone().expect("a run ends"))
    }

    fn step(&mut self) -> Result<bool, StoreError> {
        let Some(effect) = self.run.poll_effect() else { return Ok(false) };
        let now = now();
        let session = self.session.as_mut().expect("no effect comes after the end");
        match effect {
            Effect::Store(effect) => {
                self.receipts += usize::from(matches!(effect, StoreEffect::WriteSlice(_)));
                self.store.carry_out(session, &mut self.run, effect, now)?;
            }
            Effect::Finish(outcome) => {
                let session = self.session.take().expect("one end");
                self.store.finish_run(session, &outcome, now.wall)?;
                self.outcome = Some(*outcome);
            }
            Effect::Owner(OwnerEffect::Ask(question)) => {
                self.questions.push(self.store.ask(session, &question, None, now.wall)?);
            }
            // There is no process, and nobody who could have answered.
            Effect::Process(_) | Effect::Owner(OwnerEffect::Withdraw { .. }) => {}
        }
        Ok(true)
    }
}

/// How a driver process ended.
#[derive(Debug)]
pub(crate) struct Driven {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The most memory that it had, in KiB.
    pub(crate) peak_kib: u64,
}

impl Driven {
    /// The last `saved N`: so many record lines it vouched for.
    pub(crate) fn saved(&self) -> u64 {
        let last = self.stdout.lines().rev().find_map(|line| line.strip_prefix("saved "));
        last.map_or(0, |number| number.parse().expect("a number"))
    }
}

/// The driver, as a command that is yet to be started.
pub(crate) fn ingest_command(home: &Home) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_store-driver"));
    command.args(ingest_arguments(home));
    command
}

pub(crate) fn ingest_arguments(home: &Home) -> [PathBuf; 3] {
    let manifest = home.at("manifest.json");
    std::fs::write(&manifest, MANIFEST).expect("a file");
    ["ingest".into(), home.path(), manifest]
}

/// Feeds a driver until `write` has nothing more. A driver that ends early is no error of the feed.
pub(crate) fn drive(mut command: Command, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Driven {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the driver starts");
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let sampler = watch_memory(&child);
    let mut stdin = BufWriter::with_capacity(64 * 1024, child.stdin.take().expect("a pipe"));
    match write(&mut stdin).and_then(|()| stdin.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => drop(stdin.into_parts()),
        other => {
            other.expect("the pipe works");
            drop::<ChildStdin>(stdin.into_inner().expect("flushed"));
        }
    }
    let status = child.wait().expect("it ends");
    let text = |thread: JoinHandle<String>| thread.join().expect("a thread");
    let peak_kib = sampler.join().expect("a thread");
    Driven { success: status.success(), stdout: text(stdout), stderr: text(stderr), peak_kib }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    let mut pipe = pipe.expect("a pipe");
    std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("text");
        text
    })
}

/// The high-water mark only grows, so the last look before the end has it, but for the last moment.
fn watch_memory(child: &Child) -> JoinHandle<u64> {
    let status = format!("/proc/{}/status", child.id());
    let us = peak_of(&format!("/proc/{}/status", std::process::id()));
    std::thread::spawn(move || {
        let mut peak = 0;
        // Between fork and exec it would be our own memory; then it is gone, or a zombie without memory.
        while let Some(kib) = peak_of(&status) {
            peak = if Some(kib) == us { peak } else { kib };
            std::thread::sleep(Duration::from_millis(1));
        }
        peak
    })
}

fn peak_of(status: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Ends a process and takes its remains away.
pub(crate) fn kill(child: &mut Child) {
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}
