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

use libfuzzer_sys::fuzz_target;
use parse::Chat;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input).into_owned();
    let Ok(chat) = Chat::read(text.clone()) else { return };
    let messages = (0..chat.len()).map(|at| chat.message(at).unwrap()).collect::<Vec<_>>();
    assert!(messages.windows(2).all(|pair| pair[0].start < pair[1].start));
    assert!((0..chat.len()).all(|at| chat.at_byte(chat.message_start(at)) == at));
    // The last message may go on; those before it are what they were.
    let Ok(longer) = Chat::read(format!("{text}\nmore")) else { panic!("a longer text has the same messages") };
    assert_eq!(longer.len(), chat.len());
    for (at, message) in messages.iter().enumerate().rev().skip(1) {
        assert_eq!(longer.message(at).as_ref(), Some(message));
    }
});
