//! Coverage reports: that every key has an outcome, and that no parent waits for a report.

use crate::observed::{Line, Observed, Place};
use crate::report::{Board, Fault};
use gleaner_protocol::{Checkpoint, Manifest};
use std::collections::BTreeSet;

/// Judges the reports of a run that succeeded from the beginning.
pub(crate) fn judge(run: &Observed, manifest: &Manifest, asked: &[String], board: &mut Board<'_>) {
    if !run.succeeded() {
        return;
    }
    let reports = run.of_type("DETAIL_COVERAGE").collect::<Vec<_>>();
    if !reports.is_empty() {
        let gaps = run.gaps();
        board.judge("coverage_complete", reports.iter().find_map(|line| shortfall(line, &gaps)));
    }
    judge_parents(&reports, manifest, asked, board);
}

fn shortfall(line: &Line, gaps: &BTreeSet<Place>) -> Option<Fault> {
    let stream = line.text("stream")?;
    let mut open = line.keys("required_keys").collect::<BTreeSet<_>>();
    for key in line.keys("hydrated_keys").chain(line.keys("optional_skip_keys")) {
        open.remove(key);
    }
    let backed = |key: &str| gaps.contains(&(stream.to_owned(), key.to_owned()));
    for key in line.keys("gap_keys") {
        if !backed(key) {
            let what = format!("stream {stream:?}, key {key:?} is called a gap, and no DETAIL_GAP was sent for it");
            return Some((what, Some(line.number)));
        }
        open.remove(key);
    }
    // A gap that was sent accounts for its key, whether or not the report repeats it; that it does not is another
    // check's.
    open.retain(|key| !backed(key));
    let key = open.first()?;
    let what = format!("stream {stream:?}: {} required keys have no outcome, for instance {key:?}", open.len());
    Some((what, Some(line.number)))
}

fn judge_parents(reports: &[&Line], manifest: &Manifest, asked: &[String], board: &mut Board<'_>) {
    let is_asked = |name: &String| asked.contains(name);
    for stream in manifest.streams.iter().filter(|stream| is_asked(&stream.name)) {
        let Checkpoint::ParentStreams(parents) = &stream.checkpoint else { continue };
        for parent in parents.iter().filter(|parent| is_asked(parent)) {
            let is_it = |line: &&Line| {
                line.text("stream") == Some(&stream.name) && line.text("state_stream") == Some(parent.as_str())
            };
            if reports.iter().any(is_it) {
                board.pass("coverage_reported");
            } else {
                let what =
                    format!("stream {:?} has the parent {parent:?}, and there is no report for the two", stream.name);
                board.fail("coverage_reported", what, None);
            }
        }
    }
}
