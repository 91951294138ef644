//! The order of things: the manifest, a run from the beginning, and, if that works, everything else.
//!
//! Why the first run decides: a connector that cannot sign in, or breaks the contract in its third
//! line, would fail every later start in the same way. Then those are skipped, and say why.

use crate::ask::Ask;
use crate::bench::Bench;
use crate::checked_run::Ground;
use crate::judge;
use crate::observed::Observed;
use crate::report::{Board, Finding, Report};
use crate::subject::Subject;
use crate::{refusal, resume, runtime_run, selection, treatment};
use gleaner_protocol::{BindingKind, Manifest, RawJson};
use gleaner_runtime::Redactor;
use gleaner_store::Store;
use std::sync::Arc;

/// Checks a connector. `progress` is told what is started, and at the end every result.
///
/// Blocks for at most about `subject.limits.total`. It never fails: what could not be done is in the
/// report as skipped.
pub fn check(subject: &Subject, progress: &mut dyn FnMut(&Finding)) -> Report {
    let mut board = Board::new(progress);
    let mut starts = 0;
    if let Some((manifest, text)) = judge::manifest::judge(subject, &mut board) {
        let has_secrets = !secrets(subject, &manifest).is_empty();
        let ground = ground(subject, manifest);
        board.redactor = ground.redactor.clone();
        match Bench::new(subject, ground, text) {
            Ok(bench) => {
                let mut plan = Plan::new(bench, has_secrets);
                plan.carry_out(&mut board);
                starts = plan.bench.starts;
            }
            Err(error) => board.not_reached = format!("no temporary folder could be made: {error}"),
        }
    }
    board.into_report(subject.seed, starts)
}

/// What must not be seen: what the caller says, and the credentials that the manifest names.
fn secrets(subject: &Subject, manifest: &Manifest) -> Vec<String> {
    let names = manifest.auth.iter().flat_map(|auth| auth.required.iter().flatten());
    let values = names.filter_map(|name| subject.environment.get(name)?.to_str().map(ToOwned::to_owned));
    subject.secrets.iter().cloned().chain(values).filter(|secret| !secret.is_empty()).collect()
}

fn ground(subject: &Subject, manifest: Manifest) -> Ground {
    // Nobody is here to answer; everything else that it declares is there.
    let can_be_given = manifest.bindings.iter().filter(|binding| binding.kind != BindingKind::Interactive);
    let mut names = can_be_given.map(|binding| binding.name.clone()).collect::<Vec<_>>();
    for name in ["network", "filesystem"] {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    let bindings = names.into_iter().filter_map(|name| Some((name, RawJson::new("{}").ok()?))).collect();
    let collected = manifest.streams.iter().filter(|stream| !stream.coverage_policy.collects_nothing());
    let collected = collected.map(|stream| stream.name.clone()).collect();
    let streams = if subject.streams.is_empty() { collected } else { subject.streams.clone() };
    Ground { redactor: Redactor::new(secrets(subject, &manifest)), manifest: Arc::new(manifest), bindings, streams }
}

/// What the starts share.
pub(crate) struct Plan<'a> {
    pub(crate) bench: Bench<'a>,
    pub(crate) manifest: Arc<Manifest>,
    /// What is asked for.
    pub(crate) streams: Vec<String>,
    has_secrets: bool,
    /// Two runs from the beginning gave the same keys, so that runs can be compared.
    pub(crate) same_keys: bool,
}

impl<'a> Plan<'a> {
    fn new(bench: Bench<'a>, has_secrets: bool) -> Self {
        let (manifest, streams) = (Arc::clone(&bench.ground.manifest), bench.ground.streams.clone());
        Self { bench, manifest, streams, has_secrets, same_keys: false }
    }

    fn carry_out(&mut self, board: &mut Board<'_>) {
        let missing = self.missing_credentials();
        if !missing.is_empty() {
            treatment::missing_credentials(self, board);
            board.not_reached =
                format!("credentials are missing, so nothing was collected; set {}", missing.join(" and "));
            return;
        }
        let Some((full, mut store)) = self.full(board) else { return };
        resume::recover(self, &full, &mut store, board);
        resume::go_on(self, &full, &mut store, board);
        drop(store);
        self.same_keys = resume::again(self, &full, board);
        runtime_run::first_incremental(self, board);
        selection::one_stream(self, board);
        selection::resources(self, &full, board);
        selection::fields(self, &full, board);
        selection::time_range(self, &full, board);
        selection::everything_after(self, &full, board);
        resume::kill(self, &full, board);
        treatment::missing_credentials(self, board);
        treatment::budget(self, &full, board);
        treatment::slow_reader(self, &full, board);
        treatment::end_of_input(self, &full, board);
        treatment::terminate(self, &full, board);
        refusal::retry_after(self, board);
    }

    /// Names of credentials that were not given, one text per group.
    fn missing_credentials(&self) -> Vec<String> {
        let groups = self.manifest.auth.iter().flat_map(|auth| &auth.required);
        let is_there = |name: &String| self.bench.subject.environment.get(name).is_some_and(|value| !value.is_empty());
        groups.filter(|group| !group.iter().any(is_there)).map(|group| group.join(" or ")).collect()
    }

    /// The run from the beginning. `None` when the others need not be tried.
    fn full(&mut self, board: &mut Board<'_>) -> Option<(Observed, Store)> {
        let ask = Ask { linger: self.bench.subject.limits.linger, ..Ask::full("everything", &self.streams) };
        let started = self.bench.fresh_store().and_then(|mut store| {
            let full = self.bench.start_in_fresh(&ask, &mut store, board)?;
            Ok((full, store))
        });
        let (full, store) = match started {
            Ok(started) => started,
            Err(why) => {
                if self.bench.spawn_failed {
                    board.fail("starts", why.clone(), None);
                }
                board.not_reached = why;
                return None;
            }
        };
        judge::lines::judge(&full, board);
        judge::records::judge(&full, &self.manifest, board);
        judge::coverage::judge(&full, &self.manifest, &self.streams, board);
        self.judge_always(&full, board);
        match full.trouble() {
            None if full.is_cut => {
                board.not_reached = "its output is too large to compare runs; ask for fewer streams".to_owned();
                None
            }
            None => Some((full, store)),
            Some((what, _)) => {
                board.not_reached = format!("the run from the beginning did not succeed: {what}");
                None
            }
        }
    }

    /// What holds in every start.
    pub(crate) fn judge_always(&self, run: &Observed, board: &mut Board<'_>) {
        judge::secrets::judge(run, &self.bench.ground.redactor, self.has_secrets, board);
        judge::claims::judge(run, board);
    }

    /// Starts it in a store of its own for one check, which fails if the run does not succeed.
    pub(crate) fn start_for(&mut self, id: &'static str, ask: &Ask, board: &mut Board<'_>) -> Option<Observed> {
        self.start_fresh(id, ask, board).filter(|run| judge_success(id, run, board))
    }

    /// The same for a run that need not succeed.
    pub(crate) fn start_fresh(&mut self, id: &'static str, ask: &Ask, board: &mut Board<'_>) -> Option<Observed> {
        let run = self.bench.start_fresh(ask, board);
        self.judged(id, run, board)
    }

    /// The same in this store.
    pub(crate) fn start_in(
        &mut self,
        id: &'static str,
        ask: &Ask,
        store: &mut Store,
        board: &mut Board<'_>,
    ) -> Option<Observed> {
        let run = self.bench.start(ask, store, board);
        self.judged(id, run, board)
    }

    fn judged(&self, id: &'static str, run: Result<Observed, String>, board: &mut Board<'_>) -> Option<Observed> {
        match run {
            Ok(run) => {
                self.judge_always(&run, board);
                Some(run)
            }
            Err(why) => {
                board.skip(id, why);
                None
            }
        }
    }
}

/// Whether a run succeeded; otherwise the check fails. The same connector did succeed before.
pub(crate) fn judge_success(id: &'static str, run: &Observed, board: &mut Board<'_>) -> bool {
    match run.trouble() {
        None => true,
        Some((what, line)) => {
            board.fail(id, run.say(&what), line);
            false
        }
    }
}
