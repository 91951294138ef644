//! Handing gaps out to a run, page by page.
//!
//! Due gaps are read in their order, one after the other until the page is full, because a single one
//! may be as large as a line; each is leased by the engine's rule and goes out. A page is transport and never a cap: an empty one means that no gap is left that this run
//! may have. Gaps that the run deferred itself are not due for it, so recovery ends. During a cooldown no gap whose reason
//! is source pressure is handed out, whatever the connector asks for.

use crate::error::{Failure, StoreError, date_to_sql};
use crate::gaps::gap_rows::{self, COLUMNS, GapRow, Named};
use crate::run::session::{RunTables, Session};
use crate::store::Store;
use gleaner_engine::{NOT_BEFORE_MAX, REST_OF_RUN, Track, WallTime};
use gleaner_protocol::{GapKey, ServedGap};

impl Store {
    /// Leases a page of gaps to this run: of these streams, or of any when there are none.
    ///
    /// # Errors
    ///
    /// When the store cannot be written. Then nothing is leased.
    pub fn lease_gaps_page<T: Track>(
        &mut self,
        session: &Session<T>,
        streams: &[String],
        bytes_max: u64,
        now: WallTime,
    ) -> Result<Vec<ServedGap>, StoreError> {
        self.write(&session.leases, |transaction| {
            let wanted = streams.iter().map(|stream| session.streams.of(stream)).collect::<Result<Vec<_>, _>>()?;
            let tables = session.tables(transaction);
            let mut page = tables.due(&wanted, bytes_max, now)?;
            for (row, _) in &mut page {
                row.change(transaction, |gap| gap.lease(&session.start.lease, now))?;
                tables.hold(row)?;
            }
            Ok(page.into_iter().map(|(_, served)| served).collect())
        })
    }
}

/// A gap of a page, and how it is written to the connector.
type Due = (GapRow, ServedGap);

impl<T: Track> RunTables<'_, T> {
    /// The gaps that are due and fit the page, in their order. What was found under another grant is not this run's business.
    fn due(&self, wanted: &[i64], bytes_max: u64, now: WallTime) -> Result<Vec<Due>, Failure> {
        let Self { connection, session } = *self;
        // The ids are numbers of ours.
        let of_streams = match wanted {
            [] => String::new(),
            ids => format!("AND stream IN ({})", ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",")),
        };
        // The same words as in the index of gaps under pressure.
        let spared = match session.start.about.purpose.spares_pressure() {
            true => "AND ifnull(reason, '') NOT IN ('rate_limited', 'upstream_pressure')",
            false => "",
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM gaps WHERE connection = ?1 AND state = 'pending' AND (not_before IS NULL OR not_before <= ?2 \
             OR not_before > ?6) AND deferred_under IS NOT ?3 AND grant_id IN (?4, ?7) AND record_key IS NOT ?5 {of_streams} \
             {spared} ORDER BY due"
        );
        let lease = session.start.lease.as_str();
        let latest = date_to_sql(now + NOT_BEFORE_MAX);
        let (grant, own) = (&session.start.grant, session.gap_grant(true));
        let values = (session.connection, date_to_sql(now), lease, grant, REST_OF_RUN, latest, &own);
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(values)?;
        let (mut page, mut left) = (Vec::new(), bytes_max);
        while let Some(row) = rows.next()? {
            let row = GapRow::read(row)?;
            let Some(named) = gap_rows::name_of(connection, row.id)? else { continue };
            let is_part = row.record_key().is_some() && row.stands_for_many();
            let is_twin = |(other, _): &Due| other.is_twin_of(&row);
            if is_part && (page.iter().any(is_twin) || self.has_twin(&row)?) {
                continue;
            }
            if !self.may_have(&row, &named) {
                continue;
            }
            let served = ServedGap {
                gap_id: gap_rows::gap_id(&named.identity).as_str().to_owned(),
                stream: named.stream,
                record_key: named.record_key,
                parent_stream: named.parent_stream,
                detail_locator: row.gap.locator.clone(),
                list_cursor: row.gap.list_cursor.clone(),
                lease_id: lease.to_owned(),
            };
            let size = size(&served);
            // At least one, however large it is: it must be recoverable too.
            if size > left && !page.is_empty() {
                break;
            }
            left = left.saturating_sub(size);
            page.push((row, served));
        }
        Ok(page)
    }

    /// Whether the run may be served it: its own track's, or one that is certainly in its scope.
    fn may_have(&self, row: &GapRow, named: &Named) -> bool {
        let Some(reach) = &self.session.start.about.reach else { return true };
        let key = named.record_key.as_ref().map(GapKey::as_str);
        (row.grant() == self.session.gap_grant(true) && !self.session.is_ordinary())
            || reach.serves(&named.stream, key, row.stands_for_many())
    }
}

/// How long it is on the wire, roughly: names of fields and quotes are some 150 bytes.
fn size(gap: &ServedGap) -> u64 {
    let raw = |raw: &Option<gleaner_protocol::RawJson<'static>>| raw.as_ref().map_or(0, |raw| raw.as_str().len());
    let text =
        gap.gap_id.len() + gap.stream.len() + gap.lease_id.len() + gap.parent_stream.as_ref().map_or(0, String::len);
    let key = gap.record_key.as_ref().map_or(0, |key: &GapKey| key.as_str().len());
    (150 + text + key + raw(&gap.detail_locator) + raw(&gap.list_cursor)) as u64
}
