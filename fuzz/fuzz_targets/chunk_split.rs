//! However the output of a connector is cut, the same events come out (P5). The first bytes choose the
//! limit and the sizes of the pieces.
#![no_main]

use gleaner_protocol::{Decoder, Event, Limits};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[limit, first, second], input)) = input.split_first_chunk::<3>() else { return };
    let line_bytes_max = if limit < 128 { usize::from(limit) } else { Limits::LINE_BYTES_MAX };
    let limits = Limits { line_bytes_max, coverage_bytes_max: 0 };
    let whole = events(limits, [input].into_iter());
    assert_eq!(events(limits, input.chunks(1)), whole, "byte by byte");
    let sizes = [usize::from(first) + 1, usize::from(second) + 1];
    let mut rest = input;
    let pieces = sizes.iter().cycle().map_while(|&size| {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    });
    assert_eq!(events(limits, pieces), whole, "pieces of {sizes:?}");
});

/// All that a decoder says, as text; bodies are written out, because printing them hides them.
fn events<'a>(limits: Limits, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut decoder = Decoder::new(limits);
    let mut seen = Vec::new();
    for piece in pieces {
        let mut feed = decoder.feed(piece);
        while let Some(event) = feed.next() {
            seen.push(match event {
                Event::Message { line, message } => {
                    let mut out = Vec::new();
                    message.encode(&mut out);
                    format!("{line} {}", String::from_utf8_lossy(&out))
                }
                Event::CoverageKeys { line, field, keys } => {
                    format!("{line} {field:?} {:?}", keys.iter().collect::<Vec<_>>())
                }
                other => format!("{other:?}"),
            });
        }
    }
    seen.push(format!("{:?}", decoder.finish()));
    seen
}
