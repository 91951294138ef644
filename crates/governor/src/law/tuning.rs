//! Every number of the law, with name, unit, range, default and reason.
//!
//! One table, so that somebody who wants to change the law finds all of it in one place, and the lab can set any number
//! from outside (`gleaner lab run --set climb=0.04`). Two numbers that stand for one idea and differ have two names.
//! Every value within its range is safe: it may be a bad law, but it neither panics nor overflows. A test checks that
//! no other file of the law has a number of its own.
//!
//! The names, not the values, are used in the code: a governor holds one `&'static Tuning`, and all governors of a
//! process share [`Tuning::SHIPPED`] unless their owner says otherwise.

use crate::time::{MILLISECOND, SECOND};

/// Marks of a send log. At least half of them cover what is remembered, so a place is given back at most 1/16 of the
/// sends too late. The length of an array, so it cannot be set from outside, nor can the next two.
pub(crate) const MARKS: usize = 32;
/// Refusals whose times are remembered: enough for the widest margin.
pub(crate) const REFUSALS_REMEMBERED: usize = 6;
/// Quotas kept per key. Real providers nest two.
pub(crate) const QUOTAS_KEPT: usize = 2;
/// Most lengths in a list of the table.
const LENGTHS_MAX: usize = 32;

/// Defines [`Tuning`], its shipped values and the table of [`Number`]s from one list. The reason is the doc comment.
macro_rules! tuning {
    ($($group:literal {
        $($(#[doc = $reason:literal])+ $name:ident: $kind:ty = $value:expr, $unit:literal, $min:literal..=$max:literal;)+
    })+) => {
        /// One value for every number of the law. Made from [`Tuning::SHIPPED`] with [`Number::set`].
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
        /// Longest interval: an hour. Slower providers exist only as windows.
        interval_max: u64 = 3600 * SECOND, "s", 10..=86_400;
        /// How much lateness a later send may make up for (GCRA's tolerance). The error of an ordinary timer; more
        /// would be a burst, and a provider with a bucket of one refuses those.
        lateness_credit: u64 = 2 * MILLISECOND, "s", 0..=1;
        /// Share of the permitted sends that must be made for the rate to count as used.
        used: f64 = 0.75, "share", 0..=1;
        /// A restored limit this many times above the restored rate is no measurement.
        restored_limit_max: f64 = 1.2, "factor", 1..=10;
    }
    "search" {
        /// Successes before the search raises the rate: enough to notice a bucket of one.
        search_successes: f64 = 6.0, "successes", 1..=1000;
        /// Seconds at the present rate before it does: enough for the first refusal to come back.
        search_s: f64 = 1.5, "s", 0..=600;
        /// What the search multiplies the rate by. Doubling from one per second finds 100 per second in 20 s.
        search_growth: f64 = 2.0, "factor", 1..=10;
    }
    "climb" {
        /// Step of a climb: 5 % find a limit within seconds, and overshoot it by less than a refusal costs.
        climb: f64 = 0.05, "share", 0.001..=1;
        /// Step of a climb after late answers: a tarpit counts over seconds and is noticed late.
        climb_gently: f64 = 0.015, "share", 0.001..=1;
        /// Shortest step of a climb or a probe: enough for the answers to the last step to come back.
        step_min_s: f32 = 1.0, "s", 0.1..=10;
        /// Longest step: a provider whose refusals last for hours is still climbed towards.
        step_max_s: f32 = 60.0, "s", 10..=3600;
        /// A step lasts one nth of the last refusal: where refusals take long to pass, steps take longer.
        step_part: f32 = 8.0, "1/n", 1..=1000;
        /// A step lasts at least so many intervals ...
        step_intervals: f64 = 2.0, "intervals", 0..=100;
        /// ... and has at least so many successes: one may be chance.
        step_successes: u32 = 2, "successes", 0..=1000;
        /// A pace beyond this multiple of the window's rate is not raised: inside the window it only makes more echoes.
        step_window_max: f64 = 3.0, "factor", 0.1..=100;
    }
    "hold" {
        /// Quiet time before the first probe where no limit was measured in this run: restored, or a window's. Multiplied
        /// by each probe that confirms the limit ...
        hold_s: f32 = 120.0, "s", 1..=86_400;
        /// ... by this factor ...
        hold_growth: f32 = 2.0, "factor", 1..=100;
        /// ... up to a quarter of an hour: a refusal then costs less than a tenth of a percent.
        hold_max_s: f32 = 960.0, "s", 1..=86_400;
        /// Quiet time after a limit was measured for the first time or was seen to move: it may move again.
        hold_moved_s: f32 = 60.0, "s", 1..=86_400;
        /// Quiet time after late answers, at least: a probe here is not refused, it makes everybody wait.
        hold_after_late_s: f32 = 240.0, "s", 0..=86_400;
        /// Successes between two looks at whether to go on holding: neither a margin nor a quiet time ends sooner.
        hold_look: u32 = 4, "successes", 1..=1000;
        /// Successes before a probe, however slow the provider is.
        hold_successes: u32 = 20, "successes", 0..=10_000;
        /// Two measurements that differ by less are the same limit.
        same_limit: f64 = 0.05, "share", 0..=1;
    }
    "probe" {
        /// Step of a probe: small, so that a refused one tells the limit well.
        probe: f64 = 0.02, "share", 0.001..=1;
        /// No probe while the pace is beyond this multiple of the window's rate: the window is what limits.
        probe_window_max: f64 = 1.5, "factor", 0.1..=100;
        /// Requests that do not count as proof of a rise: a bucket may have saved them up.
        risen_burst: u32 = 4, "requests", 0..=10_000;
        /// The limit rose if this multiple of it was accepted ...
        risen_accepted: f64 = 1.03, "factor", 1..=10;
        /// ... and the rate is at least this multiple of it: the count alone may be noise.
        risen_rate: f64 = 1.1, "factor", 1..=10;
        /// A refused probe that measures less than this share of the limit has met another limit.
        probe_believed: f64 = 0.8, "share", 0..=1;
        /// Fewer extra requests than this before the refusal: it was refused at once ...
        probe_extra: f64 = 2.0, "requests", 0..=10_000;
        /// ... and the limit is this share of the probe's rate, which was one small step too fast.
        probe_under: f64 = 0.985, "share", 0.1..=1;
        /// After more of them the limit is where it was, or this share of it: the extra requests were saved up.
        probe_same: f64 = 0.995, "share", 0.1..=1;
    }
    "refusal" {
        /// The rate after the first refusal of an episode: below half of the last rate of a search, which had doubled.
        first_cut: f64 = 0.4, "share", 0.01..=1;
        /// The rate after each refused try: a provider that refuses a single request needs more time.
        trial_cut: f64 = 0.5, "share", 0.01..=1;
        /// The rate after a refusal that the window's limit explains: the pace is not the cause.
        explained_cut: f64 = 0.95, "share", 0.01..=1;
        /// The rate after an experiment that failed, or with too many in flight: next to nothing was wrong with it.
        slight_cut: f64 = 0.98, "share", 0.01..=1;
        /// The first try comes after so many intervals: a bucket refills within a few ...
        first_trial_intervals: f64 = 3.0, "intervals", 0..=1000;
        /// ... and not before one nth of the last refusal: some providers refuse for a while.
        first_trial_part: f64 = 8.0, "1/n", 1..=1000;
        /// Longest pause between two tries: a day, the longest window that providers use.
        trial_max: u64 = 86_400 * SECOND, "s", 1..=864_000;
        /// Directives that were kept and refused again, up to which the pace of tries is not lowered: one may be rounded.
        told_in_vain: u8 = 1, "directives", 0..=100;
        /// Doublings of the interval of tries after more of them.
        told_doublings_max: u32 = 10, "doublings", 0..=30;
    }
    "tries" {
        /// Lengths after which a window has probably turned, since its first send.
        turns: Lengths = Lengths::new(&[1.0, 10.0, 60.0, 120.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 86_400.0]),
            "s", 0.001..=2_678_400;
        /// A window whose first send is older than this is not the one that the search has just filled.
        turn_old_s: f64 = 120.0, "s", 0..=86_400;
        /// After a limit was met before, and no window is known, the wait grows by this factor with each refused try.
        trial_growth: f64 = 3.0, "factor", 1..=100;
        /// The same when the window's first send is too old to say anything ...
        trial_growth_old: f64 = 3.0, "factor", 1..=100;
        /// ... but not less than this: the shortest window that providers use.
        trial_old_min_s: f64 = 1.0, "s", 0..=3600;
        /// A turn must lie beyond this multiple of the time since the first send: one that has just passed says nothing.
        turn_beyond: f64 = 1.03, "factor", 1..=10;
        /// A turn must make the wait so many times longer: else tries would come too often.
        turn_growth: f64 = 2.0, "factor", 1..=100;
        /// The same for a quota that is shown as used up: surely a window, so tries can be rarer.
        turn_growth_exhausted: f64 = 3.0, "factor", 1..=100;
        /// Beyond the last turn: this multiple of the time since the first send.
        turn_after_last: f64 = 2.0, "factor", 1..=100;
        /// A learned window is tried before the next turn: at this multiple of the time since its first send ...
        soon_beyond: f64 = 1.3, "factor", 1..=100;
        /// ... or at this multiple of the wait, whichever is later.
        soon_growth: f64 = 3.0, "factor", 1..=100;
        /// A try comes a little later than the turn: clocks and networks are not exact. This multiple of the length ...
        turn_pad: f64 = 1.002, "factor", 1..=2;
        /// ... and this much more.
        turn_pad_by: u64 = 50 * MILLISECOND, "s", 0..=60;
    }
    "measurement" {
        /// A refusal that lasts longer than this ...
        long_s: f64 = 1.2, "s", 0..=3600;
        /// ... and as long as so many requests is a window's: a bucket refills sooner.
        long_requests: f64 = 16.0, "requests", 1..=10_000;
        /// Where the climb begins after the first contact, as a share of the refused rate, which had doubled.
        climb_from: f64 = 0.45, "share", 0.01..=1;
        /// A rate that was at least this share of the present one all the while has hardly changed.
        steady: f64 = 0.85, "share", 0..=1;
        /// Where to settle when a climb was refused: it went up by twentieths, and the last of them was too much.
        just_under: f64 = 0.93, "share", 0.1..=1;
        /// The same when another refusal must be avoided.
        far_under: f64 = 0.75, "share", 0.1..=1;
        /// Fewer accepted requests than this measure nothing.
        few: f64 = 8.0, "requests", 0..=1000;
        /// So many of them at least give an estimate ...
        few_counted: f64 = 2.0, "requests", 1..=1000;
        /// ... which is too low by this part of a request: the next one was nearly due.
        few_missing: f64 = 0.5, "requests", 0..=10;
        /// Without an estimate the limit is taken to be this share of the rate ...
        few_guess: f64 = 0.5, "share", 0.01..=1;
        /// ... and never more than this share of it, since the rate was refused.
        few_under: f64 = 0.9, "share", 0.01..=1;
        /// Where the climb begins then, as a share of that limit.
        few_climb_from: f64 = 0.9, "share", 0.01..=1;
        /// Pace inside a window that was just learned, as a share of the refused rate ...
        window_pace: f64 = 0.7, "share", 0.01..=1;
        /// ... at least this multiple of the window's rate, so that it can be spent ...
        window_pace_min: f64 = 1.5, "factor", 0.5..=2.5;
        /// ... and at most this multiple: a faster one only empties it sooner.
        window_pace_max: f64 = 4.0, "factor", 2.5..=100;
    }
    "ban" {
        /// Refusals in a row, without a reason and without a success, that look like a ban.
        shut_after: u8 = 3, "refusals", 1..=100;
        /// First wait then; doubled each time. What GitHub asks for without a header.
        shut_s: f64 = 60.0, "s", 1..=86_400;
        /// Doublings of it: up to about an hour.
        shut_doublings_max: u32 = 6, "doublings", 0..=30;
    }
    "drain" {
        /// Rate while a queue runs empty, as a share of the rate that built it.
        drain_rate: f64 = 0.4, "share", 0.01..=1;
        /// Longest pause for a queue to run empty when it is first noticed ...
        drain_pause_s: f64 = 10.0, "s", 0..=3600;
        /// ... and later.
        drain_pause_again_s: f64 = 60.0, "s", 0..=3600;
        /// Where to go on after a search: its last step had doubled.
        after_search: f64 = 0.4, "share", 0.01..=1;
        /// Where to go on after a climb: by the time that a row of answers is late it is a tenth too fast, or a little more.
        after_climb: f64 = 0.85, "share", 0.01..=1;
        /// Where to hold after a gentle climb or while holding: it is late by one or two small steps.
        after_gentle_climb: f64 = 0.97, "share", 0.01..=1;
        /// Where to hold after a probe, as a share of the limit: it was the probe that was too fast.
        after_probe: f64 = 0.995, "share", 0.01..=1;
        /// Rows of late answers in a drain after which we are not the cause.
        drain_rows_max: u8 = 4, "rows", 1..=100;
        /// Ordinary answers that end a drain.
        drain_ordinary: u8 = 3, "answers", 1..=100;
        /// Less delivered than this share of the rate: there is a queue, and what it delivers is its rate ...
        queue_below: f64 = 0.7, "share", 0..=1;
        /// ... of which this share is used.
        queue_rate: f64 = 0.95, "share", 0.01..=1;
        /// Otherwise the rate to go back to is lowered to this share of it.
        drain_again: f64 = 0.9, "share", 0.01..=1;
        /// The rate after a further row of late answers, as a share of the present one, at most.
        drain_again_max: f64 = 0.7, "share", 0.01..=1;
    }
    "latency" {
        /// An answer is late beyond this multiple of the baseline. Log-normal latency with a wide spread (sigma 0.5)
        /// passes it once in 17 answers.
        late: f64 = 2.2, "factor", 1..=100;
        /// ... and by at least this much: less is jitter of the machine that measures.
        late_by_s: f64 = 0.02, "s", 0..=60;
        /// Late answers in a row that cannot be chance: with the spread above, once in 25 million.
        late_row: u8 = 6, "answers", 1..=100;
        /// ... and they come over at least this time: a machine that stops for a moment makes all late that is in flight.
        late_lasting: u64 = 750 * MILLISECOND, "s", 0..=60;
        /// Beyond this multiple an answer is very late ...
        very_late: f64 = 10.0, "factor", 1..=1000;
        /// ... if it is later by this much: a provider around the corner answers within a millisecond, and tenfold of
        /// that is what a busy machine needs to notice.
        very_late_by_s: f64 = 0.25, "s", 0..=60;
        /// A very late answer counts for so many late ones: a queue delays by minutes what a tarpit delays by a factor.
        very_late_weight: u8 = 3, "answers", 1..=100;
        /// Answers whose fastest is the first baseline.
        baseline_first: u8 = 5, "answers", 1..=100;
        /// Answers after which the baseline moves by time and not by answer.
        baseline_settled: u8 = 30, "answers", 1..=250;
        /// How much of the difference an answer moves it by before that.
        baseline_step: f64 = 0.1, "share", 0..=1;
        /// How slowly a settled baseline moves: a service that gets slower over hours is followed, one that gets slower
        /// within a minute is noticed.
        baseline_s: f64 = 300.0, "s", 1..=86_400;
        /// How much of the difference one answer moves it by then, at most.
        baseline_step_max: f64 = 0.05, "share", 0..=1;
        /// Requests in flight before any latency is known.
        in_flight_first: u32 = 2, "requests", 1..=1000;
        /// Requests in flight: so many times rate by latency (Little's law), which leaves room for chance ...
        in_flight_room: f64 = 4.0, "factor", 1..=1000;
        /// ... and so many more: at low rates a multiple of nothing is nothing.
        in_flight_extra: u32 = 4, "requests", 1..=1000;
    }
    "window" {
        /// Lengths that providers like. A learned length is rounded to one of them where the evidence allows.
        usual_lengths: Lengths = Lengths::new(&[
            1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 900.0, 1800.0, 3600.0,
            7200.0, 10_800.0, 21_600.0, 43_200.0, 86_400.0,
        ]), "s", 0.001..=2_678_400;
        /// Longest window of a former run that is believed: a month.
        length_max: u64 = 31 * 86_400 * SECOND, "s", 60..=31_622_400;
        /// Shortest window: the unit of the send log.
        length_min: u64 = MILLISECOND, "s", 0.000001..=1;
        /// How much more a shorter length must allow to be preferred: a search that speeds up until it is refused makes
        /// shorter lengths look more generous than they are.
        more_generous: f64 = 1.4, "factor", 1..=100;
        /// The first send of a window may lie this much before it: a send is logged when it leaves, and counted when it
        /// arrives.
        learn_slack: u64 = 100 * MILLISECOND, "s", 0..=60;
        /// The length is at least this share of a wait that was told: where in the window we were is not known.
        told_shortest: f64 = 0.45, "share", 0.01..=1;
        /// The same for a further wait: the window is known by then.
        told_shortest_again: f64 = 0.95, "share", 0.01..=1;
        /// A told length that was refused once is known to within one nth.
        told_known_part: u32 = 20, "1/n", 1..=1000;
        /// A restored length is known to within one nth.
        restored_known_part: u32 = 20, "1/n", 1..=1000;
        /// A told wait is whole seconds, rounded up, and a try comes late: a length is rounded down by up to this much ...
        round_by_s: f64 = 1.5, "s", 0..=60;
        /// ... and at least down to this share of it ...
        round_by: f64 = 0.985, "share", 0.1..=1;
        /// ... or up to this multiple: clocks differ.
        round_over: f64 = 1.001, "factor", 1..=2;
        /// A length has room for jitter on the way: this multiple ...
        length_pad: f64 = 1.002, "factor", 1..=2;
        /// ... and this much more.
        length_pad_s: f64 = 0.01, "s", 0..=60;
        /// A pause of one nth of the length ends a burst.
        burst_pause_part: u32 = 8, "1/n", 1..=1000;
        /// A burst of this share of the limit that is refused tells the limit: what was spent is all there was.
        burst_share: f64 = 0.3, "share", 0..=1;
        /// A burst that lasts a length and one nth of it is an even pace through the whole window ...
        spread_part: u32 = 5, "1/n", 1..=1000;
        /// ... which is a little too high, by one nth.
        spread_cut_part: u32 = 20, "1/n", 2..=1000;
        /// A refusal within so many lengths of the last one is another of the same kind ...
        again_lengths: u32 = 3, "lengths", 0..=1000;
        /// ... and each of them in a row lowers the limit by one more nth: a little less each time is too little less.
        again_cut_part: u32 = 25, "1/n", 10..=1000;
        /// Refusals in a row beyond which the limit is not lowered faster: a fifth at a time.
        again_max: u8 = 5, "refusals", 0..=10;
    }
    "experiment" {
        /// Patience before a larger limit is tried, multiplied each time the limit is confirmed ...
        patience_s: f32 = 120.0, "s", 1..=86_400;
        /// ... by this factor ...
        patience_growth: f32 = 2.0, "factor", 1..=100;
        /// ... up to a quarter of an hour.
        patience_max_s: f32 = 960.0, "s", 1..=86_400;
        /// A larger limit is tried after so many lengths at least: each place has come back by then.
        larger_after: f64 = 1.5, "lengths", 0..=100;
        /// ... and while the pace is this multiple of the window's rate: else the larger limit is not used.
        larger_pace: f64 = 1.2, "factor", 1..=100;
        /// First step of a larger limit ...
        raise: f32 = 0.05, "share", 0.001..=1;
        /// ... multiplied by this after each that succeeds ...
        raise_growth: f32 = 2.0, "factor", 1..=10;
        /// ... up to this step.
        raise_max: f32 = 0.4, "share", 0.001..=10;
        /// A length is known well enough when it is at most this multiple of one that was refused.
        known_well: f64 = 1.06, "factor", 1..=10;
        /// A shorter length is tried halfway to the refused one, and no further than to one nth.
        shorter_part: f64 = 8.0, "1/n", 1..=1000;
        /// A usual length is tried instead if it is this multiple of the refused one ...
        shorter_above: f64 = 1.05, "factor", 1..=10;
        /// ... and below this share of the learned one ...
        shorter_below: f64 = 0.97, "share", 0.1..=1;
        /// ... and between this share of the middle ...
        shorter_near_min: f64 = 0.85, "share", 0.1..=1;
        /// ... and this multiple of it.
        shorter_near_max: f64 = 1.15, "factor", 1..=10;
        /// Only a send in the first nth between the shorter and the learned length says anything about the shorter one.
        early_part: u32 = 4, "1/n", 1..=1000;
        /// With a larger limit than this one early send is not enough: the limit may be counted a little too low.
        early_small_limit: u32 = 8, "requests", 0..=10_000;
        /// Then one nth of the limit must be accepted early ...
        early_needed_part: u32 = 16, "1/n", 1..=1000;
        /// ... and at least so many.
        early_needed_min: u32 = 3, "requests", 1..=1000;
    }
    "refusal budget" {
        /// Refusals that a new key may cost while its limit is found. What a limit that says nothing costs to find, its
        /// window included.
        budget_start: f32 = 6.0, "refusals", 0..=1000;
        /// Part of a refusal earned by an accepted request: just under the 0.3 % that we promise.
        earned: f32 = 0.0028, "refusals", 0..=1;
        /// The same for a key that is careful: one in a hundred.
        earned_carefully: f32 = 0.01, "refusals", 0..=1;
        /// The first earnings repay a part of the starting budget: a short run must keep the promise too.
        loan: f32 = 2.0, "refusals", 0..=1000;
        /// What a risk may cost at worst: the refusal itself and one echo of it.
        risk_cost: f32 = 2.0, "refusals", 0..=1000;
        /// The same for a key that is careful: it sends one at a time, and has no echoes.
        risk_cost_carefully: f32 = 1.0, "refusals", 0..=1000;
        /// Period over which refusals are counted as strikes: providers that suspend count over minutes.
        strike_span: u64 = 600 * SECOND, "s", 1..=86_400;
        /// Strikes after which nothing is risked. The strictest rule seen suspends at five.
        strikes_max: u8 = 4, "refusals", 1..=6;
        /// How far to stay under the limit with few strikes: less would be met by noise.
        margin: f64 = 0.015, "share", 0..=0.9;
        /// Strikes from which the margin widens.
        margin_strikes: u8 = 4, "refusals", 0..=6;
        /// The margin with so many strikes: twice the ordinary one ...
        margin_wider: f64 = 0.03, "share", 0..=0.9;
        /// ... twice that with one more ...
        margin_wide: f64 = 0.06, "share", 0..=0.9;
        /// ... and with two more the account is in danger.
        margin_widest: f64 = 0.15, "share", 0..=0.9;
    }
    "in flight" {
        /// Accepted requests at a full lane before one more is tried: dear enough that a wrong try is less than half a
        /// percent ...
        lane_patience: u16 = 256, "requests", 1..=16_384;
        /// ... multiplied by this each time the same limit is met again ...
        lane_patience_growth: u16 = 2, "factor", 1..=100;
        /// ... up to one refusal in so many, below any target for violations.
        lane_patience_max: u16 = 4096, "requests", 1..=65_535;
        /// Bursts that must agree. One burst always has a lowest count of others in flight, so one proves nothing.
        lane_bursts: u8 = 2, "bursts", 1..=100;
    }
    "quota" {
        /// A quota of fewer requests ...
        quota_tiny: u32 = 10, "requests", 0..=10_000;
        /// ... with a reset this near, in whole seconds, is a pace, told too coarsely to plan by.
        quota_tiny_reset_s: u32 = 2, "s", 0..=3600;
        /// A reset nearer than this is told too coarsely: the rate at which places come back tells more.
        quota_coarse: u64 = 2 * SECOND + SECOND / 10, "s", 0..=3600;
        /// Places that came back one by one before their rate is believed.
        quota_leak_seen: u32 = 2, "places", 1..=1000;
        /// More places at once than this ...
        quota_lump: u32 = 3, "places", 0..=10_000;
        /// ... and one nth of the limit came back in a lump: a window, not a leak.
        quota_lump_part: u32 = 20, "1/n", 1..=1000;
    }
    "many keys" {
        /// Ordinary answers after which a law wants to know while it may grow with each ...
        batch_growing: u8 = 4, "answers", 1..=12;
        /// ... and while it sits still. No more than the lane past the lock can hold.
        batch_still: u8 = 12, "answers", 1..=12;
        /// Longest time that the law does not look: the shortest step of a climb.
        batch_max: u64 = SECOND, "s", 0.001..=60;
    }
}

/// One number of the law: how it is called, what it may be, and why it is what it is.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Its name, unique in the table.
    pub name: &'static str,
    /// What part of the law it belongs to.
    pub group: &'static str,
    /// What it counts. `factor` and `share` multiply; `1/n` divides.
    pub unit: &'static str,
    /// The least value that is allowed.
    pub min: f64,
    /// The largest value that is allowed.
    pub max: f64,
    /// What it is for, and why the shipped value was chosen.
    pub reason: &'static str,
    text: fn(&Tuning) -> String,
    set: fn(&mut Tuning, &str) -> Result<(), BadValue>,
}

/// Why a text is no value of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadValue {
    /// It is not a number.
    NotANumber,
    /// It must be a whole number.
    NotWhole,
    /// It is below the least or above the largest value.
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

    /// Its value in the unit of the table; values of a list are separated by colons.
    #[must_use]
    pub fn text(&self, tuning: &Tuning) -> String {
        (self.text)(tuning)
    }

    /// Sets it, from the form in which [`text`](Self::text) gives it.
    ///
    /// # Errors
    /// When the text is no value that the number may have; then `tuning` is as before.
    pub fn set(&self, tuning: &mut Tuning, text: &str) -> Result<(), BadValue> {
        (self.set)(tuning, text)
    }
}

impl Tuning {
    /// The values that ship.
    pub const SHIPPED: &'static Self = &SHIPPED;
}

/// How a type of the table is read and written. Times are nanoseconds in a `u64`, and seconds in the table.
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

/// Some lengths in seconds, each longer than the one before.
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

    /// The shortest first.
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
