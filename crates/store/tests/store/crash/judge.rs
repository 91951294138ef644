//! Whether what is left of a store is what was promised.
//!
//! It reads through the public reading side, runs the store's own verification and the engine's
//! invariants, and compares with what the program said. It repairs nothing and stops at nothing: every
//! finding is listed, so that a control can tell by which check it was caught.

use super::disk::Image;
use super::program::Place;
use crate::account::Account;
use gleaner_engine::testing::promises::{
    Durable, Fact, a1_no_record_is_lost, a3_checkpoint_is_the_last_whole_slice, a4_commits_go_forward,
};
use gleaner_engine::{CommitSeq, Cursor, Epoch, Steady};
use gleaner_store::{PAGE_ROWS_MAX, Reader, Store, StoreError};
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

pub(crate) const CONNECTION: &str = "c";
pub(crate) const STREAM: &str = "ids";

/// Something that should not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It cannot be opened or read.
    Unreadable(String),
    /// It is not whole.
    Damaged(String),
    /// Ids that should be there are not.
    Missing(Vec<u64>),
    /// Ids that were stored more than once.
    Doubled(Vec<u64>),
    /// An invariant of the engine does not hold.
    Broken(&'static str),
    /// A run that ended well does not look like it.
    EndForgotten,
}

/// What must be true of it.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    /// These ids are there.
    pub(crate) ids: Range<u64>,
    /// The last run ended well.
    pub(crate) is_done: bool,
}

/// Opens it for writing, which recovers it, and judges.
pub(crate) fn judge_image(image: &Image, promise: &Promise) -> Vec<Finding> {
    let place = Place::new();
    for (name, content) in image {
        std::fs::write(place.folder().join(name), content).unwrap();
    }
    let path = place.store();
    match Store::open(&path).and_then(|store| store.check_not_restored().map(|()| store)) {
        Ok(_open) => judge(&path, promise),
        Err(error) => vec![Finding::Unreadable(error.to_string())],
    }
}

pub(crate) fn judge(store: &Path, promise: &Promise) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(error) = look(store, promise, &mut findings) {
        findings.push(Finding::Unreadable(error.to_string()));
    }
    findings
}

fn look(store: &Path, promise: &Promise, findings: &mut Vec<Finding>) -> Result<(), StoreError> {
    let reader = Reader::open(store)?;
    findings.extend(reader.verify(|_, _| {})?.iter().map(|damage| Finding::Damaged(damage.to_string())));
    let (mut stored, mut doubled) = (BTreeSet::new(), Vec::new());
    for id in every_version(&reader, findings)? {
        if !stored.insert(id) {
            doubled.push(id);
        }
    }
    let is_registered = reader.connections()?.iter().any(|connection| connection.name == CONNECTION);
    let cursor = if is_registered { reader.bookmarks::<Steady>(CONNECTION)?.pop() } else { None };
    // Whatever was said: the next process will not fetch again what lies behind the cursor.
    let behind = cursor.as_ref().map_or(0, |cursor| next_of(cursor.token().as_str()));
    let expected = promise.ids.start..promise.ids.end.max(behind);
    let missing = expected.filter(|id| !stored.contains(id)).collect::<Vec<_>>();
    findings.extend((!missing.is_empty()).then_some(Finding::Missing(missing)));
    findings.extend((!doubled.is_empty()).then_some(Finding::Doubled(doubled)));
    // Before the first process got that far, there is no connection to have an account of.
    if is_registered {
        let connection = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        check_invariants(&Account::of(&connection, CONNECTION), cursor.as_ref(), findings);
    }
    let is_done = reader.last_success(CONNECTION).is_ok_and(|at| at.is_some());
    findings.extend((promise.is_done && !is_done).then_some(Finding::EndForgotten));
    Ok(())
}

/// The ids of all versions: an id that is there twice was stored twice. A key that is none was damaged.
fn every_version(reader: &Reader, findings: &mut Vec<Finding>) -> Result<Vec<u64>, StoreError> {
    let (mut ids, mut since) = (Vec::new(), 0);
    loop {
        let page = reader.changes(since, PAGE_ROWS_MAX)?;
        let Some(last) = page.last() else { return Ok(ids) };
        since = last.record.seq;
        for key in page.iter().map(|change| &change.record.key) {
            match key.parse::<u64>() {
                Ok(id) => ids.push(id),
                Err(_) => findings.push(Finding::Damaged(format!("versions: the key {key:?} was never said"))),
            }
        }
    }
}

/// The first invariant asks the store twice for each id. All ids were looked up by other means already,
/// so here it is asked about the last ones before the cursor, and about every so many-th before those.
const EVERY: u64 = 16;

fn check_invariants(account: &Account<'_>, cursor: Option<&Cursor<Steady>>, findings: &mut Vec<Finding>) {
    let seqs = account.whole_slices(STREAM).into_iter();
    let commits = seqs.map(|seq| Fact::Committed { stream: STREAM.to_owned(), seq, epoch: Epoch::default() });
    let listed = cursor.into_iter().flat_map(|cursor| {
        // What the cursor covers is what its text says: the next id to fetch.
        let next = next_of(cursor.token().as_str());
        let asked = (0..next).filter(move |id| id + EVERY >= next || id % EVERY == 0);
        asked.map(|id| listed(id, cursor.seq()))
    });
    let checks = [
        a1_no_record_is_lost(account, &listed.collect::<Vec<_>>()),
        a3_checkpoint_is_the_last_whole_slice(account, &[STREAM]),
        a4_commits_go_forward(&commits.collect::<Vec<_>>()),
    ];
    findings.extend(checks.into_iter().filter_map(|check| check.err().map(|broken| Finding::Broken(broken.id))));
}

fn listed(id: u64, covered_by: CommitSeq) -> Fact {
    let position = i64::try_from(id).unwrap();
    Fact::Listed { stream: STREAM.to_owned(), key: id.to_string(), covered_by, position }
}

fn next_of(token: &str) -> u64 {
    let next = token.strip_prefix("{\"next\":").and_then(|rest| rest.strip_suffix('}'));
    next.unwrap_or_else(|| panic!("a cursor that the driver did not write: {token}")).parse().unwrap()
}
