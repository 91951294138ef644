//! What a run is for, as far as its account depends on it.
//!
//! A probe is one request, to see whether a provider is back. It is a run like any other and yet says less: that it was
//! refused makes no rest longer, that it failed makes no row of failures longer, and that it worked says that another
//! run may. The type is here so that store, schedule and runtime mean the same by it.

/// What a run is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunPurpose {
    /// Everything: gaps first, then forward.
    #[default]
    Full,
    /// Gaps that are not pressure, while the provider rests.
    RecoveryOnly,
    /// One request, to see whether the provider is back.
    Probe,
}

impl RunPurpose {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Full, Self::RecoveryOnly, Self::Probe];

    /// Whether a run is for a time in which the provider is not to be pressed: then it is handed no gap whose reason is
    /// source pressure.
    #[must_use]
    pub const fn spares_pressure(self) -> bool {
        match self {
            Self::Full => false,
            Self::RecoveryOnly | Self::Probe => true,
        }
    }

    /// Its name where it is stored.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::RecoveryOnly => "recovery_only",
            Self::Probe => "probe",
        }
    }

    /// The purpose of this name.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.code() == code)
    }
}
