//! Fastest safe pacing for a provider with an undocumented rate limit.
//!
//! A [`Governor`] stands before one key: one provider and one account. The caller asks it before every request,
//! reports every answer, and the governor finds from that which rate is safe. It starts slowly, looks for the limit
//! from below, stays just under it, and notices when it moves.
//!
//! **It decides and never acts.** No clock, no sleep, no random numbers, no IO: `now` and the random bits are
//! arguments, and the answer is an absolute time. So it runs under any async runtime, or none, and a simulator drives
//! the same type through an hour in milliseconds.
//!
//! # Why not a fixed sleep, or a token bucket
//!
//! Both need a number that nobody has. A fixed sleep is too slow for most providers and too fast for the rest. A
//! token bucket with the documented limit breaks when the documentation is wrong, when the limit moves, or when there
//! is a second, undocumented limit. Backoff after each refusal finds no number: it is refused again and again, and
//! some providers suspend accounts for that.
//!
//! # A complete example
//!
//! A provider that allows five requests per second and answers a bare 429 beyond that, for ten minutes of virtual
//! time:
//!
//! ```
//! use gleaner_governor::{Admission, Advice, Governor, Jitter, Outcome, Time, Verdict};
//! use std::time::Duration;
//!
//! /// A bucket of ten tokens that refills by five a second.
//! struct Provider {
//!     tokens: f64,
//!     at: Time,
//! }
//!
//! impl Provider {
//!     fn ask(&mut self, now: Time) -> Outcome {
//!         self.tokens = (self.tokens + 5.0 * now.since(self.at).as_secs_f64()).min(10.0);
//!         self.at = now;
//!         if self.tokens < 1.0 {
//!             return Outcome::throttled(None); // a bare 429
//!         }
//!         self.tokens -= 1.0;
//!         Outcome::success()
//!     }
//! }
//!
//! let mut provider = Provider { tokens: 10.0, at: Time::ZERO };
//! let mut governor = Governor::new("example");
//! let (mut now, mut attempt) = (Time::ZERO, 0);
//! let (mut accepted, mut refused) = (0, 0);
//!
//! while now < Time::ZERO + Duration::from_secs(600) {
//!     let permit = match governor.poll_admit(now) {
//!         Admission::Send(permit) => permit,
//!         Admission::WaitUntil(at) => {
//!             now = at; // a program would sleep here, and only here
//!             continue;
//!         }
//!         Admission::WaitForOutcome => unreachable!("nothing else is in flight"),
//!         Admission::Defer(deferral) => match deferral.not_before {
//!             Some(at) => {
//!                 now = at; // a program would end this run and start another one then
//!                 continue;
//!             }
//!             None => break,
//!         },
//!     };
//!     let outcome = provider.ask(now);
//!     now = now + Duration::from_millis(50);
//!     match outcome.verdict {
//!         Verdict::Success => accepted += 1,
//!         _ => refused += 1,
//!     }
//!     // A program would draw these bits at random.
//!     let jitter = Jitter::from_bits(0);
//!     attempt = match governor.on_outcome(permit, &outcome, attempt, jitter, now) {
//!         Advice::RetryAt(at) => {
//!             now = now.max(at);
//!             attempt + 1
//!         }
//!         Advice::Done | Advice::Defer(_) | Advice::Pressure { .. } => 0,
//!     };
//! }
//!
//! // Best possible: 3,010.
//! assert!(accepted > 2_500, "{accepted} accepted");
//! assert!(refused < 30, "{refused} refused");
//! ```
//!
//! With HTTP the outcome comes from a [`Classifier`]: [`DefaultClassifier`] knows statuses, `Retry-After` and the
//! common quota headers; a closure around it adds the special cases of a provider.
//!
//! # Which layer decides what
//!
//! [`Governor::poll_admit`] asks them in this order. Each decides at once; none waits.
//!
//! | layer | question | when it says no |
//! |---|---|---|
//! | run budget ([`RunBudgetConfig`]) | may this run send at all? | [`Admission::Defer`] |
//! | circuit breaker ([`BreakerConfig`]) | is the provider healthy? | [`Admission::Defer`], or [`Admission::WaitForOutcome`] while a probe is out |
//! | lane (`max_concurrency`) | may one more be in flight? | [`Admission::WaitForOutcome`] |
//! | quota, window, gate, pacing | when? The *latest* of their times, never the sum | [`Admission::WaitUntil`], beyond the horizon [`Admission::Defer`] |
//!
//! [`Governor::on_outcome`] updates quota, law, breaker and retry budget, and says whether to retry. A retry needs a
//! new permit.
//!
//! # Four groups of methods
//!
//! - **ask**: [`poll_admit`](Governor::poll_admit);
//! - **tell**: [`on_outcome`](Governor::on_outcome), [`cancel`](Governor::cancel) for a request that
//!   was never sent, or [`abandon`](Governor::abandon) for one whose answer nobody waited for;
//! - **show**: [`snapshot`](Governor::snapshot), [`wait_reason`](Governor::wait_reason),
//!   [`circuit`](Governor::circuit), [`next_transition`](Governor::next_transition),
//!   [`name`](Governor::name);
//! - **remember**: [`learned`](Governor::learned) at the end of a run, [`restore`](Governor::restore)
//!   at the start of the next.
//!
//! # Deliberately absent
//!
//! - A clock, a sleep, a thread, a random number, a file, a socket, an async runtime. A lint
//!   (`clippy.toml` of this crate) rejects them.
//! - `serde`. The state kept between runs has its own text form ([`Learned`]).
//! - URLs, bodies, ids and credentials: an [`Outcome`] has no field for them.
//! - A way to turn a [`DeferReason`] into a [`PressureReason`]: a stop by our own budget must not look like pressure
//!   from the provider.
//! - A lock in [`Governor`], and a map from keys to governors: the caller owns its governors. For thousands of keys there
//!   is [`keyed::Registry`], with the same state and settings for each of them.
//! - A setting that the law needs from the owner. The owner sets one number, the ceiling
//!   ([`Config::ceiling_interval`]); the law's own numbers ([`Tuning`]) are for those who measure it.
//!
//! # Files
//!
//! - `config.rs`: settings of a key, each default with its reason; the same for one key and for many
//! - `admission/state.rs`, `admission/state/memory.rs`: state of one key and the path of a request: admission, send,
//!   outcome, advice; saving and restoring it
//! - `admission/governor.rs`, `admission/governor/`: facade of one key: adds name, quotas, run budget and transitions
//!   to a state
//! - `admission/permit.rs`: permits, answers, advice; expiry of lost permits
//! - `admission/lane.rs`: limit on requests in flight, lowered only on evidence
//! - `admission/run_budget.rs`: limits of one run on requests and time
//! - `law.rs`: the interval and its changes: search, climb, hold, probe; opens with the states and transitions
//! - `law/tuning.rs`: every number of the law: name, unit, range, reason; the lab sets any of them
//! - `law/episode.rs`: from the first refusal to the first success after it: cuts, trials, measurement
//! - `law/slowdown.rs`: reaction to late answers
//! - `law/window.rs`: a learned window, mirrored from our own sends, and the experiments that correct it
//! - `law/send_log.rs`: times of our sends, thinned out so that it stays bounded
//! - `law/refusals.rs`: refusal budget, and recent refusals
//! - `law/latency.rs`: latency baseline, and rows of late answers
//! - `law/gcra.rs`: when the next send is due
//! - `law/pace.rs`, `law/bucket.rs`: the pace by strategy: the law, or a token bucket (AIMD, fixed)
//! - `law/rest.rs`, `law/batch.rs`: the law of an idle key, and of a key so busy that it gets its requests in batches
//! - `retry/backoff.rs`: backoff before a retry: full jitter
//! - `retry/budget.rs`: retry budget of a key
//! - `retry/breaker.rs`, `retry/answer_window.rs`: circuit breaker, and the answers that it counts
//! - `retry/circuit.rs`: circuit states and transitions
//! - `signals/classify.rs`: turns an HTTP answer into an outcome; extension point for special providers
//! - `signals/outcome.rs`: the outcome: verdict, wait, quotas
//! - `signals/quota.rs`: quota that remains by the provider's headers
//! - `signals/quota_headers.rs`, `signals/quota_fields.rs`: reads quota headers: all dialects; the structured IETF
//!   fields `RateLimit` and `RateLimit-Policy`
//! - `signals/retry_after.rs`: reads `Retry-After` and time formats
//! - `reasons.rs`: `DeferReason`, `PressureReason` and `WaitReason`
//! - `snapshot.rs`: state for an operator
//! - `warm_start.rs`: state kept between runs, and its text form
//! - `time.rs`: `Time` (monotonic) and `WallTime` (calendar), integers
//! - `keyed/registry.rs`, `keyed/shard.rs`, `keyed/hash.rs`: very many keys: lookup, idle keys, eviction, snapshot
//! - `keyed/key.rs`, `keyed/active.rs`, `keyed/stats.rs`: one of them in its two forms, idle and active, with its
//!   figures
//! - `keyed/fast_path.rs`: lock-free fast path of ordinary requests; the one lock-free part
//! - `keyed/config.rs`, `keyed/domain.rs`, `keyed/feedback.rs`, `keyed/handle.rs`, `keyed/lookup.rs`,
//!   `keyed/snapshot.rs`: settings of a registry; normalized host names; input and output types

#![warn(missing_docs)]

mod admission;
mod config;
pub mod keyed;
mod law;
mod reasons;
mod retry;
mod signals;
mod snapshot;
mod time;
mod warm_start;

pub use admission::governor::Governor;
pub use admission::permit::{Admission, Advice, PERMIT_LIFE, Permit};
pub use admission::run_budget::RunBudgetConfig;
pub use config::{Aimd, CEILING_INTERVAL, Config, ConfigError, DISCOVERY_INTERVAL, HORIZON, Strategy};
pub use law::tuning::{BadValue, Number, Tuning};
pub use reasons::{DeferReason, Deferral, PressureReason, WaitReason};
pub use retry::answer_window::BUCKETS_MAX;
pub use retry::backoff::{BackoffConfig, Jitter};
pub use retry::breaker::BreakerConfig;
pub use retry::budget::RetryBudgetConfig;
pub use retry::circuit::{CircuitReason, CircuitState, CircuitTransition, CircuitTrigger};
pub use signals::classify::{
    Classifier, DefaultClassifier, HeaderSource, ResponseView, network_error, untrusted_certificate,
};
pub use signals::outcome::{Outcome, QUOTAS_MAX, QuotaReading, Quotas, Verdict};
pub use signals::quota_headers::{QUOTA_RESET_MAX, read_quotas};
pub use signals::retry_after::{RETRY_AFTER_MAX, read_retry_after};
pub use snapshot::{BackoffReason, LastBackoff, Snapshot};
pub use time::{Time, WallTime};
pub use warm_start::{Learned, STALE_AFTER};

/// Compiles the code of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
