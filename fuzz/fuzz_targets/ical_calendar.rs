//! Whatever is in a file that claims to be a calendar: no panic, an end in time, and no more occurrences than are allowed.
#![no_main]

#[allow(dead_code, reason = "included as it is; the crate around it would take minutes to build")]
#[path = "../../crates/connectors/src/ical/calendar.rs"]
mod calendar;
#[allow(dead_code, reason = "included as it is; the crate around it would take minutes to build")]
#[path = "../../crates/connectors/src/ical/lines.rs"]
mod lines;
#[allow(dead_code, reason = "included as it is; the crate around it would take minutes to build")]
#[path = "../../crates/connectors/src/ical/occurrences.rs"]
mod occurrences;
#[allow(dead_code, reason = "included as it is; the crate around it would take minutes to build")]
#[path = "../../crates/connectors/src/ical/rule.rs"]
mod rule;
#[allow(dead_code, reason = "included as it is; the crate around it would take minutes to build")]
#[path = "../../crates/connectors/src/ical/zones.rs"]
mod zones;

#[allow(dead_code, reason = "included as it is; the crate around it would take minutes to build")]
#[path = "../../crates/connectors/src/files/lines.rs"]
mod files;
mod scratch_file;

use calendar::Calendar;
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use occurrences::Window;

/// The same as the connector's, for events without a name.
fn digest(parts: &[&str]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(parts.join("\0").as_bytes())
}

fuzz_target!(|input: &[u8]| {
    let window = Window { from: "2024-01-01T00:00:00Z".parse().unwrap(), to: "2027-01-01T00:00:00Z".parse().unwrap() };
    let before = b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\nDTSTART:20240101T090000\n";
    let inside = [before, input, b"\nEND:VEVENT\nEND:VCALENDAR\n"].concat();
    for bytes in [input, &inside] {
        let (mut events, mut buffer) = (Vec::new(), Vec::new());
        let file = scratch_file::with(bytes);
        let read = Calendar::read(&file, &TimeZone::UTC, &mut buffer, |_, event, _| events.push(event));
        let found = occurrences::occurrences(&events, read.unwrap().is_cancelled, &window, 1000);
        assert!(found.list.len() <= 1000);
        for occurrence in &found.list {
            assert!(!occurrence.start.text().is_empty() && !occurrence.original.identity().is_empty());
        }
    }
});
