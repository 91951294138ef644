//! Whatever is in a file that claims to be a calendar: no panic, an end in time, and no more occurrences than are allowed.
#![no_main]

#[allow(dead_code, unreachable_pub, reason = "included as it is; the crate around it would take minutes to build")]
mod ical {
    #[path = "../../../crates/connectors/src/ical/calendar.rs"]
    pub mod calendar;
    #[path = "../../../crates/connectors/src/ical/lines.rs"]
    pub mod lines;
    #[path = "../../../crates/connectors/src/ical/occurrences.rs"]
    pub mod occurrences;
    #[path = "../../../crates/connectors/src/ical/rule.rs"]
    pub mod rule;
    #[path = "../../../crates/connectors/src/ical/zones.rs"]
    pub mod zones;
}

use ical::calendar::Calendar;
use ical::occurrences::{Window, occurrences};
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let window = Window { from: "2024-01-01T00:00:00Z".parse().unwrap(), to: "2027-01-01T00:00:00Z".parse().unwrap() };
    let inside = format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\nDTSTART:20240101T090000\n{text}\nEND:VEVENT\nEND:VCALENDAR\n");
    for text in [&*text, &inside] {
        let calendar = Calendar::read(text, &TimeZone::UTC);
        let found = occurrences(&calendar, &window, 1000);
        assert!(found.list.len() <= 1000);
        for occurrence in &found.list {
            assert!(!occurrence.start.text().is_empty() && !occurrence.original.identity().is_empty());
        }
    }
});
