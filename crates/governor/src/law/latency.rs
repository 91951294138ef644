//! Silent slowdown: the provider answers everything, but late, because we are too fast.
//!
//! Why not a fixed latency limit: normal latency differs between providers. The baseline starts at the fastest of the
//! first answers and follows ordinary ones; late answers never move it. A single late answer is chance, so only a row
//! of them counts. A queue delays by minutes, a tarpit by a factor, so very late answers count more.
//!
//! Ignores errors: the latency of a refusal says nothing.

use crate::law::tuning::Tuning;
use crate::time::{SECOND, Time, seconds_between};

/// The latency of one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latency {
    /// Ordinary latency in nanoseconds.
    base: f64,
    samples: u8,
    /// Late answers in the current row, weighted and unweighted.
    row: u8,
    late: u8,
    late_sum: f32,
    late_from: Time,
    late_until: Time,
    /// Ordinary answers since the last late one.
    ordinary: u8,
    /// Answers to requests sent before this are ignored.
    since: Time,
    last: Time,
}

impl Latency {
    /// Applies the answer to a request sent at `sent_at`; true when a row of late answers is complete.
    pub(crate) fn on_success(&mut self, sent_at: Time, now: Time, tuning: &Tuning) -> bool {
        let latency = now.nanos_since(sent_at) as f64;
        if self.samples < tuning.baseline_first {
            self.base = if self.samples == 0 { latency } else { self.base.min(latency) };
        }
        self.samples = self.samples.saturating_add(1);
        if latency < tuning.late * self.base || latency < self.base + tuning.late_by_s * SECOND as f64 {
            self.follow(latency, now, tuning);
            return false;
        }
        if sent_at < self.since {
            return false;
        }
        self.ordinary = 0;
        if self.late == 0 {
            self.late_from = now;
        }
        self.late = self.late.saturating_add(1);
        self.late_until = now;
        self.late_sum += latency as f32;
        let by = self.base + tuning.very_late_by_s * SECOND as f64;
        let is_very_late = latency > tuning.very_late * self.base && latency > by;
        self.row = self.row.saturating_add(if is_very_late { tuning.very_late_weight } else { 1 });
        self.row >= tuning.late_row && now.nanos_since(self.late_from) >= tuning.late_lasting
    }

    /// An ordinary answer moves the baseline: quickly at first, slowly later.
    fn follow(&mut self, latency: f64, now: Time, tuning: &Tuning) {
        let weight = if self.samples < tuning.baseline_settled {
            tuning.baseline_step
        } else {
            (seconds_between(self.last, now) / tuning.baseline_s).min(tuning.baseline_step_max)
        };
        self.base += (latency - self.base) * weight;
        self.last = now;
        self.ordinary = self.ordinary.saturating_add(1);
        self.end_row();
    }

    /// Whether the baseline moves by time, so that answers may be batched.
    pub(crate) const fn is_settled(&self, tuning: &Tuning) -> bool {
        self.samples >= tuning.baseline_settled && self.late == 0
    }

    /// Nanoseconds after which an answer is late.
    pub(crate) fn late_after(&self, tuning: &Tuning) -> u64 {
        (tuning.late * self.base).max(self.base + tuning.late_by_s * SECOND as f64) as u64
    }

    /// Applies `answers` ordinary answers with this mean, in nanoseconds.
    pub(crate) fn on_ordinary(&mut self, answers: u16, mean: u64, now: Time, tuning: &Tuning) {
        self.follow(mean as f64, now, tuning);
        self.ordinary = self.ordinary.saturating_add(u8::try_from(answers - 1).unwrap_or(u8::MAX));
    }

    fn end_row(&mut self) {
        self.row = 0;
        self.late = 0;
        self.late_sum = 0.0;
    }

    /// Ends the row and ignores requests sent before `now`. Returns the mean delay in seconds and the answers per
    /// second.
    pub(crate) fn take_row(&mut self, now: Time) -> (f64, f64) {
        let mean = f64::from(self.late_sum) / f64::from(self.late.max(1));
        let delivered = match self.late {
            0 | 1 => f64::INFINITY,
            late => f64::from(late - 1) / seconds_between(self.late_from, self.late_until),
        };
        self.end_row();
        self.since = now;
        (((mean - self.base) / SECOND as f64).max(0.0), delivered)
    }

    /// Ordinary latency in seconds.
    pub(crate) fn base_s(&self) -> f64 {
        self.base / SECOND as f64
    }

    /// Ordinary answers in a row.
    pub(crate) fn ordinary(&self) -> u8 {
        self.ordinary
    }

    /// Starts to count ordinary answers.
    pub(crate) fn expect_ordinary(&mut self) {
        self.ordinary = 0;
    }

    /// Drops the baseline: the provider is slower now, and not because of us.
    pub(crate) fn forget(&mut self) {
        *self = Self { since: self.since, ..Self::default() };
    }

    /// Maximum of requests in flight at `rate` before their number alone shows late answers: rate times latency by
    /// Little's law, plus a margin.
    pub(crate) fn in_flight_max(&self, rate: f64, tuning: &Tuning) -> u32 {
        if self.samples == 0 {
            return tuning.in_flight_first;
        }
        ((tuning.in_flight_room * rate * self.base / SECOND as f64) as u32).saturating_add(tuning.in_flight_extra)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND;

    /// Answers one request per second, each after so many milliseconds; whether the last completed a row.
    fn answer(latency: &mut Latency, millis: &[u64]) -> bool {
        let mut is_row = false;
        for &millis in millis {
            let sent_at = latency.last.max(latency.late_until).plus(SECOND);
            is_row = latency.on_success(sent_at, sent_at.plus(millis * MILLISECOND), Tuning::SHIPPED);
        }
        is_row
    }

    fn settled() -> Latency {
        let mut latency = Latency::default();
        answer(&mut latency, &[100; 20]);
        latency
    }

    #[test]
    fn six_late_answers_in_a_row_are_a_slow_down() {
        assert!(!answer(&mut settled(), &[250; 5]));
        assert!(answer(&mut settled(), &[250; 6]));
        assert!(!answer(&mut settled(), &[219; 50]), "less than 2.2 times is ordinary");
    }

    #[test]
    fn a_machine_that_stops_for_a_moment_is_no_slow_down() {
        let mut latency = settled();
        let stop = latency.last.plus(SECOND);
        // Ten requests are on their way when everything stops for 400 ms, and are answered together.
        let mut answered = (0..10).map(|sent| stop.plus(sent * 20 * MILLISECOND));
        assert!(!answered.any(|sent_at| latency.on_success(sent_at, stop.plus(500 * MILLISECOND), Tuning::SHIPPED)));
        // The same for a second is one.
        let mut answered = (10..60).map(|sent| stop.plus(sent * 20 * MILLISECOND));
        assert!(answered.any(|sent_at| latency.on_success(sent_at, sent_at.plus(400 * MILLISECOND), Tuning::SHIPPED)));
    }

    #[test]
    fn an_ordinary_answer_ends_the_row() {
        assert!(!answer(&mut settled(), &[250, 250, 250, 250, 250, 100, 250, 250, 250, 250, 250]));
    }

    #[test]
    fn very_late_answers_count_for_three() {
        assert!(!answer(&mut settled(), &[1100]));
        assert!(answer(&mut settled(), &[1100; 2]));
        // A millisecond is ordinary here, and thirty are what a busy machine needs to notice.
        let mut near = Latency::default();
        answer(&mut near, &[1; 20]);
        assert!(!answer(&mut near, &[30; 5]));
        assert!(answer(&mut near, &[30]), "six in a row are no chance even so");
    }

    #[test]
    fn late_answers_never_move_the_baseline() {
        let mut latency = settled();
        answer(&mut latency, &[250; 5]);
        assert!((latency.base - 100.0 * MILLISECOND as f64).abs() < 1.0);
    }

    #[test]
    fn a_row_tells_how_late_and_ends() {
        let mut latency = settled();
        assert!(answer(&mut latency, &[300; 6]));
        let (late_s, delivered) = latency.take_row(latency.late_until);
        assert!((late_s - 0.2).abs() < 1e-3, "{late_s}");
        // Sent a second after the last answer: 1.3 s apart.
        assert!((delivered - 1.0 / 1.3).abs() < 1e-3, "{delivered}");
        assert!(!answer(&mut latency, &[300; 5]), "the next row begins at none");
    }

    #[test]
    fn as_many_may_be_in_flight_as_rate_and_latency_explain() {
        assert_eq!(Latency::default().in_flight_max(50.0, Tuning::SHIPPED), 2);
        // Four times 50 per second at 100 ms, and four.
        assert_eq!(settled().in_flight_max(50.0, Tuning::SHIPPED), 24);
    }
}
