//! Whatever is in a text that claims to be an exported chat: no panic, every message has a place of its own and in order,
//! and a longer export counts what they have in common in the same way.
#![no_main]

#[allow(dead_code, reason = "included as it is; the crate around it would take minutes to build")]
#[path = "../../crates/connectors/src/whatsapp/parse.rs"]
mod parse;
#[allow(dead_code, reason = "included as it is; the crate around it would take minutes to build")]
#[path = "../../crates/connectors/src/whatsapp/stamps.rs"]
mod stamps;
#[allow(dead_code, reason = "included as it is; the crate around it would take minutes to build")]
#[path = "../../crates/connectors/src/whatsapp/words.rs"]
mod words;

#[allow(dead_code, reason = "included as it is; the crate around it would take minutes to build")]
#[path = "../../crates/connectors/src/files/lines.rs"]
mod files;
mod scratch_file;

use files::Lines;
use libfuzzer_sys::fuzz_target;
use parse::{Message, Messages, Outline};

/// The messages of a text; `None` where no line begins with a date.
fn messages(bytes: &[u8]) -> Option<Vec<Message>> {
    let (file, mut buffer) = (scratch_file::with(bytes), Vec::new());
    let outline = Outline::read(&file, None, &mut buffer).unwrap()?;
    let (mut reader, mut lines, mut found) = (Messages::new(&outline), Lines::new(&file, 0, &mut buffer), Vec::new());
    while let Some(message) = reader.next(&mut lines).unwrap() {
        found.push(message);
    }
    assert_eq!(found.len() as u64, outline.messages);
    Some(found)
}

fuzz_target!(|input: &[u8]| {
    let Some(chat) = messages(input) else { return };
    assert!(chat.windows(2).all(|pair| pair[0].start < pair[1].start));
    // The last message may go on; those before it are what they were.
    let longer = messages(&[input, b"\nmore"].concat()).expect("a longer text has the same messages");
    assert_eq!(longer.len(), chat.len());
    for (message, again) in chat.iter().zip(&longer).rev().skip(1) {
        assert_eq!(message, again);
    }
});
