//! Whatever lies in the store as learned state: no panic, and what is restored never paces faster
//! than the owner's ceiling.
#![no_main]

use gleaner_governor::Learned;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // Malformed state is a cold start, so `None` is a fine answer.
    if let Some(learned) = Learned::decode(input) {
        // To be finished with the restore path: interval >= ceiling for any `learned` that decodes.
        drop(learned);
    }
});
