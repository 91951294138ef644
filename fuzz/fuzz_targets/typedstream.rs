//! Whatever lies in the column of an archived message: no panic, an end in time, and never more text than there are bytes.
#![no_main]

#[allow(dead_code, reason = "included as it is; the crate around it would take minutes to build")]
#[path = "../../crates/connectors/src/imessage/typedstream.rs"]
mod typedstream;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // Bytes that are no UTF-8 are replaced by a letter of three.
    assert!(typedstream::text(input).is_none_or(|text| text.len() <= 3 * input.len()));
    // What is behind the header of every archive is where the interesting part begins.
    let archive = [b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@", input].concat();
    assert!(typedstream::text(&archive).is_none_or(|text| text.len() <= 3 * archive.len()));
});
