//! What the provider's quota headers leave us, so that a quota that is told is never overrun.
//!
//! A reading describes the moment at which the provider decided that request; everything sent
//! later is not in it. So what is left is the reading minus the sends since, and the newest
//! request's reading wins, whichever answer arrives last. When nothing is left the key closes until
//! the reset; behind it one request goes first and tells what the new quota is, because a reset
//! means a full window with one provider and a single free place with the next.

use crate::outcome::Quotas;
use crate::time::Time;

/// Quotas kept per key. Real providers nest two; a third is kept for good measure.
const QUOTAS_KEPT: usize = 3;

/// One quota as last told.
#[derive(Clone, Copy, Debug, Default)]
struct View {
    /// Left after the request `seq`.
    remaining: u32,
    /// The request that the reading belongs to.
    seq: u32,
    /// When the quota is whole again, if told.
    resets_at: Option<Time>,
    known: bool,
}

/// What the quotas say about the next send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotaAdvice {
    /// Nothing against it.
    Open,
    /// Closed until then.
    ClosedUntil(Time),
    /// A request that will tell the new quota is on its way.
    WaitForAnswer,
    /// Used up, and nobody said when it comes back.
    Exhausted,
}

/// All quotas of one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuotaBook {
    views: [View; QUOTAS_KEPT],
}

impl QuotaBook {
    /// Whether any quota has been told.
    pub(crate) fn is_told(&self) -> bool {
        self.views[0].known
    }

    /// Whether one more send, after `sent` sends in all, fits into what is left.
    pub(crate) fn advice(&self, sent: u32, now: Time, any_in_flight: bool) -> QuotaAdvice {
        let mut advice = QuotaAdvice::Open;
        for view in self.views.iter().filter(|view| view.known) {
            let since = sent.wrapping_sub(view.seq);
            if view.remaining > since {
                continue;
            }
            match view.resets_at {
                Some(at) if now < at => advice = later(advice, at),
                // The reset has passed, or none was told: one request finds out.
                Some(_) if any_in_flight => return QuotaAdvice::WaitForAnswer,
                Some(_) => {}
                None if any_in_flight => return QuotaAdvice::WaitForAnswer,
                None => {
                    advice = match advice {
                        QuotaAdvice::Open => QuotaAdvice::Exhausted,
                        other => other,
                    }
                }
            }
        }
        advice
    }

    /// Takes in the readings of the answer to request `seq`.
    pub(crate) fn on_answer(&mut self, quotas: &Quotas, seq: u32, now: Time) {
        for (view, reading) in self.views.iter_mut().zip(quotas.as_slice()) {
            let Some(remaining) = reading.remaining else { continue };
            let older = view.known && seq.wrapping_sub(view.seq) > u32::MAX / 2;
            if older {
                continue;
            }
            *view = View {
                remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
                seq,
                resets_at: reading.resets_in.map(|wait| now + wait),
                known: true,
            };
        }
    }
}

fn later(advice: QuotaAdvice, at: Time) -> QuotaAdvice {
    match advice {
        QuotaAdvice::ClosedUntil(other) => QuotaAdvice::ClosedUntil(other.max(at)),
        _ => QuotaAdvice::ClosedUntil(at),
    }
}
