//! Whatever a connector writes: no panic, lines in order, one violation at most and as the last event,
//! and never a message from a line that did not end (P5, P6).
#![no_main]

use gleaner_protocol::{Decoder, Event, Limits};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // The first byte chooses the limit, so that short inputs meet it.
    let Some((&choice, input)) = input.split_first() else { return };
    let line_bytes_max = if choice < 128 { usize::from(choice) } else { Limits::LINE_BYTES_MAX };
    let mut decoder = Decoder::new(Limits { line_bytes_max, coverage_bytes_max: 0 });
    let complete_lines = input.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let (mut last_line, mut failed, mut inside) = (0, false, None);
    let mut feed = decoder.feed(input);
    while let Some(event) = feed.next() {
        assert!(!failed, "something came after a violation");
        match event {
            Event::Message { line, .. } => {
                assert!(line > last_line && line <= complete_lines && inside.is_none());
                last_line = line;
            }
            Event::CoverageKeys { line, keys, .. } => {
                assert!(line > last_line && !keys.is_empty());
                inside = Some(line);
            }
            Event::CoverageEnd { line, .. } => {
                assert!(line > last_line && line <= complete_lines && inside.is_none_or(|inside| inside == line));
                (last_line, inside) = (line, None);
            }
            Event::Violation(violation) => {
                assert!(violation.position.is_some_and(|position| position.line > last_line));
                failed = true;
            }
        }
    }
    let end = decoder.finish();
    assert!(!failed || end.is_ok(), "one violation is enough");
    assert!(decoder.feed(b"{}\n").next().is_none() || (!failed && end.is_ok()), "nothing after the end");
});
