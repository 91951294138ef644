//! Table of all numbers of the law, with name, unit, range, default and reason.
//!
//! One table, so that a change of the law needs one place, and the lab can set any number from outside (`gleaner lab
//! run --set climb=0.04`). Two different numbers for one idea have two names. Every value within its range is safe:
//! it may make a bad law, but it neither panics nor overflows. A test checks that no other file of the law has a
//! number of its own.
//!
//! The code uses names, not values: a governor holds one `&'static Tuning`, and all governors of a process share
//! [`Tuning::SHIPPED`] unless the owner sets another.

use crate::time::{MILLISECOND, SECOND};

/// Marks of a send log. At least half of them cover the remembered sends, so a slot is freed late by at most 1/16 of
/// the sends. It is an array length, as are the next two, so it cannot be set from outside.
pub(crate) const MARKS: usize = 32;
/// Refusals whose times are remembered: enough for the largest margin.
pub(crate) const REFUSALS_REMEMBERED: usize = 6;
/// Quotas kept per key. Real providers have two at most.
pub(crate) const QUOTAS_KEPT: usize = 2;
/// Maximum number of lengths in a list of the table.
const LENGTHS_MAX: usize = 32;

/// Defines [`Tuning`], its shipped values and the table of [`Number`]s from one list. The reason is the doc comment.
macro_rules! tuning {
    ($($group:literal {
        $($(#[doc = $reason:literal])+ $name:ident: $kind:ty = $value:expr, $unit:literal, $min:literal..=$max:literal;)+
    })+) => {
        /// One value for every number of the law. Create it from [`Tuning::SHIPPED`] with [`Number::set`].
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct Tuning {
            $($($(#[doc = $reason])+ pub(crate) $name: $kind,)+)+
        }

        static SHIPPED: Tuning = Tuning { $($($name: $value,)+)+ };

        static NUMBERS: &[Number] = &[$($(Number {
            name: stringify!($name),
            group: $group,
            unit: $unit,
            min: $min as f64,
            max: $max as f64,
            reason: concat!($($reason),+).trim_ascii_start(),
            text: |tuning| tuning.$name.text(),
            set: |tuning, text| {
                tuning.$name = <$kind>::read(text, $min as f64, $max as f64)?;
                Ok(())
            },
        },)+)+];
    };
}

tuning! {
    "interval" {
        /// Longest interval: an hour. Slower providers count per window.
        interval_max: u64 = 3600 * SECOND, "s", 10..=86_400;
        /// Lateness that a later send may make up for (GCRA's tolerance). The error of an ordinary timer; more would
        /// be a burst, and a provider with a bucket of one refuses those.
        lateness_credit: u64 = 2 * MILLISECOND, "s", 0..=1;
        /// Share of the permitted sends that must be used before the rate may rise.
        used: f64 = 0.75, "share", 0..=1;
        /// A restored limit this many times above the restored rate was not measured.
        restored_limit_max: f64 = 1.2, "factor", 1..=10;
    }
    "search" {
        /// Successes before Search raises the rate: enough to notice a bucket of one.
        search_successes: f64 = 6.0, "successes", 1..=1000;
        /// Seconds at the current rate before Search raises it: enough for the first refusal to arrive.
        search_s: f64 = 1.5, "s", 0..=600;
        /// Factor by which Search multiplies the rate. Doubling from one per second finds 100 per second in 20 s.
        search_growth: f64 = 2.0, "factor", 1..=10;
    }
    "climb" {
        /// Step of Climb: 5 % find a limit within seconds and overshoot it by less than a refusal costs.
        climb: f64 = 0.05, "share", 0.001..=1;
        /// Step of Climb after late answers: a tarpit counts over seconds and is noticed late.
        climb_gently: f64 = 0.015, "share", 0.001..=1;
        /// Shortest step of Climb or Probe: enough for the answers to the last step to arrive.
        step_min_s: f32 = 1.0, "s", 0.1..=10;
        /// Longest step of Climb: the rate still rises when refusals last for hours.
        step_max_s: f32 = 60.0, "s", 10..=3600;
        /// A step lasts one nth of the last refusal: longer refusals make longer steps.
        step_part: f32 = 8.0, "1/n", 1..=1000;
        /// A step lasts at least this many intervals.
        step_intervals: f64 = 2.0, "intervals", 0..=100;
        /// A step has at least this many successes: one may be chance.
        step_successes: u32 = 2, "successes", 0..=1000;
        /// The pace is not raised beyond this multiple of the window's rate: inside the window it only makes more
        /// echoes.
        step_window_max: f64 = 3.0, "factor", 0.1..=100;
    }
    "hold" {
        /// Quiet time before the first probe where this run measured no limit: restored, or a window's. Each probe
        /// that confirms the limit multiplies it by `hold_growth`.
        hold_s: f32 = 120.0, "s", 1..=86_400;
        /// Factor of the quiet time after each confirmation.
        hold_growth: f32 = 2.0, "factor", 1..=100;
        /// Longest quiet time, a quarter of an hour: a refusal then costs less than a tenth of a percent.
        hold_max_s: f32 = 960.0, "s", 1..=86_400;
        /// Quiet time after a limit was first measured or moved: it may move again.
        hold_moved_s: f32 = 60.0, "s", 1..=86_400;
        /// Shortest quiet time after late answers: a probe here is not refused, it delays every request.
        hold_after_late_s: f32 = 240.0, "s", 0..=86_400;
        /// Successes between two checks of Hold: margin and quiet time end no sooner.
        hold_look: u32 = 4, "successes", 1..=1000;
        /// Successes before a probe, also at a slow provider.
        hold_successes: u32 = 20, "successes", 0..=10_000;
        /// Two measurements that differ by less are the same limit.
        same_limit: f64 = 0.05, "share", 0..=1;
    }
    "probe" {
        /// Step of Probe: small, so that a refused one measures the limit well.
        probe: f64 = 0.02, "share", 0.001..=1;
        /// No probe while the pace is beyond this multiple of the window's rate: the window is the limit.
        probe_window_max: f64 = 1.5, "factor", 0.1..=100;
        /// Requests that do not prove a rise: a bucket may have saved them up.
        risen_burst: u32 = 4, "requests", 0..=10_000;
        /// The limit rose if this multiple of it was accepted, and `risen_rate` holds.
        risen_accepted: f64 = 1.03, "factor", 1..=10;
        /// The limit rose only if the rate is at least this multiple of it: the count alone may be noise.
        risen_rate: f64 = 1.1, "factor", 1..=10;
        /// A refused probe that measures less than this share of the limit has met another limit.
        probe_believed: f64 = 0.8, "share", 0..=1;
        /// A probe was refused at once if fewer extra requests than this were accepted.
        probe_extra: f64 = 2.0, "requests", 0..=10_000;
        /// Limit after a probe that was refused at once, as a share of its rate, which was one small step too fast.
        probe_under: f64 = 0.985, "share", 0.1..=1;
        /// Limit after a probe that was refused late, as a share of the old limit: the extra requests were saved up.
        probe_same: f64 = 0.995, "share", 0.1..=1;
    }
    "refusal" {
        /// Rate after the first refusal of an episode: below half of the last rate of Search, which had doubled.
        first_cut: f64 = 0.4, "share", 0.01..=1;
        /// Rate after each refused trial: a provider that refuses a single request needs more time.
        trial_cut: f64 = 0.5, "share", 0.01..=1;
        /// Rate after a refusal that the window's limit explains: the pace is not the cause.
        explained_cut: f64 = 0.95, "share", 0.01..=1;
        /// Rate after a failed experiment, or with too many requests in flight: hardly anything was wrong with it.
        slight_cut: f64 = 0.98, "share", 0.01..=1;
        /// Intervals before the first trial: a bucket refills within a few.
        first_trial_intervals: f64 = 3.0, "intervals", 0..=1000;
        /// The first trial waits at least one nth of the last refusal: some providers refuse for a while.
        first_trial_part: f64 = 8.0, "1/n", 1..=1000;
        /// Longest pause between two trials: a day, the longest window that providers use.
        trial_max: u64 = 86_400 * SECOND, "s", 1..=864_000;
        /// Retry-Afters that may prove too short before trials slow down: one may be rounded.
        told_in_vain: u8 = 1, "directives", 0..=100;
        /// Maximum of doublings of the trial interval after more of them.
        told_doublings_max: u32 = 10, "doublings", 0..=30;
    }
    "tries" {
        /// Usual window lengths, since the window's first send: trials are sent at their ends.
        turns: Lengths = Lengths::new(&[1.0, 10.0, 60.0, 120.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 86_400.0]),
            "s", 0.001..=2_678_400;
        /// A window whose first send is older than this is not the one that Search just filled.
        turn_old_s: f64 = 120.0, "s", 0..=86_400;
        /// Growth of the wait with each refused trial, when a limit was met before and no window is known.
        trial_growth: f64 = 3.0, "factor", 1..=100;
        /// The same when the window's first send is too old to help.
        trial_growth_old: f64 = 3.0, "factor", 1..=100;
        /// Shortest wait then: the shortest window that providers use.
        trial_old_min_s: f64 = 1.0, "s", 0..=3600;
        /// A window end counts only beyond this multiple of the time since the first send: one that just passed says
        /// nothing.
        turn_beyond: f64 = 1.03, "factor", 1..=10;
        /// A window end must make the wait this many times longer: otherwise trials would be too frequent.
        turn_growth: f64 = 2.0, "factor", 1..=100;
        /// The same for a quota shown as used up: surely a window, so trials can be rarer.
        turn_growth_exhausted: f64 = 3.0, "factor", 1..=100;
        /// Beyond the last usual length: this multiple of the time since the first send.
        turn_after_last: f64 = 2.0, "factor", 1..=100;
        /// A learned window gets a trial before the next usual length: at this multiple of the time since its first
        /// send, or by `soon_growth`.
        soon_beyond: f64 = 1.3, "factor", 1..=100;
        /// The trial waits at least this multiple of the last wait.
        soon_growth: f64 = 3.0, "factor", 1..=100;
        /// A trial comes a little after the window's end, because clocks and networks are inexact: this multiple of
        /// the length.
        turn_pad: f64 = 1.002, "factor", 1..=2;
        /// Added to the trial's time for the same reason.
        turn_pad_by: u64 = 50 * MILLISECOND, "s", 0..=60;
    }
    "measurement" {
        /// A refusal that lasts longer than this may be a window's.
        long_s: f64 = 1.2, "s", 0..=3600;
        /// A refusal that lasts as long as this many requests is a window's: a bucket refills sooner.
        long_requests: f64 = 16.0, "requests", 1..=10_000;
        /// Start of Climb after the first refusal, as a share of the refused rate, which had doubled.
        climb_from: f64 = 0.45, "share", 0.01..=1;
        /// A rate that stayed above this share of the current one has hardly changed.
        steady: f64 = 0.85, "share", 0..=1;
        /// Rate to hold after a refused Climb: it rose by 5 % steps, and the last one was too much.
        just_under: f64 = 0.93, "share", 0.1..=1;
        /// The same when another refusal must be avoided.
        far_under: f64 = 0.75, "share", 0.1..=1;
        /// Fewer accepted requests than this measure nothing.
        few: f64 = 8.0, "requests", 0..=1000;
        /// This many accepted requests give at least an estimate.
        few_counted: f64 = 2.0, "requests", 1..=1000;
        /// Correction of the estimate in requests: the next request was nearly due.
        few_missing: f64 = 0.5, "requests", 0..=10;
        /// Without an estimate the limit is taken as this share of the rate.
        few_guess: f64 = 0.5, "share", 0.01..=1;
        /// Maximum of the estimated limit as a share of the rate, since the rate was refused.
        few_under: f64 = 0.9, "share", 0.01..=1;
        /// Start of Climb then, as a share of the estimated limit.
        few_climb_from: f64 = 0.9, "share", 0.01..=1;
        /// Pace inside a window that was just learned, as a share of the refused rate.
        window_pace: f64 = 0.7, "share", 0.01..=1;
        /// Lowest pace as a multiple of the window's rate, so that the window can be used up.
        window_pace_min: f64 = 1.5, "factor", 0.5..=2.5;
        /// Highest pace as a multiple of the window's rate: a faster one only empties it sooner.
        window_pace_max: f64 = 4.0, "factor", 2.5..=100;
    }
    "ban" {
        /// Refusals in a row, without a reason and without a success, that look like a ban.
        shut_after: u8 = 3, "refusals", 1..=100;
        /// First wait after a ban; doubled each time. GitHub asks for it where there is no header.
        shut_s: f64 = 60.0, "s", 1..=86_400;
        /// Maximum of doublings: up to about an hour.
        shut_doublings_max: u32 = 6, "doublings", 0..=30;
    }
    "drain" {
        /// Rate while a queue drains, as a share of the rate that filled it.
        drain_rate: f64 = 0.4, "share", 0.01..=1;
        /// Longest pause for a queue to drain when it is first noticed.
        drain_pause_s: f64 = 10.0, "s", 0..=3600;
        /// Longest pause for a queue to drain later.
        drain_pause_again_s: f64 = 60.0, "s", 0..=3600;
        /// Rate after Search and a drain, as a share: its last step had doubled.
        after_search: f64 = 0.4, "share", 0.01..=1;
        /// Rate after Climb and a drain: when a row of answers is late, the rate is a tenth too high or a little
        /// more.
        after_climb: f64 = 0.85, "share", 0.01..=1;
        /// Rate to hold after a gentle Climb, or after late answers in Hold: it is too high by one or two small
        /// steps.
        after_gentle_climb: f64 = 0.97, "share", 0.01..=1;
        /// Rate to hold after Probe, as a share of the limit: only the probe was too fast.
        after_probe: f64 = 0.995, "share", 0.01..=1;
        /// Rows of late answers in a drain after which we are not the cause.
        drain_rows_max: u8 = 4, "rows", 1..=100;
        /// Ordinary answers that end a drain.
        drain_ordinary: u8 = 3, "answers", 1..=100;
        /// A queue exists if less than this share of the rate is delivered; it delivers at its own rate.
        queue_below: f64 = 0.7, "share", 0..=1;
        /// Share of the queue's rate that is used.
        queue_rate: f64 = 0.95, "share", 0.01..=1;
        /// Without a queue, the rate to return to is lowered to this share.
        drain_again: f64 = 0.9, "share", 0.01..=1;
        /// Highest rate after a further row of late answers, as a share of the current one.
        drain_again_max: f64 = 0.7, "share", 0.01..=1;
    }
    "latency" {
        /// An answer is late beyond this multiple of the baseline. Log-normal latency with a wide spread (sigma 0.5)
        /// passes it once in 17 answers.
        late: f64 = 2.2, "factor", 1..=100;
        /// An answer is late only by at least this much: less is jitter of our own machine.
        late_by_s: f64 = 0.02, "s", 0..=60;
        /// Late answers in a row that cannot be chance: with the spread above, once in 25 million.
        late_row: u8 = 6, "answers", 1..=100;
        /// Shortest span of a row: a machine that stops for a moment delays everything in flight.
        late_lasting: u64 = 750 * MILLISECOND, "s", 0..=60;
        /// Beyond this multiple of the baseline an answer is very late.
        very_late: f64 = 10.0, "factor", 1..=1000;
        /// Very late is at least this much: a nearby provider answers within a millisecond, and a busy machine needs
        /// ten of them to notice.
        very_late_by_s: f64 = 0.25, "s", 0..=60;
        /// A very late answer counts as this many late ones: a queue delays by minutes, a tarpit by a factor.
        very_late_weight: u8 = 3, "answers", 1..=100;
        /// The first baseline is the fastest of this many answers.
        baseline_first: u8 = 5, "answers", 1..=100;
        /// Answers after which the baseline moves by time, not by answer.
        baseline_settled: u8 = 30, "answers", 1..=250;
        /// Share of the difference by which an answer moves the baseline before that.
        baseline_step: f64 = 0.1, "share", 0..=1;
        /// Time constant of a settled baseline: it follows a service that slows down over hours, and notices one that
        /// slows down within a minute.
        baseline_s: f64 = 300.0, "s", 1..=86_400;
        /// Maximum share of the difference by which one answer moves it then.
        baseline_step_max: f64 = 0.05, "share", 0..=1;
        /// Requests in flight before any latency is known.
        in_flight_first: u32 = 2, "requests", 1..=1000;
        /// Requests in flight as a multiple of rate times latency (Little's law): leaves room for chance.
        in_flight_room: f64 = 4.0, "factor", 1..=1000;
        /// Requests in flight added to that: at low rates the multiple is near zero.
        in_flight_extra: u32 = 4, "requests", 1..=1000;
    }
    "window" {
        /// Usual window lengths. A learned length is rounded to one of them where the evidence allows.
        usual_lengths: Lengths = Lengths::new(&[
            1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 900.0, 1800.0, 3600.0,
            7200.0, 10_800.0, 21_600.0, 43_200.0, 86_400.0,
        ]), "s", 0.001..=2_678_400;
        /// Longest restored window that is believed: a month.
        length_max: u64 = 31 * 86_400 * SECOND, "s", 60..=31_622_400;
        /// Shortest window: the unit of the send log.
        length_min: u64 = MILLISECOND, "s", 0.000001..=1;
        /// A shorter length must allow this many times more to be preferred: a search that speeds up until it is
        /// refused makes shorter lengths look more generous than they are.
        more_generous: f64 = 1.4, "factor", 1..=100;
        /// The first send of a window may be this much before it: we log a send when it leaves, the provider counts
        /// it when it arrives.
        learn_slack: u64 = 100 * MILLISECOND, "s", 0..=60;
        /// Shortest length as a share of the first Retry-After: our position in the window is unknown.
        told_shortest: f64 = 0.45, "share", 0.01..=1;
        /// The same for a further Retry-After: the window is known by then.
        told_shortest_again: f64 = 0.95, "share", 0.01..=1;
        /// A length from Retry-After that was refused once is known to within one nth.
        told_known_part: u32 = 20, "1/n", 1..=1000;
        /// A restored length is known to within one nth.
        restored_known_part: u32 = 20, "1/n", 1..=1000;
        /// A Retry-After is rounded up to whole seconds, and a trial comes late: a length is rounded down by up to
        /// this much.
        round_by_s: f64 = 1.5, "s", 0..=60;
        /// A length is rounded down to at least this share of it.
        round_by: f64 = 0.985, "share", 0.1..=1;
        /// A length is rounded up to at most this multiple of it: clocks differ.
        round_over: f64 = 1.001, "factor", 1..=2;
        /// Margin of a length for jitter, as a multiple.
        length_pad: f64 = 1.002, "factor", 1..=2;
        /// Margin of a length for jitter, in seconds.
        length_pad_s: f64 = 0.01, "s", 0..=60;
        /// A pause of one nth of the length ends a burst.
        burst_pause_part: u32 = 8, "1/n", 1..=1000;
        /// A refused burst of this share of the limit gives the limit: it used all there was.
        burst_share: f64 = 0.3, "share", 0..=1;
        /// A burst that lasts a length and one nth of it is an even pace through the whole window.
        spread_part: u32 = 5, "1/n", 1..=1000;
        /// Such an even pace is too high by one nth.
        spread_cut_part: u32 = 20, "1/n", 2..=1000;
        /// A refusal within this many lengths of the last one is another of the same kind.
        again_lengths: u32 = 3, "lengths", 0..=1000;
        /// Each refusal in a row lowers the limit by one more nth: equal small steps would be too slow.
        again_cut_part: u32 = 25, "1/n", 10..=1000;
        /// Refusals in a row beyond which the limit does not fall faster: a fifth at a time.
        again_max: u8 = 5, "refusals", 0..=10;
    }
    "experiment" {
        /// Quiet time before a larger limit is tested; each confirmation of the limit multiplies it by
        /// `patience_growth`.
        patience_s: f32 = 120.0, "s", 1..=86_400;
        /// Factor of the quiet time after each confirmation.
        patience_growth: f32 = 2.0, "factor", 1..=100;
        /// Longest quiet time: a quarter of an hour.
        patience_max_s: f32 = 960.0, "s", 1..=86_400;
        /// Shortest quiet time in lengths: each slot has come free by then.
        larger_after: f64 = 1.5, "lengths", 0..=100;
        /// A larger limit is tested only while the pace is this multiple of the window's rate: otherwise it is not
        /// used.
        larger_pace: f64 = 1.2, "factor", 1..=100;
        /// First step to a larger limit.
        raise: f32 = 0.05, "share", 0.001..=1;
        /// Factor of the step after each success.
        raise_growth: f32 = 2.0, "factor", 1..=10;
        /// Largest step to a larger limit.
        raise_max: f32 = 0.4, "share", 0.001..=10;
        /// A length is known well enough at most this multiple above a refused one.
        known_well: f64 = 1.06, "factor", 1..=10;
        /// A shorter length is tested halfway to the refused one, but at most one nth shorter.
        shorter_part: f64 = 8.0, "1/n", 1..=1000;
        /// A usual length is tested instead if it is above this multiple of the refused one.
        shorter_above: f64 = 1.05, "factor", 1..=10;
        /// A usual length is tested only below this share of the learned one.
        shorter_below: f64 = 0.97, "share", 0.1..=1;
        /// A usual length is tested only above this share of the midpoint.
        shorter_near_min: f64 = 0.85, "share", 0.1..=1;
        /// A usual length is tested only below this multiple of the midpoint.
        shorter_near_max: f64 = 1.15, "factor", 1..=10;
        /// Only a send in the first nth between the shorter and the learned length tests the shorter one.
        early_part: u32 = 4, "1/n", 1..=1000;
        /// With a limit above this one early send is not enough: the limit may be counted a little too low.
        early_small_limit: u32 = 8, "requests", 0..=10_000;
        /// Then one nth of the limit must be accepted early.
        early_needed_part: u32 = 16, "1/n", 1..=1000;
        /// Minimum of requests accepted early.
        early_needed_min: u32 = 3, "requests", 1..=1000;
    }
    "refusal budget" {
        /// Refusals that a new key may cost while its limit is found: an undocumented limit needs as many, its window
        /// included.
        budget_start: f32 = 6.0, "refusals", 0..=1000;
        /// Part of a refusal earned by an accepted request: just under the promised 0.3 %.
        earned: f32 = 0.0028, "refusals", 0..=1;
        /// The same for a conservative key: one in a hundred.
        earned_carefully: f32 = 0.01, "refusals", 0..=1;
        /// Earned refusals first repay this part of the starting budget, so that a short run also stays below the promised share.
        loan: f32 = 2.0, "refusals", 0..=1000;
        /// Highest cost of an experiment: the refusal itself and one echo.
        risk_cost: f32 = 2.0, "refusals", 0..=1000;
        /// The same for a conservative key: it sends one at a time and has no echoes.
        risk_cost_carefully: f32 = 1.0, "refusals", 0..=1000;
        /// Period over which refusals are counted as strikes: providers that suspend count over minutes.
        strike_span: u64 = 600 * SECOND, "s", 1..=86_400;
        /// Strikes after which no experiment starts. The strictest known rule suspends at five.
        strikes_max: u8 = 4, "refusals", 1..=6;
        /// Distance under the limit with few strikes: noise would cross a smaller one.
        margin: f64 = 0.015, "share", 0..=0.9;
        /// Strikes from which the margin widens.
        margin_strikes: u8 = 4, "refusals", 0..=6;
        /// The margin at that number of strikes: twice the ordinary one.
        margin_wider: f64 = 0.03, "share", 0..=0.9;
        /// The margin with one more strike: twice as much again.
        margin_wide: f64 = 0.06, "share", 0..=0.9;
        /// The margin with two more strikes: the account is in danger.
        margin_widest: f64 = 0.15, "share", 0..=0.9;
    }
    "in flight" {
        /// Successes at the full in-flight limit before one more is tested: enough that failed tests stay below half
        /// a percent.
        lane_patience: u16 = 256, "requests", 1..=16_384;
        /// Factor of that number each time the same limit is met again.
        lane_patience_growth: u16 = 2, "factor", 1..=100;
        /// Maximum of that number: one refusal in so many is below any target for violations.
        lane_patience_max: u16 = 4096, "requests", 1..=65_535;
        /// Bursts that must agree. One burst always has a lowest number of others in flight, so it proves nothing.
        lane_bursts: u8 = 2, "bursts", 1..=100;
    }
    "quota" {
        /// A quota below this many requests with a near reset (`quota_tiny_reset_s`) is a pace, too coarse to plan
        /// by.
        quota_tiny: u32 = 10, "requests", 0..=10_000;
        /// A reset of a tiny quota is near within this many seconds.
        quota_tiny_reset_s: u32 = 2, "s", 0..=3600;
        /// A reset nearer than this is too coarse: the rate at which the counter recovers says more.
        quota_coarse: u64 = 2 * SECOND + SECOND / 10, "s", 0..=3600;
        /// Slots that came back one by one before their rate is believed.
        quota_leak_seen: u32 = 2, "places", 1..=1000;
        /// More slots at once than this, and than `quota_lump_part` of the limit, are a window, not a leak.
        quota_lump: u32 = 3, "places", 0..=10_000;
        /// One nth of the limit at once is a window, not a leak.
        quota_lump_part: u32 = 20, "1/n", 1..=1000;
    }
    "many keys" {
        /// Batch size of ordinary answers while the rate may grow with each.
        batch_growing: u8 = 4, "answers", 1..=12;
        /// Batch size while the rate does not grow. At most the capacity of the fast path.
        batch_still: u8 = 12, "answers", 1..=12;
        /// Longest time between two reports to the law: the shortest step of Climb.
        batch_max: u64 = SECOND, "s", 0.001..=60;
    }
}

/// One number of the law: name, range and reason.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Its name, unique in the table.
    pub name: &'static str,
    /// Part of the law that it belongs to.
    pub group: &'static str,
    /// Unit. `factor` and `share` multiply; `1/n` divides.
    pub unit: &'static str,
    /// Lowest allowed value.
    pub min: f64,
    /// Highest allowed value.
    pub max: f64,
    /// Purpose, and the reason for the shipped value.
    pub reason: &'static str,
    text: fn(&Tuning) -> String,
    set: fn(&mut Tuning, &str) -> Result<(), BadValue>,
}

/// Why a text is not a valid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadValue {
    /// It is not a number.
    NotANumber,
    /// It must be a whole number.
    NotWhole,
    /// It is outside the range.
    OutOfRange,
    /// A list must have 1 to 32 values, each larger than the one before.
    NotAscending,
}

impl Number {
    /// All numbers of the law, in the order of the table.
    #[must_use]
    pub fn all() -> &'static [Self] {
        NUMBERS
    }

    /// The number called `name`.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        NUMBERS.iter().find(|number| number.name == name)
    }

    /// Its value in the unit of the table; a list is separated by colons.
    #[must_use]
    pub fn text(&self, tuning: &Tuning) -> String {
        (self.text)(tuning)
    }

    /// Parses `text`, in the form of [`text`](Self::text), and sets the value.
    ///
    /// # Errors
    /// The text is not a valid value; `tuning` is unchanged.
    pub fn set(&self, tuning: &mut Tuning, text: &str) -> Result<(), BadValue> {
        (self.set)(tuning, text)
    }
}

impl Tuning {
    /// The shipped values.
    pub const SHIPPED: &'static Self = &SHIPPED;
}

/// Reads and writes one type of the table. A `u64` is a time: nanoseconds here, seconds in the table.
trait Kind: Sized {
    fn text(&self) -> String;
    fn of(number: f64) -> Result<Self, BadValue>;

    fn read(text: &str, min: f64, max: f64) -> Result<Self, BadValue> {
        let number: f64 = text.trim().parse().map_err(|_not_a_float| BadValue::NotANumber)?;
        match number {
            _ if number.is_nan() => Err(BadValue::NotANumber),
            _ if number < min || number > max => Err(BadValue::OutOfRange),
            _ => Self::of(number),
        }
    }
}

macro_rules! float {
    ($($kind:ident)+) => { $(impl Kind for $kind {
        fn text(&self) -> String {
            self.to_string()
        }

        fn of(number: f64) -> Result<Self, BadValue> {
            Ok(number as Self)
        }
    })+ };
}

macro_rules! whole {
    ($($kind:ident)+) => { $(impl Kind for $kind {
        fn text(&self) -> String {
            self.to_string()
        }

        fn of(number: f64) -> Result<Self, BadValue> {
            if number.fract() == 0.0 { Ok(number as Self) } else { Err(BadValue::NotWhole) }
        }
    })+ };
}

float!(f64 f32);
whole!(u8 u16 u32);

impl Kind for u64 {
    fn text(&self) -> String {
        (*self as f64 / SECOND as f64).to_string()
    }

    fn of(number: f64) -> Result<Self, BadValue> {
        Ok((number * SECOND as f64).round() as Self)
    }
}

/// Lengths in seconds, ascending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lengths {
    values: [f64; LENGTHS_MAX],
    len: usize,
}

impl Lengths {
    const fn new(lengths: &[f64]) -> Self {
        let (mut values, mut len) = ([0.0; LENGTHS_MAX], 0);
        while len < lengths.len() {
            values[len] = lengths[len];
            len += 1;
        }
        Self { values, len }
    }

    /// Shortest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = f64> + '_ {
        self.values[..self.len].iter().copied()
    }
}

impl Kind for Lengths {
    fn text(&self) -> String {
        self.iter().map(|length| length.to_string()).collect::<Vec<_>>().join(":")
    }

    fn of(number: f64) -> Result<Self, BadValue> {
        Ok(Self::new(&[number]))
    }

    fn read(text: &str, min: f64, max: f64) -> Result<Self, BadValue> {
        let lengths = text.split(':').map(|one| f64::read(one, min, max)).collect::<Result<Vec<_>, _>>()?;
        let ascends = lengths.is_sorted_by(|a, b| a < b);
        if ascends && lengths.len() <= LENGTHS_MAX { Ok(Self::new(&lengths)) } else { Err(BadValue::NotAscending) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The files in which the law works, without their tests.
    const FILES: [(&str, &str); 12] = [
        ("law.rs", include_str!("../law.rs")),
        ("law/batch.rs", include_str!("batch.rs")),
        ("law/episode.rs", include_str!("episode.rs")),
        ("law/rest.rs", include_str!("rest.rs")),
        ("law/slowdown.rs", include_str!("slowdown.rs")),
        ("law/window.rs", include_str!("window.rs")),
        ("law/refusals.rs", include_str!("refusals.rs")),
        ("law/latency.rs", include_str!("latency.rs")),
        ("law/gcra.rs", include_str!("gcra.rs")),
        ("law/send_log.rs", include_str!("send_log.rs")),
        ("admission/lane.rs", include_str!("../admission/lane.rs")),
        ("signals/quota.rs", include_str!("../signals/quota.rs")),
    ];

    /// Lines of code, without tests, comments and text in quotes.
    fn code(source: &str) -> impl Iterator<Item = String> + '_ {
        let lines = source.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
        lines.map(|line| {
            let code = line.split("//").next().unwrap_or_default();
            code.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
        })
    }

    /// Numbers that stand in the code. 0, 1 and 2 are arithmetic; digits in a name are none.
    fn bare_numbers(source: &str) -> Vec<String> {
        let mut found = Vec::new();
        for line in code(source) {
            let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
            let numbers = words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
            // `0..len` is a range, and `self.pair.0` a field.
            let numbers = numbers.map(|word| word.split("..").next().unwrap_or(word).trim_end_matches('.'));
            let is_arithmetic = |number: &&str| ["0", "1", "2", "0.0", "1.0", "1u32", "0u32"].contains(number);
            found.extend(numbers.filter(|number| !is_arithmetic(number)).map(|number| format!("{number} in: {line}")));
        }
        found
    }

    #[test]
    fn no_file_of_the_law_has_a_number_of_its_own() {
        for (name, source) in FILES {
            assert_eq!(bare_numbers(source), [""; 0], "{name}: give it a name in tuning.rs");
        }
    }

    #[test]
    fn a_number_of_its_own_would_be_found() {
        let found = |line: &str| bare_numbers(line).len();
        assert_eq!(found("let rate = 1.5 * rate;"), 1);
        assert_eq!(found("const MARKS: usize = 32;\nlet x = (rate / 1e9).min(0.25);"), 3);
        assert_eq!(found("    0..=3 => 0.015,"), 2);
        assert_eq!(found("let x: u32 = y / 2 + 1; // 3 of 4\nself.name(\"7\"); pair.0; for i in 0..len {}"), 0);
        assert_eq!(found("#[cfg(test)]\nmod tests { const X: u8 = 9; }"), 0);
    }

    #[test]
    fn every_number_is_read_by_the_law() {
        let law: String = FILES.iter().flat_map(|(_, source)| code(source)).collect::<Vec<_>>().join("\n")
            + &code(include_str!("../keyed/active.rs")).collect::<Vec<_>>().join("\n");
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let taken = law.split("tuning.").skip(1).filter_map(|rest| rest.split(|c| !is_name(c)).next());
        let unpacked = law.split("let Tuning {").skip(1).filter_map(|rest| rest.split_once('}'));
        let unpacked = unpacked.flat_map(|(names, _)| names.split([',', ':', ' ']));
        let read: BTreeSet<&str> = taken.chain(unpacked).collect();
        let unread: Vec<_> =
            Number::all().iter().map(|number| number.name).filter(|name| !read.contains(name)).collect();
        assert_eq!(unread, [""; 0]);
    }

    #[test]
    fn names_are_unique_and_every_number_says_what_it_is() {
        let names: BTreeSet<_> = Number::all().iter().map(|number| number.name).collect();
        assert_eq!(names.len(), Number::all().len());
        for number in Number::all() {
            assert!(number.reason.len() > 10 && !number.unit.is_empty() && !number.group.is_empty(), "{number:?}");
        }
    }

    #[test]
    fn every_shipped_value_lies_in_its_range_and_every_number_can_be_set() {
        for number in Number::all() {
            let (mut tuning, shipped) = (SHIPPED, number.text(&SHIPPED));
            assert!(number.min < number.max, "{}", number.name);
            assert_eq!(number.set(&mut tuning, &shipped), Ok(()), "{} = {shipped}", number.name);
            assert_eq!(tuning, SHIPPED, "{}: what is shown is what is read", number.name);
            let mut is_changed = false;
            for end in [number.min, number.max] {
                assert_eq!(number.set(&mut tuning, &end.to_string()), Ok(()), "{} = {end}", number.name);
                assert_eq!(number.text(&tuning), end.to_string(), "{}", number.name);
                is_changed |= tuning != SHIPPED;
            }
            assert!(is_changed, "{}", number.name);
            let others = Number::all().iter().filter(|other| other.name != number.name);
            assert!(others.clone().all(|other| other.text(&tuning) == other.text(&SHIPPED)), "{} only", number.name);
            for beyond in [number.min - 1.0, number.max * 2.0] {
                let before = tuning;
                assert_eq!(number.set(&mut tuning, &beyond.to_string()), Err(BadValue::OutOfRange), "{}", number.name);
                assert_eq!(tuning, before);
            }
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let set = |name: &str, text: &str| Number::find(name).unwrap().set(&mut SHIPPED.clone(), text);
        assert_eq!(set("climb", "fast"), Err(BadValue::NotANumber));
        assert_eq!(set("climb", "NaN"), Err(BadValue::NotANumber));
        assert_eq!(set("climb", ""), Err(BadValue::NotANumber));
        assert_eq!(set("climb", "inf"), Err(BadValue::OutOfRange));
        assert_eq!(set("hold_look", "2.5"), Err(BadValue::NotWhole));
        assert_eq!(set("turns", "1:60:3600"), Ok(()));
        assert_eq!(set("turns", "60:1"), Err(BadValue::NotAscending));
        assert_eq!(set("turns", "1:-1"), Err(BadValue::OutOfRange));
        assert_eq!(set("turns", "1:"), Err(BadValue::NotANumber));
        assert_eq!(
            set("turns", &(1..=33).map(|n| n.to_string()).collect::<Vec<_>>().join(":")),
            Err(BadValue::NotAscending)
        );
        assert!(Number::find("climbs").is_none());
    }
}
