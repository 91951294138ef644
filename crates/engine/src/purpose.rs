//! What a run is for, as far as its account depends on it.
//!
//! A probe is one request, to see whether a provider is back. It is a run like any other and yet says less: that it was
//! refused makes no rest longer, that it failed makes no row of failures longer, and that it worked says that another
//! run may. The type is here so that store, schedule and runtime mean the same by it.

use gleaner_protocol::coded_enum;

coded_enum! {
    /// What a run is for.
    #[derive(Default)]
    pub enum RunPurpose {
        /// Everything: gaps first, then forward.
        #[default]
        Full = "full";
        /// Gaps that are not pressure, while the provider rests.
        RecoveryOnly = "recovery_only";
        /// One request, to see whether the provider is back.
        Probe = "probe";
    }
}

impl RunPurpose {
    /// Whether a run is for a time in which the provider is not to be pressed: then it is handed no gap whose reason is
    /// source pressure.
    #[must_use]
    pub const fn spares_pressure(self) -> bool {
        match self {
            Self::Full => false,
            Self::RecoveryOnly | Self::Probe => true,
        }
    }
}
