//! Feeding a decoder and writing down what it said.

use gleaner_protocol::{CoverageField, CoverageReport, Decoder, Event, Limits, Violation};

/// An event that outlives its decoder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Seen {
    /// The line, and the message written again.
    Message(u64, String),
    Keys(u64, CoverageField, Vec<String>),
    End(u64, CoverageReport),
    Violation(Violation),
}

/// Feeds the pieces and tells all events, the end of the output included.
pub(crate) fn decode_pieces<'a>(limits: Limits, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
    let mut decoder = Decoder::new(limits);
    let mut seen = Vec::new();
    for piece in pieces {
        let mut feed = decoder.feed(piece);
        while let Some(event) = feed.next() {
            seen.push(match event {
                Event::Message { line, message } => {
                    let mut out = Vec::new();
                    message.encode(&mut out);
                    Seen::Message(line, String::from_utf8(out).expect("messages are text"))
                }
                Event::CoverageKeys { line, field, keys } => {
                    Seen::Keys(line, field, keys.iter().map(ToOwned::to_owned).collect())
                }
                Event::CoverageEnd { line, report } => Seen::End(line, report),
                Event::Violation(violation) => Seen::Violation(violation),
            });
        }
    }
    seen.extend(decoder.finish().err().map(Seen::Violation));
    seen
}

pub(crate) fn decode(input: &[u8]) -> Vec<Seen> {
    decode_pieces(Limits::default(), [input])
}

/// The violation that this input ends with.
pub(crate) fn violation(input: &[u8]) -> Violation {
    match decode(input).pop() {
        Some(Seen::Violation(violation)) => violation,
        other => panic!("no violation, but {other:?}"),
    }
}
