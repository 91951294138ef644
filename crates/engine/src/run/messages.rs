//! What each message means while a run collects.
//!
//! Streams are checked where data is concerned (records, cursors, gaps, coverage). News, skips and
//! questions may name any stream: they collect nothing.

use super::{Report, Run, StoreEffect, TraceEvent};
use crate::checkpoint::Track;
use crate::coverage::{CoveragePair, CoverageTally, check_pair, gaps_need_no_parent};
use crate::ids::{GapId, LeaseId, ReportId};
use crate::incomplete::makes_incomplete;
use crate::page::page_bytes;
use crate::scope::Admitted;
use crate::slice::GapChange;
use crate::time::Now;
use gleaner_protocol::{
    Checkpoint, ConnectorMessage, CoverageField, CoverageReport, DetailGap, DetailGapRecovered, Event, GapsPageRequest,
    KeyBlock, Record, STREAM_COLLECTION_FAILED, SkipResult, State, Violation, ViolationCode,
};

impl<T: Track> Run<T> {
    pub(super) fn take(&mut self, event: &Event<'_>, now: Now) -> Result<(), Violation> {
        if let Event::Violation(violation) = event {
            return Err(violation.clone());
        }
        if self.questions.is_open() {
            return Err(Violation::new(ViolationCode::OutputWhileWaiting));
        }
        match event {
            Event::Message { message, .. } => self.take_message(message, now)?,
            Event::CoverageKeys { field, keys, .. } => self.keep_keys(*field, keys)?,
            Event::CoverageEnd { report, .. } => self.end_report(report)?,
            Event::Violation(_) => {}
        }
        self.flush_if_full(now);
        Ok(())
    }

    fn take_message(&mut self, message: &ConnectorMessage<'_>, now: Now) -> Result<(), Violation> {
        match message {
            ConnectorMessage::Record(record) => self.take_record(record),
            ConnectorMessage::State(state) => self.take_state(state),
            ConnectorMessage::DetailGap(gap) => self.take_gap(gap),
            ConnectorMessage::DetailGapAttempted(attempted) => {
                self.rules.stream(&attempted.stream)?;
                let (gap_id, lease) = (GapId::new(&attempted.gap_id), LeaseId::new(&attempted.lease_id));
                self.slice.gap(GapChange::Attempt { gap_id, lease });
                Ok(())
            }
            ConnectorMessage::DetailGapRecovered(recovered) => self.take_recovered(recovered),
            ConnectorMessage::GapsPageRequest(request) => self.take_page_request(request),
            ConnectorMessage::Interaction(interaction) => self.ask(interaction, now),
            ConnectorMessage::SkipResult(skip) => self.take_skip(skip),
            ConnectorMessage::Progress(progress) => self.trace(TraceEvent::Progress(progress.clone())),
            ConnectorMessage::Assistance(help) => self.trace(TraceEvent::Assistance(help.clone())),
            ConnectorMessage::AssistanceStatus(status) => self.trace(TraceEvent::AssistanceStatus(status.clone())),
            ConnectorMessage::Done(done) => self.take_done(done),
        }
    }

    fn take_record(&mut self, record: &Record<'_>) -> Result<(), Violation> {
        let stream = self.rules.stream(&record.stream)?;
        let admitted = self.rules.admit(stream, record, &self.manifest, self.validator.as_ref())?;
        self.counts.seen += 1;
        self.note_late(&record.stream);
        // What becomes of it is counted when the store says so.
        match admitted {
            Admitted::Reject(misfit) => self.slice.reject(stream, record, misfit),
            Admitted::Store => self.slice.record(stream, record, false),
            Admitted::StoreWithoutTime => self.slice.record(stream, record, true),
        }
        Ok(())
    }

    /// Whether a report came too early is judged by the last one of its stream, and by its list: a record of the list that
    /// comes after the report is in no report.
    fn note_late(&mut self, stream: &str) {
        if let Some(last) = self.reports.iter_mut().rev().find(|report| report.pair.stream == *stream) {
            last.late += 1;
        }
        let of_list = |report: &&mut Report| report.pair.state_stream == *stream && report.pair.stream != *stream;
        self.reports.iter_mut().filter(of_list).for_each(|report| report.late += 1);
    }

    /// A cursor is numbered now and eligible once its slice is durable. One that says that its slice
    /// is whole goes out with it at once, in the same transaction.
    fn take_state(&mut self, state: &State<'_>) -> Result<(), Violation> {
        self.rules.stream(&state.stream)?;
        self.check_cursor(&state.stream, &state.cursor)?;
        if self.recovers_only {
            // What came before it is durable all the same.
            if state.slice {
                self.flush();
            }
            return Ok(());
        }
        let cursor = self.ledger.number(&state.stream, state.cursor.clone().into_owned());
        if state.slice {
            self.slice.commit(cursor);
            self.flush();
        } else {
            self.slice.stage(cursor);
        }
        Ok(())
    }

    fn take_gap(&mut self, gap: &DetailGap) -> Result<(), Violation> {
        self.rules.stream(&gap.stream)?;
        self.check_gap(gap)?;
        self.note_late(&gap.stream);
        self.pressure.gap(gap.reason);
        self.slice.gap(GapChange::Open(Box::new(self.masked_gap(gap))));
        Ok(())
    }

    /// Whether the gap is closed is the store's to say. One connector leaves the lease out: it means this run's.
    fn take_recovered(&mut self, recovered: &DetailGapRecovered) -> Result<(), Violation> {
        self.rules.stream(&recovered.stream)?;
        let lease = recovered.lease_id.as_ref().map_or_else(|| self.lease.clone(), LeaseId::new);
        let (gap_id, stream) = (GapId::new(&recovered.gap_id), recovered.stream.clone());
        self.slice.gap(GapChange::Recover { gap_id, stream, lease });
        Ok(())
    }

    /// What was said about gaps is written before the next page is read, or the page would be old.
    fn take_page_request(&mut self, request: &GapsPageRequest) -> Result<(), Violation> {
        for stream in &request.streams {
            self.rules.stream(stream)?;
        }
        self.flush();
        self.pages_owed.push_back(request.request_id.clone());
        // A gap of a stream that this run may not speak of could be neither recovered nor put back.
        let streams = if request.streams.is_empty() { self.rules.names().to_vec() } else { request.streams.clone() };
        let bytes_max = page_bytes(request.max_bytes);
        self.want_stored(StoreEffect::LeaseGapsPage { streams, bytes_max });
        Ok(())
    }

    fn take_skip(&mut self, skip: &SkipResult) -> Result<(), Violation> {
        if let Some(stream) = &skip.stream
            && skip.reason.as_deref() == Some(STREAM_COLLECTION_FAILED)
            && self.rules.contains(stream)
        {
            self.failed_streams.insert(stream.clone());
        }
        let event = self.masked_event(TraceEvent::Skip(Box::new(skip.clone())));
        if let TraceEvent::Skip(masked) = &event
            && makes_incomplete(skip, &self.manifest, &self.rules)
        {
            self.skips.add(masked);
        }
        self.want_stored(StoreEffect::Trace(event));
        Ok(())
    }

    fn trace(&mut self, event: TraceEvent) -> Result<(), Violation> {
        self.want_stored(StoreEffect::Trace(self.masked_event(event)));
        Ok(())
    }

    /// Keys belong to the report that ends next.
    fn keep_keys(&mut self, field: CoverageField, keys: &KeyBlock) -> Result<(), Violation> {
        self.check_keys(field, keys)?;
        let report = *self.keys_of.get_or_insert_with(|| next_report(&self.reports));
        self.want_stored(StoreEffect::KeepCoverageKeys { report, field, keys: keys.clone() });
        Ok(())
    }

    fn end_report(&mut self, end: &CoverageReport) -> Result<(), Violation> {
        let CoverageReport { stream, state_stream, .. } = end;
        self.rules.stream(stream)?;
        check_pair(&self.manifest, stream, state_stream)?;
        let checkpoint = self.manifest.stream(stream).map(|stream| &stream.checkpoint);
        if matches!(checkpoint, Some(Checkpoint::Own)) {
            self.rules.stream(state_stream)?;
        }
        let is_same = |report: &Report| report.pair.stream == *stream && report.pair.state_stream == *state_stream;
        if self.reports.iter().any(is_same) {
            return Err(Violation::new(ViolationCode::CoverageRepeated).of_stream(stream));
        }
        let [required, hydrated] =
            [CoverageField::RequiredKeys, CoverageField::HydratedKeys].map(|list| end.key_count(list));
        let uncovered = end.considered.unwrap_or(0).saturating_sub(end.covered.or(end.considered).unwrap_or(0));
        let uncovered = uncovered.saturating_sub(required.saturating_sub(hydrated));
        // A run that asked for a part of a stream need not cover the rest.
        let is_limited = self.rules.limits(stream) || self.rules.limits(state_stream);
        let uncovered = if is_limited { 0 } else { uncovered };
        let id = self.keys_of.take().unwrap_or_else(|| next_report(&self.reports));
        // The gaps that the report relies on must be durable before they are looked for.
        self.flush();
        self.owed += 1;
        let any_parent = stream == state_stream || gaps_need_no_parent(&self.manifest, stream);
        let pair = CoveragePair { stream: stream.clone(), state_stream: state_stream.clone(), any_parent };
        self.want_stored(StoreEffect::TallyCoverage { report: id, pair: pair.clone() });
        self.reports.push(Report {
            id,
            pair,
            verdict: None,
            tally: CoverageTally::default(),
            late: 0,
            judged_again: false,
            uncovered,
        });
        Ok(())
    }
}

fn next_report(reports: &[Report]) -> ReportId {
    reports.last().map_or(ReportId::new(1), |report| report.id.next())
}
