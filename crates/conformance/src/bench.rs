//! Where a connector is started: scratch stores in a temporary folder, and limits that always hold.
//!
//! Every start ends: by itself, by its limit, or because the time of the whole is over. Nothing of the
//! user's is written to.

use crate::ask::{Ask, Treatment};
use crate::checked_run::{self, CONNECTION, Ground, JudgedRun, Order};
use crate::child::{Child, Output};
use crate::observed::{Late, Lines, Observed};
use crate::report::{Board, Finding};
use crate::subject::Subject;
use gleaner_engine::{Exit, WallTime};
use gleaner_runtime::Environment;
use gleaner_store::Store;
use rustix::process::Signal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often it is looked whether the process has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(3);
/// How long output may go on after the process has ended.
const DRAIN_MAX: Duration = Duration::from_millis(500);
/// How long what was left behind may take to end.
const LEFTOVER_GRACE: Duration = Duration::from_millis(300);
/// A start that has less time than this left is not begun.
const WORTH_STARTING: Duration = Duration::from_millis(500);

/// A place for starts.
pub(crate) struct Bench<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) ground: Ground,
    manifest_text: String,
    folder: tempfile::TempDir,
    until: Instant,
    pub(crate) starts: u32,
    stores: u32,
    /// The system could not start it.
    pub(crate) spawn_failed: bool,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(subject: &'a Subject, ground: Ground, manifest_text: String) -> std::io::Result<Self> {
        let place = subject.scratch.clone().unwrap_or_else(std::env::temp_dir);
        let folder = tempfile::Builder::new().prefix("gleaner-conformance-").tempdir_in(place)?;
        let until = Instant::now() + subject.limits.total;
        Ok(Self { subject, ground, manifest_text, folder, until, starts: 0, stores: 0, spawn_failed: false })
    }

    /// A store that nothing was written to.
    pub(crate) fn fresh_store(&mut self) -> Result<Store, String> {
        self.stores += 1;
        let path: PathBuf = self.folder.path().join(format!("store-{}.db", self.stores));
        let mut store = Store::open(&path).map_err(|error| error.to_string())?;
        let manifest = &self.ground.manifest;
        store
            .register(CONNECTION, &self.manifest_text, manifest, WallTime::default())
            .map_err(|error| error.to_string())?;
        Ok(store)
    }

    /// Until when a start that is begun now must have ended.
    pub(crate) fn deadline(&self) -> Result<Instant, String> {
        let now = Instant::now();
        if now + WORTH_STARTING > self.until {
            return Err(self.no_time());
        }
        Ok(self.until.min(now + self.subject.limits.start))
    }

    fn no_time(&self) -> String {
        format!("no time was left: all checks together may take {:?}", self.subject.limits.total)
    }

    /// What a start proves that did not end: nothing, if it was ended because the whole must end.
    ///
    /// # Errors
    ///
    /// That there was no time left.
    pub(crate) fn check_time(&self, ended: bool) -> Result<(), String> {
        if ended || Instant::now() < self.until { Ok(()) } else { Err(self.no_time()) }
    }

    /// Starts the connector once, in a store of its own.
    pub(crate) fn start_fresh(&mut self, ask: &Ask, board: &mut Board<'_>) -> Result<Observed, String> {
        let mut store = self.fresh_store()?;
        self.start_in_fresh(ask, &mut store, board)
    }

    /// The same in a store that nothing was written to.
    pub(crate) fn start_in_fresh(
        &mut self,
        ask: &Ask,
        store: &mut Store,
        board: &mut Board<'_>,
    ) -> Result<Observed, String> {
        self.start(ask, store, board).map(|run| Observed { is_fresh: true, ..run })
    }

    /// Starts the connector once.
    ///
    /// # Errors
    ///
    /// Why it was not started, or could not be judged.
    pub(crate) fn start(&mut self, ask: &Ask, store: &mut Store, board: &mut Board<'_>) -> Result<Observed, String> {
        let deadline = self.deadline()?;
        board.tell(&Finding::Start(ask.name));
        self.starts += 1;
        let mark = self.mark();
        let (keeper, line) = checked_run::begin(store, &self.ground, ask)?;
        let slow = if let Treatment::Slow(slow) = ask.treatment { Some(slow) } else { None };
        let child = Child::start(self.subject, &self.environment(&ask.without), mark, slow);
        self.spawn_failed = child.is_err();
        let child = child?;
        let mut trial = Trial::new(self.subject, ask, keeper, child, deadline);
        trial.child.send(line);
        if ask.treatment == Treatment::EndOfInput {
            trial.child.close_input();
        }
        let exit = trial.drive();
        let run = trial.observe(exit)?;
        self.check_time(run.late != Some(Late::End))?;
        Ok(run)
    }

    /// A word by which the processes of this start are known.
    pub(crate) fn mark(&self) -> String {
        format!("{}-{}", std::process::id(), self.folder.path().join(self.starts.to_string()).display())
    }

    /// The folder for what outlives a kill, for its owner alone.
    pub(crate) fn pacing_folder(&self) -> Result<PathBuf, String> {
        let folder = self.folder.path().join("pacing");
        let made = gleaner_base::private::make_folders(&folder);
        made.map(|()| folder).map_err(|error| error.to_string())
    }

    pub(crate) fn environment(&self, without: &[String]) -> Environment {
        let mut environment = Environment::default();
        for (name, value) in self.subject.environment.iter() {
            if !without.iter().any(|taken| name == taken.as_str()) {
                environment.set(name, value);
            }
        }
        environment
    }
}

/// One start while it goes on.
struct Trial<'t, 's> {
    subject: &'t Subject,
    ask: &'t Ask,
    keeper: Box<dyn JudgedRun + 's>,
    child: Child,
    lines: Lines,
    began: Instant,
    deadline: Instant,
    /// When its input is to be closed.
    close_at: Option<Instant>,
    /// When its input was closed because the engine accepted DONE.
    acknowledged: Option<Instant>,
    terminated: Option<Instant>,
    late: Option<Late>,
    left_early: bool,
    /// Cut by us, in the middle.
    cut: bool,
    over: bool,
}

impl<'t, 's> Trial<'t, 's> {
    fn new(
        subject: &'t Subject,
        ask: &'t Ask,
        keeper: Box<dyn JudgedRun + 's>,
        child: Child,
        deadline: Instant,
    ) -> Self {
        Self {
            subject,
            ask,
            keeper,
            child,
            lines: Lines::default(),
            began: Instant::now(),
            deadline,
            close_at: None,
            acknowledged: None,
            terminated: None,
            late: None,
            left_early: false,
            cut: false,
            over: false,
        }
    }

    /// Goes round until the process has ended, or is ended.
    fn drive(&mut self) -> Exit {
        loop {
            match self.child.output(LOOK_AGAIN) {
                Output::Bytes(bytes) => self.take(&bytes),
                // Its output is closed, its exit is near: do not spin.
                Output::Closed => std::thread::sleep(Duration::from_millis(1)),
                Output::Nothing => {}
            }
            if self.over {
                return self.child.kill();
            }
            if let Some(exit) = self.child.exit() {
                self.left_early = self.acknowledged.is_none();
                self.drain();
                return exit;
            }
            self.look_at_the_clock();
            if self.late.is_some() {
                return self.child.kill();
            }
        }
    }

    /// What was written before the end is part of it.
    fn drain(&mut self) {
        let until = Instant::now() + DRAIN_MAX;
        while Instant::now() < until && !self.over {
            match self.child.output(LOOK_AGAIN) {
                Output::Bytes(bytes) => self.take(&bytes),
                Output::Closed => return,
                Output::Nothing => {}
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let (taken, reached) = match self.ask.treatment {
            Treatment::Kill(after) | Treatment::Terminate(after) => up_to_line(bytes, self.lines.count(), after),
            _ => (bytes, false),
        };
        self.hand_over(taken);
        if !reached {
            return;
        }
        if let Treatment::Kill(_) = self.ask.treatment {
            self.cut = true;
            self.over = true;
        } else {
            if self.terminated.is_none() {
                self.terminated = Some(Instant::now());
                self.child.signal(Signal::TERM);
            }
            self.hand_over(&bytes[taken.len()..]);
        }
    }

    fn hand_over(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
        for order in self.keeper.feed(bytes) {
            match order {
                Order::Send(line) => self.child.send(line),
                Order::CloseInput => self.close_at = Some(Instant::now() + self.ask.linger),
                Order::End => self.over = true,
            }
        }
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        let limits = &self.subject.limits;
        if self.close_at.is_some_and(|at| now >= at) && self.acknowledged.is_none() {
            self.child.close_input();
            self.acknowledged = Some(now);
        }
        let passed = |since: Option<Instant>, max: Duration| since.is_some_and(|since| now >= since + max);
        let silent = self.lines.count() == 0 && passed(Some(self.began), limits.first_line);
        self.late = if passed(self.terminated, limits.after_term) {
            Some(Late::ExitAfterTerm)
        } else if passed(self.acknowledged, limits.after_ack) && self.terminated.is_none() {
            Some(Late::ExitAfterAck)
        } else if silent {
            Some(Late::FirstLine)
        } else {
            (now >= self.deadline).then_some(Late::End)
        };
    }

    fn observe(mut self, exit: Exit) -> Result<Observed, String> {
        let cancelled = self.cut || self.terminated.is_some() || self.late.is_some();
        // What was cut by us did not leave anything: we did not let it clean up.
        let grace = if cancelled || self.over { Duration::ZERO } else { LEFTOVER_GRACE };
        let leftovers = self.child.end_leftovers(grace);
        let errors = self.child.errors(DRAIN_MAX);
        self.keeper.end(exit, cancelled);
        let broken = self.keeper.violation().is_some();
        // How much comes after a breach is chance.
        if let Some(breach) = self.keeper.violation().and_then(|violation| violation.position) {
            self.lines.lines.retain(|line| line.number <= breach.line);
        }
        let (outcome, kept) = self.keeper.outcome()?;
        Ok(Observed {
            name: self.ask.name,
            line_count: self.lines.count(),
            is_cut: self.lines.is_cut(),
            lines: self.lines.lines,
            is_fresh: false,
            kept,
            outcome,
            exit,
            errors,
            late: self.late,
            left_early: self.left_early && !broken,
            leftovers: if cancelled || self.over { Vec::new() } else { leftovers },
        })
    }
}

/// The bytes up to the end of a line, and whether it is in them.
fn up_to_line(bytes: &[u8], seen: u64, after: u64) -> (&[u8], bool) {
    let mut seen = seen;
    if seen >= after {
        return (bytes, true);
    }
    for (at, &byte) in bytes.iter().enumerate() {
        if byte == b'\n' {
            seen += 1;
            if seen == after {
                return (&bytes[..=at], true);
            }
        }
    }
    (bytes, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_cut_after_an_exact_line() {
        assert_eq!(up_to_line(b"a\nb\nc\nd", 0, 2), (&b"a\nb\n"[..], true));
        assert_eq!(up_to_line(b"a\nb", 4, 5), (&b"a\n"[..], true));
        assert_eq!(up_to_line(b"a\nb", 0, 2), (&b"a\nb"[..], false));
    }
}
