//! Plays driver and provider for one governor, on virtual time.
//!
//! Why not the lab: it depends on this crate, knows only well-behaved drivers, and scores whole
//! runs. Here the driver is late, idle, nosy and gives requests up, the provider says anything, and
//! every single step is kept with the snapshots around it, so that a promise is a predicate over a
//! [`Trace`]. Nothing in here judges. All randomness is drawn from the seed by purpose and number,
//! so two plans that differ in one setting meet the same provider.

use gleaner_governor::{
    Admission, Advice, CircuitTransition, Config, DeferReason, Deferral, Governor, Jitter, Outcome, Permit,
    QuotaReading, Snapshot, Time, Verdict, WaitReason,
};
use std::time::Duration;

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const MS: u64 = 1_000_000;

pub(crate) const fn at(seconds: u64) -> Time {
    Time::from_nanos(seconds * SECOND)
}

/// The limit that the provider enforces.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    None,
    Bucket { per_s: f64, burst: f64 },
    Window { limit: u32, seconds: u64 },
    InFlight(u16),
}

/// The provider's signal about it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tell {
    Nothing,
    /// Always this, whatever the truth is.
    RetryAfter(Duration),
    /// `remaining` of a made-up quota, with or without a reset.
    Quota {
        with_reset: bool,
    },
    /// Anything.
    Nonsense,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Provider {
    pub(crate) limit: Limit,
    pub(crate) tell: Tell,
    /// Percent of answers that are an error of a random kind, throttles included.
    pub(crate) noise: u64,
    /// Shortest and longest latency.
    pub(crate) latency_ms: (u64, u64),
}

impl Provider {
    /// Never refuses, answers at normal latency.
    pub(crate) const OPEN: Self = Self { limit: Limit::None, tell: Tell::Nothing, noise: 0, latency_ms: (50, 80) };
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) provider: Provider,
    pub(crate) workers: u16,
    /// The driver comes up to this much later than it was told.
    pub(crate) late_us: u64,
    /// Percent of waits in which the driver asks again before the time is over.
    pub(crate) nosy: u64,
    /// Percent of admitted requests that are given up before they are sent.
    pub(crate) cancels: u64,
    /// At second, for seconds: nothing to do.
    pub(crate) idle: Vec<(u64, u64)>,
    pub(crate) seconds: u64,
    pub(crate) sends_max: usize,
    pub(crate) seed: u64,
}

impl Plan {
    pub(crate) fn new(config: Config, provider: Provider) -> Self {
        Self {
            config,
            provider,
            workers: config.max_concurrency,
            late_us: 0,
            nosy: 0,
            cancels: 0,
            idle: Vec::new(),
            seconds: 3600,
            sends_max: 1000,
            seed: 1,
        }
    }

    pub(crate) fn run(&self) -> Trace {
        let mut drive = Drive::new(self);
        while drive.step() {}
        drive.trace
    }
}

#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "a trace is short-lived, and its events are read by value")]
pub(crate) enum Step {
    /// Admitted and sent; `in_flight` counts this one.
    Sent {
        in_flight: usize,
    },
    /// Admitted and given up at once.
    Cancelled,
    WaitUntil(Time),
    WaitForOutcome {
        in_flight: usize,
    },
    Deferred(Deferral),
    Answered {
        outcome: Outcome,
        sent_at: Time,
        attempt: u32,
        advice: Advice,
    },
}

/// One call of the governor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) at: Time,
    pub(crate) step: Step,
    pub(crate) before: Option<Snapshot>,
    pub(crate) after: Option<Snapshot>,
    pub(crate) transition: Option<CircuitTransition>,
    /// Why a request had to wait: asked before a send, and after being told to wait.
    pub(crate) reason: Option<WaitReason>,
}

impl Event {
    /// Interval before and after the call; zero without pacing.
    pub(crate) fn intervals(&self) -> (Duration, Duration) {
        let of = |snapshot: Option<Snapshot>| snapshot.map_or(Duration::ZERO, |snapshot| snapshot.interval);
        (of(self.before), of(self.after))
    }

    pub(crate) fn is_poll(&self) -> bool {
        !matches!(self.step, Step::Answered { .. })
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) events: Vec<Event>,
}

impl Trace {
    pub(crate) fn sends(&self) -> Vec<Time> {
        self.events.iter().filter(|event| matches!(event.step, Step::Sent { .. })).map(|event| event.at).collect()
    }

    pub(crate) fn answers(&self) -> impl Iterator<Item = (&Event, Outcome, Time)> {
        self.events.iter().filter_map(|event| match event.step {
            Step::Answered { outcome, sent_at, .. } => Some((event, outcome, sent_at)),
            _ => None,
        })
    }

    pub(crate) fn transitions(&self) -> impl Iterator<Item = (Time, CircuitTransition)> {
        self.events.iter().filter_map(|event| event.transition.map(|transition| (event.at, transition)))
    }

    pub(crate) fn last_interval(&self) -> Duration {
        self.events.last().map_or(Duration::ZERO, |event| event.intervals().1)
    }
}

struct InFlight {
    permit: Permit,
    sent_at: Time,
    answer_at: Time,
    attempt: u32,
    outcome: Outcome,
}

/// Purpose of a random number.
#[derive(Clone, Copy)]
enum For {
    Latency,
    Noise,
    Quota,
    Lateness,
    Nosiness,
    Cancel,
    Jitter,
}

/// One governor with its driver and its provider.
pub(crate) struct Drive<'a> {
    plan: &'a Plan,
    governor: Governor,
    pub(crate) now: Time,
    in_flight: Vec<InFlight>,
    /// When a failed request may be tried again, and which try that is.
    retries: Vec<(Time, u32)>,
    sent: usize,
    /// Sent or given up.
    admitted: u64,
    polls: u64,
    tokens: (f64, Time),
    window: (u32, Time),
    pub(crate) trace: Trace,
}

impl<'a> Drive<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        let burst = if let Limit::Bucket { burst, .. } = plan.provider.limit { burst } else { 0.0 };
        Self {
            plan,
            governor: Governor::with_config("test", plan.config),
            now: at(5),
            in_flight: Vec::new(),
            retries: Vec::new(),
            sent: 0,
            admitted: 0,
            polls: 0,
            tokens: (burst, at(5)),
            window: (0, Time::ZERO),
            trace: Trace::default(),
        }
    }

    /// Goes on to the next thing that happens; false when the plan is over.
    pub(crate) fn step(&mut self) -> bool {
        while let Some(index) = self.next_answer().filter(|&index| self.in_flight[index].answer_at <= self.now) {
            self.answer(index);
        }
        let end = at(5 + self.plan.seconds);
        let is_over = self.now >= end || self.sent >= self.plan.sends_max || self.polls > 20_000;
        let wake = if is_over { None } else { self.poll() };
        let answer = self.next_answer().map(|index| self.in_flight[index].answer_at);
        match (wake, answer) {
            (None, None) => return false,
            (Some(wake), Some(answer)) => self.now = wake.min(answer),
            (wake, answer) => self.now = wake.or(answer).unwrap_or(self.now),
        }
        true
    }

    fn next_answer(&self) -> Option<usize> {
        (0..self.in_flight.len()).min_by_key(|&index| self.in_flight[index].answer_at)
    }

    /// Asks for admission as often as it helps; when to ask again, if time alone may help.
    fn poll(&mut self) -> Option<Time> {
        if let Some(end) = self.idle_until() {
            return Some(end);
        }
        while self.in_flight.len() < usize::from(self.plan.workers) && self.sent < self.plan.sends_max {
            self.polls += 1;
            let before = self.governor.snapshot(self.now);
            let reason_before = self.governor.wait_reason(self.now);
            let admission = self.governor.poll_admit(self.now);
            let reason = match admission {
                Admission::Send(_) => reason_before,
                _ => self.governor.wait_reason(self.now),
            };
            let (step, wake) = match admission {
                Admission::Send(permit) => (self.send(permit), None),
                Admission::WaitUntil(until) => (Step::WaitUntil(until), Some(self.come_back(until))),
                Admission::WaitForOutcome => {
                    (Step::WaitForOutcome { in_flight: self.in_flight.len() }, Some(Time::NEVER))
                }
                Admission::Defer(deferral) => {
                    (Step::Deferred(deferral), Some(deferral.not_before.unwrap_or(Time::NEVER)))
                }
            };
            self.note(step, before, reason);
            if let Some(wake) = wake {
                return Some(wake).filter(|&wake| wake != Time::NEVER);
            }
        }
        None
    }

    fn idle_until(&self) -> Option<Time> {
        let idle = self.plan.idle.iter().map(|&(from, length)| (at(5 + from), at(5 + from + length)));
        idle.filter(|&(from, to)| from <= self.now && self.now < to).map(|(_, to)| to).max()
    }

    fn come_back(&mut self, until: Time) -> Time {
        let wait = until.since(self.now).as_nanos() as u64;
        if wait > 1 && self.draw(For::Nosiness, self.polls) % 100 < self.plan.nosy {
            return self.now + Duration::from_nanos(1 + self.draw(For::Nosiness, !self.polls) % (wait - 1));
        }
        let late = self.draw(For::Lateness, self.admitted) % (self.plan.late_us * 1000 + 1);
        until + Duration::from_nanos(late)
    }

    fn send(&mut self, permit: Permit) -> Step {
        self.admitted += 1;
        if self.draw(For::Cancel, self.admitted) % 100 < self.plan.cancels {
            self.governor.cancel(permit);
            return Step::Cancelled;
        }
        let attempt = self.take_retry();
        let number = self.sent as u64;
        self.sent += 1;
        let (shortest, longest) = self.plan.provider.latency_ms;
        let latency = shortest * MS + self.draw(For::Latency, number) % ((longest - shortest) * MS + 1);
        let outcome = self.decide(number);
        let answer_at = self.now + Duration::from_nanos(latency);
        self.in_flight.push(InFlight { permit, sent_at: self.now, answer_at, attempt, outcome });
        Step::Sent { in_flight: self.in_flight.len() }
    }

    fn take_retry(&mut self) -> u32 {
        let due = self.retries.iter().position(|&(from, _)| from <= self.now);
        due.map_or(0, |index| self.retries.swap_remove(index).1)
    }

    fn answer(&mut self, index: usize) {
        let InFlight { permit, sent_at, answer_at, attempt, outcome } = self.in_flight.swap_remove(index);
        let now = self.now.max(answer_at);
        let before = self.governor.snapshot(now);
        let jitter = Jitter::from_bits(self.draw(For::Jitter, sent_at.as_nanos()));
        let advice = self.governor.on_outcome(permit, &outcome, attempt, jitter, now);
        if let Advice::RetryAt(from) = advice {
            self.retries.push((from, attempt + 1));
        }
        self.note(Step::Answered { outcome, sent_at, attempt, advice }, before, None);
    }

    fn note(&mut self, step: Step, before: Option<Snapshot>, reason: Option<WaitReason>) {
        let after = self.governor.snapshot(self.now);
        let transition = self.governor.next_transition();
        self.trace.events.push(Event { at: self.now, step, before, after, transition, reason });
    }

    /// The provider's answer to the request that arrives now.
    fn decide(&mut self, number: u64) -> Outcome {
        const NOISE: [Verdict; 6] = [
            Verdict::ServerError,
            Verdict::Network,
            Verdict::Permanent,
            Verdict::Throttled,
            Verdict::Forbidden,
            Verdict::Banned,
        ];
        let draw = self.draw(For::Noise, number);
        let verdict = if draw % 100 < self.plan.provider.noise {
            // A ban closes the key for minutes: one in forty.
            NOISE[if (draw >> 32).is_multiple_of(8) { 5 } else { (draw >> 40) as usize % 5 }]
        } else if self.is_within_limit() {
            Verdict::Success
        } else {
            Verdict::Throttled
        };
        self.tell(Outcome::bare(verdict), number)
    }

    fn is_within_limit(&mut self) -> bool {
        match self.plan.provider.limit {
            Limit::None => true,
            Limit::InFlight(most) => self.in_flight.len() < usize::from(most),
            Limit::Bucket { per_s, burst } => {
                let (tokens, since) = self.tokens;
                let tokens = (tokens + self.now.since(since).as_secs_f64() * per_s).min(burst);
                let is_full = tokens >= 1.0;
                self.tokens = (if is_full { tokens - 1.0 } else { tokens }, self.now);
                is_full
            }
            Limit::Window { limit, seconds } => {
                if self.now.since(self.window.1) >= Duration::from_secs(seconds) {
                    self.window = (0, self.now);
                }
                self.window.0 += 1;
                self.window.0 <= limit
            }
        }
    }

    fn tell(&self, mut outcome: Outcome, number: u64) -> Outcome {
        let draw = self.draw(For::Quota, number);
        let reading = QuotaReading {
            limit: Some(1 + draw % 100),
            remaining: Some((draw >> 8) % 12),
            resets_in: Some(Duration::from_millis((draw >> 16) % 20_000)),
            window: None,
        };
        match self.plan.provider.tell {
            Tell::Nothing => {}
            Tell::RetryAfter(wait) => {
                outcome.retry_after = Some(wait).filter(|_| outcome.verdict == Verdict::Throttled)
            }
            Tell::Quota { with_reset } => {
                outcome.quotas.push(QuotaReading { resets_in: reading.resets_in.filter(|_| with_reset), ..reading });
            }
            Tell::Nonsense => {
                let wait = [0, 1, 30, 400 * SECOND, u64::MAX][(draw >> 24) as usize % 5];
                outcome.retry_after = draw.is_multiple_of(3).then(|| Duration::from_nanos(wait));
                for part in 0..(draw >> 32) % 5 {
                    let part = draw >> part;
                    outcome.quotas.push(QuotaReading {
                        limit: (!part.is_multiple_of(3)).then_some([0, 1, 60, u64::MAX][(part >> 2) as usize % 4]),
                        remaining: (!part.is_multiple_of(5))
                            .then_some([0, 1, 5, 100, u64::MAX][(part >> 4) as usize % 5]),
                        resets_in: (part % 7 < 4).then(|| Duration::from_millis((part >> 6) % 90_000)),
                        window: None,
                    });
                }
            }
        }
        outcome
    }

    fn draw(&self, purpose: For, number: u64) -> u64 {
        mix(self.plan.seed ^ mix(number ^ mix(purpose as u64)))
    }
}

/// The finalizer of SplitMix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A governor in a test that scripts every answer by hand.
pub(crate) struct Hand {
    pub(crate) governor: Governor,
    pub(crate) now: Time,
}

impl Hand {
    pub(crate) fn new(config: Config) -> Self {
        Self { governor: Governor::with_config("test", config), now: at(5) }
    }

    /// Waits as told and sends; panics when the run is deferred instead.
    pub(crate) fn send(&mut self) -> Permit {
        loop {
            match self.governor.poll_admit(self.now) {
                Admission::Send(permit) => return permit,
                Admission::WaitUntil(until) => {
                    assert!(until > self.now, "a wait that is over");
                    self.now = until;
                }
                other => panic!("not admitted at {:?}: {other:?}", self.now),
            }
        }
    }

    pub(crate) fn answer(&mut self, permit: Permit, outcome: &Outcome) -> Advice {
        self.answer_attempt(permit, outcome, 0)
    }

    pub(crate) fn answer_attempt(&mut self, permit: Permit, outcome: &Outcome, attempt: u32) -> Advice {
        self.governor.on_outcome(permit, outcome, attempt, Jitter::from_bits(u64::MAX / 2), self.now)
    }

    pub(crate) fn wait(&mut self, millis: u64) -> &mut Self {
        self.now = self.now + Duration::from_millis(millis);
        self
    }

    /// Sends one request and answers it after `latency_ms`.
    pub(crate) fn exchange(&mut self, outcome: &Outcome, latency_ms: u64) -> Advice {
        let permit = self.send();
        self.wait(latency_ms).answer(permit, outcome)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.governor.snapshot(self.now).expect("paced")
    }

    /// Successes at normal latency until the interval is at most `interval`.
    pub(crate) fn warm_to(&mut self, interval: Duration) -> &mut Self {
        for _ in 0..100_000 {
            if self.snapshot().interval <= interval {
                return self;
            }
            self.exchange(&Outcome::success(), 1);
        }
        panic!("never reached {interval:?}: {:?}", self.snapshot());
    }

    /// Successes until there is room for eight: answers take 300 ms, so that eight in flight are no
    /// sign of late ones.
    pub(crate) fn warm_with_eight_in_flight(&mut self) -> &mut Self {
        for _ in 0..400 {
            let most = if self.snapshot().interval < Duration::from_millis(100) { 8 } else { 1 };
            let permits = self.fill(most);
            self.wait(300);
            for permit in permits {
                self.answer(permit, &Outcome::success());
            }
        }
        self
    }

    /// As many in flight as the governor lets out without waiting for an answer.
    pub(crate) fn fill(&mut self, most: usize) -> Vec<Permit> {
        let mut permits = Vec::new();
        while permits.len() < most {
            match self.governor.poll_admit(self.now) {
                Admission::Send(permit) => permits.push(permit),
                Admission::WaitUntil(until) => self.now = until,
                Admission::WaitForOutcome | Admission::Defer(_) => break,
            }
        }
        permits
    }

    /// The reason and the time of a deferral; panics when there is none.
    pub(crate) fn deferral(&mut self) -> (DeferReason, Option<Time>) {
        match self.governor.poll_admit(self.now) {
            Admission::Defer(deferral) => (deferral.reason, deferral.not_before),
            other => panic!("not deferred: {other:?}"),
        }
    }
}
