//! Long lists, printed as they are read: a page of the store at a time.

use crate::error::CliError;
use gleaner_store::{PAGE_ROWS_MAX, StoreError};

/// Prints at most `left` rows. `read` gives those after the last one that was printed. Answers how many more may be
/// printed.
pub(crate) fn print_pages<R>(
    mut left: u64,
    read: impl Fn(Option<&R>, usize) -> Result<Vec<R>, StoreError>,
    mut print: impl FnMut(&R) -> Result<(), CliError>,
) -> Result<u64, CliError> {
    let mut last = None;
    while left > 0 {
        let rows = read(last.as_ref(), usize::try_from(left).unwrap_or(usize::MAX).min(PAGE_ROWS_MAX))?;
        if rows.is_empty() {
            break;
        }
        left -= rows.len() as u64;
        rows.iter().try_for_each(&mut print)?;
        last = rows.into_iter().next_back();
    }
    Ok(left)
}
