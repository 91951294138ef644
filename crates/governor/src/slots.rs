//! Counts over a span of time that moves along, in bounded memory.
//!
//! Why not exact times: their number is not bounded. The price is that the oldest slot goes as a
//! whole, so the window is between `N - 1` and `N` widths long, never longer. Never reads a clock.

use crate::time::Time;

/// Counters over the last `N` spans of time; what is older than `N * width` is forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots<T, const N: usize> {
    /// End of the span that `slots[0]` counts.
    end: Time,
    width: u64,
    /// The newest first.
    slots: [T; N],
}

impl<T: Copy + Default, const N: usize> Slots<T, N> {
    pub(crate) fn new(width: u64) -> Self {
        Self { end: Time::ZERO, width: width.max(1), slots: [T::default(); N] }
    }

    /// The counter of the present span.
    pub(crate) fn current(&mut self, now: Time) -> &mut T {
        self.roll(now);
        &mut self.slots[0]
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.slots = [T::default(); N];
    }

    /// All counters; up to date after [`Self::roll`] or [`Self::current`].
    pub(crate) const fn all(&self) -> &[T; N] {
        &self.slots
    }

    /// All counters, the newest first; up to date as for [`Self::all`].
    pub(crate) const fn all_mut(&mut self) -> &mut [T; N] {
        &mut self.slots
    }

    /// Forgets what is too old. Cheap while the span lasts.
    pub(crate) fn roll(&mut self, now: Time) {
        if now >= self.end {
            self.advance(now);
        }
    }

    #[cold]
    fn advance(&mut self, now: Time) {
        let passed = now.nanos_since(self.end) / self.width + 1;
        match usize::try_from(passed) {
            Ok(passed) if passed < N => {
                self.slots.copy_within(..N - passed, passed);
                self.slots[..passed].fill(T::default());
                self.end = self.end.plus(passed as u64 * self.width);
            }
            _ => {
                self.slots = [T::default(); N];
                self.end = now.plus(self.width);
            }
        }
    }
}
