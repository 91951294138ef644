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

use calendar::Calendar;
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use occurrences::Window;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let window = Window { from: "2024-01-01T00:00:00Z".parse().unwrap(), to: "2027-01-01T00:00:00Z".parse().unwrap() };
    let inside = format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\nDTSTART:20240101T090000\n{text}\nEND:VEVENT\nEND:VCALENDAR\n");
    for text in [&*text, &inside] {
        let calendar = Calendar::read(text, &TimeZone::UTC);
        let found = occurrences::occurrences(&calendar, &window, 1000);
        assert!(found.list.len() <= 1000);
        for occurrence in &found.list {
            assert!(!occurrence.start.text().is_empty() && !occurrence.original.identity().is_empty());
        }
    }
});
