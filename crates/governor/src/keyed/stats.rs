//! Recent latencies of a key, for people; they decide nothing.
//!
//! Fixed memory and no loop in a request's path: the 95th percentile is computed from a ring on demand.

/// Latencies kept: enough for a 95th percentile that one outlier does not move.
const KEPT: usize = 32;
/// Weight of a new answer in the mean: an answer five back counts a third.
const WEIGHT: f32 = 0.2;

/// Latencies of a key.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    /// Packed microseconds; the oldest is overwritten.
    ring: [u16; KEPT],
    len: u8,
    next: u8,
    /// In microseconds.
    mean: f32,
}

impl Latencies {
    pub(crate) const fn new() -> Self {
        Self { ring: [0; KEPT], len: 0, next: 0, mean: 0.0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, nanos: u64) {
        let micros = nanos / 1000;
        let new = micros as f32;
        self.mean = if self.len == 0 { new } else { self.mean + (new - self.mean) * WEIGHT };
        self.keep(pack(micros));
    }

    /// Adds packed latencies with a known mean in microseconds. In the smoothed mean each counts as that mean.
    pub(crate) fn add_many(&mut self, packed: &[u16], mean: u64) {
        let new = mean as f32;
        let weight = 1.0 - (1.0 - WEIGHT).powi(packed.len() as i32);
        self.mean = if self.len == 0 { new } else { self.mean + (new - self.mean) * weight };
        packed.iter().for_each(|&packed| self.keep(packed));
    }

    #[inline]
    fn keep(&mut self, packed: u16) {
        let slot = usize::from(self.next) % KEPT;
        self.ring[slot] = packed;
        self.next = ((slot + 1) % KEPT) as u8;
        self.len = self.len.max(slot as u8 + 1);
    }

    /// The smoothed mean in nanoseconds; `None` before the first answer.
    pub(crate) fn mean(&self) -> Option<u64> {
        (self.len > 0).then_some((f64::from(self.mean) * 1000.0) as u64)
    }

    /// The 95th percentile by nearest rank, in nanoseconds; `None` before the first answer.
    pub(crate) fn p95(&self) -> Option<u64> {
        let len = usize::from(self.len);
        let rank = (len * 95).div_ceil(100).checked_sub(1)?;
        let mut kept = self.ring;
        // Packed values keep their order.
        let (_, &mut packed, _) = kept[..len].select_nth_unstable(rank);
        Some(unpack(packed) * 1000)
    }
}

/// Bits of the number before the shift.
const MANTISSA: u32 = 11;

/// Microseconds in 16 bits, to a twentieth of a percent: eleven bits and a shift. Order is kept.
#[inline]
pub(crate) const fn pack(micros: u64) -> u16 {
    let bits = u64::BITS - micros.leading_zeros();
    if bits <= MANTISSA {
        return micros as u16;
    }
    let shift = bits - MANTISSA;
    // 2^42 microseconds are fifty days.
    if shift > 31 { u16::MAX } else { ((shift << MANTISSA) | (micros >> shift) as u32) as u16 }
}

pub(crate) const fn unpack(packed: u16) -> u64 {
    let shift = packed >> MANTISSA;
    (packed as u64 & ((1 << MANTISSA) - 1)) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND;
    use proptest::prelude::*;

    #[test]
    fn the_mean_follows_and_the_95th_percentile_is_the_nearest_rank() {
        let mut latencies = Latencies::new();
        assert_eq!((latencies.mean(), latencies.p95()), (None, None));
        latencies.add(MILLISECOND);
        assert_eq!((latencies.mean(), latencies.p95()), (Some(MILLISECOND), Some(MILLISECOND)));
        latencies.add(2 * MILLISECOND);
        assert_eq!(latencies.mean(), Some(1200 * MILLISECOND / 1000));
        let mut latencies = Latencies::new();
        (1..=20).for_each(|ms| latencies.add(ms * MILLISECOND));
        assert_eq!(latencies.p95().unwrap() / MILLISECOND, 18, "19 ms, packed down by less than a promille");
        (0..KEPT).for_each(|_| latencies.add(MILLISECOND));
        assert_eq!(latencies.p95(), Some(MILLISECOND), "old answers are gone");
    }

    proptest! {
        #[test]
        fn packing_keeps_order_and_size(a in 0_u64..1 << 41, b in 0_u64..1 << 41) {
            prop_assert!(pack(a.min(b)) <= pack(a.max(b)));
            let back = unpack(pack(a));
            prop_assert!(back <= a && a - back <= a / 1000, "{a} {back}");
        }
    }
}
