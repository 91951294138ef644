//! Whatever stands in a line: no panic; what was read is written as one line and read again the same way;
//! and our grammar is not wider than the library's.
#![no_main]

use gleaner_protocol::{ConnectorMessage, RuntimeMessage};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    if let Ok(message) = ConnectorMessage::decode(line) {
        assert!(serde_json::from_slice::<&serde_json::value::RawValue>(line).is_ok(), "not JSON for others");
        let written = write(|out| message.encode(out));
        let again = ConnectorMessage::decode(&written[..written.len() - 1]);
        let again = again.unwrap_or_else(|violation| panic!("{violation} in what we wrote"));
        // Evidence that could not be read is dropped once, so texts are compared and not values.
        assert_eq!(write(|out| again.encode(out)), written);
    }
    if let Ok(message) = RuntimeMessage::decode(line) {
        let written = write(|out| message.encode(out));
        assert_eq!(RuntimeMessage::decode(&written[..written.len() - 1]), Ok(message));
    }
});

fn write(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    assert_eq!(out.iter().position(|&byte| byte == b'\n'), Some(out.len() - 1), "one line");
    out
}
