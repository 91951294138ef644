//! Gaps as rows: read, changed by the rules of [`Gap`], written back.
//!
//! No state is changed here by a rule of its own: a row becomes a [`Gap`], the engine's functions
//! change it, and it becomes a row again, with the counters of its stream. A row is never deleted
//! but by a purge.

use crate::account::coverage_keys::{Place, each_key};
use crate::account::owed::Asked;
use crate::account::reach::note_parent;
use crate::care::row_hash::row_hash;
use crate::error::{Failure, date_from_sql, date_to_sql};
use crate::gaps::held_gaps::{Brought, HeldGaps};
use crate::run::session::{RunTables, Session, optional_raw_json};
use crate::sql::{execute, exists, first};
use gleaner_engine::{
    AttemptLimits, Confirmation, CoveragePair, Evidence, Gap, GapCause, GapChange, GapId, GapIdentity, GapState,
    LeaseId, Note, Recovery, Track, WallTime,
};
use gleaner_protocol::{AbsenceReason, DetailGap, GapKey, GapReason, RawJson};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};

/// How much of the hash makes a gap's id.
pub(crate) const IDENTITY_BYTES: usize = 16;

pub(crate) type Identity = [u8; IDENTITY_BYTES];

/// A hash, because a locator may be as long as a line. Each part with its length.
pub(crate) fn identity_hash(identity: &GapIdentity) -> Identity {
    let GapIdentity { connection, grant, stream, parent_stream, subject } = identity;
    let mut hasher = blake3::Hasher::new();
    for part in [Some(connection), Some(grant), Some(stream), parent_stream.as_ref(), Some(subject)] {
        hasher.update(&part.map_or(u64::MAX, |part| part.len() as u64).to_le_bytes());
        hasher.update(part.map_or("", String::as_str).as_bytes());
    }
    let mut hash = [0; IDENTITY_BYTES];
    hash.copy_from_slice(&hasher.finalize().as_bytes()[..IDENTITY_BYTES]);
    hash
}

/// The text by which connectors and people call a gap.
pub(crate) fn gap_id(identity: &[u8]) -> GapId {
    GapId::new(identity.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// The hash in a gap's id; `None` for a text that is none of ours.
pub(crate) fn parse_gap_id(id: &GapId) -> Option<Identity> {
    let text = id.as_str();
    let is_ours = text.len() == 2 * IDENTITY_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(text, 16).ok().filter(|_| is_ours).map(u128::to_be_bytes)
}

/// A gap and where its row is.
#[derive(Debug)]
pub(crate) struct GapRow {
    pub(crate) id: i64,
    pub(crate) stream: i64,
    pub(crate) gap: Gap,
    /// As it is stored: where it stands, and whether it was closed as empty.
    stored: (GapState, bool),
    fixed: Fixed,
}

/// What the engine's rules do not look at.
#[derive(Debug)]
struct Fixed {
    identity: Vec<u8>,
    connection: i64,
    grant: String,
    parent_stream: Option<String>,
    record_key: Option<String>,
    record_key_is_number: bool,
    run: i64,
    last_error: Option<String>,
}

/// What [`GapRow::read`] reads, in this order.
pub(crate) const COLUMNS: &str = "id, stream, state, lease, attempts, counted_under, deferred_under, reason, run_cap, \
                       http_status, terminal_reason, not_before, since, locator, list_cursor, identity, connection, \
                       grant_id, parent_stream, record_key, record_key_is_number, run, last_error, ignored_note, \
                       ignored_at, confirmed_by";

/// What a row is hashed by, in this order; and after it the note of an ignored one ([`NOTE`]), or what a closed one was
/// confirmed by ([`CONFIRMED`]).
pub(crate) const HASHED: &str = "identity, connection, stream, grant_id, parent_stream, record_key, record_key_is_number, \
                                 state, lease, attempts, counted_under, deferred_under, reason, run_cap, http_status, \
                                 terminal_reason, last_error, not_before, since, due, locator, list_cursor, run";

/// What only an ignored gap has. It is hashed where it is there.
pub(crate) const NOTE: &str = "ignored_note, ignored_at";

/// What only a closed gap has. It is hashed where it is there.
pub(crate) const CONFIRMED: &str = "confirmed_by";

/// What follows from the rest.
const DERIVED: &str = "hash, part_of_list";

/// All columns that are written.
fn written() -> impl Iterator<Item = &'static str> {
    [HASHED, NOTE, CONFIRMED, DERIVED].into_iter().flat_map(|columns| columns.split(", "))
}

impl GapRow {
    /// The connection that it belongs to.
    pub(crate) const fn connection(&self) -> i64 {
        self.fixed.connection
    }

    /// The grant under which it is kept.
    pub(crate) fn grant(&self) -> &str {
        &self.fixed.grant
    }

    /// In the order of [`COLUMNS`].
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, Failure> {
        let lease = |at| Ok::<_, Failure>(row.get::<_, Option<String>>(at)?.map(LeaseId::new));
        let code = |at| row.get::<_, Option<String>>(at);
        let state = match row.get::<_, String>(2)?.as_str() {
            "in_progress" => GapState::InProgress { lease: lease(3)?.unwrap_or_else(|| LeaseId::new("")) },
            "recovered" => GapState::Recovered,
            "ignored" => GapState::Ignored {
                note: Note::stored(code(23)?.unwrap_or_default()),
                at: date_from_sql(row.get::<_, Option<i64>>(24)?.unwrap_or_default()),
                held: lease(3)?,
            },
            "terminal" => {
                let reason = code(10)?.as_deref().and_then(AbsenceReason::from_code);
                GapState::Terminal { reason: reason.unwrap_or(AbsenceReason::Quarantined) }
            }
            _ => GapState::Pending,
        };
        let cause = GapCause {
            reason: code(7)?.as_deref().and_then(GapReason::from_code),
            run_cap: row.get(8)?,
            http_status: row.get(9)?,
        };
        let gap = Gap {
            state,
            attempts: row.get(4)?,
            counted_under: lease(5)?,
            deferred_under: lease(6)?,
            cause,
            not_before: row.get::<_, Option<i64>>(11)?.map(date_from_sql),
            since: date_from_sql(row.get(12)?),
            locator: optional_raw_json(row.get(13)?)?,
            list_cursor: optional_raw_json(row.get(14)?)?,
            confirmed_by: code(25)?.as_deref().and_then(Confirmation::from_code),
        };
        let fixed = Fixed {
            identity: row.get(15)?,
            connection: row.get(16)?,
            grant: row.get(17)?,
            parent_stream: row.get(18)?,
            record_key: row.get(19)?,
            record_key_is_number: row.get(20)?,
            run: row.get(21)?,
            last_error: row.get(22)?,
        };
        let stored = (gap.state.clone(), is_empty(&gap));
        Ok(Self { id: row.get(0)?, stream: row.get(1)?, gap, stored, fixed })
    }

    /// In the order of [`HASHED`].
    fn values(&self) -> [Value; 23] {
        let (gap, fixed) = (&self.gap, &self.fixed);
        let text = |text: Option<&str>| text.map(str::to_owned).into();
        let raw = |raw: &Option<RawJson<'static>>| raw.as_ref().map(|raw| raw.as_str().to_owned()).into();
        [
            fixed.identity.clone().into(),
            fixed.connection.into(),
            self.stream.into(),
            fixed.grant.clone().into(),
            fixed.parent_stream.clone().into(),
            fixed.record_key.clone().into(),
            fixed.record_key_is_number.into(),
            state_name(&gap.state).to_owned().into(),
            text(lease_of(&gap.state)),
            gap.attempts.into(),
            text(gap.counted_under.as_ref().map(LeaseId::as_str)),
            text(gap.deferred_under.as_ref().map(LeaseId::as_str)),
            text(gap.cause.reason.map(GapReason::code)),
            gap.cause.run_cap.into(),
            gap.cause.http_status.map(i64::from).into(),
            text(terminal_reason(&gap.state)),
            fixed.last_error.clone().into(),
            gap.not_before.map(date_to_sql).into(),
            date_to_sql(gap.since).into(),
            date_to_sql(gap.order()).into(),
            raw(&gap.locator),
            raw(&gap.list_cursor),
            fixed.run.into(),
        ]
    }

    /// In the order of [`NOTE`]; nothing where there is none.
    fn note(&self) -> Option<[Value; 2]> {
        match &self.gap.state {
            GapState::Ignored { note, at, .. } => Some([note.as_str().to_owned().into(), date_to_sql(*at).into()]),
            GapState::Pending | GapState::InProgress { .. } | GapState::Recovered | GapState::Terminal { .. } => None,
        }
    }

    /// In the order of [`written`].
    fn all_values(&self) -> impl Iterator<Item = Value> {
        let (values, note) = (self.values(), self.note());
        let confirmed = self.gap.confirmed_by.map(|by| Value::from(by.code().to_owned()));
        let hash = row_hash(values.iter().chain(note.iter().flatten()).chain(&confirmed).map(ValueRef::from));
        let note = note.unwrap_or([Value::Null, Value::Null]);
        let derived = [Value::Integer(hash), self.stands_for_many().into()];
        values.into_iter().chain(note).chain([confirmed.unwrap_or(Value::Null)]).chain(derived)
    }

    pub(crate) fn record_key(&self) -> Option<&str> {
        self.fixed.record_key.as_deref()
    }

    pub(crate) fn parent_stream(&self) -> Option<&str> {
        self.fixed.parent_stream.as_deref()
    }

    /// Whether later runs write what they leave into this very gap.
    pub(crate) fn stands_for_many(&self) -> bool {
        stands_for_many(self.fixed.record_key.as_deref(), self.gap.locator.as_ref())
    }

    /// Whether both are parts of the same list.
    pub(crate) fn is_twin_of(&self, other: &Self) -> bool {
        let names =
            |row: &Self| (row.fixed.grant.clone(), row.fixed.parent_stream.clone(), row.fixed.record_key.clone());
        self.stream == other.stream && names(self) == names(other)
    }

    /// Whether this run holds it, or has held it, or found it itself.
    fn was_served_to<T: Track>(&self, session: &Session<T>) -> bool {
        let lease = &session.start.lease;
        self.fixed.grant == session.gap_grant(true)
            || lease_of(&self.gap.state) == Some(lease.as_str())
            || self.gap.deferred_under.as_ref() == Some(lease)
    }

    pub(crate) fn find(connection: &Connection, identity: &Identity) -> Result<Option<Self>, Failure> {
        let sql = format!("SELECT {COLUMNS} FROM gaps WHERE identity = ?1");
        Ok(read_all(connection, &sql, [&identity[..]])?.pop())
    }

    /// The gap with this number.
    pub(crate) fn by_id(connection: &Connection, id: i64) -> Result<Option<Self>, Failure> {
        Ok(read_all(connection, &format!("SELECT {COLUMNS} FROM gaps WHERE id = ?1"), [id])?.pop())
    }

    /// Changes it by a rule of the engine.
    pub(crate) fn change<R>(
        &mut self,
        connection: &Connection,
        rule: impl FnOnce(&mut Gap) -> R,
    ) -> Result<R, Failure> {
        let result = rule(&mut self.gap);
        self.update(connection)?;
        Ok(result)
    }

    /// Writes back what may have changed.
    pub(crate) fn update(&mut self, connection: &Connection) -> Result<(), Failure> {
        // Ours, not anybody else's.
        let columns = written().map(|column| format!("{column} = ?")).collect::<Vec<_>>().join(", ");
        let sql = format!("UPDATE gaps SET {columns} WHERE id = ?");
        let values = self.all_values().chain([Value::Integer(self.id)]);
        execute(connection, &sql, params_from_iter(values))?;
        let (before, was_empty) = std::mem::replace(&mut self.stored, (self.gap.state.clone(), is_empty(&self.gap)));
        if self.stored.1 != was_empty {
            let sql = "UPDATE streams SET gaps_empty = gaps_empty + ?2 WHERE id = ?1";
            execute(connection, sql, (self.stream, if was_empty { -1 } else { 1 }))?;
        }
        count(connection, self.stream, Some(&before), &self.gap.state)
    }
}

fn is_empty(gap: &Gap) -> bool {
    gap.confirmed_by == Some(Confirmation::Empty)
}

pub(crate) const fn state_name(state: &GapState) -> &'static str {
    match state {
        GapState::Pending => "pending",
        GapState::InProgress { .. } => "in_progress",
        GapState::Recovered => "recovered",
        GapState::Terminal { .. } => "terminal",
        GapState::Ignored { .. } => "ignored",
    }
}

fn lease_of(state: &GapState) -> Option<&str> {
    match state {
        GapState::InProgress { lease } => Some(lease.as_str()),
        GapState::Ignored { held, .. } => held.as_ref().map(LeaseId::as_str),
        GapState::Pending | GapState::Recovered | GapState::Terminal { .. } => None,
    }
}

fn terminal_reason(state: &GapState) -> Option<&'static str> {
    match state {
        GapState::Terminal { reason } => Some(reason.code()),
        GapState::Pending | GapState::InProgress { .. } | GapState::Recovered | GapState::Ignored { .. } => None,
    }
}

/// Moves a gap from one counter to another.
fn count(connection: &Connection, stream: i64, from: Option<&GapState>, to: &GapState) -> Result<(), Failure> {
    if from.map(state_name) == Some(state_name(to)) {
        return Ok(());
    }
    let to = state_name(to);
    let sql = match from {
        // The names are ours, not anybody else's.
        Some(from) => {
            let from = state_name(from);
            format!("UPDATE streams SET gaps_{to} = gaps_{to} + 1, gaps_{from} = gaps_{from} - 1 WHERE id = ?1")
        }
        None => format!("UPDATE streams SET gaps_{to} = gaps_{to} + 1 WHERE id = ?1"),
    };
    execute(connection, &sql, [stream])
}

impl<T: Track> RunTables<'_, T> {
    /// Carries out one change of a slice.
    pub(crate) fn change_gap(
        &self,
        change: &GapChange,
        brought: &mut Brought<'_>,
        now: WallTime,
    ) -> Result<(), Failure> {
        match change {
            GapChange::Open(gap) => {
                brought.gap(self.session.streams.of(&gap.stream)?);
                self.open_gap(gap, now).map(drop)
            }
            GapChange::Attempt { gap_id, lease } => match self.served(gap_id)? {
                Some(mut row) => row.change(self.connection, |gap| gap.attempt(lease)),
                None => Ok(()),
            },
            GapChange::Recover { gap_id, stream, lease } => {
                // One that nobody knows is as little recovered as one that this run does not hold.
                let Some(mut row) = self.served(gap_id)? else { return brought.count(None, Recovery::NotHeld) };
                let streams = &self.session.streams;
                let evidence = brought.evidence(&row, streams.of(stream)?, streams)?;
                // Its run may be killed before the report that would name the details which did not come.
                if evidence != Evidence::Nothing && !self.is_expanded(&row, Asked::Meanwhile)? {
                    brought.wait(&row, evidence);
                    return Ok(());
                }
                let recovery = row.change(self.connection, |gap| gap.recover(lease, evidence))?;
                brought.count(Some(&row), recovery)
            }
        }
    }

    /// Closes gaps of lists that were called recovered before their details came. The reports of a run that succeeded
    /// speak for those details; without a report they must have come.
    pub(crate) fn close_early(&self) -> Result<(), Failure> {
        let held = self.session.held.borrow();
        for (id, evidence) in held.as_ref().into_iter().flat_map(HeldGaps::early) {
            let Some(mut row) = GapRow::by_id(self.connection, id)? else { continue };
            let lease = &self.session.start.lease;
            let is_expanded = self.is_expanded(&row, Asked::AtEnd)?;
            if is_expanded && matches!(row.gap.recover(lease, evidence), Recovery::Settled(_)) {
                row.update(self.connection)?;
                let sql = "UPDATE runs SET recovered = recovered + 1, recovered_lists = recovered_lists + ?2,
                           recovered_by_record = recovered_by_record + ?3, recovered_empty = recovered_empty + ?4 WHERE id = ?1";
                let [lists, records, empty] =
                    [Evidence::List, Evidence::Record, Evidence::OtherStream].map(|kind| i64::from(kind == evidence));
                execute(self.connection, sql, (self.session.run, lists, records, empty))?;
            }
        }
        Ok(())
    }

    /// A gap is there, or there again. Answers whether it is a new one.
    pub(crate) fn open_gap(&self, gap: &DetailGap, now: WallTime) -> Result<bool, Failure> {
        let Self { connection, session } = *self;
        let stream = session.streams.of(&gap.stream)?;
        // A scoped run that leaves something out because of its scope has found nothing that is missing.
        if !session.is_ordinary() && gap.reason == Some(GapReason::Absence(AbsenceReason::OutOfScope)) {
            return Ok(false);
        }
        let key = gap.record_key.as_ref().map(GapKey::as_str);
        let grant = session.gap_grant(stands_for_many(key, gap.detail_locator.as_ref()));
        let mut identity = GapIdentity::of(&session.start.connection, &grant, gap);
        // One that was served is put back under its id, whatever else the connector says about it; unless it
        // says that another record is missing, which must not be lost.
        let is_ours = |row: &GapRow| [&session.start.grant, &session.gap_grant(true)].contains(&&row.fixed.grant);
        let is_meant = |row: &GapRow| {
            row.stream == stream && is_ours(row) && (key.is_none() || key == row.fixed.record_key.as_deref())
        };
        let by_id = gap.gap_id.as_ref().and_then(|id| parse_gap_id(&GapId::new(id)));
        let served = match by_id {
            Some(id) => GapRow::find(connection, &id)?.filter(is_meant),
            None => None,
        };
        let known = match served {
            Some(row) => Some(row),
            None => self.find_meant(gap, &mut identity)?,
        };
        let Some(mut row) = known else {
            let fresh = Gap::open(gap, &session.start.lease, now);
            self.insert_gap(gap, (stream, &identity_hash(&identity), grant), fresh)?;
            return Ok(true);
        };
        // What a run was not served is not its to put off: it knows less of it than the run that was.
        if !session.is_ordinary() && row.gap.is_open() && !row.was_served_to(session) {
            return Ok(false);
        }
        row.gap.defer(gap, &session.start.lease, session.start.limits, now);
        row.fixed.last_error = last_error_of(gap).or(row.fixed.last_error);
        row.update(connection)?;
        Ok(false)
    }

    /// Opens a gap for each key of a report that fits and that no gap accounts for. Answers how many.
    pub(crate) fn open_unaccounted(
        &self,
        pair: &CoveragePair,
        place: Place,
        condition: &str,
        now: WallTime,
    ) -> Result<u64, Failure> {
        let mut opened = 0;
        each_key(self.connection, place, condition, |key| {
            if !self.has_durable_gap(pair, key)? {
                self.open_gap(&unaccounted(pair, key), now)?;
                opened += 1;
            }
            Ok(())
        })?;
        Ok(opened)
    }

    /// Keeps a key that a coverage report called hydrated, and under which there is nothing, as a gap that closed as empty.
    /// A gap that is there says more.
    pub(crate) fn open_empty(&self, pair: &CoveragePair, key: &str, now: WallTime) -> Result<(), Failure> {
        let gap = unaccounted(pair, key);
        let identity = GapIdentity::of(&self.session.start.connection, &self.session.gap_grant(false), &gap);
        let identity = identity_hash(&identity);
        if GapRow::find(self.connection, &identity)?.is_some() || self.has_durable_gap(pair, key)? {
            return Ok(());
        }
        self.open_gap(&gap, now)?;
        match GapRow::find(self.connection, &identity)? {
            Some(mut row) => row.change(self.connection, Gap::settle_empty),
            None => Ok(()),
        }
    }

    /// The gap that a connector means which names no id. All parts of a list that a connector leaves have one key. If there
    /// is an open one with another locator that this run was not served, both stay: the connector does not know of the other.
    fn find_meant(&self, gap: &DetailGap, identity: &mut GapIdentity) -> Result<Option<GapRow>, Failure> {
        let Self { connection, session } = *self;
        let found = GapRow::find(connection, &identity_hash(identity))?;
        let (Some(locator), Some(key), true) = (&gap.detail_locator, &gap.record_key, session.is_ordinary()) else {
            return Ok(found);
        };
        let lease = session.start.lease.as_str();
        let is_other = |row: &GapRow| {
            row.stands_for_many()
                && row.gap.is_open()
                && row.gap.locator.as_ref() != Some(locator)
                && lease_of(&row.gap.state) != Some(lease)
                && row.gap.deferred_under.as_ref() != Some(&session.start.lease)
        };
        if !found.as_ref().is_some_and(is_other) {
            return Ok(found);
        }
        let sql = format!(
            "SELECT {COLUMNS} FROM gaps WHERE connection = ?1 AND stream = ?2 AND record_key = ?3 AND parent_stream IS ?4
             AND grant_id = ?5 AND (lease = ?6 OR deferred_under = ?6) ORDER BY lease IS NULL LIMIT 1"
        );
        let stream = session.streams.of(&gap.stream)?;
        let values = (session.connection, stream, key.as_str(), &gap.parent_stream, &identity.grant, lease);
        if let Some(row) = read_all(connection, &sql, values)?.pop() {
            return Ok(Some(row));
        }
        identity.subject = format!("{} loc:{}", identity.subject, locator.as_str());
        GapRow::find(connection, &identity_hash(identity))
    }

    /// Whether the run has another part of the same list: a connector that names no id could not say which one it means.
    pub(crate) fn has_twin(&self, row: &GapRow) -> Result<bool, Failure> {
        let sql = "SELECT 1 FROM gaps WHERE connection = ?1 AND stream = ?2 AND record_key = ?3 AND parent_stream IS ?4
                   AND grant_id = ?5 AND (lease = ?6 OR deferred_under = ?6) AND id != ?7";
        let Fixed { connection: of, parent_stream, grant, .. } = &row.fixed;
        let (key, lease) = (row.record_key(), self.session.start.lease.as_str());
        exists(self.connection, sql, (of, row.stream, key, parent_stream, grant, lease, row.id))
    }

    fn insert_gap(
        &self,
        gap: &DetailGap,
        (stream, identity, grant): (i64, &Identity, String),
        fresh: Gap,
    ) -> Result<(), Failure> {
        if let Some(parent) = &gap.parent_stream {
            note_parent(self.connection, stream, parent)?;
        }
        let fixed = Fixed {
            identity: identity.to_vec(),
            connection: self.session.connection,
            grant,
            parent_stream: gap.parent_stream.clone(),
            record_key: gap.record_key.as_ref().map(|key| key.as_str().to_owned()),
            record_key_is_number: matches!(gap.record_key, Some(GapKey::Number(_))),
            run: self.session.run,
            last_error: last_error_of(gap),
        };
        let row = GapRow { id: 0, stream, stored: (fresh.state.clone(), false), gap: fresh, fixed };
        let columns = written().collect::<Vec<_>>();
        let places = vec!["?"; columns.len()].join(", ");
        let sql = format!("INSERT INTO gaps ({}) VALUES ({places})", columns.join(", "));
        execute(self.connection, &sql, params_from_iter(row.all_values()))?;
        count(self.connection, stream, None, &row.gap.state)
    }

    /// A gap that was served. One that is not of this connection is left alone.
    fn served(&self, id: &GapId) -> Result<Option<GapRow>, Failure> {
        let Some(identity) = parse_gap_id(id) else { return Ok(None) };
        Ok(GapRow::find(self.connection, &identity)?.filter(|row| self.session.streams.has(row.stream)))
    }
}

fn unaccounted(pair: &CoveragePair, key: &str) -> DetailGap {
    DetailGap {
        stream: pair.stream.clone(),
        parent_stream: Some(pair.state_stream.clone()),
        record_key: Some(GapKey::Text(key.to_owned())),
        reason: Some(GapReason::Absence(AbsenceReason::Unaccounted)),
        ..DetailGap::default()
    }
}

fn last_error_of(gap: &DetailGap) -> Option<String> {
    gap.last_error.as_ref().map(|error| error.raw.as_str().to_owned())
}

/// Puts back what was held, by a run that ended or by one that never did. One after the other: a
/// single gap may be as large as a line.
pub(crate) fn release_all(
    connection: &Connection,
    of: i64,
    limits: AttemptLimits,
    now: WallTime,
) -> Result<(), Failure> {
    let held = ["state = 'in_progress'", "state = 'ignored' AND lease IS NOT NULL"];
    for held in held {
        let sql = format!("SELECT {COLUMNS} FROM gaps WHERE connection = ?1 AND {held} LIMIT 1");
        while let Some(mut row) = read_all(connection, &sql, [of])?.pop() {
            let lease = LeaseId::new(lease_of(&row.gap.state).unwrap_or_default());
            row.change(connection, |gap| gap.release(&lease, limits, now))?;
        }
    }
    Ok(())
}

pub(crate) fn read_all(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<GapRow>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(GapRow::read(row)?);
    }
    Ok(found)
}

/// What identifies a gap to its connector, besides its history.
pub(crate) struct Named {
    pub(crate) identity: Vec<u8>,
    pub(crate) stream: String,
    pub(crate) record_key: Option<GapKey>,
    pub(crate) parent_stream: Option<String>,
}

pub(crate) fn name_of(connection: &Connection, id: i64) -> Result<Option<Named>, Failure> {
    let sql = "SELECT g.identity, s.name, g.record_key, g.record_key_is_number, g.parent_stream
               FROM gaps g JOIN streams s ON s.id = g.stream WHERE g.id = ?1";
    first(connection, sql, [id], |row| {
        let key = row.get::<_, Option<String>>(2)?;
        let is_number = row.get::<_, bool>(3)?;
        let record_key = key.map(|key| if is_number { GapKey::Number(key) } else { GapKey::Text(key) });
        Ok(Named { identity: row.get(0)?, stream: row.get(1)?, record_key, parent_stream: row.get(4)? })
    })
}

/// The latest time that the provider named when it rate-limited the test, of the gaps that wait for it.
pub(crate) fn told_until(connection: &Connection, of: i64) -> Result<Option<WallTime>, Failure> {
    let sql = "SELECT max(not_before) FROM gaps INDEXED BY gaps_under_pressure
               WHERE connection = ?1 AND state IN ('pending', 'in_progress')
               AND reason IN ('rate_limited', 'upstream_pressure')";
    let told = connection.prepare_cached(sql)?.query_row([of], |row| row.get::<_, Option<i64>>(0))?;
    Ok(told.map(date_from_sql))
}

/// Whether it stands for nobody knows how many records: it names none, says that it is a backlog, or is what the SDK or
/// the runtime left of a stream. A place in a file (`kind` is `file`) is one thing, and stays that one.
pub(crate) fn stands_for_many(record_key: Option<&str>, locator: Option<&RawJson<'_>>) -> bool {
    /// No record of a provider has such a key; see `REST_OF_RUN` of the engine.
    const OUR_KEYS: &str = "gleaner:";
    let members = locator.and_then(RawJson::members).unwrap_or_default();
    let is_file = members.iter().any(|(name, value)| name == "kind" && value.text().as_deref() == Some("file"));
    let is_part = |(name, value): &(std::borrow::Cow<'_, str>, RawJson<'_>)| {
        name == "watermark" || (name == "kind" && value.text().as_deref() == Some("backlog"))
    };
    record_key.map_or(!is_file, |key| key.starts_with(OUR_KEYS)) || members.iter().any(is_part)
}
