//! Folding a long tail into one gap, and taking it out again in chunks.
//!
//! A run that stops at its cap with 100,000 records left must not write 100,000 gaps. It writes the
//! next chunk of them and one backlog gap for everything at or older than a watermark. Why the
//! watermark is a record's own time and inclusive: an offset means nothing once the list has changed,
//! and with an exclusive one the records that share the boundary's time would be stranded. Seeing
//! some of those twice is the price, so what is accounted for already is left out when a chunk is
//! taken, and each expansion makes progress. Never counts as source pressure.

/// Something in a list, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<W> {
    /// Its key.
    pub key: String,
    /// What the list is ordered by, from its content: a time, mostly.
    pub position: W,
}

/// A tail that was folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded<W> {
    /// Those that get a gap of their own.
    pub gaps: Vec<Listed<W>>,
    /// The rest, if there is one.
    pub backlog: Option<Backlog<W>>,
}

/// Everything at or older than a watermark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlog<W> {
    /// The position of the newest record in it. Inclusive.
    pub watermark: W,
    /// How many records it stood for when it was written. For people: the list may have changed.
    pub remaining: u64,
}

impl<W: Ord> Backlog<W> {
    /// Whether a record is accounted for by this backlog.
    pub fn covers(&self, position: &W) -> bool {
        *position <= self.watermark
    }
}

/// Folds a tail, newest first. Without a chunk each record gets a gap of its own.
pub fn fold<W: Clone>(tail: Vec<Listed<W>>, chunk: Option<usize>) -> Folded<W> {
    let mut gaps = tail;
    // A chunk of nothing would never get anywhere.
    let rest = gaps.split_off(chunk.map_or(gaps.len(), |chunk| chunk.max(1).min(gaps.len())));
    let remaining = u64::try_from(rest.len()).unwrap_or(u64::MAX);
    let backlog = rest.into_iter().next().map(|newest| Backlog { watermark: newest.position, remaining });
    Folded { gaps, backlog }
}

/// Takes the next chunk out of a backlog: of a new list, newest first, what is at or older than the
/// watermark and not accounted for yet.
pub fn expand<W: Ord + Clone>(
    backlog: &Backlog<W>,
    listed: impl IntoIterator<Item = Listed<W>>,
    is_accounted_for: impl Fn(&str) -> bool,
    chunk: Option<usize>,
) -> Folded<W> {
    let is_left = |record: &Listed<W>| backlog.covers(&record.position) && !is_accounted_for(&record.key);
    fold(listed.into_iter().filter(is_left).collect(), chunk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// A list, newest first, with these positions.
    fn list(positions: &[u32]) -> Vec<Listed<u32>> {
        let mut positions = positions.to_vec();
        positions.sort_unstable_by(|a, b| b.cmp(a));
        positions.iter().enumerate().map(|(n, &position)| Listed { key: format!("k{n}"), position }).collect()
    }

    #[test]
    fn a_cap_trip_over_a_large_remaining_tail_writes_a_bounded_number_of_gap_rows() {
        let folded = fold(list(&(0..1000).collect::<Vec<_>>()), Some(50));
        assert_eq!(folded.gaps.len(), 50);
        assert_eq!(folded.backlog, Some(Backlog { watermark: 949, remaining: 950 }), "the next record's own position");
    }

    #[test]
    fn default_off_leaves_the_tail_deferral_unchanged() {
        let folded = fold(list(&(0..1000).collect::<Vec<_>>()), None);
        assert_eq!((folded.gaps.len(), folded.backlog), (1000, None));
        assert_eq!(fold(list(&[1, 2]), Some(2)).backlog, None, "nothing is left to fold");
    }

    proptest! {
        #[test]
        fn a_later_run_expands_the_backlog_gap_before_forward_work_and_converges(
            positions in proptest::collection::vec(0_u32..8, 0..60), chunk in 0_usize..7,
        ) {
            let all = list(&positions);
            let mut accounted = BTreeSet::new();
            let mut folded = fold(all.clone(), Some(chunk));
            let mut runs = 0;
            loop {
                accounted.extend(folded.gaps.iter().map(|record| record.key.clone()));
                for record in &all {
                    let held = folded.backlog.as_ref().is_some_and(|backlog| backlog.covers(&record.position));
                    prop_assert!(held || accounted.contains(&record.key), "a record is stranded");
                }
                let Some(backlog) = folded.backlog else { break };
                folded = expand(&backlog, all.clone(), |key| accounted.contains(key), Some(chunk));
                runs += 1;
                prop_assert!(runs <= all.len(), "no progress");
            }
            prop_assert_eq!(accounted.len(), all.len());
        }
    }
}
