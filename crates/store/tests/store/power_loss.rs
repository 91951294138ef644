//! The power fails while a store is written: whatever a disk may have made of what was not synced, the
//! store opens, is whole, and has everything that was reported as saved.
//!
//! One run is recorded with strace, system call by system call; then the disk of a machine that stopped
//! at some moment is put together again and again, and opened. By default 500 such images; with
//! `GLEANER_TEST_ALL` in the environment 10,000. What a file system may do is written in `crash/disk.rs`.

use crate::crash::cores::in_parallel;
use crate::crash::disk::{Disk, Image, Left, Loss};
use crate::crash::is_full_size;
use crate::crash::judge::{Finding, Promise, judge_image};
use crate::crash::program::Work;
use crate::crash::recording::{Recording, Step, Syncs, record};
use std::collections::{BTreeMap, BTreeSet};

/// Small slices: many commits for few records, and the log is moved into the file several times.
const WORK: Work = Work { ids: 1000, slice: 4, rate: None, cursor_first: false };
const SEED: u64 = 2031;

/// What the program was doing when the power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// The store is made, the lease is taken.
    Setup,
    /// A slice goes to the log.
    Commit,
    /// The log goes to the file.
    Checkpoint,
    /// Between two slices.
    Quiet,
    /// A second process moves the log of the first, that was killed, to the file.
    Recovery,
    /// The run ends, the file is closed.
    End,
}

/// The order in which images are made: most where most can go wrong.
const TURNS: [Phase; 10] = [
    Phase::Commit,
    Phase::Checkpoint,
    Phase::Recovery,
    Phase::Commit,
    Phase::Setup,
    Phase::Checkpoint,
    Phase::Commit,
    Phase::End,
    Phase::Checkpoint,
    Phase::Quiet,
];

/// A cut: after this step, with this loss.
#[derive(Clone, Copy, Debug)]
struct Cut {
    after: usize,
    phase: Phase,
    loss: Loss,
    seed: u64,
}

/// A cut that was tried.
#[derive(Debug)]
struct Judged {
    cut: Cut,
    promise: Promise,
    findings: Vec<Finding>,
}

fn images() -> usize {
    if is_full_size() { 10_000 } else { 500 }
}

/// Which steps belong to which phase.
fn phases(recording: &Recording) -> BTreeMap<Phase, Vec<usize>> {
    let last_saved = recording.steps.iter().rposition(|step| matches!(step, Step::Acknowledged(_))).unwrap();
    let (mut starts, mut has_fetched) = (0, false);
    let mut phases = BTreeMap::<_, Vec<_>>::new();
    for (at, step) in recording.steps.iter().enumerate() {
        starts += usize::from(matches!(step, Step::Start));
        has_fetched = !matches!(step, Step::Start) && (has_fetched || step.is_said());
        let phase = match starts {
            1 if !has_fetched => Phase::Setup,
            2 if !has_fetched => Phase::Recovery,
            _ if at > last_saved => Phase::End,
            _ if step.is_write_to("store.db-wal") => Phase::Commit,
            _ if step.is_write_to("store.db") => Phase::Checkpoint,
            _ => Phase::Quiet,
        };
        phases.entry(phase).or_default().push(at);
    }
    phases
}

/// All phases and all losses in turn, at random steps; in the order of the steps.
fn cuts(recording: &Recording, count: usize) -> Vec<Cut> {
    let (phases, mut random) = (phases(recording), fastrand::Rng::with_seed(SEED));
    let mut cuts = (0..count)
        .map(|index| {
            let phase = TURNS[index % TURNS.len()];
            let loss = Loss::KINDS[index / TURNS.len() % Loss::KINDS.len()];
            let after = phases[&phase][random.usize(..phases[&phase].len())];
            Cut { after, phase, loss, seed: SEED + index as u64 }
        })
        .collect::<Vec<_>>();
    cuts.sort_by_key(|cut| cut.after);
    cuts
}

/// Goes through the recording once, and calls `see` after each step with what was promised by then.
fn replay<'r>(recording: &'r Recording, mut see: impl FnMut(usize, &Disk<'r>, &Promise)) {
    let (mut disk, mut promise) = (Disk::default(), Promise { ids: 0..0, is_done: false });
    for (at, step) in recording.steps.iter().enumerate() {
        disk.take(step);
        match step {
            Step::Acknowledged(next) => promise.ids.end = *next,
            Step::Done => promise.is_done = true,
            _ => {}
        }
        see(at, &disk, &promise);
    }
}

/// How often another image is tried at the same step, when the one that was drawn was there before.
const REDRAWS: usize = 10;

/// Makes the images of all cuts, each different from all others, and judges them. Where everything is
/// synced there is only one image; a cut that finds no new one is made after the next step.
fn try_cuts(recording: &Recording, cuts: &[Cut]) -> Vec<Judged> {
    let (give, take) = std::sync::mpsc::sync_channel(2);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut cuts, mut owed, mut seen) = (cuts.iter().copied().peekable(), Vec::new(), BTreeSet::new());
            replay(recording, |at, disk, promise| {
                owed.extend(std::iter::from_fn(|| cuts.next_if(|cut| cut.after == at)));
                owed.retain(|cut: &Cut| {
                    let Some((cut, image)) = draw(disk, Cut { after: at, ..*cut }, &mut seen) else { return true };
                    give.send((cut, promise.clone(), image)).unwrap();
                    false
                });
            });
        });
        in_parallel(take.into_iter(), |(cut, promise, image)| Judged {
            cut,
            findings: judge_image(&image, &promise),
            promise,
        })
    })
}

fn draw(disk: &Disk<'_>, cut: Cut, seen: &mut BTreeSet<Left>) -> Option<(Cut, Image)> {
    (0..REDRAWS).find_map(|draw| {
        // Where all is lost there is nothing to draw, so the other ways get their turn.
        let kind = Loss::KINDS.iter().position(|&kind| kind == cut.loss).unwrap() + draw;
        let cut = Cut { seed: cut.seed + ((draw as u64) << 32), loss: Loss::KINDS[kind % Loss::KINDS.len()], ..cut };
        let left = disk.cut(cut.loss, &mut fastrand::Rng::with_seed(cut.seed));
        let image = (!seen.contains(&left)).then(|| disk.image(&left))?;
        seen.insert(left);
        Some((cut, image))
    })
}

/// How often the log went to the file between two slices, by itself.
fn checkpoints_between_slices(recording: &Recording) -> usize {
    let checkpoints = &phases(recording)[&Phase::Checkpoint];
    1 + checkpoints.windows(2).filter(|pair| recording.steps[pair[0]..pair[1]].iter().any(Step::is_said)).count()
}

#[test]
fn after_a_power_cut_nothing_that_was_saved_is_lost_and_nothing_is_damaged() {
    let recording = record(WORK, Syncs::AreDone);
    let checkpoints = checkpoints_between_slices(&recording);
    assert!(checkpoints >= 2, "the log went to the file only {checkpoints} times: not enough to cut");
    // Some more than are asked for: near the end a cut may find no new image.
    let judged = try_cuts(&recording, &cuts(&recording, images() * 21 / 20));
    let bad = judged.iter().filter(|judged| !judged.findings.is_empty()).collect::<Vec<_>>();
    assert!(bad.is_empty(), "seed {SEED}: {} of {} images are bad, the first: {:#?}", bad.len(), judged.len(), bad[0]);
    let saved = judged.iter().filter(|judged| !judged.promise.ids.is_empty()).count();
    let by_phase = judged.iter().fold(BTreeMap::<_, usize>::new(), |mut counts, judged| {
        *counts.entry(judged.cut.phase).or_default() += 1;
        counts
    });
    println!("{} images, {saved} with something saved; {checkpoints} checkpoints", judged.len());
    println!("{by_phase:?}; all are whole, nothing is lost");
    assert!(judged.len() >= images(), "only {} different images", judged.len());
    assert!(by_phase.len() == 6, "not all phases were cut: {by_phase:?}");
}

/// The share of the images in which something of this kind was found.
fn share(judged: &[Judged], is_so: fn(&Finding) -> bool) -> f64 {
    judged.iter().filter(|judged| judged.findings.iter().any(is_so)).count() as f64 / judged.len() as f64
}

fn is_lost(finding: &Finding) -> bool {
    matches!(finding, Finding::Missing(_))
}

fn is_damage(finding: &Finding) -> bool {
    matches!(finding, Finding::Unreadable(_) | Finding::Damaged(_))
}

/// The negative control: with `synchronous=OFF` nothing is ever synced.
#[test]
fn a_store_that_does_not_sync_is_caught() {
    let recording = record(WORK, Syncs::AreFaked);
    assert!(!recording.steps.iter().any(|step| matches!(step, Step::Sync(_) | Step::SyncFolder)));
    let judged = try_cuts(&recording, &cuts(&recording, images() / 5));
    let (caught, lost, damaged) = (share(&judged, |_| true), share(&judged, is_lost), share(&judged, is_damage));
    println!("{} images without syncs: {caught:.2} caught, {lost:.2} lost, {damaged:.2} damaged", judged.len());
    assert!(caught > 0.5 && lost > 0.2 && damaged > 0.2);
}

/// Less is left out here: with `synchronous=NORMAL` the log is not synced at each commit, and a store
/// that is careless with its log does not sync the file before it begins the log anew.
#[test]
fn a_store_that_syncs_only_its_log_or_only_its_file_is_caught() {
    let is_caught = |left_out: &str, is_so: fn(&Finding) -> bool| {
        let mut recording = record(WORK, Syncs::AreDone);
        recording.steps.retain(|step| !matches!(step, Step::Sync(file) if file == left_out));
        let judged = try_cuts(&recording, &cuts(&recording, images() / 5));
        let caught = share(&judged, is_so);
        println!("{} images without syncs of {left_out}: {caught:.2} caught", judged.len());
        caught > 0.1
    };
    assert!(is_caught("store.db-wal", is_lost));
    assert!(is_caught("store.db", is_damage));
}

/// The second control is for the judge: everything was synced, then one page of the log goes.
#[test]
fn an_image_without_one_frame_of_the_last_commit_is_caught() {
    let recording = record(WORK, Syncs::AreDone);
    let mut images = Vec::new();
    let mut last_frame = None;
    replay(&recording, |at, disk, promise| match &recording.steps[at] {
        Step::Write { file, offset, bytes } if file == "store.db-wal" => last_frame = Some((*offset, bytes.len())),
        // At the end of a slice that was not followed by a checkpoint.
        Step::Acknowledged(next) if next % 100 == 0 && disk.is_quiet() => {
            let mut image = disk.image(&disk.cut(Loss::All, &mut fastrand::Rng::with_seed(SEED)));
            let whole = judge_image(&image, promise);
            assert!(whole.is_empty(), "{whole:?}");
            let (offset, len) = last_frame.unwrap();
            let offset = usize::try_from(offset).unwrap();
            image.get_mut("store.db-wal").unwrap()[offset..offset + len].fill(0);
            images.push((image, promise.clone()));
        }
        _ => {}
    });
    assert!(images.len() >= 5, "only {} images", images.len());
    for (image, promise) in &images {
        let findings = judge_image(image, promise);
        let last_slice = Finding::Missing((promise.ids.end - WORK.slice..promise.ids.end).collect());
        assert!(findings.contains(&last_slice), "not noticed after {}: {findings:?}", promise.ids.end);
    }
}
