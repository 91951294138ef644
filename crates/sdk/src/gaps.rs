//! Gaps that a run may recover: the first page from START, further ones on request.
//!
//! A page is transport and never a cap: pages are requested until one is empty. The runtime does not serve a gap
//! again that this run wrote back, so this ends.

use crate::emit::Emitter;
use crate::stop::Stop;
use gleaner_protocol::{ConnectorMessage, GapsPageRequest, RuntimeMessage, ServedGap};

/// Gaps of this run that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct GapPages {
    /// Gaps from START, for streams that have not asked yet.
    served: Vec<ServedGap>,
    /// START had none, so there are none for this run.
    is_drained: bool,
    /// A requested page never came: some gaps may not have been served.
    pub(crate) is_cut_off: bool,
}

impl GapPages {
    pub(crate) const fn new(first_page: Vec<ServedGap>) -> Self {
        Self { is_drained: first_page.is_empty(), served: first_page, is_cut_off: false }
    }

    /// The next page of gaps of one stream; empty when there are no more for this run.
    pub(crate) fn next_page(&mut self, emitter: &mut Emitter<'_>, stream: &str) -> Result<Vec<ServedGap>, Stop> {
        if self.is_drained || !emitter.wants_stream(stream) {
            return Ok(Vec::new());
        }
        let of_stream = |gap: &mut ServedGap| gap.stream == stream;
        let served = self.served.extract_if(.., of_stream).collect::<Vec<_>>();
        if !served.is_empty() {
            return Ok(served);
        }
        let request_id = emitter.next_request_id("gaps");
        let streams = vec![stream.to_owned()];
        let request = GapsPageRequest { request_id: request_id.clone(), streams, max_bytes: None };
        let page = emitter.ask(&ConnectorMessage::GapsPageRequest(request), |message| match message {
            RuntimeMessage::GapsPageResponse(page) if page.request_id == request_id => Some(page.detail_gaps),
            _ => None,
        })?;
        // Without an answer nothing is recovered, and the forward walk continues: the end of the input alone stops no
        // run.
        self.is_cut_off |= page.is_none();
        Ok(page.unwrap_or_default())
    }

    /// Returns gaps that belong to another part of this run, which has not asked yet: the runtime serves each gap
    /// once.
    pub(crate) fn put_back(&mut self, gaps: Vec<ServedGap>) {
        self.served.extend(gaps);
    }
}
