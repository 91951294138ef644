//! Names of things, each a type of its own, so that a lease is never taken for a gap.

use std::fmt;

macro_rules! text_ids {
    ($($(#[$meta:meta])* $name:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes a name over.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

macro_rules! number_ids {
    ($($(#[$meta:meta])* $name:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// The thing with this number.
            #[must_use]
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The one after it. Saturates: at one per nanosecond that is in 584 years.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }
    )+};
}

text_ids! {
    /// One execution of a connector.
    RunId;
    /// One gap of a store.
    GapId;
    /// The right of one run to work on gaps.
    LeaseId;
}

number_ids! {
    /// One slice, or part of one, of a run: counted from 1 in the order of writing.
    SliceId;
    /// Counts the cursors of one stream, over all runs. Opaque cursors cannot be compared; these can.
    CommitSeq;
    /// Counts the holders of a connection's lease. Checked in every committing transaction.
    Epoch;
    /// One coverage report of a run.
    ReportId;
}
