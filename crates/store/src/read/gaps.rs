//! What is missing, and what was set aside.

use super::records::stream_id;
use super::{Reader, length, page, sized_rows};
use crate::error::{StoreError, date_from_sql, date_to_sql, from_sql};
use crate::gaps::gap_rows;
use crate::gaps::gap_rows::{IDENTITY_BYTES, gap_id, parse_gap_id, stands_for_many};
use crate::sql::rows;
use gleaner_engine::{GapId, NOT_BEFORE_MAX, REST_OF_RUN, WallTime};
use gleaner_protocol::RawJson;
use rusqlite::Row;

/// One gap, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapSummary {
    /// Its place, for the next page.
    pub id: i64,
    /// By what it is called.
    pub gap_id: String,
    /// The stream.
    pub stream: String,
    /// The stream in whose list it was found.
    pub parent_stream: Option<String>,
    /// The record's key.
    pub record_key: Option<String>,
    /// `pending`, `in_progress`, `recovered`, `terminal` or `ignored`.
    pub state: String,
    /// Why it is missing, as a code of the protocol.
    pub reason: Option<String>,
    /// Why it was given up.
    pub terminal_reason: Option<String>,
    /// Whether it is a planned stop at a cap that the owner set.
    pub run_cap: bool,
    /// What the service answered, if it was an answer.
    pub http_status: Option<u16>,
    /// How often it was tried.
    pub attempts: u32,
    /// Since when it is known.
    pub since: WallTime,
    /// Not to be tried before.
    pub not_before: Option<WallTime>,
    /// What went wrong last, as JSON from the connector.
    pub last_error: Option<String>,
    /// How the connector finds it again, as JSON.
    pub locator: Option<String>,
    /// What the owner wrote when they ignored it, if they did.
    pub ignored: Option<Ignored>,
    /// What a closed one was closed by: `record`, `empty` (only another stream has its key) or `list`. Absent for gaps
    /// that an older version closed.
    pub confirmed_by: Option<String>,
}

impl GapSummary {
    /// Whether an owner can do without it: it is open, and one record.
    #[must_use]
    pub fn can_be_ignored(&self) -> bool {
        let locator = self.locator.as_deref().and_then(|text| RawJson::new(text).ok());
        self.state != "recovered" && !stands_for_many(self.record_key.as_deref(), locator.as_ref())
    }
}

/// That an owner does without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Why, in their words.
    pub note: String,
    /// Since when.
    pub at: WallTime,
}

/// The gap that somebody means by the beginning of its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeantGap {
    /// This one.
    One {
        /// Whose it is.
        connection: String,
        /// Its whole id.
        gap_id: String,
    },
    /// More than one begins like this.
    Several,
    /// None does, or it cannot be the beginning of an id.
    None,
}

/// So much of an id has to be said.
pub const GAP_ID_DIGITS_MIN: usize = 4;

/// How many gaps of a stream have one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapCount {
    /// The stream.
    pub stream: String,
    /// `pending`, `in_progress`, `terminal` or `ignored`.
    pub state: String,
    /// Why they are missing, as a code of the protocol.
    pub reason: Option<String>,
    /// Why they were given up.
    pub terminal_reason: Option<String>,
    /// Whether they are a planned stop at a cap that the owner set.
    pub run_cap: bool,
    /// Whether each stands for a part of a list, and not for one record.
    pub part_of_list: bool,
    /// How many.
    pub count: u64,
}

/// Which gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapFilter<'a> {
    /// Of one stream.
    pub stream: Option<&'a str>,
    /// Recovered ones, too.
    pub closed_too: bool,
}

/// A record that does not fit its schema.
#[derive(Clone, PartialEq, Eq)]
pub struct QuarantinedRecord {
    /// Its place, for the next page.
    pub id: i64,
    /// The stream.
    pub stream: String,
    /// The key.
    pub key: String,
    /// The JSON pointer of the fault; empty for the whole record.
    pub pointer: String,
    /// The rule of the schema that it breaks; empty where nobody noted it.
    pub reason: String,
    /// The body, byte for byte.
    pub body: Option<String>,
    /// When it was stored.
    pub stored_at: WallTime,
}

/// Only where it is: records are private.
impl std::fmt::Debug for QuarantinedRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "QuarantinedRecord({}, {:?}, {:?})", self.id, self.stream, self.pointer)
    }
}

/// What waits and when it may be tried, as far as a schedule asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapsWaiting {
    /// Something was left at a run's own budget.
    pub at_budget: bool,
    /// The provider said until when it does not want to be asked.
    pub told_until: Option<WallTime>,
}

impl Reader {
    /// What waits, as far as a schedule asks.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn gaps_waiting(&self, name: &str) -> Result<GapsWaiting, StoreError> {
        self.ask_of(name, |connection, of| {
            let sql = "SELECT EXISTS (SELECT 1 FROM gaps INDEXED BY gaps_by_reason
                       WHERE connection = ?1 AND state = 'pending' AND state != 'recovered' AND run_cap = 1)";
            let at_budget = connection.prepare_cached(sql)?.query_row([of], |row| row.get(0))?;
            Ok(GapsWaiting { at_budget, told_until: gap_rows::told_until(connection, of)? })
        })
    }

    /// Whether a run during a cooldown could be handed a gap now: one that is due and whose reason is not source pressure.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn has_gaps_beside_pressure(&self, name: &str, now: WallTime) -> Result<bool, StoreError> {
        self.ask_of(name, |connection, of| {
            let sql = "SELECT EXISTS (SELECT 1 FROM gaps WHERE connection = ?1 AND state = 'pending'
                       AND ifnull(reason, '') NOT IN ('rate_limited', 'upstream_pressure') AND record_key IS NOT ?2
                       AND (not_before IS NULL OR not_before <= ?3 OR not_before > ?4))";
            let values = (of, REST_OF_RUN, date_to_sql(now), date_to_sql(now + NOT_BEFORE_MAX));
            Ok(connection.prepare_cached(sql)?.query_row(values, |row| row.get(0))?)
        })
    }

    /// A page of a connection's gaps, in the order in which they were found, after the one with this
    /// number.
    ///
    /// # Errors
    ///
    /// When there is no such connection or stream.
    pub fn gaps(
        &self,
        name: &str,
        filter: GapFilter<'_>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<GapSummary>, StoreError> {
        self.ask_of(name, |connection, of| {
            let stream = filter.stream.map(|stream| stream_id(connection, name, stream)).transpose()?;
            // Closed gaps are kept for good; who wants them goes through all.
            let (index, open) = match filter.closed_too {
                true => ("", ""),
                false => ("INDEXED BY gaps_open", "AND g.state != 'recovered'"),
            };
            let sql = format!(
                "SELECT g.id, g.identity, s.name, g.parent_stream, g.record_key, g.state, g.reason, g.terminal_reason, \
                 g.run_cap, g.attempts, g.since, g.not_before, g.last_error, g.locator, g.http_status, \
                 g.ignored_note, g.ignored_at, g.confirmed_by \
                 FROM gaps g {index} JOIN streams s ON s.id = g.stream WHERE g.id > ?3 AND g.connection = ?1 \
                 AND (?2 IS NULL OR g.stream = ?2) {open} ORDER BY g.id LIMIT ?4"
            );
            let size = |gap: &GapSummary| length(gap.locator.as_ref()) + length(gap.last_error.as_ref());
            sized_rows(connection, &sql, (of, stream, after, page(limit)), read_gap, size)
        })
    }

    /// The gap whose id begins like this, whosever it is.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn meant_gap(&self, beginning: &str) -> Result<MeantGap, StoreError> {
        let lengths = GAP_ID_DIGITS_MIN..=2 * IDENTITY_BYTES;
        if !lengths.contains(&beginning.len()) || !beginning.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(MeantGap::None);
        }
        self.ask(|connection| {
            let padded = |with: char| {
                let digits = beginning.chars().chain(std::iter::repeat(with)).take(2 * IDENTITY_BYTES);
                parse_gap_id(&GapId::new(digits.collect::<String>()))
            };
            let (Some(from), Some(to)) = (padded('0'), padded('f')) else { return Ok(MeantGap::None) };
            let sql = "SELECT c.name, g.identity FROM gaps g JOIN connections c ON c.id = g.connection
                       WHERE g.identity BETWEEN ?1 AND ?2 AND c.state != 'purging' LIMIT 2";
            let mut found = rows(connection, sql, (&from[..], &to[..]), |row| {
                Ok((row.get(0)?, gap_id(&row.get::<_, Vec<u8>>(1)?).as_str().to_owned()))
            })?;
            Ok(match (found.pop(), found.pop()) {
                (Some(_), Some(_)) => MeantGap::Several,
                (Some((connection, gap_id)), None) => MeantGap::One { connection, gap_id },
                (None, _) => MeantGap::None,
            })
        })
    }

    /// How many gaps of a connection are not closed, by stream and reason, in the order of streams.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn gap_counts(&self, name: &str) -> Result<Vec<GapCount>, StoreError> {
        self.ask_of(name, |connection, of| {
            let sql = "SELECT s.name, g.state, g.reason, g.terminal_reason, g.run_cap, g.part_of_list, g.counted
                       FROM (SELECT stream, state, reason, terminal_reason, run_cap, part_of_list, count(*) AS counted
                             FROM gaps INDEXED BY gaps_by_reason WHERE connection = ?1 AND state != 'recovered'
                             GROUP BY stream, state, reason, terminal_reason, run_cap, part_of_list) g
                       JOIN streams s ON s.id = g.stream ORDER BY g.stream, g.counted DESC";
            rows(connection, sql, [of], |row| {
                Ok(GapCount {
                    stream: row.get(0)?,
                    state: row.get(1)?,
                    reason: row.get(2)?,
                    terminal_reason: row.get(3)?,
                    run_cap: row.get(4)?,
                    part_of_list: row.get(5)?,
                    count: from_sql(row.get(6)?),
                })
            })
        })
    }

    /// A page of the records in quarantine of a connection or of one of its streams, after the one with this number.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn quarantine(
        &self,
        name: &str,
        stream: Option<&str>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<QuarantinedRecord>, StoreError> {
        self.ask_of(name, |connection, of| {
            let sql = "SELECT q.id, s.name, q.key, q.pointer, q.body, q.stored_at, q.reason FROM quarantine q
                       JOIN streams s ON s.id = q.stream WHERE q.id > ?2 AND s.connection = ?1 AND (?4 IS NULL OR s.name = ?4) ORDER BY q.id LIMIT ?3";
            let read = |row: &Row<'_>| {
                Ok(QuarantinedRecord {
                    id: row.get(0)?,
                    stream: row.get(1)?,
                    key: row.get(2)?,
                    pointer: row.get(3)?,
                    body: row.get(4)?,
                    stored_at: date_from_sql(row.get(5)?),
                    reason: row.get(6)?,
                })
            };
            let size = |record: &QuarantinedRecord| length(record.body.as_ref()) + record.key.len();
            sized_rows(connection, sql, (of, after, page(limit), stream), read, size)
        })
    }
}

fn read_gap(row: &Row<'_>) -> rusqlite::Result<GapSummary> {
    Ok(GapSummary {
        id: row.get(0)?,
        gap_id: gap_id(&row.get::<_, Vec<u8>>(1)?).as_str().to_owned(),
        stream: row.get(2)?,
        parent_stream: row.get(3)?,
        record_key: row.get(4)?,
        state: row.get(5)?,
        reason: row.get(6)?,
        terminal_reason: row.get(7)?,
        run_cap: row.get(8)?,
        attempts: row.get(9)?,
        since: date_from_sql(row.get(10)?),
        not_before: row.get::<_, Option<i64>>(11)?.map(date_from_sql),
        last_error: row.get(12)?,
        locator: row.get(13)?,
        http_status: row.get(14)?,
        ignored: match (row.get(15)?, row.get::<_, Option<i64>>(16)?) {
            (Some(note), Some(at)) => Some(Ignored { note, at: date_from_sql(at) }),
            (_, None) | (None, _) => None,
        },
        confirmed_by: row.get(17)?,
    })
}
