//! How far something is, in one live line on stderr.

use gleaner_base::live_line::LiveLine;
use gleaner_base::outside::one_line;
use gleaner_store::CopyStep;

/// So many runs of the laboratory are done.
pub(crate) fn show_runs(line: &LiveLine, (done, total): (usize, usize), name: &str) {
    line.show(|| format!("{done} of {total} runs  {}", one_line(name)));
}

/// So much of a store is copied, or read back.
pub(crate) fn show_copy(line: &LiveLine, step: CopyStep, done: u64, total: u64) {
    let (verb, things) = match step {
        CopyStep::Copying => ("copying", "pages"),
        CopyStep::Checking => ("checking", "versions"),
    };
    line.show(|| format!("{verb}: {done} of {total} {things}"));
}
