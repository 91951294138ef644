//! One run as the store sees it: opened under leases, fed with slices, ended once.
//!
//! Opening it settles what a crash left behind: runs that never ended are marked as interrupted, gaps
//! that they held wait again. That happens in the transaction that opens the run, under the new
//! epoch, and before any cursor is read: a holder that comes back later changes nothing more.

use crate::account::accounts::{Lineage, Reported};
use crate::account::owed::Owed;
use crate::account::reach::track_name;
use crate::care::repair::NOTHING;
use crate::care::row_hash::is_what_was_hashed;
use crate::error::{Failure, StoreError, date_to_sql, from_sql, to_sql};
use crate::gaps::gap_rows;
use crate::gaps::held_gaps::HeldGaps;
use crate::gaps::renewal;
use crate::lease::Lease;
use crate::registry;
use crate::run::listings::PendingListing;
use crate::run::quarantine;
use crate::run::trace;
use crate::sql::rows;
use crate::store::{Store, meta_number};
use gleaner_engine::{
    AttemptLimits, CommitSeq, CooldownPolicy, Cursor, Epoch, LeaseId, Reach, RunId, RunPurpose, Track, TrackChoice,
    WallTime,
};
use gleaner_protocol::{RawJson, TerminalReason};
use rusqlite::Connection;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a run is about.
#[derive(Clone, Debug)]
pub struct RunStart {
    /// The connection.
    pub connection: String,
    /// The run.
    pub run_id: RunId,
    /// The run's right to work on gaps: a text that no other run has.
    pub lease: LeaseId,
    /// The owner's permission, by its name.
    pub grant: String,
    /// How often gaps are tried.
    pub limits: AttemptLimits,
    /// How long the connection rests after pressure.
    pub cooldown: CooldownPolicy,
    /// What for, and with what.
    pub about: RunAbout,
}

/// What a run is for, and what it runs with.
#[derive(Clone, Debug, Default)]
pub struct RunAbout {
    /// What for.
    pub purpose: RunPurpose,
    /// Which version of the connector.
    pub connector_version: Option<String>,
    /// A keyed hash of the credential, never the credential.
    pub credential: Option<String>,
    /// What it may do to the account. Without one it is an ordinary run of a scope that nobody noted.
    pub reach: Option<Arc<Reach>>,
}

/// A run that is open.
#[derive(Debug)]
pub struct Session<T: Track> {
    pub(crate) start: RunStart,
    pub(crate) leases: Vec<Lease>,
    pub(crate) epoch: Epoch,
    pub(crate) run: i64,
    pub(crate) connection: i64,
    /// The first number that a version of this run can have.
    pub(crate) first_seq: u64,
    pub(crate) streams: StreamIds,
    /// A digest of the manifest that it runs with.
    pub(crate) manifest: String,
    pub(crate) pending: Pending,
    /// The gaps that it was served; none before the first.
    pub(crate) held: RefCell<Option<HeldGaps>>,
    pub(crate) track: String,
    /// The coverage reports that came.
    pub(crate) reported: Reported,
    /// The details that are still to come.
    pub(crate) owed: Owed,
    pub(crate) bookmarks: Vec<Bookmark<T>>,
    interrupted: u64,
}

/// A committed cursor, and what was looked at on the way to it.
#[derive(Debug)]
pub(crate) struct Bookmark<T: Track> {
    pub(crate) cursor: Cursor<T>,
    basis: Option<String>,
    /// Whether a run of a program before schema 5 is in its lineage: see `repair`.
    is_assumed: bool,
    /// The run that committed it.
    run: i64,
    /// Whether the run may go on from it.
    pub(crate) is_good: bool,
    /// Whether its run owed no detail when it was committed.
    pub(crate) is_complete: bool,
    /// The last one that an account stands behind.
    pub(crate) proven: Option<String>,
    pub(crate) lineage: Lineage,
}

/// The tables as one run reads and writes them.
#[derive(Clone, Copy)]
pub(crate) struct RunTables<'c, T: Track> {
    pub(crate) connection: &'c Connection,
    pub(crate) session: &'c Session<T>,
}

/// The streams of a connection, by name.
#[derive(Debug)]
pub(crate) struct StreamIds {
    connection: String,
    ids: BTreeMap<String, i64>,
}

/// What waits to be written with the next slice, because it is not worth a sync of its own.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) events: Vec<(WallTime, &'static str, String)>,
    pub(crate) collection_rate: Option<String>,
    pub(crate) provider_budget: Option<String>,
    pub(crate) dropped: u64,
    /// One per list of a stream that was reported about.
    pub(crate) listings: Vec<PendingListing>,
    /// How many events of this run are in the store.
    pub(crate) kept: u64,
}

impl<T: Track> Session<T> {
    pub(crate) const fn tables<'c>(&'c self, connection: &'c Connection) -> RunTables<'c, T> {
        RunTables { connection, session: self }
    }

    /// The committed cursors of this track, for their numbers. Where the run goes on from is [`state`](Self::state).
    #[must_use]
    pub fn bookmarks(&self) -> Vec<Cursor<T>> {
        self.bookmarks.iter().map(|bookmark| bookmark.cursor.clone()).collect()
    }

    /// The cursors that the run goes on from: those that account for all that it is about.
    pub fn state(&self) -> impl Iterator<Item = &Cursor<T>> {
        self.bookmarks.iter().filter(|bookmark| bookmark.is_good).map(|bookmark| &bookmark.cursor)
    }

    /// The newest run whose cursor this one went on from, of those by which records of this stream are found; 0 for none.
    pub(crate) fn went_on_after(&self, stream: &str) -> i64 {
        if self.start.about.reach.as_ref().is_some_and(|reach| reach.is_listed_whole(stream)) {
            return 0;
        }
        let lists = self.lists_of(stream);
        let used =
            self.bookmarks.iter().filter(|bookmark| bookmark.is_good && lists.contains(bookmark.cursor.stream()));
        used.map(|bookmark| bookmark.run).max().unwrap_or(0)
    }

    /// The streams whose cursors records of this stream may be found by: its own among them.
    pub(crate) fn lists_of(&self, stream: &str) -> BTreeSet<String> {
        let mut lists = self.start.about.reach.as_ref().map(|reach| reach.lists_of(stream)).unwrap_or_default();
        lists.insert(stream.to_owned());
        lists
    }

    /// Goes on from no cursor: everything is listed from its beginning.
    pub fn begin_anew(&mut self) {
        self.bookmarks.iter_mut().for_each(|bookmark| bookmark.is_good = false);
    }

    /// Lists these streams from their beginning.
    pub(crate) fn do_not_resume(&mut self, streams: &BTreeSet<String>) {
        for bookmark in &mut self.bookmarks {
            bookmark.is_good &= !streams.contains(bookmark.cursor.stream());
        }
    }

    /// What a cursor of this stream accounts for, as far as the scope of the run goes; and whether that is assumed.
    pub(crate) fn basis(&self, stream: &str) -> (Option<String>, bool) {
        let gone_on_from = self.gone_on_from(stream);
        let is_assumed = gone_on_from.is_some_and(|bookmark| bookmark.is_assumed);
        let reach = self.start.about.reach.as_ref();
        (reach.map(|reach| reach.basis(gone_on_from.and_then(|bookmark| bookmark.basis.as_deref()))), is_assumed)
    }

    pub(crate) fn gone_on_from(&self, stream: &str) -> Option<&Bookmark<T>> {
        self.bookmarks.iter().find(|bookmark| bookmark.is_good && bookmark.cursor.stream() == stream)
    }

    /// The name of its track.
    #[must_use]
    pub fn track(&self) -> &str {
        &self.track
    }

    /// Whether it accounts for all that the owner allows.
    pub(crate) fn is_ordinary(&self) -> bool {
        self.start.about.reach.as_ref().is_none_or(|reach| reach.track() == TrackChoice::Steady)
    }

    /// Under which grant a gap is kept. Records are missing whoever finds that out; what stands for the rest of a list
    /// stands for the rest of this track's.
    pub(crate) fn gap_grant(&self, stands_for_many: bool) -> String {
        match (stands_for_many, self.is_ordinary()) {
            (true, false) => format!("{}@{}", self.start.grant, self.track),
            (true, true) | (false, _) => self.start.grant.clone(),
        }
    }

    /// Whether it asks for this stream.
    pub(crate) fn asks_for(&self, stream: &str) -> bool {
        self.start.about.reach.as_ref().is_none_or(|reach| reach.contains(stream))
    }

    /// The run.
    #[must_use]
    pub const fn run_id(&self) -> &RunId {
        &self.start.run_id
    }

    /// The run's right to work on gaps.
    #[must_use]
    pub const fn lease(&self) -> &LeaseId {
        &self.start.lease
    }

    /// The epoch under which it writes.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The leases under which it writes.
    #[must_use]
    pub fn leases(&self) -> &[Lease] {
        &self.leases
    }

    /// How many earlier runs of this connection were found that never ended.
    #[must_use]
    pub const fn interrupted_before(&self) -> u64 {
        self.interrupted
    }
}

impl StreamIds {
    pub(crate) fn of(&self, name: &str) -> Result<i64, Failure> {
        Ok(self.entry(name)?.1)
    }

    /// The same, with the name as it is kept here.
    pub(crate) fn entry(&self, name: &str) -> Result<(&str, i64), Failure> {
        let unknown = || StoreError::UnknownStream { connection: self.connection.clone(), stream: name.to_owned() };
        let (name, id) = self.ids.get_key_value(name).ok_or_else(unknown)?;
        Ok((name, *id))
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, i64)> {
        self.ids.iter().map(|(name, &id)| (name.as_str(), id))
    }

    /// Those whose name fits.
    pub(crate) fn ids_of(&self, fits: impl Fn(&str) -> bool) -> Vec<i64> {
        self.ids.iter().filter(|(name, _)| fits(name)).map(|(_, &id)| id).collect()
    }

    /// Whether this is one of them.
    pub(crate) fn has(&self, id: i64) -> bool {
        self.ids.values().any(|&known| known == id)
    }

    fn read(connection: &Connection, of: i64, name: &str) -> Result<Self, Failure> {
        let ids = rows(connection, "SELECT name, id FROM streams WHERE connection = ?1", [of], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        Ok(Self { connection: name.to_owned(), ids: ids.into_iter().collect() })
    }
}

impl Store {
    /// Opens a run under these leases.
    ///
    /// # Errors
    ///
    /// When a lease is lost, there is no such connection, or the run's id was used before.
    pub fn begin_run<T: Track>(
        &mut self,
        start: RunStart,
        leases: Vec<Lease>,
        now: WallTime,
    ) -> Result<Session<T>, StoreError> {
        // Without it nothing would be fenced, and the run of somebody else would be taken for dead.
        Lease::has_connection(&leases, &start.connection)?;
        let epoch = leases.first().map(Lease::epoch).unwrap_or_default();
        let reach = start.about.reach.clone();
        let track = track_name::<T>(reach.as_deref());
        let mut session = self.write(&leases, |transaction| {
            let connection = registry::find(transaction, &start.connection)?;
            gap_rows::release_all(transaction, connection, start.limits, now)?;
            let interrupted = end_interrupted(transaction, connection, now)?;
            renewal::reopen(transaction, connection, &start.about)?;
            let run = insert_run(transaction, &start, (connection, &track), epoch, now)?;
            transaction.execute("DELETE FROM wanted WHERE connection = ?1", [connection])?;
            trace::forget_old(transaction, connection)?;
            Ok(Session {
                epoch,
                run,
                connection,
                first_seq: meta_number(transaction, "next_seq")?,
                streams: StreamIds::read(transaction, connection, &start.connection)?,
                manifest: quarantine::manifest_digest(transaction, connection)?,
                pending: Pending::default(),
                held: RefCell::default(),
                reported: Reported::default(),
                owed: Owed::default(),
                bookmarks: read_with_basis(transaction, connection, &track)?,
                interrupted,
                leases: Vec::new(),
                start,
                track,
            })
        })?;
        session.leases = leases;
        for bookmark in &mut session.bookmarks {
            if let (Some(reach), Some(basis)) = (&reach, &bookmark.basis) {
                bookmark.is_good &= reach.may_resume(bookmark.cursor.stream(), basis);
            }
        }
        self.read(|_| session.choose_cursors())?;
        session.owed = self.read(|connection| Owed::begin(connection, &session))?;
        Ok(session)
    }
}

fn insert_run(
    connection: &Connection,
    start: &RunStart,
    (of, track): (i64, &str),
    epoch: Epoch,
    now: WallTime,
) -> Result<i64, Failure> {
    let sql = "INSERT INTO runs
               (run_id, connection, track, epoch, lease, started_at, purpose, connector_version, credential,
                scope, grant_scope, partial)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (run_id) DO NOTHING";
    let RunAbout { purpose, connector_version: version, credential, reach } = &start.about;
    let (run_id, lease, epoch) = (start.run_id.as_str(), start.lease.as_str(), to_sql(epoch.get()));
    let (purpose, began, reach) = (purpose.code(), date_to_sql(now), reach.as_deref());
    let (scope, grant) = (reach.map(|reach| reach.asked().to_text()), reach.map(|reach| reach.grant().to_text()));
    let partial = reach.and_then(Reach::partial_streams);
    let values = (run_id, of, track, epoch, lease, began, purpose, version, credential, scope, grant, partial);
    if connection.execute(sql, values)? == 0 {
        return Err(StoreError::RunExists(start.run_id.as_str().to_owned()).into());
    }
    Ok(connection.last_insert_rowid())
}

/// Runs that have no end belong to processes that have: we hold their connection's lease.
fn end_interrupted(connection: &Connection, of: i64, now: WallTime) -> Result<u64, Failure> {
    // A slice may have moved a cursor past something that its run skipped, and the run can no longer say so.
    let sql =
        "UPDATE cursors SET basis = ?2 WHERE run IN (SELECT id FROM runs WHERE connection = ?1 AND ended_at IS NULL)
               AND EXISTS (SELECT 1 FROM events e WHERE e.run = cursors.run AND e.kind = 'skip')";
    connection.execute(sql, (of, NOTHING))?;
    let sql = "UPDATE runs SET ended_at = ?2, reason = ?3 WHERE connection = ?1 AND ended_at IS NULL";
    let ended = connection.execute(sql, (of, date_to_sql(now), TerminalReason::Interrupted.code()))?;
    let of_ended = "run IN (SELECT id FROM runs WHERE connection = ?1)";
    connection.execute(&format!("DELETE FROM staged WHERE {of_ended}"), [of])?;
    let sql =
        format!("UPDATE interactions SET state = 'withdrawn', settled_at = ?2 WHERE state = 'open' AND {of_ended}");
    connection.execute(&sql, (of, date_to_sql(now)))?;
    Ok(u64::try_from(ended).unwrap_or(u64::MAX))
}

pub(crate) fn read_with_basis<T: Track>(
    connection: &Connection,
    of: i64,
    track: &str,
) -> Result<Vec<Bookmark<T>>, Failure> {
    let sql = "SELECT c.stream, c.track, c.token, c.seq, c.epoch, c.run, c.committed_at, m.hash,
                      s.name, c.basis, c.is_assumed, c.proven, c.is_complete
               FROM cursors c JOIN streams s ON s.id = c.stream
               LEFT JOIN commits m ON m.id = (SELECT max(id) FROM commits o WHERE o.stream = c.stream AND o.track = c.track)
               WHERE s.connection = ?1 AND c.track = ?2 ORDER BY s.id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((of, track))?;
    let mut bookmarks = Vec::new();
    while let Some(row) = rows.next()? {
        let (token, proven) = (row.get::<_, String>(2)?, row.get::<_, Option<String>>(11)?);
        let lineage = if proven.as_ref() == Some(&token) { Lineage::Proven } else { Lineage::Assumed };
        let cursor = Cursor::restore(row.get(8)?, raw_json(token)?, CommitSeq::new(from_sql(row.get(3)?)));
        let (basis, is_assumed, is_complete, run) = (row.get(9)?, row.get(10)?, row.get(12)?, row.get(5)?);
        // A cursor that was damaged may be past records that never came: its stream is listed again.
        let is_good = row.get::<_, Option<i64>>(7)?.is_none() || is_what_was_hashed(row, 7)?;
        bookmarks.push(Bookmark { cursor, basis, is_assumed, run, is_good, is_complete, proven, lineage });
    }
    Ok(bookmarks)
}

/// JSON that we wrote. What is no JSON any more is damage.
pub(crate) fn raw_json(text: String) -> Result<RawJson<'static>, Failure> {
    RawJson::new(text).map_err(|fault| {
        let damage = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        Failure::Sql(rusqlite::Error::SqliteFailure(damage, Some(format!("a stored JSON text: {fault}"))))
    })
}

pub(crate) fn optional_raw_json(text: Option<String>) -> Result<Option<RawJson<'static>>, Failure> {
    text.map(raw_json).transpose()
}

/// A schema as its manifest has it, which may have several lines. No string of JSON contains a raw line break, so a
/// space in its place changes nothing.
pub(crate) fn schema_json(text: Option<String>) -> Result<Option<RawJson<'static>>, Failure> {
    optional_raw_json(text.map(|text| text.replace(['\n', '\r'], " ")))
}
