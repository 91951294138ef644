//! What a rehearsed connector says, kept as far as it is shown, and the end of it after so many records.

use crate::error::AppError;
use gleaner_engine::{Schemas, Validate};
use gleaner_protocol::{ConnectorMessage, DetailGap, GapKey, GapReason, Manifest, Op, Record};
use gleaner_runtime::{Control, Observer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

/// Gaps that are kept to be shown. They do not count against the limit, and a list may have a million.
const GAPS_MAX: u64 = 200;

/// Something that came out of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub stream: String,
    pub key: String,
    /// The body of a record, as it was written; empty where there is none.
    pub data: String,
    pub kind: ItemKind,
}

/// What it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemKind {
    Record,
    /// A record that was deleted.
    Deleted,
    /// A record that does not fit: where, or why.
    Rejected(String),
    /// A record that is known and was not had: why.
    Gap(String),
}

/// How much came of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    pub records: u64,
    pub rejected: u64,
    pub gaps: u64,
}

/// Listens to a run.
pub(super) struct Watcher {
    schemas: Schemas,
    /// How many records are wanted; `None` for all, and then none is kept.
    limit: Option<u32>,
    orders: Sender<Control>,
    /// Records that fit and that do not.
    taken: u64,
    gaps: u64,
    pub(super) items: Vec<Item>,
    pub(super) sums: BTreeMap<String, Sums>,
    /// Whether it was stopped because there were enough.
    pub(super) had_enough: bool,
}

impl Watcher {
    pub(super) fn new(manifest: &Manifest, limit: Option<u32>, orders: Sender<Control>) -> Result<Self, AppError> {
        let schemas = Schemas::new(manifest)
            .map_err(|fault| AppError::usage(fault.to_string(), "correct the manifest, or ask its author to"))?;
        let (items, sums) = (Vec::new(), BTreeMap::new());
        Ok(Self { schemas, limit, orders, taken: 0, gaps: 0, items, sums, had_enough: false })
    }

    fn take_record(&mut self, record: &Record<'_>) {
        let fault = record.data.as_ref().and_then(|data| self.schemas.check(&record.stream, data).err());
        let kind = match (fault, record.op) {
            (Some(misfit), _) => {
                let place = if misfit.pointer.is_empty() { "/" } else { &misfit.pointer };
                ItemKind::Rejected(format!("it does not fit its schema, at {place}"))
            }
            (None, Op::Delete) => ItemKind::Deleted,
            (None, Op::Upsert) => ItemKind::Record,
        };
        let data = record.data.as_ref().map(|data| data.as_str().to_owned()).unwrap_or_default();
        let (stream, key) = (record.stream.clone().into_owned(), record.key.canonical().into_owned());
        self.take(Item { stream, key, data, kind });
    }

    fn take_gap(&mut self, gap: &DetailGap) {
        let key = gap.record_key.as_ref().map(GapKey::as_str).unwrap_or_default().to_owned();
        let why = gap.reason.map_or("no reason", GapReason::code).to_owned();
        self.take(Item { stream: gap.stream.clone(), key, data: String::new(), kind: ItemKind::Gap(why) });
    }

    /// Counts it, and keeps it if it is shown. What comes after there are enough was not wanted.
    fn take(&mut self, item: Item) {
        if self.had_enough {
            return;
        }
        let sums = self.sums.entry(item.stream.clone()).or_default();
        let is_gap = matches!(item.kind, ItemKind::Gap(_));
        match item.kind {
            ItemKind::Record | ItemKind::Deleted => sums.records += 1,
            ItemKind::Rejected(_) => sums.rejected += 1,
            ItemKind::Gap(_) => sums.gaps += 1,
        }
        let count = if is_gap { &mut self.gaps } else { &mut self.taken };
        *count += 1;
        let Some(limit) = self.limit else { return };
        if !is_gap || self.gaps <= GAPS_MAX {
            self.items.push(item);
        }
        if self.taken >= u64::from(limit) {
            self.had_enough = true;
            // Nothing of it is stored, so there is no slice to finish. A run that is over needs no order.
            drop(self.orders.send(Control::CancelNow));
        }
    }
}

impl Observer for Watcher {
    fn message(&mut self, message: &ConnectorMessage<'_>) {
        match message {
            ConnectorMessage::Record(record) => self.take_record(record),
            ConnectorMessage::DetailGap(gap) => self.take_gap(gap),
            // What a connector leaves out itself, because it does not fit, has no record.
            ConnectorMessage::SkipResult(skip) => {
                let stream = skip.stream.clone().unwrap_or_default();
                let why = skip.message.clone().or_else(|| skip.reason.clone()).unwrap_or_default();
                let keys = if skip.resources.is_empty() { vec![String::new()] } else { skip.resources.clone() };
                for key in keys {
                    let kind = ItemKind::Rejected(why.clone());
                    self.take(Item { stream: stream.clone(), key, data: String::new(), kind });
                }
            }
            _ => {}
        }
    }
}
