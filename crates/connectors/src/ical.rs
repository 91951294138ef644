//! Events of calendars, from `.ics` files or from a subscription.

mod calendar;
mod collect;
mod lines;
mod memory;
mod occurrences;
mod rule;
mod sources;
mod zones;

use crate::FirstParty;
use crate::digest::hash;

/// The row of the table.
pub(crate) const ICAL: FirstParty = FirstParty {
    name: "ical",
    manifest: include_str!("ical/manifest.json"),
    needs: ".ics files in the folder that ICAL_IMPORT_DIR names, or the address of a calendar in ICAL_SUBSCRIPTION_URL",
    connector: &collect::ICal,
};

/// A sum over parts.
fn digest(parts: &[&str]) -> u64 {
    hash(parts).digest()
}

/// A name made of parts.
fn name(parts: &[&str]) -> memory::Name {
    let mut name = [0; 12];
    name.copy_from_slice(&hash(parts).digest128().to_be_bytes()[..12]);
    name
}
