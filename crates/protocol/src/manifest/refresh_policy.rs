//! Refresh policy: an author's recommendations for the scheduler and the owner.
//!
//! They are hints of this project's manifests, not part of the protocol: no message carries them, and a connector
//! without them runs on request. An author who gives any must give a mode and a reason for the owner.

use super::fault::{Faults, ManifestFaultCode};
use super::node::Node;
use crate::words::vocabulary::wire_words;

/// A recommendation for the schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshPolicy {
    /// Whether to run automatically.
    pub recommended_mode: RecommendedMode,
    /// The reason, for the owner.
    pub rationale: String,
    /// Recommended interval.
    pub recommended_interval_seconds: Option<u64>,
    /// Shortest interval.
    pub minimum_interval_seconds: Option<u64>,
    /// After this time the data counts as stale.
    pub maximum_staleness_seconds: Option<u64>,
    /// Lifetime of a session after a sign-in.
    pub session_lifetime_seconds: Option<u64>,
    /// Interaction that the owner must expect.
    pub interaction_posture: Option<InteractionPosture>,
    /// How easily the provider rate-limits.
    pub rate_limit_sensitivity: Option<Sensitivity>,
    /// How easily the provider detects bots.
    pub bot_detection_sensitivity: Option<Sensitivity>,
    /// Whether it may run unattended.
    pub background_safe: Option<bool>,
    /// Whether it may run automatically once the owner has signed in.
    pub assisted_after_owner_auth: Option<bool>,
    /// Consecutive cooldowns before the owner is asked.
    pub max_cooldown_cycles: Option<u64>,
    /// Maximum of attempts to recover a gap.
    pub max_recovery_attempts: Option<u64>,
}

wire_words! {
    /// Whether to run automatically.
    pub enum RecommendedMode {
        /// Automatically.
        Automatic = "automatic";
        /// On request.
        Manual = "manual";
        /// Not at present.
        Paused = "paused";
    }
}

wire_words! {
    /// Interaction that the owner must expect for a run.
    pub enum InteractionPosture {
        /// Nothing.
        None = "none";
        /// Sign in.
        Credentials = "credentials";
        /// Probably enter a code.
        OtpLikely = "otp_likely";
        /// Probably act in a browser.
        ManualActionLikely = "manual_action_likely";
    }
}

wire_words! {
    /// How sensitive a provider is.
    pub enum Sensitivity {
        /// Low.
        Low = "low";
        /// Medium.
        Medium = "medium";
        /// High.
        High = "high";
    }
}

/// Maximum duration: ten years.
const SECONDS_MAX: u64 = 10 * 365 * 86_400;
/// From the contract: maximum of consecutive cooldowns.
const COOLDOWN_CYCLES_MAX: u64 = 24;
/// From the contract.
const RECOVERY_ATTEMPTS_MAX: u64 = 20;

impl RefreshPolicy {
    pub(super) fn read(capabilities: Option<&Node<'_>>, faults: &mut Faults) -> Option<Self> {
        let node = capabilities?.child("refresh_policy")?;
        if !node.view().is_object() {
            node.wrong_type("an object", faults);
            return None;
        }
        let mode = match node.required("recommended_mode", faults) {
            Some(_) => node.word("recommended_mode", RecommendedMode::ALL, RecommendedMode::code, faults),
            None => None,
        };
        let rationale = node.required_text("rationale", faults);
        let mut seconds = |name| node.number(name, 1..=SECONDS_MAX, faults);
        let recommended_interval_seconds = seconds("recommended_interval_seconds");
        let minimum_interval_seconds = seconds("minimum_interval_seconds");
        let maximum_staleness_seconds = seconds("maximum_staleness_seconds");
        let session_lifetime_seconds = seconds("session_lifetime_seconds");
        let mut level = |name| node.word(name, Sensitivity::ALL, Sensitivity::code, faults);
        let rate_limit_sensitivity = level("rate_limit_sensitivity");
        let bot_detection_sensitivity = level("bot_detection_sensitivity");
        let posture = InteractionPosture::ALL;
        let interaction_posture = node.word("interaction_posture", posture, InteractionPosture::code, faults);
        if let (Some(interval), Some(minimum)) = (recommended_interval_seconds, minimum_interval_seconds)
            && interval < minimum
        {
            let allowed = format!("at least minimum_interval_seconds, which is {minimum}");
            let child = node.child("recommended_interval_seconds");
            faults.error(ManifestFaultCode::OutOfRange, child.as_ref(), &node, &allowed);
        }
        Some(Self {
            background_safe: node.optional_flag("background_safe", faults),
            assisted_after_owner_auth: node.optional_flag("assisted_after_owner_auth", faults),
            max_cooldown_cycles: node.number("max_cooldown_cycles", 1..=COOLDOWN_CYCLES_MAX, faults),
            max_recovery_attempts: node.number("max_recovery_attempts", 1..=RECOVERY_ATTEMPTS_MAX, faults),
            recommended_mode: mode?,
            rationale: rationale?,
            recommended_interval_seconds,
            minimum_interval_seconds,
            maximum_staleness_seconds,
            session_lifetime_seconds,
            interaction_posture,
            rate_limit_sensitivity,
            bot_detection_sensitivity,
        })
    }
}
