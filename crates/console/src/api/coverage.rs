//! How complete each stream is, and honest where nobody can know.

use gleaner_app::CoveredStream;
use gleaner_store::{GapCause, GapCount, Listing, Share};
use serde::Serialize;

/// One stream.
#[derive(Debug, Serialize)]
pub(crate) struct StreamView {
    name: String,
    semantics: Option<&'static str>,
    declared: bool,
    records: u64,
    tombstones: u64,
    versions: u64,
    quarantined: u64,
    /// Stored records whose time could not be held against a time range.
    times_unreadable: u64,
    gaps_open: u64,
    gaps_ignored: u64,
    gaps_recovered: u64,
    /// What is known and not here.
    missing: u64,
    /// In hundredths of a percent, rounded down; absent where nobody can say.
    share: Option<u64>,
    why_no_share: Option<WhyView>,
    listing: Option<ListingView>,
    gaps: Vec<GapCountView>,
}

#[derive(Debug, Serialize)]
struct WhyView {
    code: &'static str,
    sentence: &'static str,
}

#[derive(Debug, Serialize)]
struct ListingView {
    required: u64,
    hydrated: u64,
    gaps: u64,
    skipped: u64,
    unaccounted: u64,
    run_id: String,
}

#[derive(Debug, Serialize)]
struct GapCountView {
    code: String,
    origin: &'static str,
    state: String,
    message: Option<&'static str>,
    part_of_list: bool,
    count: u64,
}

pub(crate) fn of_stream(stream: CoveredStream) -> StreamView {
    let (share, why_no_share) = match stream.share() {
        Share::Known(share) => (Some(share), None),
        Share::Unknown(why) => (None, Some(WhyView { code: why.code(), sentence: why.sentence() })),
    };
    let stream = stream.coverage;
    StreamView {
        share,
        why_no_share,
        missing: stream.missing(),
        gaps_open: stream.summary.gaps_open(),
        gaps_ignored: stream.summary.gaps_ignored,
        gaps: stream.gaps.iter().map(of_gaps).collect(),
        listing: stream.listing.map(of_listing),
        semantics: stream.summary.semantics.map(|semantics| semantics.code()),
        declared: stream.summary.declared,
        records: stream.summary.records,
        tombstones: stream.summary.tombstones,
        versions: stream.summary.versions,
        quarantined: stream.summary.quarantined,
        times_unreadable: stream.times_unreadable,
        gaps_recovered: stream.summary.gaps_recovered,
        name: stream.summary.name,
    }
}

fn of_listing(listing: Listing) -> ListingView {
    let Listing { required, hydrated, gaps, skipped, unaccounted, run_id, .. } = listing;
    ListingView { required, hydrated, gaps, skipped, unaccounted, run_id }
}

fn of_gaps(count: &GapCount) -> GapCountView {
    let cause = GapCause::of_count(count);
    GapCountView {
        code: cause.code().to_owned(),
        origin: cause.origin(),
        state: count.state.clone(),
        message: cause.wording().map(|wording| wording.what),
        part_of_list: count.part_of_list,
        count: count.count,
    }
}
