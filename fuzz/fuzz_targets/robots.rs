//! Whatever a host says in its robots.txt, and whatever path is asked for: no panic, an answer in time, and a bounded
//! delay; and a line that forbids everything is not undone by one that comes before it.
#![no_main]

#[allow(dead_code, reason = "included as it is; the crate around it would take minutes to build")]
#[path = "../../crates/fetch/src/robots.rs"]
mod robots;

use libfuzzer_sys::fuzz_target;
use robots::Robots;
use std::time::Duration;

fuzz_target!(|input: &[u8]| {
    let (file, path) = input.split_at(input.len() / 2);
    let path = format!("/{}", String::from_utf8_lossy(path));
    let robots = Robots::parse(file, "gleaner");
    let _: bool = robots.permits(&path);
    assert!(robots.permits("/robots.txt"));
    assert!(robots.crawl_delay().is_none_or(|delay| delay <= Duration::from_secs(3600)));
    assert!(robots.size() <= 100 * file.len());

    let mut shut = file.to_vec();
    shut.extend_from_slice(b"\nuser-agent: gleaner\ndisallow: /\n");
    let shut = Robots::parse(&shut, "gleaner");
    assert!(!shut.permits("/") || file.to_ascii_lowercase().windows(5).any(|part| part == b"allow"));
});
