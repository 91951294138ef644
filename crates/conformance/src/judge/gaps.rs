//! A run in which gaps were served: that each has an answer, with the ids under which it was served.

use crate::observed::{Line, Observed};
use crate::report::{Board, Fault};
use std::collections::BTreeSet;

const ANSWERS: [&str; 3] = ["DETAIL_GAP_RECOVERED", "DETAIL_GAP_ATTEMPTED", "DETAIL_GAP"];

/// Judges a run that was asked to recover only, when so many gaps waited.
pub(crate) fn judge(run: &Observed, waiting: usize, board: &mut Board<'_>) {
    board.judge("gap_ids", wrong_ids(run));
    board.judge("gaps_answered", unanswered(run));
    // It may stop where the provider pushes back: then it says so by putting gaps back.
    let recovered = run.of_type("DETAIL_GAP_RECOVERED").count();
    if recovered < run.kept.served.len() {
        board.skip("gap_pages", "gaps that were served were put back, so it had a reason to stop");
    } else if waiting < 2 {
        board.skip("gap_pages", "there were fewer than two gaps");
    } else {
        let early = !run.kept.drained;
        let what = || {
            format!(
                "{} of {waiting} gaps were served, and it did not ask until an empty page came",
                run.kept.served.len()
            )
        };
        board.judge("gap_pages", early.then(|| (what(), run.last_line())));
    }
}

fn answers(run: &Observed) -> impl Iterator<Item = &Line> {
    run.lines.iter().filter(|line| ANSWERS.iter().any(|kind| line.is(kind)) && line.text("gap_id").is_some())
}

fn wrong_ids(run: &Observed) -> Option<Fault> {
    for line in answers(run) {
        let id = line.text("gap_id")?;
        let Some(served) = run.kept.served.iter().find(|gap| gap.gap_id == id) else {
            return Some((format!("gap {id:?} was not served in this run"), Some(line.number)));
        };
        // One of the known connectors leaves the lease out, and the runtime knows it anyway.
        if line.text("lease_id").is_some_and(|lease| lease != served.lease_id) {
            return Some((format!("gap {id:?} was served under another lease"), Some(line.number)));
        }
    }
    None
}

fn unanswered(run: &Observed) -> Option<Fault> {
    let answered = answers(run).filter_map(|line| line.text("gap_id")).collect::<BTreeSet<_>>();
    // Put back without its id, by stream and key.
    let put_back = run.gaps();
    let is_answered = |gap: &&gleaner_protocol::ServedGap| {
        let key = gap.record_key.as_ref().map(|key| (gap.stream.clone(), key.as_str().to_owned()));
        answered.contains(gap.gap_id.as_str()) || key.is_some_and(|key| put_back.contains(&key))
    };
    // An id that was never served is another check's, and leaves the gap it meant without an answer.
    let foreign = answers(run).count() > run.kept.served.iter().filter(is_answered).count();
    let gap = run.kept.served.iter().find(|gap| !is_answered(gap)).filter(|_| !foreign)?;
    let what = format!("gap {:?} of stream {:?} was served and got no answer", gap.gap_id, gap.stream);
    Some((what, run.last_line()))
}
