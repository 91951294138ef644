//! Whatever a provider sends as `Retry-After` and `Date`: no panic, a finite wait (R16), and never
//! something that makes us faster than the same answer without it.
#![no_main]

mod header_block;

use gleaner_governor::{Classifier, DefaultClassifier, RETRY_AFTER_MAX, ResponseView, Verdict};
use header_block::{NOW, headers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut headers = headers(input);
    let read = |headers: &Vec<(&str, &[u8])>, status| {
        DefaultClassifier::new().classify(&ResponseView::new(status, headers), NOW)
    };
    let told = read(&headers, 429);
    assert_eq!(told.verdict, Verdict::Throttled);
    assert!(told.retry_after.is_none_or(|wait| wait <= RETRY_AFTER_MAX));
    assert_eq!(read(&headers, 200).retry_after, None, "a success is no throttle");

    headers.push(("Retry-After", b"7"));
    let with_another = read(&headers, 429).retry_after;
    assert!(with_another >= told.retry_after, "one more header never shortens the wait");
    assert!(with_another.is_some_and(|wait| wait.as_secs() >= 7), "a readable header is never lost");
});
