//! How complete each stream is, and honest where nobody can know.

use gleaner_app::CoveredStream;
use gleaner_store::{GapCause, GapCount, Listing, Share};
use serde::Serialize;

json_object! {
    /// One stream.
    pub(crate) struct StreamView(covered: CoveredStream) {
        let (share, why_no_share) = match covered.share() {
            Share::Known(share) => (Some(share), None),
            Share::Unknown(why) => (None, Some(WhyView { code: why.code(), sentence: why.sentence() })),
        };
        let (missing, stream) = (covered.coverage.missing(), covered.coverage);
        let summary = stream.summary;
        let gaps_open = summary.gaps_open();
    } => {
        name: String = summary.name,
        semantics: Option<&'static str> = summary.semantics.map(|semantics| semantics.code()),
        declared: bool = summary.declared,
        records: u64 = summary.records,
        tombstones: u64 = summary.tombstones,
        versions: u64 = summary.versions,
        quarantined: u64 = summary.quarantined,
        /// Stored records whose time could not be held against a time range.
        times_unreadable: u64 = stream.times_unreadable,
        gaps_open: u64 = gaps_open,
        gaps_ignored: u64 = summary.gaps_ignored,
        gaps_recovered: u64 = summary.gaps_recovered,
        /// What is known and not here.
        missing: u64 = missing,
        /// In hundredths of a percent, rounded down; absent where nobody can say.
        share: Option<u64> = share,
        why_no_share: Option<WhyView> = why_no_share,
        listing: Option<ListingView> = stream.listing.map(ListingView::of),
        gaps: Vec<GapCountView> = stream.gaps.iter().map(GapCountView::of).collect(),
    }
}

#[derive(Debug, Serialize)]
struct WhyView {
    code: &'static str,
    sentence: &'static str,
}

json_object! {
    struct ListingView(listing: Listing) {} => {
        required: u64 = listing.required,
        hydrated: u64 = listing.hydrated,
        gaps: u64 = listing.gaps,
        skipped: u64 = listing.skipped,
        unaccounted: u64 = listing.unaccounted,
        run_id: String = listing.run_id,
    }
}

json_object! {
    struct GapCountView(count: &GapCount) {
        let cause = GapCause::of_count(count);
    } => {
        code: String = cause.code().to_owned(),
        origin: &'static str = cause.origin(),
        state: String = count.state.clone(),
        message: Option<&'static str> = cause.wording().map(|wording| wording.what),
        part_of_list: bool = count.part_of_list,
        count: u64 = count.count,
    }
}
